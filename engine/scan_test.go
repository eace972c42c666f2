package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// places are where the rows of a scan can be: what a step does before the snapshot is taken.
var places = map[string]func(t *testing.T, db *DB, step int){
	"memtable":          func(*testing.T, *DB, int) {},
	"level 0":           func(t *testing.T, db *DB, _ int) { must(t, db.Flush()) },
	"level 1 and below": func(t *testing.T, db *DB, _ int) { must(t, db.Compact()) },
	"everywhere": func(t *testing.T, db *DB, step int) {
		switch step % 3 {
		case 0:
			must(t, db.Compact())
		case 1:
			must(t, db.Flush())
		}
	},
	"both": func(t *testing.T, db *DB, step int) {
		if step%2 == 0 {
			must(t, db.Flush())
		}
	},
}

// TestScanRanges compares bounds of every kind, limits and both directions with the model, wherever the rows are, and
// does so again after what came later.
func TestScanRanges(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
			defer db.Free()
			m := model{}
			for step := range 5 {
				writeRandom(t, db, rng, m, 300, 150)
				place(t, db, step)
				s, err := db.Snapshot()
				must(t, err)
				defer s.Close()
				then := maps.Clone(m)
				for range 60 {
					checkRange(t, s, then, rng)
				}
				writeRandom(t, db, rng, m, 300, 50)
				place(t, db, step)
				for range 20 {
					checkRange(t, s, then, rng)
				}
			}
		})
	}
}

// checkRange scans one random range.
func checkRange(t *testing.T, s *Snapshot, m model, rng *rand.Rand) {
	t.Helper()
	lo, hi := rng.Int64N(320)-10, rng.Int64N(320)-10
	o := ScanOptions{
		Lower: []Value{Int(lo)}, Upper: []Value{Int(hi)}, LowerExclusive: rng.IntN(2) == 0, UpperExclusive: rng.IntN(2) == 0,
		Projection: [][]int{{3, 1}, {3, 1}, {}, {0, 1, 2, 3}}[rng.IntN(4)], BatchRows: 1 + rng.IntN(50), Reverse: rng.IntN(2) == 0,
	}
	if rng.IntN(2) == 0 {
		o.Lower, o.Upper = testKey(lo), testKey(hi)
	}
	if rng.IntN(5) == 0 {
		o.Lower, o.LowerExclusive, lo = nil, false, -1<<62
	}
	if rng.IntN(5) == 0 {
		o.Upper, o.UpperExclusive, hi = nil, false, 1<<62
	}
	o.Limit = int64(rng.IntN(30))
	ids := slices.Sorted(maps.Keys(m))
	if o.Reverse {
		slices.Reverse(ids)
	}
	var want [][]Value
	for _, id := range ids {
		if id < lo || id > hi || id == lo && o.LowerExclusive || id == hi && o.UpperExclusive {
			continue
		}
		if full := testRow(id, m[id]); o.Limit == 0 || int64(len(want)) < o.Limit {
			row := []Value{}
			for _, c := range o.Projection {
				row = append(row, full[c])
			}
			want = append(want, row)
		}
	}
	it, err := s.Scan(o)
	must(t, err)
	if got := collect(t, it); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v:\n%v\nwant\n%v", o, got, want)
	}
}

// TestScanManyBatches scans files of many batches, with rows left out and rows in memory between them.
func TestScanManyBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	m := model{}
	for _, place := range []func() error{db.Compact, db.Flush, func() error { return nil }} {
		writeRandom(t, db, rng, m, 40_000, 25_000)
		must(t, place())
		writeRandom(t, db, rng, m, 40_000, 200)
		check(t, db, m)
	}
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	for range 20 { // iterators that are closed early
		it, err := s.Scan(ScanOptions{Reverse: rng.IntN(2) == 0, BatchRows: 100 + rng.IntN(3000)})
		must(t, err)
		for range rng.IntN(4) {
			_, err := it.Next()
			must(t, err)
		}
		it.Close()
		_, err = it.Next()
		wantCode(t, err, CodeClosed)
	}
}

// TestOverlayRange compares the rows in memory of a range with those of a scan.
func TestOverlayRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	m := model{}
	writeRandom(t, db, rng, m, 300, 400)
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	for range 50 {
		lo := rng.Int64N(300)
		o := ScanOptions{
			Lower: []Value{Int(lo)}, Upper: []Value{Int(lo + rng.Int64N(100))}, Reverse: rng.IntN(2) == 0, Limit: int64(rng.IntN(20)),
		}
		scan, err := s.Scan(o)
		must(t, err)
		overlay, err := s.OverlayRange(o)
		must(t, err)
		if got, want := fmt.Sprint(collect(t, overlay)), fmt.Sprint(collect(t, scan)); got != want {
			t.Fatalf("%+v:\n%s\nwant\n%s", o, got, want)
		}
	}
	must(t, db.Flush())
	flushed, err := db.Snapshot()
	must(t, err)
	defer flushed.Close()
	it, err := flushed.OverlayRange(ScanOptions{})
	must(t, err)
	if got := collect(t, it); len(got) != 0 {
		t.Fatalf("after a flush %d rows are in memory", len(got))
	}
	_, err = flushed.OverlayRange(ScanOptions{Projection: []int{9}})
	wantCode(t, err, CodeInvalidArgument)
}

// TestScanReadsLittle: a scan with a limit reads a small part of the table, in both directions, and one that is closed
// early opens no files that it does not come to.
func TestScanReadsLittle(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	const files, rows = 20, 2000
	for f := range int64(files) {
		w, err := db.NewWrite()
		must(t, err)
		for i := range int64(rows) {
			must(t, w.Put(testRow(f*rows+i, i)))
		}
		_, err = w.Commit()
		must(t, err)
		must(t, db.Flush())
	}
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	defer db.Free()
	_, err := db.Put(testRow(-1, 1))
	must(t, err)
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	if n := len(s.state.files); n < files {
		t.Fatalf("%d files", n)
	}
	for _, reverse := range []bool{false, true} {
		it, err := s.Scan(ScanOptions{Limit: 10, Reverse: reverse})
		must(t, err)
		if got := collect(t, it); len(got) != 10 {
			t.Fatalf("%d rows", len(got))
		}
	}
	open := 0
	for _, f := range s.state.files {
		if len(f.readers) > 0 {
			open++
		}
	}
	st := db.Stats()
	if open > 2 || st.BytesRead > st.DataBytes/4 || st.Scans != 2 {
		t.Fatalf("two scans with a limit opened %d of %d files and read %d of %d bytes", open, files, st.BytesRead, st.DataBytes)
	}
}

// TestScanBesideWriters scans in both directions while rows come, are overwritten and flushed: a snapshot has the sum that
// every change keeps.
func TestScanBesideWriters(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	const accounts = 64
	change := func(rng *rand.Rand, balance []int64) {
		a, b := rng.Int64N(accounts), rng.Int64N(accounts)
		balance[a]++
		balance[b]--
		_, err := db.PutBatch([][]Value{testRow(a, balance[a]), testRow(b, balance[b])})
		must(t, err)
	}
	balance := make([]int64, accounts)
	for id := range int64(accounts) {
		_, err := db.Put(testRow(id, 0))
		must(t, err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, reverse := range []bool{false, true} {
		wg.Go(func() {
			for n := 0; ; n++ {
				sum, rows, err := scanSum(db, reverse)
				if err != nil || sum != 0 || rows != accounts {
					t.Errorf("%d rows with the sum %v: %v", rows, sum, err)
					return
				}
				select {
				case <-done:
					if n > 0 {
						return
					}
				default:
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 3000 {
		change(rng, balance)
		if i%500 == 0 {
			must(t, db.Flush())
		}
	}
	close(done)
	wg.Wait()
}

func scanSum(db *DB, reverse bool) (sum float64, rows int, err error) {
	s, err := db.Snapshot()
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	it, err := s.Scan(ScanOptions{Projection: []int{3}, Reverse: reverse, BatchRows: 7})
	if err != nil {
		return 0, 0, err
	}
	defer it.Close()
	for {
		c, err := it.Next()
		if c == nil || err != nil {
			return sum, rows, err
		}
		for i := range c.N {
			sum += doubleOf(c.Cols[0].Value(i))
			rows++
		}
	}
}

// FuzzScanBounds scans with any bytes as bounds of a text key, in both directions, and compares with the keys themselves.
func FuzzScanBounds(f *testing.F) {
	f.Add("a", "b", byte(0))
	f.Add("", "\x00", byte(7))
	f.Add("\xff", "", byte(255))
	f.Add("a\x00", "a\x00\x00", byte(9))
	keys := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00\x01", "a\x01", "ab", "b", "\x7f", "é", "\U0010ffff", "\U0010ffffz"}
	fs := vfs.NewMem()
	db, err := Open("/db", Options{MemtableBytes: minMemtableBytes, fs: fs})
	must(f, err)
	f.Cleanup(db.Free)
	must(f, db.CreateTable(&Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []Column{{Name: "k", Type: Type{Kind: KindBlob}}}}))
	for i, k := range keys {
		_, err := db.Put([]Value{Bytes([]byte(k))})
		must(f, err)
		if i == len(keys)/2 {
			must(f, db.Flush())
		}
	}
	slices.Sort(keys)
	f.Fuzz(func(t *testing.T, lo, hi string, flags byte) {
		o := ScanOptions{LowerExclusive: flags&1 != 0, UpperExclusive: flags&2 != 0, Reverse: flags&4 != 0, BatchRows: 1 + int(flags>>5)}
		if flags&8 == 0 {
			o.Lower = []Value{Bytes([]byte(lo))}
		}
		if flags&16 == 0 {
			o.Upper = []Value{Bytes([]byte(hi))}
		}
		var want []string
		for _, k := range keys {
			if (o.Lower == nil || k > lo || k == lo && !o.LowerExclusive) && (o.Upper == nil || k < hi || k == hi && !o.UpperExclusive) {
				want = append(want, k)
			}
		}
		if o.Reverse {
			slices.Reverse(want)
		}
		s, err := db.Snapshot()
		must(t, err)
		defer s.Close()
		it, err := s.Scan(o)
		must(t, err)
		var got []string
		for _, r := range collect(t, it) {
			got = append(got, string(r[0].Bytes))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q to %q, %+v: %q, want %q", lo, hi, o, got, want)
		}
	})
}
