package engine

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// bigRow is a fifth of the smallest memtable.
func bigRow(id, payload int64) []Value {
	r := testRow(id, payload)
	r[2] = String(strings.Repeat("x", minMemtableBytes/5))
	return r
}

// gate holds back the creation of data files.
type gate struct {
	mu      sync.Mutex
	closed  bool
	opened  sync.Cond
	waiting int
}

func newGate(fs *faultyFS) *gate {
	g := &gate{closed: true}
	g.opened.L = &g.mu
	fs.set(func(op vfs.Op, path string) error {
		if op != vfs.OpCreate || !strings.HasSuffix(path, ".parquet") {
			return nil
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting++
		g.opened.Broadcast()
		for g.closed {
			g.opened.Wait()
		}
		return nil
	})
	return g
}

func (g *gate) open() {
	g.mu.Lock()
	g.closed = false
	g.opened.Broadcast()
	g.mu.Unlock()
}

// await returns when n files are held back.
func (g *gate) await(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.waiting < n {
		g.opened.Wait()
	}
}

// TestFlushesSideBySide: two memtables are written at the same time, and rows of the younger one supersede those of the
// older one, though neither was in a file when it was looked up.
func TestFlushesSideBySide(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 8, FlushThreads: 2, NoAutoCompaction: true})
	defer db.Free()
	g := newGate(fs)
	for i := range int64(12) {
		_, err := db.Put(bigRow(i%3, i))
		must(t, err)
	}
	g.await(2)
	g.open()
	must(t, db.Flush())
	s := mustSnapshot(t, db)
	rows, live := int64(0), int64(0)
	for i, f := range s.Files() {
		rows, live = rows+f.Rows, live+f.Rows-f.Deleted
		if i > 0 && f.SeqMax >= s.Files()[i-1].SeqMin {
			t.Fatalf("file %d is not older than the one before it", i)
		}
	}
	if live != 3 || rows < 8 {
		t.Fatalf("%d of %d rows are live, want 3", live, rows)
	}
	for id := range int64(3) {
		row, found, err := db.Get(testKey(id))
		must(t, err)
		if !found || row[3].Lo != Double(float64(9+id)).Lo {
			t.Fatalf("key %d: %v", id, row)
		}
	}
}

// TestStopAndWake: at the hard limit writers stop, everything else goes on, and a flush that ends wakes them.
func TestStopAndWake(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 2, NoAutoCompaction: true})
	defer db.Free()
	g := newGate(fs)
	written := make(chan error)
	go func() {
		for i := range int64(20) {
			if _, err := db.Put(bigRow(i, i)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for db.Stats().StopsImmutables == 0 {
		time.Sleep(time.Millisecond)
	}
	s := mustSnapshot(t, db) // neither this nor a scan needs a lock that a stopped writer holds
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	if rows := collect(t, it); len(rows) == 0 || len(rows) == 20 {
		t.Fatalf("%d rows", len(rows))
	}
	flushed := make(chan error)
	go func() { flushed <- db.Flush() }() // takes the lock of writers
	g.open()
	must(t, <-written)
	must(t, <-flushed)
	st := db.Stats()
	if st.StopsImmutables == 0 || st.StopNanosImmutables == 0 || st.WriteStalls != st.StopsImmutables {
		t.Fatalf("stops are not counted: %+v", st.WriteStallStats)
	}
	must(t, db.Flush())
	if n := mustSnapshot(t, db).LiveRows(); n != 20 {
		t.Fatalf("%d rows", n)
	}
}

// TestStoppedByFailure: writers at the hard limit get the error of the flushes that fail, all of them, and go on once
// space is back.
func TestStoppedByFailure(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 3, FlushThreads: 3, NoAutoCompaction: true})
	defer db.Free()
	var broken atomic.Bool
	broken.Store(true)
	fs.set(func(op vfs.Op, path string) error {
		if broken.Load() && op == vfs.OpSync && strings.HasSuffix(path, ".parquet") {
			return base.Errorf(base.CodeNoSpace, "sync %s: no space left on device", path)
		}
		return nil
	})
	var wg sync.WaitGroup
	var acked sync.Map
	errs := make([]error, 4)
	for w := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int64(0); errs[w] == nil && i < 100; i++ {
				id := int64(w)*1000 + i
				if _, errs[w] = db.Put(bigRow(id, id)); errs[w] == nil {
					acked.Store(id, true)
				}
			}
		}()
	}
	wg.Wait()
	for w, err := range errs {
		wantCode(t, err, CodeNoSpace)
		if !strings.Contains(err.Error(), ".parquet") || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("writer %d: the error does not say what and where: %v", w, err)
		}
	}
	broken.Store(false)
	_, err := db.Put(testRow(1_000_000, 1))
	must(t, err)
	acked.Store(int64(1_000_000), true)
	must(t, db.Flush())
	want := 0
	acked.Range(func(id, _ any) bool {
		want++
		_, found, err := db.Get(testKey(id.(int64)))
		must(t, err)
		if !found {
			t.Errorf("row %d is gone", id)
		}
		return true
	})
	if n := mustSnapshot(t, db).LiveRows(); n != int64(want) {
		t.Fatalf("%d rows, %d were acknowledged", n, want)
	}
}

// TestPace: what a group owes grows with its bytes and with the depth, follows the rate of flushes, and is bounded.
func TestPace(t *testing.T) {
	now := time.Now()
	owed := func(bytes int, depth float64, mib, secs float64) time.Duration {
		p := &pace{bytes: mib * (1 << 20), secs: secs}
		p.owe(bytes, depth, now)
		return p.next.Sub(now)
	}
	const mib = 1 << 20
	near := func(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }
	for _, c := range []struct {
		bytes     int
		depth     float64
		mib, secs float64
		want      time.Duration
	}{
		{mib, 0.5, 100, 1, 10 * time.Millisecond}, // in the middle: as fast as flushes
		{2 * mib, 0.5, 100, 1, 20 * time.Millisecond},
		{mib, 0.5, 50, 1, 20 * time.Millisecond},
		{mib, 0, 100, 1, 5 * time.Millisecond},
		{mib, 0.75, 100, 1, 20 * time.Millisecond},
		{mib / 16, 1, 100, 1, 10 * time.Millisecond},
		{64 * mib, 1, 100, 1, maxDelay},
	} {
		if got := owed(c.bytes, c.depth, c.mib, c.secs); !near(got, c.want) {
			t.Errorf("%d bytes at depth %v with %v MiB in %v s: %v, want %v", c.bytes, c.depth, c.mib, c.secs, got, c.want)
		}
	}
	p := &pace{}
	for range 100 {
		p.owe(64*mib, 1, now)
	}
	if d := p.debt(); d > maxDelay || d < maxDelay/2 {
		t.Errorf("debts add up to %v", d)
	}
	p = &pace{}
	p.flushed(10*mib, time.Now().Add(-time.Second))
	if r := p.rate(); r < 9*mib || r > 11*mib {
		t.Errorf("rate %v", r)
	}
}

// TestDepth: where the slow zone begins and ends.
func TestDepth(t *testing.T) {
	for _, c := range []struct{ x, slow, stop, want float64 }{
		{10, 20, 36, -10.0 / 16}, {20, 20, 36, 0}, {28, 20, 36, 0.5}, {36, 20, 36, 1}, {50, 20, 36, 1}, {5, 5, 5, 1}, {4, 5, 5, 0},
	} {
		if got := depth(c.x, c.slow, c.stop); got != c.want {
			t.Errorf("depth%v = %v", c, got)
		}
	}
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, MaxImmutables: 4})
	defer db.Free()
	zone := func() string {
		db.c.mu.Lock()
		defer db.c.mu.Unlock()
		d, why := db.c.slowZone()
		return fmt.Sprintf("%v %d", d > 0, why)
	}
	if got := zone(); got != "false 0" {
		t.Errorf("of an empty database: %s", got)
	}
}
