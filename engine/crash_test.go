package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestCrash cuts the power after every system call of a history of creation, puts, rotation, flushes, a bulk load and a
// drop of logs, and opens what is left. Every acknowledged change must be there, the one under way whole or not at all,
// and the database must take writes and come back once more.
func TestCrash(t *testing.T) {
	cutEverywhere(t, 7, func(at int) int {
		return crashRun(t, at, rand.New(rand.NewPCG(uint64(at), 3)), history)
	})
}

// cutEverywhere makes a run for each point where the power may be cut, in a short run for one in so many. run is first
// asked for -1, which cuts nothing, and returns how many points there are.
func cutEverywhere(t *testing.T, oneIn int, run func(at int) (total int)) {
	total := run(-1)
	for at := 0; at < total; at += unlessShort(1, oneIn) {
		run(at)
	}
	t.Logf("power cut at each of %d operations", total)
}

// progress is what a history has done so far; the hook reads it from whatever goroutine makes a system call.
type progress struct {
	mu              sync.Mutex
	acked, inFlight model
}

func (p *progress) begin(next model) {
	p.mu.Lock()
	p.inFlight = next
	p.mu.Unlock()
}

func (p *progress) end() {
	p.mu.Lock()
	p.acked, p.inFlight = p.inFlight, nil
	p.mu.Unlock()
}

// crashRun runs the history and cuts the power after operation at; it returns how many operations there were.
func crashRun(t *testing.T, at int, rng *rand.Rand, history func(*testing.T, vfs.FS, *progress)) int {
	t.Helper()
	mem := vfs.NewMem()
	fs := vfs.NewCountingFS(mem)
	n := 0
	var clone *vfs.MemFS
	p := &progress{acked: model{}}
	var acked, inFlight model
	fs.SetHook(func(vfs.Op, string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n == at {
			clone = mem.CrashClone(rng)
			acked, inFlight = p.acked, p.inFlight
		}
		n++
	})
	history(t, fs, p)
	fs.SetHook(nil)
	if clone != nil {
		verifyCrash(t, at, clone, acked, inFlight)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return n
}

// powerCut is a cut of the power while an engine works: behind it every operation of its file system fails.
type powerCut struct {
	mu   sync.Mutex // the workers of the engine have a part in it
	ops  int
	left *vfs.MemFS
}

// cutPower cuts the power at operation step from now on.
func cutPower(fs *faultyFS, mem *vfs.MemFS, step int, rng *rand.Rand) *powerCut {
	p := &powerCut{}
	fs.set(func(vfs.Op, string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ops++; p.ops == step {
			p.left = mem.CrashClone(rng)
		}
		if p.left != nil {
			return base.Errorf(base.CodeIO, "the power is gone")
		}
		return nil
	})
	return p
}

// disk is what was on the disk when the power went; nil until then.
func (p *powerCut) disk() *vfs.MemFS {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func (p *powerCut) dead() bool { return p.disk() != nil }

func history(t *testing.T, fs vfs.FS, p *progress) {
	o := Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1}
	db := openMem(t, fs, o)
	rng := rand.New(rand.NewPCG(1, 1))
	change := func(n int) {
		next := maps.Clone(p.acked)
		w, err := db.NewWrite()
		must(t, err)
		for range n {
			id := rng.Int64N(50)
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
	}
	for range 3 {
		change(5)
		change(1)
		must(t, db.Flush())
	}
	change(5000) // a load
	change(3)
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, o)
	change(4)
	db.Free()
	db = openMem(t, fs, o)
	change(2)
	must(t, db.Flush())
	db.Free()
}

func verifyCrash(t *testing.T, at int, fs *vfs.MemFS, acked, inFlight model) {
	t.Helper()
	db, err := Open("/db", Options{fs: fs, MemtableBytes: minMemtableBytes})
	if err != nil {
		t.Fatalf("cut after operation %d: open: %v", at, err)
	}
	if !db.HasTable() {
		if len(acked) > 0 {
			t.Fatalf("cut after operation %d: the table is gone with %d acknowledged rows", at, len(acked))
		}
		db.Free()
		return
	}
	want := acked
	if inFlight != nil && !matches(t, db, acked) {
		want = inFlight
	}
	if !matches(t, db, want) {
		t.Fatalf("cut after operation %d: neither the acknowledged state (%d rows) nor the one under way", at, len(acked))
	}
	check(t, db, want)
	_, err = db.Put(testRow(1000, 1))
	must(t, err)
	want = maps.Clone(want)
	want[1000] = 1
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	check(t, db, want)
}

func matches(t *testing.T, db *DB, m model) bool {
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	rows := collect(t, it)
	if len(rows) != len(m) {
		return false
	}
	for _, r := range rows {
		id := r[1].Int64()
		payload, ok := m[id]
		if !ok || fmt.Sprint(r) != fmt.Sprint(testRow(id, payload)) {
			return false
		}
	}
	return true
}
