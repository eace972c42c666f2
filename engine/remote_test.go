package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const remoteURL = "s3://bucket/db"

// copyToStore brings the newest committed state of a directory to a store, in the order of the mirror's protocol: what a
// manifest names before it, a table before TABLES lists it.
func copyToStore(t testing.TB, fs vfs.FS, dir string, to objstore.Store) {
	t.Helper()
	k, err := readCatalog(fs, dir)
	must(t, err)
	for _, id := range append([]uint32{0}, k.ids...) {
		prefix := ""
		if id != 0 {
			prefix = tableDir(id) + "/"
		}
		store := manifest.NewFSStore(fs, fs.Join(dir, prefix))
		m, err := store.Newest()
		if base.CodeOf(err) == base.CodeNotFound {
			continue
		}
		must(t, err)
		pin, err := store.Pin(m)
		must(t, err)
		for _, f := range m.Files {
			for _, rel := range []string{f.Path, f.DVPath} {
				if rel != "" {
					copyFile(t, fs, dir, to, prefix+rel)
				}
			}
		}
		copyFile(t, fs, dir, to, prefix+manifest.Dir+"/"+manifest.FileName(m.Version))
		must(t, pin.Close())
	}
	if k.version > 0 {
		_, err := to.Put(context.Background(), catalogFileName, objstore.Bytes(readAllOf(t, fs, fs.Join(dir, catalogFileName))))
		must(t, err)
	}
}

func copyFile(t testing.TB, fs vfs.FS, dir string, to objstore.Store, key string) {
	t.Helper()
	_, err := to.PutIfAbsent(context.Background(), key, objstore.Bytes(readAllOf(t, fs, fs.Join(dir, key))))
	if base.CodeOf(err) != base.CodeAlreadyExists {
		must(t, err)
	}
}

func readAllOf(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	must(t, err)
	return data
}

// requestLog counts the requests to a store, and refuses those that write while it is told to.
type requestLog struct {
	objstore.Store
	mu       sync.Mutex
	counts   map[objstore.Op]int
	keys     []string
	noWrites bool
	fail     func(op objstore.Op, key string) error
	delay    time.Duration
}

func newRequestLog(inner objstore.Store) *requestLog {
	l := &requestLog{counts: map[objstore.Op]int{}}
	l.Store = objstore.NewFaulty(inner, func(op objstore.Op, key string) error {
		time.Sleep(l.delay)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.counts[op]++
		l.keys = append(l.keys, fmt.Sprint(op, " ", key))
		if l.noWrites && op != objstore.OpReadAt && op != objstore.OpHead && op != objstore.OpList {
			return base.Errorf(base.CodeObjectStore, "%s %s: nothing may be written", op, key)
		}
		if l.fail != nil {
			return l.fail(op, key)
		}
		return nil
	})
	return l
}

// take returns the requests since it was asked last.
func (l *requestLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	l.keys = nil
	return keys
}

// setDelay is for a log that nobody uses yet.
func (l *requestLog) setDelay(d time.Duration) { l.delay = d }

func (l *requestLog) setFail(fail func(op objstore.Op, key string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

// openRemote opens a store for reading, as another process would.
func openRemote(t testing.TB, store objstore.Store, o Options) *DB {
	t.Helper()
	db, err := tryOpenRemote(store, o)
	must(t, err)
	t.Cleanup(db.Free)
	return db
}

func tryOpenRemote(store objstore.Store, o Options) (*DB, error) {
	o.ReadOnly = true
	o.UseStore(store)
	return Open(remoteURL, o)
}

// oneRowInStore is a database of one row with a copy of it in a store.
func oneRowInStore(t *testing.T) (*vfs.MemFS, *DB, *objstore.Mem) {
	t.Helper()
	fs, mem := vfs.NewMem(), objstore.NewMem()
	db := openMem(t, fs, Options{})
	t.Cleanup(db.Free)
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Flush())
	copyToStore(t, fs, "/db", mem)
	return fs, db, mem
}

// TestRemoteReaderFromTheIdleOnes: one that is taken from there within the interval shows one state, in every way of asking.
func TestRemoteReaderFromTheIdleOnes(t *testing.T) {
	fs, db, mem := oneRowInStore(t)
	r, err := tryOpenRemote(mem, Options{RefreshInterval: time.Hour})
	must(t, err)
	s, err := r.Snapshot()
	must(t, err)
	version := s.Version()
	s.Close()
	r.Free()
	_, err = db.Put(testRow(2, 2))
	must(t, err)
	must(t, db.Flush())
	copyToStore(t, fs, "/db", mem)
	r = openRemote(t, mem, Options{RefreshInterval: time.Hour})
	before := r.StateVersion()
	if s := mustSnapshot(t, r); s.Version() != version || r.StateVersion() != before {
		t.Errorf("taking a snapshot went from version %d to %d", version, s.Version())
	}
	must(t, r.Refresh())
	if s := mustSnapshot(t, r); s.Version() == version {
		t.Errorf("Refresh found nothing newer than version %d", version)
	}

	// Another handle's options are not this one's.
	_, err = db.Put(testRow(3, 3))
	must(t, err)
	must(t, db.Flush())
	copyToStore(t, fs, "/db", mem)
	version = mustSnapshot(t, r).Version()
	must(t, r.RefreshStale())
	if s := mustSnapshot(t, r); s.Version() != version {
		t.Errorf("a handle that looks once an hour went on to version %d", s.Version())
	}
	always := openRemote(t, mem, Options{RefreshInterval: -1})
	must(t, always.RefreshStale())
	if s := mustSnapshot(t, always); s.Version() == version {
		t.Errorf("a handle that always looks stays at version %d", version)
	}
}

// TestRemoteReaderWithACache opens a database that is among the idle ones, which has no cache on disk.
func TestRemoteReaderWithACache(t *testing.T) {
	_, _, mem := oneRowInStore(t)
	r, err := tryOpenRemote(mem, Options{})
	must(t, err)
	plain := r.c
	r.Free()
	o := Options{ObjectCacheDir: t.TempDir()}
	r, err = tryOpenRemote(mem, o)
	must(t, err)
	cached := r.c
	if cached == plain || cached.database.opts.ObjectCacheDir != o.ObjectCacheDir {
		t.Errorf("the cache of %v is not used", o.ObjectCacheDir)
	}
	r.Free()
	for _, o := range []Options{o, {}} {
		if r = openRemote(t, mem, o); r.c != cached {
			t.Errorf("with %q: another engine", o.ObjectCacheDir)
		}
		r.Free()
	}
}

func TestRemoteReader(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	defer db.Free()
	m := model{}
	for round := range 4 {
		for id := int64(0); id < 2000; id += int64(round + 1) {
			_, err := db.Put(testRow(id, id+int64(round)))
			must(t, err)
			m[id] = id + int64(round)
		}
		for id := int64(round); id < 2000; id += 17 {
			_, err := db.Delete(testKey(id))
			must(t, err)
			delete(m, id)
		}
		must(t, db.Flush())
	}
	mem := objstore.NewMem()
	copyToStore(t, fs, "/db", mem)
	log := newRequestLog(mem)
	log.noWrites = true
	r := openRemote(t, log, Options{})
	t.Log("open: ", strings.Join(log.take(), "; "))
	_, _, err := r.Get(testKey(5))
	must(t, err)
	t.Log("get: ", strings.Join(log.take(), "; "))
	check(t, r, m)
	t.Log("all: ", strings.Join(log.take(), "; "))
	check(t, r, m)
	if again := log.take(); len(again) != 0 {
		t.Errorf("reading again asks: %v", again)
	}
	// It follows.
	_, err = db.Put(testRow(1<<40, 1))
	must(t, err)
	must(t, db.Flush())
	must(t, db.Compact())
	m[1<<40] = 1
	copyToStore(t, fs, "/db", mem)
	must(t, r.Refresh())
	t.Log("refresh: ", strings.Join(log.take(), "; "))
	check(t, r, m)
	t.Log("all: ", strings.Join(log.take(), "; "))
	if _, err := r.Put(testRow(1, 1)); base.CodeOf(err) != base.CodeReadOnly {
		t.Errorf("writing: %v", err)
	}
}
