package engine

import (
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// frugal keeps one old version and has no grace. Nothing is committed but what a test asks for.
var frugal = Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1, NoAutoCompaction: true}

func versionsOf(t testing.TB, db *DB) []int64 {
	t.Helper()
	v, err := db.c.store.Versions()
	must(t, err)
	return v
}

// TestReaderPins: a reader in another process keeps what its snapshot needs from a writer that has no grace, and
// nothing else; once it is closed all of that goes.
func TestReaderPins(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(8, 8))
	o := frugal
	o.NoAutoCompaction = true // manifests are counted
	db := openMem(t, fs, o)
	defer db.Free()
	m := model{}
	writeRandom(t, db, rng, m, 100, 60)
	must(t, db.Flush())
	reader := otherProcess(t, fs)
	held, err := reader.Snapshot()
	must(t, err)
	heldModel := maps.Clone(m)
	for range 12 {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		must(t, reader.Refresh())
		check(t, reader, m)
		collectNow(t, db)
		checkSnapshot(t, held, heldModel)
	}
	r := collectNow(t, db)
	// The newest, one retained, which the reader has let go, and the snapshot's.
	if v := versionsOf(t, db); len(v) != 3 || v[0] != held.Version() || r.ReaderPins != 1 || r.KeptManifests != 3 || r.OldestVersion != v[0] {
		t.Fatalf("manifests %v, the snapshot is of %d: %+v", v, held.Version(), r)
	}
	if low, err := readText(fs, "/db/metadata/low_water.txt"); err != nil || low != "2" {
		t.Fatalf("low water %q, %v", low, err)
	}
	before := db.Stats()
	held.Close()
	collectNow(t, db)
	after := db.Stats()
	if v := versionsOf(t, db); len(v) != 2 || after.FilesRemoved <= before.FilesRemoved || after.BytesRemoved <= before.BytesRemoved ||
		after.ReaderPins != 0 || after.KeptManifests != 2 || after.OldestVersion != v[0] {
		t.Fatalf("manifests %v, %+v", v, after.GarbageStats)
	}
	check(t, reader, m)
	reader.c.drop()
}

// TestPinsWhateverTheClock: the clock jumps, there is no grace, and readers with pins are safe.
func TestPinsWhateverTheClock(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(14, 8))
	db := openMem(t, fs, frugal)
	clock := setClock(db)
	m := model{}
	reader := otherProcess(t, fs)
	var held []*Snapshot
	var models []model
	for i := range 40 {
		clock.Store(int64([]time.Duration{-time.Hour, 24 * time.Hour, 0, -365 * 24 * time.Hour}[i%4]))
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		collectNow(t, db)
		must(t, reader.Refresh())
		if i%8 == 7 {
			must(t, db.Close())
			db.Free()
			db = openMem(t, fs, frugal)
			clock = setClock(db)
		}
		if len(held) == 3 {
			held[0].Close()
			held, models = held[1:], models[1:]
		}
		s, err := reader.Snapshot()
		must(t, err)
		held, models = append(held, s), append(models, maps.Clone(m))
		for j, s := range held {
			checkSnapshot(t, s, models[j])
		}
		check(t, reader, m)
	}
	for _, s := range held {
		s.Close()
	}
	reader.c.drop()
	collectNow(t, db)
	if v := versionsOf(t, db); len(v) > 2 {
		t.Errorf("manifests %v are left", v)
	}
	db.Free()
}

// TestReaderOfPinnedVersion: a reader whose version is there, while the next ones are gone, sees the newest.
func TestReaderOfPinnedVersion(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(9, 8))
	db := openMem(t, fs, frugal)
	defer db.Free()
	m := model{}
	reader, other := otherProcess(t, fs), otherProcess(t, fs)
	for range 5 {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		collectNow(t, db)
	}
	if v := versionsOf(t, db); len(v) != 3 || v[0] != 1 {
		t.Fatalf("manifests %v", v)
	}
	must(t, reader.Refresh())
	check(t, reader, m)
	reader.c.drop()
	other.c.drop()
}

// TestIdleReader: a read-only engine that the process only keeps open for the next use pins nothing, unless a snapshot
// is still there.
func TestIdleReader(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, frugal)
	m := model{}
	rng := rand.New(rand.NewPCG(10, 8))
	put := func() {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		collectNow(t, db)
	}
	put()
	must(t, db.Close())
	db.Free()
	o := Options{ReadOnly: true, fs: fs}
	reader, err := Open("/db", o)
	must(t, err)
	check(t, reader, m)
	// Another process writes: one that this registry does not know.
	c, err := openCore("/db", withFS(frugal, fs))
	must(t, err)
	db = &DB{shared: &shared{c: c}, c: c}
	held, err := reader.Snapshot()
	must(t, err)
	heldModel := maps.Clone(m)
	reader.Free()
	put()
	put()
	put()
	checkSnapshot(t, held, heldModel)
	held.Close()
	reader, err = Open("/db", o)
	must(t, err)
	check(t, reader, m)
	reader.Free()
	put()
	put()
	if v := versionsOf(t, db); len(v) != 2 {
		t.Fatalf("manifests %v: an idle engine pins one", v)
	}
	reader, err = Open("/db", o)
	must(t, err)
	check(t, reader, m)
	reader.Free()
	must(t, SetReaderCache(0))
	must(t, SetReaderCache(8))
	c.abandon()
	c.drop()
}

// TestRestingReader: a reader that is left alone pins nothing, a snapshot of it does, and it wakes up with a state that
// is there.
func TestRestingReader(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, frugal)
	defer db.Free()
	rng := rand.New(rand.NewPCG(13, 8))
	m := model{}
	put := func() {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		collectNow(t, db)
	}
	put()
	reader := otherProcess(t, fs)
	held, err := reader.Snapshot()
	must(t, err)
	heldModel := maps.Clone(m)
	idle := func() { // as if the timer had fired twice
		reader.c.checkIdle()
		reader.c.checkIdle()
	}
	idle()
	put()
	put()
	put()
	checkSnapshot(t, held, heldModel)
	held.Close()
	s, err := reader.Snapshot() // in use: what it shows is still there
	must(t, err)
	checkSnapshot(t, s, heldModel)
	s.Close()
	if v := versionsOf(t, db); v[0] != s.Version() {
		t.Fatalf("manifests %v, the reader is at %d", v, s.Version())
	}
	reader.c.checkIdle()
	check(t, reader, heldModel)
	reader.c.checkIdle()
	if reader.c.idle.resting {
		t.Fatal("a reader rests that was used")
	}
	idle()
	put()
	if v := versionsOf(t, db); len(v) != 2 {
		t.Fatalf("manifests %v: a reader that rests pins one", v)
	}
	check(t, reader, m) // without a refresh
	idle()
	check(t, reader, m)
	reader.c.release()
	reader.c.drop()
}

func withFS(o Options, fs vfs.FS) Options {
	o.fs = fs
	return o
}

// TestSnapshotOutlivesWriter: snapshots of engines that were closed keep their files from the writers that follow.
func TestSnapshotOutlivesWriter(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(11, 8))
	m := model{}
	db := openMem(t, fs, frugal)
	var held []*Snapshot
	var models []model
	for i := range 6 {
		writeRandom(t, db, rng, m, 100, 50)
		must(t, db.Flush())
		s, err := db.Snapshot()
		must(t, err)
		held, models = append(held, s), append(models, maps.Clone(m))
		writeRandom(t, db, rng, m, 100, 50)
		must(t, db.Flush())
		collectNow(t, db)
		if i%2 == 0 {
			must(t, db.Close())
		}
		db.Free()
		db = openMem(t, fs, frugal)
		writeRandom(t, db, rng, m, 100, 50)
		must(t, db.Compact())
		collectNow(t, db)
		for j, s := range held {
			checkSnapshot(t, s, models[j])
			for _, f := range s.Files() { // it may be open still
				_, err := fs.Stat(f.Path)
				must(t, err)
			}
		}
	}
	for _, s := range held {
		s.Close()
	}
	collectNow(t, db)
	if v := versionsOf(t, db); len(v) != 2 {
		t.Fatalf("manifests %v are left", v)
	}
	check(t, db, m)
	db.Free()
}

// TestWithoutLocks: where the file system has no locks readers work, and the grace period keeps their files.
func TestWithoutLocks(t *testing.T) {
	mem := vfs.NewMem()
	fs := vfs.NewErrorFS(mem, func(op vfs.Op, _ string) error {
		if op == vfs.OpLockShared || op == vfs.OpTryLock {
			return syscall.EOPNOTSUPP
		}
		return nil
	})
	rng := rand.New(rand.NewPCG(12, 8))
	o := frugal
	o.GCGrace = time.Hour
	db := openMem(t, fs, o)
	defer db.Free()
	clock := setClock(db)
	m := model{}
	write := func() {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		collectNow(t, db)
	}
	write()
	reader := otherProcess(t, fs)
	held, err := reader.Snapshot()
	must(t, err)
	heldModel := maps.Clone(m)
	write()
	write()
	checkSnapshot(t, held, heldModel)
	clock.Store(int64(2 * time.Hour))
	write()
	if v := versionsOf(t, db); len(v) != 2 {
		t.Fatalf("manifests %v are left", v)
	}
	must(t, reader.Refresh())
	check(t, reader, m)
	held.Close()
	reader.c.drop()
}
