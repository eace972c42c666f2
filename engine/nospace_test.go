package engine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestNoSpace runs out of space (or into a bad disk) at every place where writing may: the statement fails with the path
// and the reason, reads go on, the next statement after space is back succeeds, and a re-open finds the acknowledged rows
// and nothing else, no temporary file either.
func TestNoSpace(t *testing.T) {
	places := []struct {
		name, suffix string
		ops          []vfs.Op
	}{
		{"append to the log", ".wal", []vfs.Op{vfs.OpWrite, vfs.OpPreallocate}},
		{"new log", ".wal", []vfs.Op{vfs.OpCreate}},
		{"new data file", ".parquet", []vfs.Op{vfs.OpCreate}},
		{"data file", ".parquet", []vfs.Op{vfs.OpWrite}},
		{"data file's sync", ".parquet", []vfs.Op{vfs.OpSync}},
		{"new vectors", ".puffin", []vfs.Op{vfs.OpCreate}},
		{"vectors", ".puffin", []vfs.Op{vfs.OpWrite}},
		{"vectors' sync", ".puffin", []vfs.Op{vfs.OpSync}},
		{"new manifest", ".manifest.bin.tmp", []vfs.Op{vfs.OpCreate}},
		{"manifest", ".manifest.bin.tmp", []vfs.Op{vfs.OpWrite}},
		{"manifest's sync", ".manifest.bin.tmp", []vfs.Op{vfs.OpSync}},
		{"everything", "", []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpPreallocate, vfs.OpMkdirAll}},
	}
	kinds := []struct {
		err  error
		code base.Code
		text string
	}{
		{syscall.ENOSPC, CodeNoSpace, "no space left"},
		{syscall.EDQUOT, CodeNoSpace, "quota"},
		{syscall.EIO, CodeIO, "input/output error"},
		{&vfs.ShortWrite{N: 77, Err: syscall.ENOSPC}, CodeNoSpace, "no space left"},
	}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, p := range places {
		for _, k := range kinds {
			t.Run(p.name+"/"+k.err.Error(), func(t *testing.T) { noSpaceRun(t, p.suffix, p.ops, k.err, k.code, k.text) })
		}
	}
}

func noSpaceRun(t *testing.T, suffix string, ops []vfs.Op, fault error, code base.Code, text string) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	o := Options{MemtableBytes: minMemtableBytes, MaxImmutables: 2, L0StopFiles: 4, L0SlowFiles: 3, L0Files: 2}
	db := openMem(t, fs, o)
	acked := map[int64]int64{}
	put := func(id, payload int64) error {
		_, err := db.Put(bigRow(id, payload))
		if err == nil {
			acked[id] = payload
		}
		return err
	}
	for id := range int64(8) { // some of it in files, whose rows are put again below
		must(t, put(id, 0))
	}
	must(t, db.Flush())
	var full atomic.Bool
	full.Store(true)
	fs.set(func(op vfs.Op, path string) error {
		if full.Load() && strings.HasSuffix(path, suffix) {
			for _, o := range ops {
				if o == op {
					return fault
				}
			}
		}
		return nil
	})
	var err error
	for i := int64(1); err == nil; i++ {
		if i > 60 {
			t.Fatal("no statement fails")
		}
		err = put(i%11, i)
	}
	wantCode(t, err, code)
	if !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "/db/") || !strings.Contains(err.Error(), suffix) {
		t.Fatalf("the error does not say what and where: %v", err)
	}
	if err := db.Flush(); err != nil { // the rows may be in files by now
		wantCode(t, err, code)
	}
	checkAcked(t, db, acked)
	full.Store(false)
	must(t, put(100, 100))
	must(t, put(3, 101))
	checkAcked(t, db, acked)
	full.Store(true)
	for i := int64(1); i < 5; i++ {
		_ = put(20+i, i) // whatever
	}
	killed(db)
	full.Store(false)
	db = openMem(t, fs, o)
	checkAcked(t, db, acked)
	must(t, db.Flush())
	must(t, db.Close())
	checkLeftovers(t, db, mem)
	db.Free()
}

// TestNoSpaceToCompact: writers that wait for a compaction get its error, and go on at once when space is back, though
// compactions have failed so often that the next one would be long in coming.
func TestNoSpaceToCompact(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 2, L0Files: 2, L0SlowFiles: 2, L0StopFiles: 3})
	defer db.Free()
	var full atomic.Bool
	full.Store(true)
	fs.set(func(op vfs.Op, path string) error {
		if full.Load() && op == vfs.OpWrite && strings.Contains(path, "/data/") && !strings.Contains(path, "/L0/") {
			return syscall.ENOSPC
		}
		return nil
	})
	acked := map[int64]int64{}
	put := func(id int64) error {
		_, err := db.Put(bigRow(id, id))
		if err == nil {
			acked[id] = id
		}
		return err
	}
	failures := 0
	for id := int64(0); failures < 5; id++ {
		if id > 200 {
			t.Fatal("writers never stop")
		}
		if err := put(id); err != nil {
			failures++
			wantCode(t, err, CodeNoSpace)
			if !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "/data/") {
				t.Fatalf("the error does not say what and where: %v", err)
			}
		}
	}
	full.Store(false)
	must(t, put(1000))
	checkAcked(t, db, acked)
	if st := db.Stats(); st.CompactionErrors < 5 || st.StopsL0 < 5 {
		t.Fatalf("%d failed compactions, %d stops", st.CompactionErrors, st.StopsL0)
	}
}

// checkAcked compares the table with the payloads of the rows that were acknowledged.
func checkAcked(t *testing.T, db *DB, acked map[int64]int64) {
	t.Helper()
	it, err := mustSnapshot(t, db).Scan(ScanOptions{Projection: []int{1, 3}})
	must(t, err)
	rows := collect(t, it)
	for _, r := range rows {
		if want, ok := acked[r[0].Int64()]; !ok || r[1].Lo != Double(float64(want)).Lo {
			t.Fatalf("row %v, acknowledged was %v (%v)", r, want, ok)
		}
	}
	if len(rows) != len(acked) {
		t.Fatalf("%d rows, %d were acknowledged", len(rows), len(acked))
	}
}

// checkLeftovers fails where a file lies around that nobody needs: of a write that failed, or temporary.
func checkLeftovers(t *testing.T, db *DB, fs vfs.FS) {
	t.Helper()
	needed := map[string]bool{}
	versions, err := db.c.store.Versions()
	must(t, err)
	for _, v := range versions {
		m, err := db.c.store.At(v)
		must(t, err)
		for _, f := range m.Files {
			needed[f.Path], needed[f.DVPath] = true, true
		}
	}
	levels, err := fs.List("/db/data")
	must(t, err)
	for _, l := range levels {
		names, err := fs.List("/db/data/" + l)
		must(t, err)
		for _, n := range names {
			if rel := "data/" + l + "/" + n; !needed[rel] {
				t.Errorf("%s is left over", rel)
			}
		}
	}
	names, err := fs.List("/db/" + manifest.Dir)
	must(t, err)
	for _, n := range names {
		if strings.HasSuffix(n, ".tmp") {
			t.Errorf("%s is left over", n)
		}
	}
}

// TestFailedSync: after a failed fsync of the log the statement's rows are gone, also after a re-open, and writes fail
// until then. Where another file's fsync fails its data is written anew, to another file.
func TestFailedSync(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{})
	m := model{1: 1}
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpSync && strings.HasSuffix(path, ".wal") {
			return syscall.EIO
		}
		return nil
	})
	rows := make([][]Value, 200) // so many that they are put into the memtable meanwhile
	for i := range rows {
		rows[i] = testRow(int64(i), 7)
	}
	_, err = db.PutBatch(rows)
	wantCode(t, err, CodeIO)
	check(t, db, m)
	fs.set(nil)
	_, err = db.Put(testRow(3, 3))
	wantCode(t, err, CodeIO)
	wantCode(t, db.Flush(), CodeIO)
	check(t, db, m)
	killed(db)
	db = openMem(t, fs, Options{})
	defer db.Free()
	check(t, db, m)
	_, err = db.Put(testRow(3, 3))
	must(t, err)
	m[3] = 3
	check(t, db, m)
}

// TestSmallDisk fills a real file system of 24 MB, if this process may mount one.
func TestSmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("no file system to fill: mount: %v", err)
	}
	defer func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	filler, err := vfs.OS.Create(dir + "/filler")
	must(t, err)
	for range 8 {
		_, err := filler.Write(make([]byte, 1<<20))
		must(t, err)
	}
	must(t, filler.Close())
	o := Options{MemtableBytes: minMemtableBytes, MaxImmutables: 2}
	db, err := Open(dir+"/db", o)
	must(t, err)
	must(t, db.CreateTable(testSchema()))
	acked := map[int64]int64{}
	put := func(id, payload int64) error {
		row := testRow(id, payload)
		row[2] = String(strings.Repeat(fmt.Sprintf("%d,", payload*id), 20_000))
		_, err := db.Put(row)
		if err == nil {
			acked[id] = payload
		}
		return err
	}
	failures := 0
	for id := int64(0); failures < unlessShort(6, 2); id++ {
		err := put(id, id)
		if err != nil {
			failures++
			wantCode(t, err, CodeNoSpace)
			if !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), dir) {
				t.Fatalf("the error does not say what and where: %v", err)
			}
			checkAcked(t, db, acked)
		}
		if id > 5000 {
			t.Fatal("the disk does not get full")
		}
	}
	must(t, vfs.OS.Remove(dir+"/filler"))
	must(t, put(1_000_000, 1))
	must(t, db.Flush())
	must(t, put(2_000_000, 1))
	checkAcked(t, db, acked)
	killed(db)
	db, err = Open(dir+"/db", o)
	must(t, err)
	defer db.Free()
	checkAcked(t, db, acked)
}
