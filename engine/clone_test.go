package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// filledStore is what fillForClone writes with a copy of it in a store.
func filledStore(t *testing.T) (*vfs.MemFS, *DB, model, *objstore.Mem) {
	t.Helper()
	fs, mem := vfs.NewMem(), objstore.NewMem()
	db, m := fillForClone(t, fs)
	t.Cleanup(db.Free)
	copyToStore(t, fs, "/db", mem)
	return fs, db, m, mem
}

// fillForClone writes a table in several flushes with deletions, and a second table.
func fillForClone(t *testing.T, fs vfs.FS) (*DB, model) {
	t.Helper()
	db := openMem(t, fs, Options{NoAutoCompaction: true})
	m := model{}
	for round := range int64(3) {
		for id := int64(0); id < 3000; id += round + 1 {
			_, err := db.Put(testRow(id, id+round))
			must(t, err)
			m[id] = id + round
		}
		for id := round; id < 3000; id += 31 {
			_, err := db.Delete(testKey(id))
			must(t, err)
			delete(m, id)
		}
		must(t, db.Flush())
	}
	other := testSchema()
	other.TableName = "other"
	must(t, db.CreateTable(other))
	o, err := db.OpenTable("other")
	must(t, err)
	defer o.Free()
	_, err = o.Put(testRow(77, 1))
	must(t, err)
	must(t, db.Flush())
	return db, m
}

func checkClone(t *testing.T, fs vfs.FS, dir string, m model) *DB {
	t.Helper()
	db, err := Open(dir, Options{fs: fs, NoCreate: true})
	must(t, err)
	t.Cleanup(db.Free)
	check(t, db, m)
	return db
}

func TestCloneOfMirror(t *testing.T) {
	fs, db, m, mem := filledStore(t)
	log := newRequestLog(mem)
	log.noWrites = true
	told := -1.0
	report, err := Clone(remoteURL+"/", "/copies/a", CloneOptions{
		fs: fs, store: log,
		Progress: func(done float64) {
			if done < told || done > 1 {
				t.Errorf("progress %v after %v", done, told)
			}
			told = done
		},
	})
	must(t, err)
	if report.Tables != 2 || report.Rows != int64(len(m))+1 || report.Source != remoteURL || report.Path != "/copies/a" || told != 1 ||
		report.RowsFromMemory != 0 || report.Version == 0 || report.Files < 4 || report.Bytes == 0 {
		t.Errorf("report %+v, progress %v", report, told)
	}
	c := checkClone(t, fs, "/copies/a", m)
	o, err := c.OpenTable("other")
	must(t, err)
	defer o.Free()
	check(t, o, model{77: 1})
	// It is the same table, goes on as a database of its own, and needs nothing of its source.
	if a, b := db.c.state.manifest.TableUUID, c.c.state.manifest.TableUUID; a != b {
		t.Errorf("table %s became %s", a, b)
	}
	_, err = c.Put(testRow(5, 99))
	must(t, err)
	m[5] = 99
	must(t, c.Compact())
	must(t, c.Close())
	c.Free()
	checkClone(t, fs, "/copies/a", m)
	if names, err := fs.List("/copies"); err != nil || len(names) != 1 {
		t.Errorf("beside it: %v, %v", names, err)
	}
}

func TestCloneOfVersion(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{RetainVersions: 100, NoAutoCompaction: true})
	defer db.Free()
	mem := objstore.NewMem()
	states := map[int64]model{}
	m := model{}
	for round := range int64(4) {
		for id := round * 10; id < round*10+15; id++ {
			_, err := db.Put(testRow(id, round))
			must(t, err)
			m[id] = round
		}
		must(t, db.Flush())
		copyToStore(t, fs, "/db", mem)
		saved := model{}
		for k, v := range m {
			saved[k] = v
		}
		states[db.c.state.manifest.Version] = saved
	}
	for version, want := range states {
		dir := "/at/" + string(rune('a'+version))
		report, err := Clone(remoteURL, dir, CloneOptions{fs: fs, store: mem, Version: version})
		must(t, err)
		if report.Version != version {
			t.Errorf("version %d cloned, wanted %d", report.Version, version)
		}
		checkClone(t, fs, dir, want)
		dir += "d"
		_, err = Clone("/db", dir, CloneOptions{fs: fs, Version: version})
		must(t, err)
		checkClone(t, fs, dir, want)
	}
	if _, err := Clone(remoteURL, "/at/none", CloneOptions{fs: fs, store: mem, Version: 99}); base.CodeOf(err) != base.CodeNotFound ||
		!strings.Contains(err.Error(), "99") {
		t.Errorf("a version that never was: %v", err)
	}
}

// TestCloneOfDirectory has rows in the log of a writer, here and in another process.
func TestCloneOfDirectory(t *testing.T) {
	fs := vfs.NewMem()
	db, m := fillForClone(t, fs)
	for id := int64(0); id < 500; id += 3 {
		_, err := db.Put(testRow(id, 5000))
		must(t, err)
		m[id] = 5000
	}
	for id := int64(1); id < 500; id += 3 {
		_, err := db.Delete(testKey(id))
		must(t, err)
		delete(m, id)
	}
	report, err := Clone("/db", "/live", CloneOptions{fs: fs})
	must(t, err)
	if report.RowsFromMemory == 0 {
		t.Errorf("report %+v", report)
	}
	checkClone(t, fs, "/live", m)
	db.Free() // as a process that dies: the rows stay in the log
	_, err = Clone("/db", "/dead", CloneOptions{fs: fs})
	must(t, err)
	checkClone(t, fs, "/dead", m)
}

func TestCloneRefuses(t *testing.T) {
	fs, db, m, mem := filledStore(t)
	clone := func(source, dir string, o CloneOptions) error {
		o.fs, o.store = fs, mem
		_, err := Clone(source, dir, o)
		return err
	}
	for _, c := range []struct {
		source, dir string
		o           CloneOptions
		code        base.Code
	}{
		{remoteURL, "/db", CloneOptions{}, base.CodeAlreadyExists},
		{remoteURL, "s3://bucket/other", CloneOptions{}, base.CodeInvalidArgument},
		{"/db", "/db/inside", CloneOptions{}, base.CodeInvalidArgument},
		{"/none", "/c", CloneOptions{}, base.CodeNotFound},
		{remoteURL, "/c", CloneOptions{Version: 1}, base.CodeUnsupported},
		{remoteURL, "/c", CloneOptions{Version: -1}, base.CodeInvalidArgument},
		{remoteURL, "/c", CloneOptions{Parallelism: 65}, base.CodeInvalidArgument},
		{remoteURL, "/c", CloneOptions{Interrupt: func() bool { return true }}, base.CodeCancelled},
	} {
		if err := clone(c.source, c.dir, c.o); base.CodeOf(err) != c.code {
			t.Errorf("clone of %s to %s: %v", c.source, c.dir, err)
		}
	}
	if _, err := fs.Stat("/c"); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("something was left: %v", err)
	}
	check(t, db, m)
}

// TestCloneTakesAnEmptyDirectory: it is as good as none, and what stands beside it is left alone.
func TestCloneTakesAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir+"/db", Options{})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	_, err = db.Put(testRow(1, 1))
	must(t, err)
	must(t, os.MkdirAll(dir+"/copy", 0o755))
	must(t, os.MkdirAll(dir+"/copy.tmp-mine/data", 0o755))
	_, err = Clone(dir+"/db", dir+"/copy", CloneOptions{})
	must(t, err)
	copied, err := Open(dir+"/copy", Options{})
	must(t, err)
	defer copied.Free()
	check(t, copied, model{1: 1})
	if _, err := os.Stat(dir + "/copy.tmp-mine/data"); err != nil {
		t.Error(err)
	}
	_, err = Clone(dir+"/db", dir+"/copy", CloneOptions{})
	wantCode(t, err, CodeAlreadyExists)
}

// TestCloneFindsDamage changes one byte of a file at the mirror.
func TestCloneFindsDamage(t *testing.T) {
	fs, db, _, mem := filledStore(t)
	key := db.c.state.manifest.Files[1].Path
	good, err := objstore.ReadAll(context.Background(), mem, key, 1<<30)
	must(t, err)
	bad := append([]byte(nil), good...)
	bad[len(bad)/3] ^= 1
	_, err = mem.Put(context.Background(), key, objstore.Bytes(bad))
	must(t, err)
	_, err = Clone(remoteURL, "/c", CloneOptions{fs: fs, store: mem})
	if base.CodeOf(err) != base.CodeCorruption || !strings.Contains(err.Error(), remoteURL+"/"+key) {
		t.Errorf("a damaged file: %v", err)
	}
	if names, _ := fs.List("/"); len(names) != 1 {
		t.Errorf("something was left: %v", names)
	}
	must(t, mem.Delete(context.Background(), key))
	_, err = Clone(remoteURL, "/c", CloneOptions{fs: fs, store: mem})
	if base.CodeOf(err) != base.CodeIO || !strings.Contains(err.Error(), key) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestCloneInDirectories clones on the machine's file system: to a directory that is there, and beside those of others.
func TestCloneInDirectories(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(filepath.Join(dir, "db"), Options{})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	others := []string{"copy.tmp-old", "copy.tmp-0123", "copy.tmp-" + newUUID()}
	left := "copy.tmp-" + newUUID()
	for _, name := range append([]string{"copy", left}, others...) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(dir, left, lockFile), nil, 0o600))
	for _, in := range []string{"db/inside", "db/a/b"} {
		_, err := Clone(filepath.Join(dir, "db"), filepath.Join(dir, in), CloneOptions{})
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "directory of its source") {
			t.Errorf("%s: %v", in, err)
		}
	}
	_, err = Clone(filepath.Join(dir, "db"), filepath.Join(dir, "copy"), CloneOptions{})
	must(t, err)
	copied, err := Open(filepath.Join(dir, "copy"), Options{})
	must(t, err)
	copied.Free()
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("what is another's is gone: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, left)); !os.IsNotExist(err) {
		t.Errorf("what a killed clone left is there: %v", err)
	}
}

// TestCloneSurvivesPanics lets the store panic on the goroutines of a clone: while it opens, and while it copies.
func TestCloneSurvivesPanics(t *testing.T) {
	fs, _, _, mem := filledStore(t)
	for _, at := range []string{"manifest.bin", ".parquet"} {
		store := objstore.NewFaulty(mem, func(op objstore.Op, key string) error {
			if op == objstore.OpReadAt && strings.HasSuffix(key, at) {
				panic("broken at " + at)
			}
			return nil
		})
		_, err := Clone(remoteURL, "/c", CloneOptions{fs: fs, store: store})
		if base.CodeOf(err) != base.CodeUnknown || !strings.Contains(err.Error(), "broken at "+at) {
			t.Errorf("%v", err)
		}
		if names, _ := fs.List("/"); len(names) != 1 {
			t.Errorf("something was left: %v", names)
		}
	}
}

// TestCloneCrash cuts the power after each operation: there is nothing under the name, or all.
func TestCloneCrash(t *testing.T) {
	_, _, m, mem := filledStore(t)
	inner := vfs.NewMem()
	must(t, inner.MkdirAll("/x"))
	must(t, inner.SyncDir("/"))
	var ops, failAt atomic.Int64
	fs := vfs.NewErrorFS(inner, func(op vfs.Op, path string) error {
		if op.Mutates() && ops.Add(1) == failAt.Load() {
			return errors.New("no more")
		}
		return nil
	})
	_, err := Clone(remoteURL, "/x/c", CloneOptions{fs: fs, store: mem, Parallelism: 1})
	must(t, err)
	all := ops.Load()
	forget := func() {
		must(t, inner.RemoveAll("/x/c"))
		must(t, inner.SyncDir("/x"))
	}
	forget()
	for at := int64(1); at <= all; at += max(1, all/40) {
		failAt.Store(at)
		ops.Store(0)
		_, err := Clone(remoteURL, "/x/c", CloneOptions{fs: fs, store: mem, Parallelism: 1})
		crashed := inner.CrashClone(nil)
		if _, statErr := crashed.Stat("/x/c"); statErr == nil && err != nil {
			t.Fatalf("operation %d of %d failed (%v), and the clone is there", at, all, err)
		}
		if err == nil { // it was one whose failure does not matter
			forget()
		}
	}
	failAt.Store(0)
	_, err = Clone(remoteURL, "/x/c", CloneOptions{fs: fs, store: mem})
	must(t, err)
	checkClone(t, inner, "/x/c", m)
	if names, _ := inner.List("/x"); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// TestCloneGoesOn: a clone of a mirror continues it where the primary is gone; of two that go on, the one that comes later
// stops and overwrites nothing.
func TestCloneGoesOn(t *testing.T) {
	store := objstore.NewMem()
	fs := vfs.NewMem()
	o := Options{MirrorFlush: -1, RetainVersions: 100, MirrorRetain: time.Hour}
	o.UseMirror(store)
	db := openMem(t, fs, o)
	m := model{}
	for id := range int64(50) {
		_, err := db.Put(testRow(id, id))
		must(t, err)
		m[id] = id
		if id%20 == 0 {
			waitMirrored(t, db)
		}
	}
	waitMirrored(t, db)
	db.Free()                                                               // the machine is gone
	there, err := openRemote(t, newRequestLog(store), Options{}).Versions() // some were never there
	must(t, err)
	old := there[len(there)-2].Version
	_, err = Clone(remoteURL, "/restored", CloneOptions{fs: fs, store: store})
	must(t, err)
	_, err = Clone(remoteURL, "/older", CloneOptions{fs: fs, store: store, Version: old})
	must(t, err)
	o.fs = fs
	next, err := Open("/restored", o)
	must(t, err)
	defer next.Free()
	check(t, next, m)
	_, err = next.Put(testRow(1000, 1000))
	must(t, err)
	m[1000] = 1000
	waitMirrored(t, next)
	check(t, openRemote(t, newRequestLog(store), Options{}), m)
	for _, dir := range []string{"/db", "/older"} { // the machine comes back; somebody goes on from an older version
		stale, err := Open(dir, o)
		must(t, err)
		_, err = stale.Put(testRow(2000, 2000))
		must(t, err)
		must(t, stale.Flush())
		waitFor(t, "the mirror of "+dir+" stops", func() bool { return stale.MirrorStatus().State == "stopped" })
		stale.Free()
		check(t, openRemote(t, newRequestLog(store), Options{}), m)
	}
	_, err = next.Put(testRow(3000, 3000))
	must(t, err)
	m[3000] = 3000
	waitMirrored(t, next)
	check(t, openRemote(t, newRequestLog(store), Options{}), m)
}
