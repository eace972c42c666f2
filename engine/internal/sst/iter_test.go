package sst

import (
	"math/rand"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// scanned is what an iteration yields, with the position of each row.
type scanned struct {
	cols *row.Columns
	at   []int64
}

func scan(t *testing.T, r *Reader, o IterOptions) scanned {
	t.Helper()
	it := r.NewIter(o)
	defer it.Close()
	out := scanned{cols: row.NewColumns(r.schema, o.Projection)}
	if o.Hidden {
		out.cols.Seqs, out.cols.Ops = []base.Seq{}, []base.Op{}
	}
	for {
		cols, first, err := it.Next()
		must(t, err)
		if cols == nil {
			if cols, _, err = it.Next(); cols != nil || err != nil {
				t.Fatal("rows behind the end", err)
			}
			return out
		}
		if cols.N == 0 || o.BatchRows > 0 && cols.N > o.BatchRows {
			t.Fatalf("a batch of %d rows", cols.N)
		}
		out.cols.AppendRange(cols, 0, cols.N)
		positions := it.Positions()
		for i := range cols.N {
			switch {
			case positions != nil:
				out.at = append(out.at, int64(positions[i]))
			case o.Reverse:
				out.at = append(out.at, first-int64(i))
			default:
				out.at = append(out.at, first+int64(i))
			}
		}
		if out.at[len(out.at)-cols.N] != first {
			t.Fatalf("first is %d, the position %d", first, out.at[len(out.at)-cols.N])
		}
	}
}

// sameRow compares row i of one scan with row j of another.
func sameRow(t *testing.T, a, b scanned, i, j int) {
	t.Helper()
	if a.at[i] != b.at[j] {
		t.Fatalf("row %d is at %d, row %d at %d", i, a.at[i], j, b.at[j])
	}
	for c := range a.cols.Cols {
		if v, w := a.cols.Cols[c].Value(i), b.cols.Cols[c].Value(j); !sameValue(v, w) {
			t.Fatalf("row at %d, column %d: %+v and %+v", a.at[i], c, v, w)
		}
	}
	if a.cols.Seqs != nil && (a.cols.Seqs[i] != b.cols.Seqs[j] || a.cols.Ops[i] != b.cols.Ops[j]) {
		t.Fatalf("row at %d: versions differ", a.at[i])
	}
}

// TestIterOptions compares scans of random options, upwards and downwards, with and without reading ahead, with the rows
// of the whole file.
func TestIterOptions(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{
		{Kind: base.KindVarchar},
		{Kind: base.KindDouble},
		{Kind: base.KindBlob},
		{Kind: base.KindTinyInt},
		{Kind: base.KindHugeInt},
		{Kind: base.KindEnum, Labels: []string{"b", "a"}},
		{Kind: base.KindBoolean},
	}, true, 0, 3)
	rows := makeRows(t, s, 6000, 3, 20)
	for level := range 2 {
		r, _, _ := writeFile(t, small(s, level), rows, NewCache(int64(level)<<20))
		all := scan(t, r, IterOptions{Hidden: true})
		rng := rand.New(rand.NewSource(int64(level)))
		for range unlessShort(150, 50) {
			o := IterOptions{
				Reverse: rng.Intn(2) == 0, ReadAhead: rng.Intn(2) == 0, Hidden: rng.Intn(2) == 0,
				LowerInclusive: rng.Intn(2) == 0, UpperInclusive: rng.Intn(2) == 0,
			}
			if rng.Intn(3) > 0 {
				o.BatchRows = 1 + rng.Intn(1500)
			}
			low, high := int64(0), int64(len(rows))
			if rng.Intn(2) == 0 {
				low = rng.Int63n(high)
				o.Lower = rows[low].Key
				if !o.LowerInclusive {
					low++
				}
			}
			if rng.Intn(2) == 0 {
				high = rng.Int63n(high)
				o.Upper = rows[high].Key
				if o.UpperInclusive {
					high++
				}
			}
			if n := rng.Intn(4); n > 0 {
				o.Skip = roaring.New()
				from := uint64(rng.Intn(len(rows)))
				o.Skip.AddRange(from, from+uint64(rng.Intn(3000)))
				for range n * 300 {
					o.Skip.AddInt(rng.Intn(len(rows)))
				}
			}
			want := scanned{cols: all.cols}
			if rng.Intn(2) == 0 {
				o.Projection = rng.Perm(len(s.Columns))[:rng.Intn(len(s.Columns)+1)]
				want.cols = &row.Columns{N: all.cols.N, Seqs: all.cols.Seqs, Ops: all.cols.Ops}
				for _, c := range o.Projection {
					want.cols.Cols = append(want.cols.Cols, all.cols.Cols[c])
				}
			}
			want.at = all.at
			got := scan(t, r, o)
			i := 0
			for j := low; j < high; j++ {
				at := j
				if o.Reverse {
					at = high - 1 - (j - low)
				}
				if o.Skip != nil && o.Skip.ContainsInt(int(at)) {
					continue
				}
				if i == got.cols.N {
					t.Fatalf("%d rows, then the end: %+v", i, o)
				}
				sameRow(t, got, want, i, int(at))
				i++
			}
			if i != got.cols.N {
				t.Fatalf("%d rows, want %d: %+v", got.cols.N, i, o)
			}
		}
	}
}

// TestReadAheadEnds: the goroutine is gone at the end, after an error, and when Close returns, wherever the scan was.
func TestReadAheadEnds(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, true, 0)
	r, _, _ := writeFile(t, small(s, 0), makeRows(t, s, 3000, 1, 0), nil)
	for batches := range 7 {
		it := r.NewIter(IterOptions{ReadAhead: true, BatchRows: 700})
		for range batches {
			if cols, _, err := it.Next(); err != nil || cols == nil {
				if batches < 6 {
					t.Fatal("the end comes early", err)
				}
				<-it.ahead.ended
				break
			}
		}
		it.Close()
		if it.ahead.started {
			<-it.ahead.ended
		}
		it.Close()
		if _, _, err := it.Next(); base.CodeOf(err) != base.CodeClosed {
			t.Fatalf("after Close: %v", err)
		}
	}
}

// TestReadAheadErrors: an error comes behind the batches before it, and stays.
func TestReadAheadErrors(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, true, 0)
	mem := vfs.NewMem()
	info, err := Write(mem, "f", small(s, 0), ssttest.NewSource(s, makeRows(t, s, 5000, 1, 0)))
	must(t, err)
	for _, ahead := range []bool{false, true} {
		var broken atomic.Bool
		fs := vfs.NewErrorFS(mem, func(op vfs.Op, _ string) error {
			if op == vfs.OpRead && broken.Load() {
				return base.Errorf(base.CodeIO, "a broken disk")
			}
			return nil
		})
		r, err := Open(fs, "f", info.Size, s, nil)
		must(t, err)
		it := r.NewIter(IterOptions{ReadAhead: ahead, BatchRows: 1000})
		rows := 0
		for {
			if rows == 2000 {
				broken.Store(true)
			}
			cols, _, err := it.Next()
			if err != nil {
				if base.CodeOf(err) != base.CodeIO || rows < 2000 {
					t.Fatalf("after %d rows: %v", rows, err)
				}
				break
			}
			if cols == nil {
				t.Fatal("no error")
			}
			rows += cols.N
		}
		if _, _, err := it.Next(); base.CodeOf(err) != base.CodeIO {
			t.Fatalf("a second time: %v", err)
		}
		it.Close()
		must(t, r.Close())
	}
}
