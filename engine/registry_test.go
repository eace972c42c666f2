package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestHandlesRace opens, writes through, reads through, closes and frees handles on one directory from many goroutines.
// Every acknowledged row must be there at the end, no engine may stay behind, and the directory must be free.
func TestHandlesRace(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	must(t, db.Close())
	db.Free()
	const workers, rounds = 6, 40
	var mu sync.Mutex
	m := model{}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(uint64(w), 4))
			for i := range rounds {
				if rng.IntN(3) == 0 {
					readOnce(t, fs)
					continue
				}
				h, err := Open("/db", Options{fs: fs})
				if err != nil {
					t.Error(err)
					return
				}
				id := int64(w*rounds + i)
				if _, err := h.Put(testRow(id, id)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				m[id] = id
				mu.Unlock()
				if rng.IntN(2) == 0 {
					if err := h.Close(); err != nil {
						t.Error(err)
					}
				}
				if _, found, err := h.Get(testKey(id)); err != nil || !found {
					t.Errorf("row %d: %v, %v", id, found, err)
				}
				h.Free()
			}
		}()
	}
	wg.Wait()
	key := engineKey{fs: fs, dir: "/db"}
	registry.mu.Lock()
	writer, reader := registry.writers[key], registry.readers[key]
	registry.mu.Unlock()
	if writer != nil || reader != nil && reader.idle == nil {
		t.Fatalf("engines stayed behind: %v, %v", writer, reader)
	}
	db = openMem(t, fs, Options{})
	defer db.Free()
	check(t, db, m)
}

func readOnce(t *testing.T, fs vfs.FS) {
	r, err := Open("/db", Options{fs: fs, ReadOnly: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Free()
	s, err := r.Snapshot()
	if err != nil {
		t.Error(err)
		return
	}
	s.Close()
}

// TestRetiredEngineIsDropped: an open that waits while the last writer closes must not keep the closed engine alive.
func TestRetiredEngineIsDropped(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	old := db.shared
	registry.mu.Lock()
	old.handles, old.writing = old.handles+1, old.writing+1 // as tryAcquire does before it waits
	registry.mu.Unlock()
	registry.mu.Lock()
	old.writing--
	registry.mu.Unlock()
	must(t, db.Close())
	registry.mu.Lock()
	old.writing++
	registry.mu.Unlock()
	db.Free()
	old.open.Lock()
	if !old.retired {
		t.Fatal("the engine is not retired")
	}
	registry.giveUp(old)
	old.open.Unlock()
	old.c.mu.Lock()
	defer old.c.mu.Unlock()
	if old.c.state != nil {
		t.Fatal("the engine without handles keeps its state")
	}
}

// TestReaderOutlivesWriter: a read-only handle that shares the engine of this process's writer goes on seeing what is
// written after that one was closed, by another process or by this one.
func TestReaderOutlivesWriter(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	r, err := Open("/db", Options{fs: fs, ReadOnly: true})
	must(t, err)
	defer r.Free()
	check(t, r, model{1: 1})
	version := r.StateVersion()
	old, err := r.Snapshot()
	must(t, err)
	must(t, db.Close())
	check(t, r, model{1: 1}) // a closed engine still reads
	db.Free()

	other := otherWriter(t, fs)
	_, err = other.Put(testRow(2, 2))
	must(t, err)
	must(t, r.Refresh())
	check(t, r, model{1: 1, 2: 2})
	if v := r.StateVersion(); v <= version {
		t.Fatalf("state version %d after %d", v, version)
	} else {
		version = v
	}
	must(t, other.c.seal())
	other.c.drop()

	db = openMem(t, fs, Options{})
	_, err = db.Put(testRow(3, 3))
	must(t, err)
	must(t, r.Refresh())
	if r.c != db.c {
		t.Fatal("the reader did not join the writer of its process")
	}
	check(t, r, model{1: 1, 2: 2, 3: 3})
	if v := r.StateVersion(); v <= version {
		t.Fatalf("state version %d after %d", v, version)
	}
	db.Free()
	must(t, r.Refresh())
	check(t, r, model{1: 1, 2: 2, 3: 3})
	checkSnapshot(t, old, model{1: 1})
	old.Close()
}

// otherWriter opens the database for writing past the registry, as another process would.
func otherWriter(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	c, err := openCore("/db", Options{fs: fs})
	must(t, err)
	return &DB{shared: &shared{c: c}, c: c}
}

// TestPaths: one directory has many names; all lead to one engine.
func TestPaths(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a dir with ünïcode %41 and spaces")
	db, err := Open(dir, Options{})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	_, err = db.Put(testRow(1, 1))
	must(t, err)
	link := filepath.Join(root, "link")
	must(t, os.Symlink(dir, link))
	t.Chdir(root)
	names := []string{
		link, link + "/", dir + "/../link", "link", "./link/.", filepath.Base(dir),
		"file://" + root + "/a%20dir%20with%20%C3%BCn%C3%AFcode%20%2541%20and%20spaces", "file://" + link,
	}
	for _, name := range names {
		h, err := Open(name, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.c != db.c || h.Path() != db.Path() {
			t.Errorf("%s is another engine, on %s", name, h.Path())
		}
		r, err := OpenReader(name)
		must(t, err)
		if r.c != db.c {
			t.Errorf("a reader of %s has another engine", name)
		}
		r.Free()
		h.Free()
	}
	for _, name := range []string{"", "a\x00b", "file://relative/path", "file://%zz"} {
		_, err := Open(name, Options{})
		wantCode(t, err, CodeInvalidArgument)
	}
	file := filepath.Join(root, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(file, Options{}); err == nil {
		t.Error("a file was opened as a database")
	}
	if _, err := Open(filepath.Join(root, "none"), Options{NoCreate: true}); CodeOf(err) != CodeNotFound {
		t.Errorf("no directory: %v", err)
	}
	_, err = openCore(db.Path(), Options{}) // as another process
	wantCode(t, err, CodeLocked)
	must(t, os.Symlink(root, filepath.Join(root, "self")))
	for _, walDir := range []string{"self/logs", "logs", filepath.Join(root, "logs"), ""} {
		h, err := Open("other", Options{WALDir: walDir})
		must(t, err)
		if !h.HasTable() {
			must(t, h.CreateTable(testSchema()))
		}
		_, err = h.Put(testRow(1, 1))
		must(t, err)
		h.Free()
	}
}

// TestDirectoryMoves: a directory that was moved, after a close and after a crash, is the same database, and its garbage
// is found there.
func TestDirectoryMoves(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "0")
	m := model{}
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range 4 {
		db, err := Open(dir, frugal)
		must(t, err)
		if i == 0 {
			must(t, db.CreateTable(testSchema()))
		}
		check(t, db, m)
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		writeRandom(t, db, rng, m, 100, 20)
		check(t, db, m)
		collectNow(t, db)
		if v := versionsOf(t, db); len(v) != 2 {
			t.Errorf("manifests %v are left", v)
		}
		if i%2 == 0 {
			must(t, db.Close())
		}
		db.Free()
		next := filepath.Join(root, strconv.Itoa(i+1))
		must(t, os.Rename(dir, next))
		dir = next
	}
}

// TestDirectoryVanishes: a directory that is removed under an open database gives errors, no hang and no crash.
func TestDirectoryVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := Open(dir, Options{})
	must(t, err)
	must(t, db.CreateTable(testSchema()))
	_, err = db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Flush())
	_, err = db.Put(testRow(2, 2))
	must(t, err)
	must(t, os.RemoveAll(dir))
	if err := db.Flush(); err == nil {
		t.Error("a flush into a directory that is gone succeeded")
	}
	if err := db.Close(); err == nil {
		t.Error("closing was silent about the rows that it could not flush")
	}
	db.Free()
	db, err = Open(dir, Options{})
	must(t, err)
	defer db.Free()
	if db.HasTable() {
		t.Error("the table came back")
	}
}

// TestDirectoryMovesWhileOpen: no directory is made at the old path, where nobody would look for the rows in its log.
func TestDirectoryMovesWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := Open(dir, Options{})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	must(t, os.Rename(dir, dir+"2"))
	_, err = db.Put(testRow(1, 1))
	wantCode(t, err, CodeIO)
	wantCode(t, db.DropTable(), CodeIO)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestPinsLeaveNothing: the pins of readers, and of snapshots that outlive their writer, keep no descriptor.
func TestPinsLeaveNothing(t *testing.T) {
	const rounds = 40
	dir := t.TempDir()
	round := func(id int64) {
		db, err := Open(dir, frugal)
		must(t, err)
		if !db.HasTable() {
			must(t, db.CreateTable(testSchema()))
		}
		_, err = db.Put(testRow(id%10, id))
		must(t, err)
		s, err := db.Snapshot()
		must(t, err)
		if id%2 == 0 {
			must(t, db.Close())
		}
		db.Free()
		reader, err := Open(dir, Options{ReadOnly: true})
		must(t, err)
		_, found, err := reader.Get(testKey(id % 10))
		if err != nil || !found {
			t.Fatalf("round %d: %v %v", id, found, err)
		}
		reader.Free()
		s.Close()
	}
	defer func() { must(t, SetReaderCache(8)) }()
	must(t, SetReaderCache(0))
	for id := range int64(10) {
		round(id)
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for id := range int64(rounds) {
		round(id)
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := openFiles(t); n > files {
		t.Errorf("%d descriptors before, %d after", files, n)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no list of the process's descriptors here")
	}
	return len(names)
}
