package engine

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// otherProcess opens the database as another process would: past the registry, read-only.
func otherProcess(t *testing.T, fs vfs.FS) *DB {
	t.Helper()
	c, err := openCore("/db", Options{ReadOnly: true, fs: fs})
	must(t, err)
	return &DB{shared: &shared{c: c, readOnly: true}, c: c, readOnly: true}
}

// TestFollow has a reader in another process follow a writer through puts, rotations, flushes, loads, a drop and a new
// table. It must show exactly what was committed, keep its snapshots, and never change the directory.
func TestFollow(t *testing.T) {
	mem := vfs.NewMem()
	counting := vfs.NewCountingFS(mem)
	counting.SetHook(func(op vfs.Op, path string) {
		if op.Mutates() {
			t.Errorf("the reader did %s on %s", op, path)
		}
	})
	rng := rand.New(rand.NewPCG(5, 5))
	o := Options{MemtableBytes: minMemtableBytes, GCGrace: time.Minute, RetainVersions: 1, L0Files: 2}
	db := openMem(t, mem, o)
	m := model{}
	reader := otherProcess(t, counting)
	var old *Snapshot
	var oldModel model
	for i := range 120 {
		switch p := rng.IntN(20); {
		case p < 12:
			writeRandom(t, db, rng, m, 200, 1+rng.IntN(30))
		case p < 15:
			must(t, db.Flush())
			if i%10 == 0 {
				must(t, db.Compact())
			}
		case p < 16:
			writeRandom(t, db, rng, m, 200, 6000)
		case p < 17:
			must(t, db.Close())
			db.Free()
			db = openMem(t, mem, o)
		case p < 18:
			db.Free()
			db = openMem(t, mem, o)
		case p < 19 && i > 60:
			must(t, db.DropTable())
			must(t, reader.Refresh())
			if reader.HasTable() {
				t.Fatal("the reader still has the dropped table")
			}
			must(t, db.CreateTable(testSchema()))
			m = model{}
		}
		must(t, reader.Refresh())
		check(t, reader, m)
		if old == nil {
			s, err := reader.Snapshot()
			must(t, err)
			old, oldModel = s, maps.Clone(m)
		}
		if _, err := reader.Put(testRow(1, 1)); CodeOf(err) != CodeReadOnly {
			t.Fatalf("a write through a reader: %v", err)
		}
	}
	checkSnapshot(t, old, oldModel) // files that were dropped stay for the time of grace
	old.Close()
	reader.c.drop()
	db.Free()
}

// TestReaderSeesCommits: a reader that was there before sees what another process wrote at its next refresh, up to the
// same sequence number; what it looks at meanwhile stays as it was (cases, 49).
func TestReaderSeesCommits(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, frugal)
	defer db.Free()
	reader := otherProcess(t, fs)
	m := model{}
	for round := range int64(5) {
		before := maps.Clone(m)
		running, err := reader.Snapshot()
		must(t, err)
		for id := range int64(10) {
			_, err := db.Put(testRow(round*10+id, round))
			must(t, err)
			m[round*10+id] = round
		}
		checkSnapshot(t, running, before)
		must(t, db.Flush())
		collectNow(t, db)
		checkSnapshot(t, running, before)
		must(t, reader.Refresh())
		check(t, reader, m)
		if w, r := db.Stats(), reader.Stats(); w.Seq != r.Seq || w.Version != r.Version {
			t.Fatalf("the writer is at version %d, sequence %d, the reader at %d, %d", w.Version, w.Seq, r.Version, r.Seq)
		}
		checkSnapshot(t, running, before)
		running.Close()
	}
	reader.c.drop()
}

func TestReaderWithoutDatabase(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open("/nowhere", Options{ReadOnly: true, fs: fs})
	wantCode(t, err, CodeNotFound)
	must(t, fs.MkdirAll("/empty"))
	_, err = Open("/empty", Options{ReadOnly: true, fs: fs})
	wantCode(t, err, CodeNotFound)
}
