package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestCrashCompaction cuts the power after every system call of a history of compactions, some of them beside flushes
// that delete from their inputs, and opens what is left, as TestCrash does (case 56).
func TestCrashCompaction(t *testing.T) {
	cutEverywhere(t, 7, func(at int) int {
		return crashRun(t, at, rand.New(rand.NewPCG(uint64(at), 4)), compactionHistory)
	})
}

func compactionHistory(t *testing.T, fs vfs.FS, p *progress) {
	o := Options{
		MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1, NoAutoCompaction: true,
		L0Files: 2, TargetFileBytes: 4 << 10, BaseLevelBytes: 8 << 10, LevelMultiplier: 2,
	}
	db := openMem(t, fs, o)
	rng := rand.New(rand.NewPCG(1, 1))
	change := func(n int, keys int64) {
		next := maps.Clone(p.acked)
		w, err := db.NewWrite()
		must(t, err)
		for range n {
			id := rng.Int64N(keys)
			if rng.IntN(4) == 0 {
				must(t, w.Delete(testKey(id)))
				delete(next, id)
			} else {
				payload := rng.Int64N(1000)
				must(t, w.Put(testRow(id, payload)))
				next[id] = payload
			}
		}
		p.begin(next)
		_, err = w.Commit()
		must(t, err)
		p.end()
		must(t, db.Flush())
	}
	change(350, 400)
	change(100, 400)
	must(t, db.Compact())
	change(80, 400)
	runPicked(t, db, nil)
	change(80, 200)
	runPicked(t, db, func() { change(30, 400) })
	db.Free()
	db = openMem(t, fs, o)
	must(t, db.Compact())
	must(t, db.Close())
	db.Free()
}

// runPicked runs what the loop would, one job after the other; during runs once, beside the first job that writes.
func runPicked(t *testing.T, db *DB, during func()) {
	t.Helper()
	c := db.c
	m := c.compactions
	for {
		m.mu.Lock()
		j := c.pickJob(time.Now())
		if j == nil {
			m.mu.Unlock()
			return
		}
		m.register(j)
		m.mu.Unlock()
		if during != nil {
			j.interrupt = func() bool {
				if during != nil {
					f := during
					during = nil
					f()
				}
				return false
			}
		}
		err := j.run()
		c.finishJob(j, err, false)
		must(t, err)
	}
}

// TestCompactionFails: a compaction that cannot write or commit leaves the table and the directory as they were, keeps
// nobody from writing, and succeeds once the cause is gone.
func TestCompactionFails(t *testing.T) {
	for _, part := range []string{"data/L1", ".manifest.bin.tmp"} {
		for _, auto := range []bool{false, true} {
			t.Run(fmt.Sprint(part, " ", auto), func(t *testing.T) { compactionFails(t, part, auto) })
		}
	}
}

func compactionFails(t *testing.T, part string, auto bool) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	db := openMem(t, fs, smallLevels(Options{NoAutoCompaction: true}))
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(i, 3000, i+2)...)
		must(t, db.Flush())
	}
	if auto {
		must(t, db.Close())
		db.Free()
		o := smallLevels(Options{})
		must(t, o.Set("auto_compaction", "true"))
		fs.set(noSpace(part, vfs.OpCreate, vfs.OpWrite))
		db = openMem(t, fs, o)
	}
	defer func() { db.Free() }()
	before := listTree(t, mem)
	fs.set(noSpace(part, vfs.OpCreate, vfs.OpWrite))
	if auto {
		for db.Stats().CompactionErrors < 2 {
			time.Sleep(time.Millisecond)
		}
	} else {
		err := db.Compact()
		wantCode(t, err, CodeNoSpace)
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("the error does not name the file: %v", err)
		}
	}
	check(t, db, m)
	if after := listTree(t, mem); after != before && !auto { // the loop may be writing again
		t.Fatalf("files before:\n%s\nafter:\n%s", before, after)
	}
	if part == "data/L1" {
		putIDs(t, db, m, 9, 1, 2, 3)
		must(t, db.Flush())
	}
	fs.set(nil)
	if auto {
		waitIdle(t, db)
	} else {
		must(t, db.Compact())
	}
	check(t, db, m)
	if st := db.Stats(); st.Levels[0].Files > 1 || st.Levels[1].Files == 0 {
		t.Fatalf("levels %+v", st.Levels)
	}
	db.c.pending.mu.Lock()
	defer db.c.pending.mu.Unlock()
	if n := len(db.c.pending.set); n > 0 {
		t.Fatalf("%d files are still marked as being written", n)
	}
}

// TestNoSpinning: after a failure nothing makes the loop try again before its time.
func TestNoSpinning(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, smallLevels(Options{}))
	defer db.Free()
	c := db.c.compactions
	c.mu.Lock()
	c.retryEvery = time.Hour
	c.mu.Unlock()
	fs.set(noSpace("data/L1", vfs.OpCreate))
	m := model{}
	for i := int64(0); i < 4 || db.Stats().CompactionErrors == 0; i++ {
		putIDs(t, db, m, i, ids(i, 100, 3)...)
		must(t, db.Flush())
	}
	for i := range int64(20) {
		putIDs(t, db, m, i, i)
		must(t, db.Flush())
	}
	if n := db.Stats().CompactionErrors; n != 1 {
		t.Fatalf("%d attempts", n)
	}
	check(t, db, m)
}

// TestDamagedInput: a file that cannot be read keeps only itself from being compacted.
func TestDamagedInput(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, smallLevels(Options{NoAutoCompaction: true}))
	m := model{}
	putIDs(t, db, m, 1, ids(0, 2000, 2)...)
	must(t, db.Flush())
	s := mustSnapshot(t, db)
	bad := s.state.files[0]
	must(t, db.Close())
	s.Close()
	db.Free()
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpRead && path == bad.path {
			return base.Errorf(base.CodeIO, "read %s: input/output error", path)
		}
		return nil
	})
	o := smallLevels(Options{})
	must(t, o.Set("auto_compaction", "true"))
	db = openMem(t, fs, o)
	defer db.Free()
	for i := range int64(5) {
		putIDs(t, db, m, i, ids(5000, 5500+i, 1)...)
		must(t, db.Flush())
	}
	for db.Stats().CompactionErrors == 0 || db.Stats().Levels[0].Files > 2 {
		time.Sleep(time.Millisecond)
	}
	fs.set(nil)
	check(t, db, m)
}

// TestDeletedRowsStayDeleted is case 41: rounds of random changes of one table with a flush each and a compaction now
// and then. Every key is there once, and snapshots show what was there when they were taken.
func TestDeletedRowsStayDeleted(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	db := openMem(t, vfs.NewMem(), smallLevels(Options{RetainVersions: 1, GCGrace: -1}))
	defer db.Free()
	rng := rand.New(rand.NewPCG(41, 41))
	m := model{}
	putIDs(t, db, m, 0, ids(0, 2000, 1)...)
	type held struct {
		s *Snapshot
		m model
	}
	var snaps []held
	for round := range rounds {
		writeRandom(t, db, rng, m, 2000, 20)
		must(t, db.Flush())
		if round%7 == 6 {
			must(t, db.Compact())
		}
		if round%10 == 0 {
			s, err := db.Snapshot()
			must(t, err)
			snaps = append(snaps, held{s, maps.Clone(m)})
		}
		checkRows(t, db, m)
	}
	for _, h := range snaps {
		checkSnapshot(t, h.s, h.m)
		h.s.Close()
	}
	check(t, db, m)
}
