package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// largeMirror is a table of one sorted run of some files, in a store.
func largeMirror(t testing.TB, rows int64, o Options) (store *objstore.Mem, bytes int64, files int) {
	t.Helper()
	fs := vfs.NewMem()
	db := openMem(t, fs, o)
	defer db.Free()
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	for id := range rows {
		must(t, w.Put(largeRow(id)))
	}
	_, err = w.Commit()
	must(t, err)
	must(t, db.Flush())
	must(t, db.Compact())
	store = objstore.NewMem()
	copyToStore(t, fs, "/db", store)
	for _, f := range db.c.state.manifest.Files {
		bytes += f.Size
		files++
	}
	return store, bytes, files
}

func largeRow(id int64) []Value {
	rng := rand.New(rand.NewPCG(uint64(id), 5))
	return []Value{String("g"), Int(id), String(fmt.Sprintf("%016x%016x%016x", rng.Uint64(), rng.Uint64(), rng.Uint64())), Double(rng.Float64())}
}

// TestRemoteRequests counts what reading costs.
func TestRemoteRequests(t *testing.T) {
	rows := int64(unlessShort(400_000, 100_000))
	store, size, files := largeMirror(t, rows, Options{})
	log := newRequestLog(store)
	log.noWrites = true
	began := func() *DB {
		log.take()
		return openRemote(t, log, Options{})
	}
	db := began()
	opened := len(log.take())
	get := func(id int64) int {
		row, found, err := db.Get([]Value{Int(id), String("g")})
		must(t, err)
		if !found || !equalRows(row, largeRow(id)) {
			t.Fatalf("get %d: %v, %v", id, found, row)
		}
		return len(log.take())
	}
	cold, other, again := get(rows/2), get(rows/7), get(rows/2)
	t.Logf("%d files, %d MB: open %d requests, cold get %d, another %d, warm %d", files, size>>20, opened, cold, other, again)
	if opened > 3 || cold > 6 || other > 5 || again != 0 {
		t.Errorf("open: %d requests, cold get: %d, another: %d, the same again: %d", opened, cold, other, again)
	}
	must(t, db.RefreshStale())
	if n := log.take(); len(n) != 0 {
		t.Errorf("a statement right after the opening asks: %v", n)
	}
	must(t, db.Refresh())
	if n := log.take(); len(n) > 2 {
		t.Errorf("a refresh that finds nothing asks: %v", n)
	}
	store2 := newRequestLog(store) // another engine
	db2 := openRemote(t, store2, Options{})
	store2.take()
	s, err := db2.Snapshot()
	must(t, err)
	defer s.Close()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	n := 0
	for c, err := it.Next(); ; c, err = it.Next() {
		must(t, err)
		if c == nil {
			break
		}
		n += c.N
	}
	it.Close()
	scan := len(store2.take())
	read := db2.c.objects.Stats().Bytes
	t.Logf("cold scan of %d rows, %d MB: %d requests, %d MB read", n, size>>20, scan, read>>20)
	if int64(n) != rows || int64(scan) > size/(1<<20)+8*int64(files) || read > size+size/4 {
		t.Errorf("scan: %d rows, %d requests, %d bytes read of %d in %d files", n, scan, read, size, files)
	}
}

// TestRemoteDiskCache: a process that finds a warm cache directory asks for metadata only.
func TestRemoteDiskCache(t *testing.T) {
	store, _, _ := largeMirror(t, 50_000, Options{})
	o := Options{ObjectCacheDir: t.TempDir(), ObjectCacheBytes: 64 << 20}
	for i := range 2 {
		log := newRequestLog(store)
		db := openRemote(t, log, o)
		log.take()
		_, found, err := db.Get([]Value{Int(777), String("g")})
		must(t, err)
		if n := log.take(); !found || len(n) == 0 != (i == 1) {
			t.Errorf("process %d: found %v; %v", i, found, n)
		}
	}
	o.ObjectCacheBytes = 1000
	if _, err := tryOpenRemote(newRequestLog(store), o); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Errorf("a cache of nothing: %v", err)
	}
}

// TestRemoteReclaimed has the mirror drop what a reader holds.
func TestRemoteReclaimed(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{NoAutoCompaction: true, GCGrace: -1})
	defer db.Free()
	m := model{}
	put := func(from int64) {
		for id := from; id < from+200; id++ {
			_, err := db.Put(testRow(id, id))
			must(t, err)
			m[id] = id
		}
		must(t, db.Flush())
	}
	put(0)
	put(1000)
	store := objstore.NewMem()
	copyToStore(t, fs, "/db", store)
	r := openRemote(t, newRequestLog(store), Options{})
	held, err := r.Snapshot()
	must(t, err)
	defer held.Close()
	old := held.state.manifest
	put(2000)
	must(t, db.Compact())
	copyToStore(t, fs, "/db", store)
	drop := func(key string) { must(t, store.Delete(context.Background(), key)) }
	for _, f := range old.Files {
		drop(f.Path)
	}
	drop(manifest.Dir + "/" + manifest.FileName(old.Version))
	// The snapshot says what happened; reads of the newest state find it; so does a new snapshot after a refresh.
	if _, err := fingerprint(held); !isGone(err) || !strings.Contains(err.Error(), "reclaimed") || !strings.Contains(err.Error(), remoteURL+"/data/L0/") {
		t.Errorf("a held snapshot: %v", err)
	}
	row, found, err := r.Get(testKey(5))
	if err != nil || !found || !equalRows(row, testRow(5, 5)) {
		t.Errorf("get: %v, %v, %v", row, found, err)
	}
	check(t, r, m)
	// A file of the newest state that is missing is an error that names it, at once.
	lost := r.c.state.manifest.Files[0].Path
	drop(lost)
	log := newRequestLog(store)
	fresh := openRemote(t, log, Options{})
	log.take()
	if _, _, err := fresh.Get(testKey(5)); err == nil || !strings.Contains(err.Error(), remoteURL+"/"+lost) {
		t.Errorf("a lost file: %v", err)
	}
	if n := log.take(); len(n) > 12 {
		t.Errorf("%d requests for a file that is not there: %v", len(n), n)
	}
}

// TestRemoteManifestGoes is a manifest that goes between the listing and the read: the newer one is found; one that is
// listed and never there is an error, not a loop.
func TestRemoteManifestGoes(t *testing.T) {
	fs, db, store := oneRowInStore(t)
	v := db.c.state.manifest.Version
	log := newRequestLog(store)
	next := func() {
		_, err := db.Put(testRow(2, 2))
		must(t, err)
		must(t, db.Flush())
		copyToStore(t, fs, "/db", store)
		must(t, store.Delete(context.Background(), manifest.Dir+"/"+manifest.FileName(v)))
	}
	done := false
	log.setFail(func(op objstore.Op, key string) error {
		if op == objstore.OpReadAt && strings.Contains(key, manifest.FileName(v)) && !done {
			done = true
			next()
		}
		return nil
	})
	r := openRemote(t, log, Options{})
	check(t, r, model{1: 1, 2: 2})
	if !done {
		t.Error("nothing went")
	}
	log = newRequestLog(store)
	log.setFail(func(op objstore.Op, key string) error {
		if op == objstore.OpReadAt && strings.HasPrefix(key, manifest.Dir) {
			return base.Errorf(base.CodeNotFound, "%s: no such object", key)
		}
		return nil
	})
	_, err := tryOpenRemote(log, Options{})
	if err == nil || !strings.Contains(err.Error(), remoteURL+"/metadata/") {
		t.Errorf("a manifest that is never there: %v", err)
	}
	if n := log.take(); len(n) > 40 {
		t.Errorf("%d requests", len(n))
	}
}

// TestRemoteErrors: what a store answers comes out with its code, and the next try works.
func TestRemoteErrors(t *testing.T) {
	_, _, m, store := filledStore(t)
	log := newRequestLog(store)
	denied := base.Errorf(base.CodeObjectStore, "bucket: read: access denied (request 4711)")
	log.setFail(func(objstore.Op, string) error { return denied })
	began := time.Now()
	if _, err := tryOpenRemote(log, Options{}); base.CodeOf(err) != base.CodeObjectStore || !strings.Contains(err.Error(), "access denied (request 4711)") {
		t.Errorf("wrong credentials: %v", err)
	}
	if time.Since(began) > 10*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
	if _, err := tryOpenRemote(objstore.NewMem(), Options{}); base.CodeOf(err) != base.CodeNotFound || !strings.Contains(err.Error(), remoteURL) {
		t.Errorf("an empty bucket: %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	log.setFail(nil)
	r := openRemote(t, log, Options{CacheBytes: -1})
	log.setFail(func(objstore.Op, string) error {
		if rng.IntN(2) == 0 {
			return errors.New("503 slow down")
		}
		return nil
	})
	failed, worked := 0, 0
	for range 60 {
		s, err := r.Snapshot()
		must(t, err)
		_, err = fingerprint(s)
		s.Close()
		if err == nil {
			worked++
		} else if failed++; !strings.Contains(err.Error(), "503 slow down") {
			t.Fatalf("reading: %v", err)
		}
		_ = r.Refresh()
	}
	if failed == 0 || worked == 0 {
		t.Errorf("%d failed, %d worked", failed, worked)
	}
	log.setFail(nil)
	must(t, r.Refresh())
	check(t, r, m)
}
