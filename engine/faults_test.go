package engine

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// faultyFS fails the operations that a test asks for.
type faultyFS struct {
	*vfs.ErrorFS
	fail atomic.Pointer[func(op vfs.Op, path string) error]
}

func newFaultyFS(inner vfs.FS) *faultyFS {
	f := &faultyFS{}
	f.ErrorFS = vfs.NewErrorFS(inner, func(op vfs.Op, path string) error {
		if fn := f.fail.Load(); fn != nil {
			return (*fn)(op, path)
		}
		return nil
	})
	return f
}

func (f *faultyFS) set(fn func(op vfs.Op, path string) error) {
	if fn == nil {
		f.fail.Store(nil)
		return
	}
	f.fail.Store(&fn)
}

func noSpace(part string, ops ...vfs.Op) func(vfs.Op, string) error {
	return func(op vfs.Op, path string) error {
		for _, o := range ops {
			if o == op && strings.Contains(path, part) {
				return base.Errorf(base.CodeNoSpace, "write %s: no space left on device", path)
			}
		}
		return nil
	}
}

// TestLogFull: a full disk fails the write with the path, reads go on, and writes succeed again once there is space.
func TestLogFull(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{})
	m := model{}
	for id := range int64(20) {
		_, err := db.Put(testRow(id, id))
		must(t, err)
		m[id] = id
	}
	fs.set(noSpace(".wal", vfs.OpWrite, vfs.OpPreallocate))
	_, err := db.Put(testRow(100, 1))
	wantCode(t, err, CodeNoSpace)
	if !strings.Contains(err.Error(), ".wal") {
		t.Fatalf("the error does not name the file: %v", err)
	}
	check(t, db, m)
	fs.set(nil)
	_, err = db.Put(testRow(101, 2))
	must(t, err)
	m[101] = 2
	check(t, db, m)
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	check(t, db, m)
}

// TestRotationFails: where no new log can be made the write fails, a smaller one that would have fitted the old memtable
// too, reads go on, and writing resumes once there is space.
func TestRotationFails(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	big := testRow(1, 1)
	big[2] = String(strings.Repeat("x", minMemtableBytes/5))
	for range 4 {
		_, err := db.Put(big)
		must(t, err)
	}
	fs.set(noSpace(".wal", vfs.OpCreate))
	_, err := db.Put(big)
	wantCode(t, err, CodeNoSpace)
	_, err = db.Put(testRow(2, 2))
	wantCode(t, err, CodeNoSpace)
	if _, found, err := db.Get(testKey(1)); err != nil || !found {
		t.Fatalf("get: %v, %v", found, err)
	}
	fs.set(nil)
	_, err = db.Put(testRow(1, 3))
	must(t, err)
	_, err = db.Put(testRow(2, 2))
	must(t, err)
	check(t, db, model{1: 3, 2: 2})
	must(t, db.Flush())
	check(t, db, model{1: 3, 2: 2})
}

// TestStallEnds: writers that stopped because flushes failed go on with the first write after the cause is gone.
func TestStallEnds(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 1})
	defer db.Free()
	fs.set(noSpace(".parquet", vfs.OpWrite))
	big := testRow(1, 1)
	big[2] = String(strings.Repeat("x", minMemtableBytes/5))
	var err error
	for i := 0; err == nil; i++ {
		if i > 100 {
			t.Fatal("writers never stop")
		}
		_, err = db.Put(big)
	}
	wantCode(t, err, CodeNoSpace)
	fs.set(nil)
	_, err = db.Put(testRow(1, 5))
	must(t, err)
	check(t, db, model{1: 5})
}

// TestLoadLookupFails: a load whose lookups fail after its files were written gives them up.
func TestLoadLookupFails(t *testing.T) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	_, err := db.Put(testRow(1_000_000, 1))
	must(t, err)
	must(t, db.Flush())
	before := listTree(t, mem)
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpOpen && strings.Contains(path, ".parquet") {
			return base.Errorf(base.CodeIO, "open %s: input/output error", path)
		}
		return nil
	})
	w, err := db.NewWrite()
	must(t, err)
	for i := int64(0); i < 60_000 && err == nil; i++ {
		err = w.Put(testRow(i, i))
	}
	must(t, err)
	must(t, w.Put(testRow(1_000_000, 2)))
	_, err = w.Commit()
	wantCode(t, err, CodeIO)
	w.Close()
	fs.set(nil)
	if after := listTree(t, mem); after != before {
		t.Fatalf("files before:\n%s\nafter:\n%s", before, after)
	}
	db.c.pending.mu.Lock()
	defer db.c.pending.mu.Unlock()
	if n := len(db.c.pending.set); n > 0 {
		t.Fatalf("%d files are still marked as being written", n)
	}
}

// TestDropDuringFlush: a table may be dropped, and made anew with files of its own, while one of its memtables is written
// to a file.
func TestDropDuringFlush(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	_, err := db.PutBatch([][]Value{testRow(1, 1), testRow(2, 2)})
	must(t, err)
	must(t, db.Flush())
	_, err = db.Put(testRow(1, 7))
	must(t, err)
	writing, dropped := make(chan struct{}), make(chan struct{})
	var stopped atomic.Bool
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpWrite && strings.HasSuffix(path, ".parquet") && stopped.CompareAndSwap(false, true) {
			close(writing)
			<-dropped
		}
		return nil
	})
	flushed := make(chan error)
	go func() { flushed <- db.Flush() }()
	<-writing
	must(t, db.DropTable())
	must(t, db.CreateTable(testSchema()))
	m := model{}
	for id := range int64(20_000) {
		m[id] = id
	}
	_, err = loadRows(db, int64(len(m)), nil)
	must(t, err)
	close(dropped)
	must(t, <-flushed)
	check(t, db, m)
}

// TestSyncFails: after a failed fsync nothing is acknowledged any more until the database is opened again.
func TestSyncFails(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{})
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpSync && strings.HasSuffix(path, ".wal") {
			return base.Errorf(base.CodeIO, "sync %s: input/output error", path)
		}
		return nil
	})
	_, err = db.Put(testRow(2, 2))
	wantCode(t, err, CodeIO)
	fs.set(nil)
	_, err = db.Put(testRow(3, 3))
	wantCode(t, err, CodeIO)
	check(t, db, model{1: 1})
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	_, err = db.Put(testRow(4, 4))
	must(t, err)
	row, found, err := db.Get(testKey(1))
	must(t, err)
	if !found || len(row) != 4 {
		t.Fatal("an acknowledged row is gone")
	}
}

// TestFlushFails: rows stay in memory while files cannot be written, and get there once they can.
func TestFlushFails(t *testing.T) {
	for _, part := range []string{".parquet", ".puffin", ".manifest.bin.tmp"} {
		t.Run(part, func(t *testing.T) {
			fs := newFaultyFS(vfs.NewMem())
			db := openMem(t, fs, Options{})
			defer db.Free()
			_, err := db.PutBatch([][]Value{testRow(1, 1), testRow(2, 2)})
			must(t, err)
			must(t, db.Flush())
			_, err = db.Put(testRow(1, 7))
			must(t, err)
			fs.set(noSpace(part, vfs.OpCreate, vfs.OpWrite))
			err = db.Flush()
			wantCode(t, err, CodeNoSpace)
			if !strings.Contains(err.Error(), part) {
				t.Fatalf("the error does not name the file: %v", err)
			}
			check(t, db, model{1: 7, 2: 2})
			fs.set(nil)
			must(t, db.Flush())
			check(t, db, model{1: 7, 2: 2})
			_, err = db.Put(testRow(3, 3))
			must(t, err)
			check(t, db, model{1: 7, 2: 2, 3: 3})
		})
	}
}

// TestLoadFails: a bulk load that fails or is interrupted anywhere leaves no row and no file.
func TestLoadFails(t *testing.T) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Flush())
	before := listTree(t, mem)

	fs.set(noSpace(".parquet", vfs.OpWrite))
	_, err = loadRows(db, 30_000, nil)
	wantCode(t, err, CodeNoSpace)
	fs.set(nil)
	calls := 0
	_, err = loadRows(db, 30_000, func() bool { calls++; return calls > 4 })
	wantCode(t, err, CodeCancelled)
	check(t, db, model{1: 1})
	if after := listTree(t, mem); after != before {
		t.Fatalf("files before:\n%s\nafter:\n%s", before, after)
	}
	_, err = loadRows(db, 30_000, nil)
	must(t, err)
	m := model{}
	for id := range int64(30_000) {
		m[id] = id
	}
	check(t, db, m)
}

func loadRows(db *DB, n int64, interrupt func() bool) (uint64, error) {
	w, err := db.NewWrite()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	w.SetInterrupt(interrupt)
	for id := range n {
		if err := w.Put(testRow(id, id)); err != nil {
			return 0, err
		}
	}
	return w.Commit()
}

// listTree lists the data files and what loads keep in temporary ones.
func listTree(t *testing.T, fs vfs.FS) string {
	t.Helper()
	var out []string
	for _, top := range []string{"/db/data", "/db/tmp"} {
		dirs, err := fs.List(top)
		if err != nil && base.CodeOf(err) != base.CodeNotFound {
			t.Fatal(err)
		}
		for _, d := range dirs {
			names, err := fs.List(top + "/" + d)
			must(t, err)
			for _, n := range names {
				out = append(out, top+"/"+d+"/"+n)
			}
		}
	}
	return strings.Join(out, "\n")
}

// TestDamagedManifest: opening names the file, for writers and readers.
func TestDamagedManifest(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	must(t, db.Close())
	db.Free()
	f, err := fs.Create("/db/metadata/v1.manifest.bin")
	must(t, err)
	_, err = f.Write([]byte("not a manifest at all"))
	must(t, err)
	must(t, f.Close())
	for _, readOnly := range []bool{false, true} {
		_, err := Open("/db", Options{fs: fs, ReadOnly: readOnly})
		wantCode(t, err, CodeCorruption)
		if !strings.Contains(err.Error(), "v1.manifest.bin") {
			t.Fatalf("the error does not name the file: %v", err)
		}
	}
}

// TestMissingMetadata: a directory whose metadata is gone is no empty database; its files stay.
func TestMissingMetadata(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Close())
	db.Free()
	before := listTree(t, fs)
	must(t, fs.RemoveAll("/db/metadata"))
	_, err = Open("/db", Options{fs: fs})
	wantCode(t, err, CodeCorruption)
	if after := listTree(t, fs); after != before {
		t.Fatalf("files before: %s, after: %s", before, after)
	}
}

// TestValidateSchema: what a table may not be is known before anything is made for it.
func TestValidateSchema(t *testing.T) {
	must(t, ValidateSchema(testSchema()))
	s := testSchema()
	s.Columns[2].Name = "_merutable_x"
	wantCode(t, ValidateSchema(s), CodeInvalidArgument)
}
