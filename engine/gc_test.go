package engine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestClockJumps sets the clock back and forth between commits: versions and sequence numbers rise, and nothing that the
// newest manifest or a snapshot needs is ever removed.
func TestClockJumps(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(3, 3))
	o := Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: time.Minute, NoAutoCompaction: true}
	db := openMem(t, fs, o)
	m := model{}
	offset := setClock(db)
	writeRandom(t, db, rng, m, 100, 50)
	must(t, db.Flush())
	held, err := db.Snapshot()
	must(t, err)
	heldModel := model{}
	for k, v := range m {
		heldModel[k] = v
	}
	var version int64
	var seq uint64
	for i := range 40 {
		offset.Store(int64([]time.Duration{-time.Hour, 24 * time.Hour, 0, -365 * 24 * time.Hour}[i%4]))
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		st := db.Stats()
		if st.Version <= version || st.Seq <= seq {
			t.Fatalf("version %d after %d, sequence %d after %d", st.Version, version, st.Seq, seq)
		}
		version, seq = st.Version, st.Seq
		if i%10 == 9 {
			must(t, db.Close())
			db.Free()
			checkSnapshot(t, held, heldModel)
			held.Close()
			db = openMem(t, fs, o)
			offset = setClock(db)
			held, err = db.Snapshot()
			must(t, err)
			heldModel = model{}
			for k, v := range m {
				heldModel[k] = v
			}
		}
		check(t, db, m)
	}
	checkSnapshot(t, held, heldModel)
	held.Close()
	// Once the clock is right again, what was kept goes.
	offset.Store(int64(1000 * 24 * time.Hour))
	writeRandom(t, db, rng, m, 100, 20)
	must(t, db.Flush())
	collectNow(t, db)
	versions, err := db.c.store.Versions()
	must(t, err)
	if len(versions) != 2 {
		t.Fatalf("manifests %v are left, want 2", versions)
	}
	check(t, db, m)
	db.Free()
}

func collectNow(t testing.TB, db *DB) GarbageReport {
	t.Helper()
	r, err := db.CollectGarbage(false)
	must(t, err)
	return r
}

// TestGarbageOfLoads: a table that only bulk loads write collects its garbage too.
func TestGarbageOfLoads(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1, NoAutoCompaction: true})
	defer db.Free()
	for range 6 {
		_, err := loadRows(db, 6000, nil)
		must(t, err)
	}
	collectNow(t, db)
	dvs := strings.Count(listTree(t, fs), ".puffin")
	if versions, err := db.c.store.Versions(); err != nil || len(versions) != 2 || dvs > 2*len(db.c.state.files) {
		t.Fatalf("manifests %v, %d deletion vectors for %d files: %v", versions, dvs, len(db.c.state.files), err)
	}
}

// TestDamagedOldManifest: an old manifest that cannot be read keeps files from being removed no longer than it would be
// kept itself.
func TestDamagedOldManifest(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{MemtableBytes: minMemtableBytes, RetainVersions: 2, GCGrace: -1, NoAutoCompaction: true}
	db := openMem(t, fs, o)
	for id := range int64(3) {
		_, err := db.Put(testRow(1, id))
		must(t, err)
		must(t, db.Flush())
	}
	must(t, db.Close())
	db.Free()
	f, err := fs.Create("/db/metadata/v3.manifest.bin")
	must(t, err)
	_, err = f.Write([]byte("damaged"))
	must(t, err)
	must(t, f.Close())
	db = openMem(t, fs, o)
	defer db.Free()
	for id := range int64(4) {
		_, err := db.Put(testRow(1, id))
		must(t, err)
		must(t, db.Flush())
	}
	collectNow(t, db)
	versions, err := db.c.store.Versions()
	must(t, err)
	if len(versions) != 3 || versions[0] < 4 {
		t.Fatalf("manifests %v are left", versions)
	}
	check(t, db, model{1: 3})
}

// TestForeignManifest: where another writer got past the lock (somebody removed the lock file, say) its commit is not
// overwritten, and this writer stops.
func TestForeignManifest(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	defer db.Free()
	s := db.c.current()
	foreign := s.manifest.Next()
	s.unref()
	must(t, manifest.NewFSStore(fs, "/db").Commit(foreign))
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	wantCode(t, db.Flush(), CodeAlreadyExists)
	_, err = db.Put(testRow(2, 2))
	wantCode(t, err, CodeAlreadyExists)
	got, err := manifest.NewFSStore(fs, "/db").Newest()
	must(t, err)
	if got.Version != foreign.Version || len(got.Files) != 0 {
		t.Fatalf("the newest manifest is %d with %d files", got.Version, len(got.Files))
	}
}

// TestMissingFile: a data file that is gone is an error that names it, and not a key that is not there.
func TestMissingFile(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{})
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Close())
	db.Free()
	name := listTree(t, fs)
	must(t, fs.Remove(name))
	db = openMem(t, fs, Options{})
	defer db.Free()
	_, found, err := db.Get(testKey(1))
	wantCode(t, err, CodeIO)
	if found || !strings.Contains(err.Error(), name) {
		t.Fatalf("found %v, %v", found, err)
	}
	var e *base.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T", err)
	}
}
