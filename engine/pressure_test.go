package engine

import (
	"math"
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

// TestLoadsWait: a load does not add files to a level 0 that is full; it can be interrupted, and goes on when a compaction
// makes room.
func TestLoadsWait(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, L0Files: 2, L0SlowFiles: 2, L0StopFiles: 2, NoAutoCompaction: true})
	defer db.Free()
	for i := range int64(2) {
		_, err := db.Put(testRow(i*50_000, i))
		must(t, err)
		must(t, db.Flush())
	}
	db.c.opts.NoAutoCompaction = false // with nobody who compacts
	_, err := loadRows(db, 20_000, func() bool { return db.Stats().StopsL0 > 0 })
	wantCode(t, err, CodeCancelled)
	loaded := make(chan error)
	go func() {
		_, err := loadRows(db, 20_000, nil)
		loaded <- err
	}()
	for db.Stats().StopsL0 < 2 {
		time.Sleep(time.Millisecond)
	}
	must(t, db.Compact())
	must(t, <-loaded)
	if n := mustSnapshot(t, db).LiveRows(); n != 20_001 {
		t.Fatalf("%d rows", n)
	}
}

// TestPace: what a group owes grows with its bytes, and is bounded, each debt and all together.
func TestPace(t *testing.T) {
	const mib = 1 << 20
	now := time.Now()
	near := func(got, want time.Duration) bool { return got > want*9/10 && got < want*11/10 }
	for _, c := range []struct {
		bytes int
		rate  float64
		want  time.Duration
	}{{mib, 100 * mib, 10 * time.Millisecond}, {2 * mib, 100 * mib, 20 * time.Millisecond}, {64 * mib, mib, maxDelay}} {
		p := &pace{}
		p.owe(c.bytes, c.rate, now)
		if got := p.next.Sub(now); !near(got, c.want) {
			t.Errorf("%d bytes at %v bytes/s: %v, want %v", c.bytes, c.rate, got, c.want)
		}
	}
	p := &pace{}
	for range 100 {
		p.owe(64*mib, mib, now)
	}
	if d := p.debt(); d > maxDelay || d < maxDelay/2 {
		t.Errorf("debts add up to %v", d)
	}
	p = &pace{}
	start := time.Now().Add(-time.Second)
	p.flushed(10*mib, start)
	p.flushed(10*mib, start) // beside the first one
	if r := p.rate(); r < 15*mib || r > 30*mib {
		t.Errorf("two flushes of 10 MiB in a second: %v bytes/s", r)
	}
	if d := p.expected(20 * mib); !near(d, 2*time.Second) {
		t.Errorf("20 MiB are expected to take %v", d)
	}
}

// TestAllowance: the slow zones begin where the options say, and writers may go the slower the deeper they are in one.
func TestAllowance(t *testing.T) {
	for _, c := range []struct{ x, slow, stop, want float64 }{
		{10, 20, 36, -10.0 / 16}, {20, 20, 36, 0}, {28, 20, 36, 0.5}, {36, 20, 36, 1}, {50, 20, 36, 1}, {5, 5, 5, 1}, {4, 5, 5, 0},
	} {
		if got := depth(c.x, c.slow, c.stop); got != c.want {
			t.Errorf("depth%v = %v", c, got)
		}
	}
	fs := newFaultyFS(vfs.NewMem())
	o := Options{MemtableBytes: minMemtableBytes, MaxImmutables: 4, FlushThreads: 1, L0Files: 3, L0SlowFiles: 3, L0StopFiles: 6}
	o.NoAutoCompaction = true
	db := openMem(t, fs, o)
	defer db.Free()
	db.c.opts.NoAutoCompaction = false // with nobody who compacts
	allowance := func() (float64, stallReason) {
		db.c.mu.Lock()
		defer db.c.mu.Unlock()
		return db.c.allowance(db.c)
	}
	if _, why := allowance(); why != stallNone {
		t.Errorf("an empty database is slow: %d", why)
	}
	for i := range int64(5) {
		_, err := db.Put(testRow(i, i))
		must(t, err)
		must(t, db.Flush())
		rate, why := allowance()
		if slow := i >= 2; slow != (why == stallL0) {
			t.Errorf("%d files in level 0: reason %d", i+1, why)
		}
		if want := db.c.pace.rate() * 2 * (1 - float64(i-1)/4); why == stallL0 && math.Abs(rate-want) > want/100 {
			t.Errorf("%d files in level 0: %v bytes/s, want %v", i+1, rate, want)
		}
	}
	g := newGate(fs)
	seen := map[stallReason]bool{}
	db.c.opts.L0SlowFiles, db.c.opts.L0StopFiles = 1000, 1000
	for i := int64(0); db.Stats().ImmutableCount < 4; i++ {
		_, err := db.Put(bigRow(i, i))
		must(t, err)
		_, why := allowance()
		seen[why] = true
		if slow := db.Stats().ImmutableCount > 2; slow != (why == stallImmutables) {
			t.Errorf("%d memtables wait: reason %d", db.Stats().ImmutableCount, why)
		}
	}
	if !seen[stallNone] || !seen[stallImmutables] {
		t.Error("the slow zone was not met")
	}
	g.open()
}
