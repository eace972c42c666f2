package engine

import (
	"bytes"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/dv"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
	"github.com/merutable/merutable/engine/internal/wal"
)

// Verification reads everything that a database directory holds and checks what reads take on trust. It opens no engine,
// so that it also works where nothing else does, and goes on after a fault, so that it names all that is damaged. The
// manifests that it reads from are pinned as a reader in another process pins them, whoever writes meanwhile.

// VerifyItem is a finding about one file, or about the table as a whole.
type VerifyItem struct {
	// Kind is manifest, data, deletes, log, options, tables or table; Path is absolute.
	Kind, Path string
	// What was checked, or found wrong.
	What string
	// Status is ok, damaged, missing, unreadable, or unfinished: the end of the newest log that is being written or was
	// torn by a crash.
	Status string
	// Detail says more.
	Detail string
}

// The values of VerifyItem.Status.
const (
	VerifyOK         = "ok"
	VerifyDamaged    = "damaged"
	VerifyMissing    = "missing"
	VerifyUnreadable = "unreadable"
	VerifyUnfinished = "unfinished"
)

// VerifyOptions say who follows a verification.
type VerifyOptions struct {
	// Interrupt, if not nil, is asked often; true ends the call with CodeCancelled.
	Interrupt func() bool
	// Progress, if not nil, is told how much is done, from 0 to 1.
	Progress func(done float64)
	// Found is called with each finding: one for each file that is as it should be, at least one for each that is not.
	Found func(VerifyItem)
	// S3 says how the S3 of a URL is reached.
	S3 S3Config

	store objstore.Store // of a URL, for tests
}

// Verify checks the database in a directory, or in the object store of a URL. It writes nothing and takes no lock of a writer's. The error says why it
// could not go on; damage is no error.
func Verify(dir string, o VerifyOptions) error { return verifyIn(vfs.OS, dir, o) }

func verifyIn(fs vfs.FS, dir string, o VerifyOptions) error {
	opened := Options{S3: o.S3, fs: fs, store: o.store}
	key, err := opened.resolve(dir, false)
	if err != nil {
		return err
	}
	root := key.dir
	remote := objstore.IsURL(root)
	if remote {
		opened.MemoryLimit = verifyBlockBytes * budgetShares / blockShares
		if fs, err = opened.mount(root); err != nil {
			return err
		}
	}
	whole := &verifier{fs: fs, dir: root, o: o}
	dirs, err := whole.tables()
	if err != nil {
		return err
	}
	whole.options()
	// Logs are the tables' together: the first one that any table needs counts.
	minLog, versions := uint64(math.MaxUint64), 0
	for i, dir := range dirs {
		v := &verifier{
			fs: fs, dir: dir, store: manifestsIn(fs, dir), o: o, checked: map[string]bool{},
			from: float64(i) / float64(len(dirs)), share: 1 / float64(len(dirs)),
		}
		log, n, err := v.run()
		if err != nil {
			return err
		}
		if versions += n; n > 0 {
			minLog = min(minLog, log)
		} else if i > 0 && whole.listed(dir) {
			whole.found("table", dir, "manifest", VerifyMissing, "the table is listed, and has no manifest")
		}
	}
	if versions == 0 {
		return base.Errorf(base.CodeNotFound, "no database in %s", root)
	}
	if !remote { // an object store has no logs
		if err := whole.logs(minLog); err != nil {
			return err
		}
	}
	if o.Progress != nil {
		o.Progress(1)
	}
	return nil
}

// verifyBlockBytes holds a data file of the usual size, which is read several times.
const verifyBlockBytes = 128 << 20

// tables returns the directories of all tables.
func (v *verifier) tables() ([]string, error) {
	dirs := []string{v.dir}
	name := v.fs.Join(v.dir, catalogFileName)
	k, err := readCatalog(v.fs, v.dir)
	if err != nil {
		v.fault("tables", name, "contents", err)
		return dirs, nil
	}
	if k.version > 0 {
		v.found("tables", name, "contents", VerifyOK, fmt.Sprintf("%d tables besides the one in the root", len(k.ids)))
	}
	for _, id := range k.ids {
		dirs = append(dirs, v.fs.Join(v.dir, tableDir(id)))
	}
	return dirs, nil
}

// listed reports whether a table's directory is among the database's still.
func (v *verifier) listed(dir string) bool {
	k, err := readCatalog(v.fs, v.dir)
	return err == nil && slices.ContainsFunc(k.ids, func(id uint32) bool { return v.fs.Join(v.dir, tableDir(id)) == dir })
}

// verifier is the verification of one table, or of what tables have in common.
type verifier struct {
	fs    vfs.FS
	dir   string
	store manifest.Store
	o     VerifyOptions

	checked    map[string]bool // files and deletion vectors, by path in the manifest
	total, did float64         // bytes
	told       float64
	from,
	share float64 // of the whole
}

// run returns the first log that the table needs, and how many versions it has.
func (v *verifier) run() (minLog uint64, n int, err error) {
	versions, err := v.store.Versions()
	if err != nil || len(versions) == 0 {
		return 0, 0, err
	}
	newest := versions[len(versions)-1]
	for i := len(versions) - 1; i >= 0; i-- {
		log, err := v.version(versions[i], newest)
		if err != nil {
			return 0, 0, err
		}
		minLog = max(minLog, log)
	}
	v.tell(1)
	return minLog, len(versions), nil
}

func (v *verifier) found(kind, file, what, status, detail string) {
	v.o.Found(VerifyItem{Kind: kind, Path: file, What: what, Status: status, Detail: detail})
}

// fault reports what an error says about a file.
func (v *verifier) fault(kind, file, what string, err error) {
	status := VerifyDamaged
	switch base.CodeOf(err) {
	case base.CodeNotFound:
		status = VerifyMissing
	case base.CodeIO, base.CodeUnsupported, base.CodeLocked, base.CodeObjectStore, base.CodeTimeout:
		status = VerifyUnreadable
	}
	v.found(kind, file, what, status, err.Error())
}

func (v *verifier) ask() error {
	if v.o.Interrupt != nil && v.o.Interrupt() {
		return base.Errorf(base.CodeCancelled, "interrupted")
	}
	return nil
}

// tell tells how much is done, never less than before: older versions add to what there is to do.
func (v *verifier) tell(done float64) {
	if v.told = max(v.told, min(done, 1)); v.o.Progress != nil {
		v.o.Progress(v.from + v.told*v.share)
	}
}

func (v *verifier) advance(bytes int64) {
	if v.did += float64(bytes); v.total > 0 {
		v.tell(v.did / v.total * 0.98)
	}
}

func (v *verifier) options() {
	f, err := readOptionsFile(v.fs, v.dir)
	if err == nil {
		_, err = f.apply(Options{})
	}
	name := v.fs.Join(v.dir, optionsFileName)
	if err != nil {
		v.fault("options", name, "contents", err)
	} else if _, e := v.fs.Stat(name); e == nil {
		v.found("options", name, "contents", VerifyOK, "")
	}
}

// version checks one manifest and the files that no newer one named. It returns the first log that it needs.
func (v *verifier) version(version, newest int64) (minLog uint64, err error) {
	name := v.fs.Join(v.dir, manifest.Dir, manifest.FileName(version))
	m, err := v.store.At(version)
	if err == nil && base.CodeOf(v.pin(m)) != base.CodeOK {
		return 0, nil // it is just being removed
	}
	if err != nil {
		if base.CodeOf(err) != base.CodeNotFound {
			v.fault("manifest", name, "contents", err)
		}
		return 0, nil
	}
	release, err := v.store.Pin(m)
	if err == nil {
		defer release.Close()
	}
	live := int64(0)
	size := int64(0)
	for _, f := range m.Files {
		live += f.Live()
		if !v.checked[f.Path] {
			size += 2 * f.Size // it is read twice: sums, then rows
		}
	}
	v.found("manifest", name, "contents", VerifyOK, fmt.Sprintf("%d files, %d rows", len(m.Files), live))
	if version == newest {
		v.total = float64(size) * 1.2
	} else {
		v.total += float64(size)
	}
	t, err := v.table(m)
	if err != nil {
		v.fault("manifest", name, "schema", err)
		return m.MinLog, nil
	}
	for _, f := range m.Files {
		if err := v.file(t, m, f, version == newest); err != nil {
			return 0, err
		}
	}
	if version == newest && !m.Dropped {
		err = v.unique(t, m)
	}
	return m.MinLog, err
}

// pin finds out whether a manifest that was read is still there.
func (v *verifier) pin(m *manifest.Manifest) error {
	l, err := v.store.Pin(m)
	switch base.CodeOf(err) {
	case base.CodeOK:
		return l.Close()
	case base.CodeNotFound, base.CodeLocked:
		return err
	}
	return nil
}

func (v *verifier) table(m *manifest.Manifest) (*table, error) {
	if m.Dropped {
		return nil, nil
	}
	if err := m.Schema.Validate(); err != nil {
		return nil, err
	}
	return newTable(m.Schema)
}

// gone reports whether a version is not there any more: then its files need not be.
func (v *verifier) gone(m *manifest.Manifest) bool {
	_, err := v.store.At(m.Version)
	return base.CodeOf(err) == base.CodeNotFound
}

// file checks a data file and its deletion vector, unless that was done. An error says that the verification ends.
func (v *verifier) file(t *table, m *manifest.Manifest, f *manifest.File, newest bool) error {
	if err := v.ask(); err != nil {
		return err
	}
	name := v.fs.Join(v.dir, f.Path)
	if !v.checked[f.Path] {
		v.checked[f.Path] = true
		what, err := v.contents(t, f, name)
		switch {
		case base.CodeOf(err) == base.CodeCancelled:
			return err
		case err == nil:
			v.found("data", name, "checksums, rows, keys, index, filters, bounds", VerifyOK, fmt.Sprintf("%d rows", f.Rows))
		case base.CodeOf(err) == base.CodeNotFound && !newest && v.gone(m):
		default:
			v.fault("data", name, what, err)
		}
		v.advance(2 * f.Size)
	}
	if f.DVPath == "" {
		return nil
	}
	return v.deletes(m, f, newest)
}

// contents checks a data file against itself and against what the manifest says of it. what names the check that failed.
func (v *verifier) contents(t *table, f *manifest.File, name string) (what string, err error) {
	info, err := v.fs.Stat(name)
	if err != nil {
		return "file", err
	}
	if info.Size != f.Size {
		return "size", base.Errorf(base.CodeCorruption, "%s has %d bytes, the manifest says %d", name, info.Size, f.Size)
	}
	// A reader of its own: what others have read and kept says nothing about the file as it is.
	const verifyCache = 1 << 20
	r, err := sst.Open(v.fs, name, f.Size, t.schema, sst.NewCache(verifyCache))
	if err != nil {
		return "footer", err
	}
	defer r.Close()
	if r.Rows() != f.Rows {
		return "rows", base.Errorf(base.CodeCorruption, "%s has %d rows, the manifest says %d", name, r.Rows(), f.Rows)
	}
	var row int64
	var first, last []byte
	o := sst.VerifyOptions{Ask: v.ask}
	seqMin, seqMax := base.Seq(base.MaxSeq), base.Seq(0)
	o.Row = func(key []byte, seq base.Seq, op base.Op) error {
		if row == 0 {
			first = bytes.Clone(key)
		}
		last = append(last[:0], key...)
		seqMin, seqMax = min(seqMin, seq), max(seqMax, seq)
		if op != base.OpPut && op != base.OpDelete {
			return base.Errorf(base.CodeCorruption, "row %d has operation %d", row, op)
		}
		row++
		return nil
	}
	if err := r.Verify(o); err != nil {
		return "contents", err
	}
	if !bytes.Equal(first, f.KeyMin) || !bytes.Equal(last, f.KeyMax) {
		return "bounds", base.Errorf(base.CodeCorruption, "%s: the first or the last key is not what the manifest says", name)
	}
	if !f.SeqInherited && (seqMin != f.SeqMin || seqMax != f.SeqMax) || f.SeqInherited && (seqMax != 0 || f.SeqMin != f.SeqMax) {
		return "sequence numbers", base.Errorf(base.CodeCorruption, "%s has sequence numbers %d to %d, the manifest says %d to %d", name, seqMin, seqMax, f.SeqMin, f.SeqMax)
	}
	return "", nil
}

// deletes checks a deletion vector, and once the file that holds it.
func (v *verifier) deletes(m *manifest.Manifest, f *manifest.File, newest bool) error {
	id := f.DVPath + " " + strconv.FormatInt(f.DVOffset, 10)
	name := v.fs.Join(v.dir, f.DVPath)
	if v.checked[id] {
		return nil
	}
	v.checked[id] = true
	bm, err := dv.Read(v.fs, name, f.DVOffset, f.DVLength, f.Rows)
	if err == nil && int64(bm.GetCardinality()) != f.Deleted {
		err = base.Errorf(base.CodeCorruption, "%s marks %d rows of %s, the manifest says %d", name, bm.GetCardinality(), f.Path, f.Deleted)
	}
	if err == nil {
		err = v.puffin(name, f)
	}
	switch {
	case err == nil:
		v.found("deletes", name, "checksum, rows", VerifyOK, fmt.Sprintf("%d rows of %s", f.Deleted, path.Base(f.Path)))
	case base.CodeOf(err) == base.CodeNotFound && !newest && v.gone(m):
	default:
		v.fault("deletes", name, "rows of "+path.Base(f.Path), err)
	}
	return v.ask()
}

// puffin checks the file of a deletion vector as a whole.
func (v *verifier) puffin(name string, f *manifest.File) error {
	stem := strings.TrimSuffix(name, ".puffin")
	version, err := strconv.ParseInt(stem[strings.LastIndexByte(stem, '-')+1:], 10, 64)
	if err != nil {
		return base.Errorf(base.CodeCorruption, "%s is not named as the engine names deletion vectors", name)
	}
	blobs, err := dv.Verify(v.fs, name, version)
	if err != nil {
		return err
	}
	if of := blobs[dv.Ref{Offset: f.DVOffset, Length: f.DVLength}]; of != f.Path {
		return base.Errorf(base.CodeCorruption, "%s: the deletion vector at offset %d is of %q, not of %s", name, f.DVOffset, of, f.Path)
	}
	return nil
}

// logs checks the logs from a number on.
func (v *verifier) logs(minLog uint64) error {
	dir := v.fs.Join(v.dir, "wal")
	if recorded, err := readText(v.fs, v.fs.Join(v.dir, logDirFile)); err != nil {
		v.fault("log", v.fs.Join(v.dir, logDirFile), "contents", err)
		return nil
	} else if recorded != "" {
		dir = recorded
	}
	numbers, err := listLogs(v.fs, dir, minLog)
	if err != nil {
		v.fault("log", dir, "directory", err)
		return nil
	}
	for i, n := range numbers {
		if err := v.log(v.fs.Join(dir, wal.Name(n)), n, i == len(numbers)-1); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) log(name string, number uint64, last bool) error {
	records := 0
	valid, err := wal.Replay(v.fs, name, number, last, func(int64, []byte) error {
		records++
		const askEvery = 256
		if records%askEvery == 0 {
			return v.ask()
		}
		return nil
	})
	switch base.CodeOf(err) {
	case base.CodeOK:
	case base.CodeCancelled:
		return err
	case base.CodeNotFound:
		return nil // its rows were flushed meanwhile
	default:
		v.fault("log", name, "records", err)
		return nil
	}
	zeros, err := v.zerosFrom(name, valid)
	switch {
	case base.CodeOf(err) == base.CodeNotFound:
	case err != nil:
		v.fault("log", name, "records", err)
	case zeros:
		v.found("log", name, "records", VerifyOK, fmt.Sprintf("%d records, %d bytes", records, valid))
	default:
		v.found("log", name, "records", VerifyUnfinished,
			fmt.Sprintf("%d records, %d bytes; what follows is no whole record: it is being written, or was torn by a crash", records, valid))
	}
	return nil
}

// zerosFrom reports whether a file has nothing but zeros behind an offset.
func (v *verifier) zerosFrom(name string, at int64) (bool, error) {
	f, err := v.fs.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	buf := make([]byte, 64<<10)
	for at < size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 {
			return false, err
		}
		for _, b := range buf[:n] {
			if b != 0 {
				return false, nil
			}
		}
		at += int64(n)
	}
	return true, nil
}
