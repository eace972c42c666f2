package engine

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The file TABLES in the database directory lists the tables besides the root one, each with the directory that has its
// metadata and data. It is text, replaced as a whole: that is when a table comes to be, and when it is gone. A database
// that never had a second table has no such file. Names are not in it: a table's name stands in its own manifest, so that
// a rename is one commit.
//
//	merutable tables 1
//	version 3            one more with every change
//	next 5               all ids that were ever given are below
//	sequence 1200        a sequence number not below any row of a table that was dropped
//	table 2 tables/2     id and directory of each table, ascending
//	checksum 0123abcd    CRC-32C of what stands above, in hexadecimal
const (
	catalogFileName = "TABLES"
	catalogFormat   = "merutable tables 1"
	// tablesDir has the directories of the tables besides the root one.
	tablesDir = "tables"
	// maxTables bounds the tables of a database.
	maxTables = 4096
	// maxCatalogBytes is far above what the file of so many tables takes.
	maxCatalogBytes = 1 << 20
)

// catalog is what TABLES holds. It is immutable.
type catalog struct {
	version uint64 // 0: there is no file
	nextID  uint32
	// lastSeq is not below any row of a table that was dropped.
	lastSeq base.Seq
	ids     []uint32 // of the tables besides the root one, ascending
}

var catalogCRC = crc32.MakeTable(crc32.Castagnoli)

// tableDir returns the directory of a table, relative to the database's.
func tableDir(id uint32) string { return tablesDir + "/" + strconv.FormatUint(uint64(id), 10) }

// parseTableDir returns the id that a name in tablesDir stands for.
func parseTableDir(name string) (id uint32, ok bool) {
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == name
}

// has reports whether a table is listed; the root one always is.
func (k *catalog) has(id uint32) bool {
	_, found := slices.BinarySearch(k.ids, id)
	return found || id == 0
}

// dropped reports whether there was a table of that id.
func (k *catalog) dropped(id uint32) bool { return !k.has(id) && id < k.nextID }

// next returns a copy with the next version.
func (k *catalog) next() *catalog {
	n := *k
	n.version++
	n.ids = slices.Clone(k.ids)
	return &n
}

func (k *catalog) add(id uint32) {
	k.ids = append(k.ids, id)
	slices.Sort(k.ids)
	k.nextID = max(k.nextID, id+1)
}

func (k *catalog) remove(id uint32) {
	k.ids = slices.DeleteFunc(k.ids, func(i uint32) bool { return i == id })
}

func (k *catalog) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nversion %d\nnext %d\nsequence %d\n", catalogFormat, k.version, k.nextID, k.lastSeq)
	for _, id := range k.ids {
		fmt.Fprintf(&b, "table %d %s\n", id, tableDir(id))
	}
	return b.String()
}

// write replaces the file, atomically; its directory is the caller's to sync.
func (k *catalog) write(fs vfs.FS, root string) error { return k.writeAs(fs, root, catalogFileName) }

// writeAs is write under another name.
func (k *catalog) writeAs(fs vfs.FS, root, name string) error {
	return replaceFile(fs, fs.Join(root, name), k.file())
}

// file returns the contents of the file.
func (k *catalog) file() string {
	text := k.text()
	return fmt.Sprintf("%schecksum %08x\n", text, crc32.Checksum([]byte(text), catalogCRC))
}

// readCatalog reads the file of a database directory, which need not be there.
func readCatalog(fs vfs.FS, root string) (*catalog, error) {
	objects, remote := fs.(*objfs.FS)
	if !remote {
		return readCatalogFile(fs, fs.Join(root, catalogFileName))
	}
	for i := 0; ; i++ {
		name, err := newestCatalogName(objects, root)
		if err != nil {
			return nil, err
		}
		if name == "" {
			return noCatalog(), nil
		}
		const attempts = 10
		k, err := readCatalogFile(fs, fs.Join(root, name))
		if err != nil || k.version > 0 || i == attempts { // else it was reclaimed meanwhile: there is a newer one
			return k, err
		}
	}
}

func noCatalog() *catalog { return &catalog{nextID: 1} }

// readCatalogFile reads one file, which need not be there.
func readCatalogFile(fs vfs.FS, path string) (*catalog, error) {
	f, err := fs.Open(path)
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return noCatalog(), nil
		}
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxCatalogBytes))
	if err != nil {
		return nil, base.Wrapf(base.CodeIO, err, "%s", path)
	}
	return parseCatalog(path, string(data))
}

func parseCatalog(path, text string) (*catalog, error) {
	bad := func(what string) (*catalog, error) {
		return nil, base.Errorf(base.CodeCorruption, "%s: %s", path, what)
	}
	lines := strings.SplitAfter(text, "\n")
	if first := strings.TrimSuffix(lines[0], "\n"); first != catalogFormat {
		if strings.HasPrefix(first, "merutable tables ") {
			return nil, base.Errorf(base.CodeUnsupported, "%s: line 1: %q: this version reads %q", path, first, catalogFormat)
		}
		return bad("it does not begin with \"" + catalogFormat + "\"")
	}
	if len(lines) < 6 || lines[len(lines)-1] != "" {
		return bad("it ends early")
	}
	last := lines[len(lines)-2]
	body := strings.TrimSuffix(text, last)
	if last != fmt.Sprintf("checksum %08x\n", crc32.Checksum([]byte(body), catalogCRC)) {
		return bad("the checksum does not fit")
	}
	k := &catalog{}
	n, err := fmt.Sscanf(body[len(lines[0]):], "version %d\nnext %d\nsequence %d\n", &k.version, &k.nextID, &k.lastSeq)
	if err != nil || n != 3 || k.version == 0 || k.nextID == 0 || k.lastSeq > base.MaxSeq {
		return bad("version, next or sequence is missing or out of range")
	}
	for i, line := range lines[4 : len(lines)-2] {
		var id uint32
		var dir string
		if n, err := fmt.Sscanf(line, "table %d %s\n", &id, &dir); err != nil || n != 2 || dir != tableDir(id) || id == 0 || id >= k.nextID ||
			len(k.ids) > 0 && id <= k.ids[len(k.ids)-1] {
			return bad(fmt.Sprintf("line %d: %q", i+5, line))
		}
		k.ids = append(k.ids, id)
	}
	if len(k.ids) > maxTables {
		return bad(fmt.Sprintf("%d tables: the limit is %d", len(k.ids), maxTables))
	}
	return k, nil
}

// commitCatalog makes next the catalog, durably. It runs under writeMu. Where nobody knows whether that happened the
// database takes no more writes.
func (d *database) commitCatalog(next *catalog) error {
	if d.remote() {
		return d.putCatalog(next)
	}
	if err := next.write(d.fs, d.root); err != nil {
		if now, e := readCatalog(d.fs, d.root); e == nil && now.version == d.catalog.version {
			return err // it did not happen, and may be tried again
		}
		return d.fail(err)
	}
	if err := d.fs.SyncDir(d.root); err != nil {
		return d.fail(err)
	}
	return nil
}
