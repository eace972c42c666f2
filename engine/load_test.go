package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// spillOptions make loads of a few thousand rows spill and merge.
func spillOptions() Options {
	return Options{MemtableBytes: minMemtableBytes, loadBufferBytes: 32 << 10, NoAutoCompaction: true}
}

// loadStep is one row of a load: a deletion where payload is negative.
type loadStep struct{ id, payload int64 }

func (s loadStep) apply(m model) {
	if s.payload < 0 {
		delete(m, s.id)
	} else {
		m[s.id] = s.payload
	}
}

// sendSteps sends steps in one of the ways that there are: single rows, or batches of columns.
func sendSteps(t testing.TB, w *Write, steps []loadStep, r *rand.Rand) error {
	t.Helper()
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && (steps[n].payload < 0) == (steps[0].payload < 0) {
			n++
		}
		n = min(n, 1+r.IntN(2*smallColumns))
		var err error
		switch {
		case r.IntN(3) == 0:
			n = min(n, 50)
			for i := 0; i < n && err == nil; i++ {
				if steps[i].payload < 0 {
					err = w.Delete(testKey(steps[i].id))
				} else {
					err = w.Put(testRow(steps[i].id, steps[i].payload))
				}
			}
		case steps[0].payload < 0:
			err = appendBlock(w, w.PrepareDelete, keyColumns(steps[:n]))
		default:
			err = appendBlock(w, w.Prepare, rowColumns(steps[:n]))
		}
		if err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

func appendBlock(w *Write, prepare func(*Columns) (*Block, error), c *Columns) error {
	b, err := prepare(c)
	if err != nil {
		return err
	}
	return w.Append(b)
}

func rowColumns(steps []loadStep) *Columns {
	t, err := newTable(testSchema())
	if err != nil {
		panic(err)
	}
	c := row.NewColumns(t.schema, nil)
	for _, s := range steps {
		rec, err := t.layout.Append(nil, testRow(s.id, s.payload))
		if err != nil {
			panic(err)
		}
		t.layout.AppendColumns(c, nil, [][]byte{rec})
	}
	return c
}

func keyColumns(steps []loadStep) *Columns {
	whole := rowColumns(steps)
	return &Columns{N: whole.N, Cols: []row.Column{whole.Cols[1], whole.Cols[0]}}
}

// orders make the ids of a load.
var loadOrders = map[string]func(r *rand.Rand, n int) []int64{
	"ascending":  func(_ *rand.Rand, n int) []int64 { return loadIDs(n, func(i int) int { return i }) },
	"descending": func(_ *rand.Rand, n int) []int64 { return loadIDs(n, func(i int) int { return n - i }) },
	"random":     func(r *rand.Rand, n int) []int64 { return loadIDs(n, func(int) int { return r.IntN(2 * n) }) },
	"repeated":   func(r *rand.Rand, n int) []int64 { return loadIDs(n, func(int) int { return r.IntN(50) }) },
	"ascending, then random": func(r *rand.Rand, n int) []int64 {
		return loadIDs(n, func(i int) int {
			if i < n/2 {
				return i
			}
			return r.IntN(n)
		})
	},
	"ascending twice": func(_ *rand.Rand, n int) []int64 { return loadIDs(n, func(i int) int { return i % (n/2 + 1) }) },
	"ascending pieces": func(_ *rand.Rand, n int) []int64 {
		return loadIDs(n, func(i int) int { return i%700*(n/700+1) + i/700 })
	},
}

func loadIDs(n int, id func(i int) int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(id(i))
	}
	return out
}

// TestLoadOrders loads rows in several orders, with deletions and equal keys, over rows that are there already, and
// compares with a model.
func TestLoadOrders(t *testing.T) {
	for name, order := range loadOrders {
		for _, size := range []int{1500, 12_000} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				if testing.Short() && size == 12_000 && !strings.Contains(name, "random") {
					t.Skip("large ones of this order are not for a short run")
				}
				r := rand.New(rand.NewPCG(uint64(size), 1))
				fs := vfs.NewMem()
				db := openMem(t, fs, spillOptions())
				defer func() { db.Free() }()
				m := model{}
				for range 3 { // files, and rows in memory
					writeRandom(t, db, r, m, 500, size)
					if r.IntN(2) == 0 {
						must(t, db.Flush())
					}
				}
				for round := range 2 {
					steps := make([]loadStep, size)
					deletes := r.IntN(3) // none, few, all
					for i, id := range order(r, size) {
						steps[i] = loadStep{id, int64(round*size + i)}
						if deletes == 2 || deletes == 1 && r.IntN(20) == 0 {
							steps[i].payload = -1
						}
						steps[i].apply(m)
					}
					w, err := db.NewWrite()
					must(t, err)
					must(t, sendSteps(t, w, steps, r))
					_, err = w.Commit()
					must(t, err)
					w.Close()
					checkScan(t, db, m)
				}
				if size < smallColumns {
					check(t, db, m) // by each row alone
				}
				if st := db.Stats(); size == 12_000 && (st.Loads == 0 || name == "random" && st.LoadSpilledBytes == 0) {
					t.Fatalf("%d loads, %d bytes spilled", st.Loads, st.LoadSpilledBytes)
				}
				if left := listTree(t, fs); strings.Contains(left, "/tmp/") {
					t.Fatalf("temporary files are left: %s", left)
				}
				must(t, db.Close())
				db.Free()
				db = openMem(t, fs, spillOptions())
				checkScan(t, db, m)
			})
		}
	}
}

// TestLoadGenerations spills so many runs that they are merged before the end.
func TestLoadGenerations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fs := newFaultyFS(vfs.NewMem())
	o := spillOptions()
	o.loadBufferBytes = 4 << 10
	db := openMem(t, fs, o)
	defer db.Free()
	open, most := 0, 0
	var mu sync.Mutex
	fs.set(func(op vfs.Op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(path, ".run") {
			switch op {
			case vfs.OpOpen:
				open++
			case vfs.OpRemove:
				open--
			}
			most = max(most, open)
		}
		return nil
	})
	m := model{}
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	const n = 40_000
	for i := range int64(n) {
		s := loadStep{r.Int64N(n), i}
		must(t, w.Put(testRow(s.id, s.payload)))
		s.apply(m)
	}
	_, err = w.Commit()
	must(t, err)
	checkScan(t, db, m)
	mu.Lock()
	defer mu.Unlock()
	if open != 0 || most > 2*mergeRuns+loadBuffers || most < mergeRuns {
		t.Fatalf("%d temporary files at a time, %d are left", most, open)
	}
}

// checkScan compares a scan with the model: check reads each row by itself as well, which takes long for many.
func checkScan(t testing.TB, db *DB, m model) {
	t.Helper()
	if s, err := db.Snapshot(); err != nil {
		t.Fatal(err)
	} else {
		defer s.Close()
		it, err := s.Scan(ScanOptions{})
		must(t, err)
		got := collect(t, it)
		want := slices.Sorted(maps.Keys(m))
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for i, id := range want {
			if got[i][1].Int64() != id || doubleOf(got[i][3]) != float64(m[id]) {
				t.Fatalf("row %d: %v, want id %d, payload %d", i, got[i], id, m[id])
			}
		}
	}
}

// bigLoad is a load that streams, spills and merges.
func bigLoad(db *DB, m model, interrupt func() bool) error {
	w, err := db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	w.SetInterrupt(interrupt)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range int64(8000) {
		s := loadStep{i, i}
		if i > 4000 {
			s.id = r.Int64N(6000)
		}
		if err := w.Put(testRow(s.id, s.payload)); err != nil {
			return err
		}
		s.apply(m)
	}
	_, err = w.Commit()
	return err
}

// TestLoadFaults fails each file system operation of a load in turn: the statement fails, or its commit did what it
// should; nothing else is left, and after a re-open at the latest the next load works.
func TestLoadFaults(t *testing.T) {
	for at := 0; ; at += unlessShort(1, 7) {
		mem := vfs.NewMem()
		fs := newFaultyFS(mem)
		db := openMem(t, fs, spillOptions())
		before := model{}
		for id := range int64(10) {
			_, err := db.Put(testRow(id*1000, -7))
			must(t, err)
			before[id*1000] = -7
		}
		must(t, db.Flush())
		tree := listTree(t, mem)
		var mu sync.Mutex
		n, hit := 0, ""
		fs.set(func(op vfs.Op, path string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == vfs.OpRemove || op == vfs.OpRemoveAll || op == vfs.OpClose {
				return nil
			}
			if n++; n == at+1 {
				hit = fmt.Sprint(op, " ", path)
				return base.Errorf(base.CodeIO, "%s %s: input/output error", op, path)
			}
			return nil
		})
		after := maps.Clone(before)
		err := bigLoad(db, after, nil)
		fs.set(nil)
		mu.Lock() // the collector of garbage may still be in the hook
		failed, total := hit, n
		mu.Unlock()
		if failed == "" {
			must(t, err)
			t.Logf("%d operations", total)
			check(t, db, after)
			db.Free()
			return
		}
		want := before
		if err == nil {
			want = after
		} else if c := db.c; c.writable() == nil {
			if left := listTree(t, mem); left != tree {
				t.Fatalf("%s failed (%v): files before:\n%s\nafter:\n%s", failed, err, tree, left)
			}
		}
		if checkScanEither(t, db, want) != nil {
			t.Fatalf("%s failed (%v): rows", failed, err)
		}
		db.c.pending.mu.Lock()
		marked := len(db.c.pending.set)
		db.c.pending.mu.Unlock()
		if marked > 0 {
			t.Fatalf("%s failed: %d files are still marked as being written", failed, marked)
		}
		db.Free()
		db = openMem(t, fs, spillOptions())
		if err != nil && checkScanEither(t, db, before) != nil { // a commit of unknown outcome
			must(t, checkScanEither(t, db, after))
		}
		must(t, bigLoad(db, before, nil))
		checkScan(t, db, before)
		db.Free()
	}
}

// checkScanEither returns an error where the rows are not the model's.
func checkScanEither(t testing.TB, db *DB, m model) error {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	got := collect(t, it)
	if len(got) != len(m) {
		return fmt.Errorf("%d rows, want %d", len(got), len(m))
	}
	for _, row := range got {
		if payload, ok := m[row[1].Int64()]; !ok || doubleOf(row[3]) != float64(payload) {
			return fmt.Errorf("%v, want payload %d", row, payload)
		}
	}
	return nil
}

// TestLoadCrash cuts the power at each operation of a load that spills: all of it is there afterwards, or nothing, and
// the temporary files are gone.
func TestLoadCrash(t *testing.T) {
	run := func(at int) (n int) {
		mem := vfs.NewMem()
		fs := vfs.NewCountingFS(mem)
		db := openMem(t, fs, spillOptions())
		before := model{3: 3}
		_, err := db.Put(testRow(3, 3))
		must(t, err)
		var clone *vfs.MemFS
		var mu sync.Mutex
		fs.SetHook(func(vfs.Op, string) {
			mu.Lock()
			defer mu.Unlock()
			if n == at {
				clone = mem.CrashClone(rand.New(rand.NewPCG(uint64(at), 4)))
			}
			n++
		})
		after := maps.Clone(before)
		must(t, bigLoad(db, after, nil))
		fs.SetHook(nil)
		mu.Lock() // the collector of garbage may still be in the hook
		taken, total := clone, n
		mu.Unlock()
		if taken != nil {
			again := openMem(t, taken, spillOptions())
			if checkScanEither(t, again, before) != nil {
				must(t, checkScanEither(t, again, after))
			}
			_, err := again.CollectGarbage(false)
			must(t, err)
			if left := listTree(t, taken); strings.Contains(left, "/tmp/") {
				t.Fatalf("operation %d: temporary files are left: %s", at, left)
			}
			again.Free()
		}
		db.Free()
		return total
	}
	cutEverywhere(t, 9, run)
}

// TestLoadInterrupt interrupts a load at each of the questions that it asks.
func TestLoadInterrupt(t *testing.T) {
	mem := vfs.NewMem()
	db := openMem(t, mem, spillOptions())
	defer db.Free()
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Flush())
	before := listTree(t, mem)
	cancelled := 0
	for at := 0; ; at++ {
		calls := 0
		m := model{}
		err := bigLoad(db, m, func() bool { calls++; return calls > at })
		if err == nil {
			m[1] = max(m[1], 1)
			if cancelled < 5 {
				t.Fatalf("%d questions", cancelled)
			}
			break
		}
		wantCode(t, err, CodeCancelled)
		cancelled++
		check(t, db, model{1: 1})
		if after := listTree(t, mem); after != before {
			t.Fatalf("question %d: files before:\n%s\nafter:\n%s", at, before, after)
		}
	}
}

// TestLoadBeside loads while others write, delete and flush: each key ends as the last of those that changed it left it.
func TestLoadBeside(t *testing.T) {
	fs := vfs.NewMem()
	o := spillOptions()
	o.NoAutoCompaction = false
	o.L0Files = 2
	db := openMem(t, fs, o)
	defer db.Free()
	const keys = 3000
	type change struct {
		seq     uint64
		payload int64
	}
	last := make([]change, keys)
	var mu sync.Mutex
	note := func(id int64, seq uint64, payload int64) {
		mu.Lock()
		defer mu.Unlock()
		if seq >= last[id].seq {
			last[id] = change{seq, payload}
		}
	}
	done := make(chan struct{})
	var writers, loaders sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for i := int64(0); ; i++ {
				select {
				case <-done:
					return
				default:
				}
				id := r.Int64N(keys)
				if r.IntN(5) == 0 {
					seq, err := db.Delete(testKey(id))
					if err != nil {
						t.Error(err)
						return
					}
					note(id, seq, -1)
					continue
				}
				seq, err := db.Put(testRow(id, i))
				if err != nil {
					t.Error(err)
					return
				}
				note(id, seq, i)
				if i%500 == 0 {
					if err := db.Flush(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for n := range 2 {
		loaders.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 8))
			for round := range 5 {
				steps := make([]loadStep, 5000)
				m := model{}
				for i := range steps {
					steps[i] = loadStep{r.Int64N(keys), int64(1_000_000*(round+1) + i)}
					steps[i].apply(m)
				}
				w, err := db.NewWrite()
				if err == nil {
					err = sendSteps(t, w, steps, r)
				}
				var seq uint64
				if err == nil {
					seq, err = w.Commit()
				}
				if err != nil {
					t.Error(err)
					return
				}
				for id, payload := range m {
					note(id, seq, payload)
				}
			}
		})
	}
	loaders.Wait()
	close(done)
	writers.Wait()
	want := model{}
	for id, c := range last {
		if c.seq > 0 && c.payload >= 0 {
			want[int64(id)] = c.payload
		}
	}
	check(t, db, want)
	must(t, db.Flush())
	check(t, db, want)
}

// TestPrepareParallel prepares blocks by several goroutines and appends them in order.
func TestPrepareParallel(t *testing.T) {
	db := openMem(t, vfs.NewMem(), spillOptions())
	defer db.Free()
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	m := model{}
	const blocks, rows = 16, smallColumns + 500
	ready := make([]chan *Block, blocks)
	var wg sync.WaitGroup
	for i := range ready {
		ready[i] = make(chan *Block, 1)
		steps := make([]loadStep, rows)
		r := rand.New(rand.NewPCG(uint64(i), 9))
		for j := range steps {
			steps[j] = loadStep{r.Int64N(2000), int64(i*rows + j)}
			if i < blocks/4 {
				steps[j].id = steps[j].payload // ascending at first
			}
			steps[j].apply(m)
		}
		wg.Go(func() {
			b, err := w.Prepare(rowColumns(steps))
			if err != nil {
				t.Error(err)
			}
			ready[i] <- b
		})
	}
	for i := range ready {
		b := <-ready[i]
		if b == nil {
			t.FailNow()
		}
		must(t, w.Append(b))
		b.Free() // does nothing
	}
	wg.Wait()
	_, err = w.Commit()
	must(t, err)
	checkScan(t, db, m)
	// Blocks that nobody takes, or another write.
	w2, err := db.NewWrite()
	must(t, err)
	defer w2.Close()
	b, err := w2.Prepare(rowColumns([]loadStep{{1, 1}}))
	must(t, err)
	b.Free()
	b, err = w2.Prepare(rowColumns([]loadStep{{1, 1}}))
	must(t, err)
	wantCode(t, w.Append(b), CodeClosed)
	must(t, db.DropTable())
	must(t, db.CreateTable(testSchema()))
	b, err = w2.Prepare(rowColumns([]loadStep{{1, 1}}))
	must(t, err)
	w3, err := db.NewWrite()
	must(t, err)
	defer w3.Close()
	wantCode(t, w3.Append(b), CodeInvalidArgument)
}
