package sst

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// readRows returns all rows of a file with sequence numbers and operations.
func readRows(t testing.TB, r *Reader) *row.Columns {
	t.Helper()
	all := row.NewColumns(r.schema, nil)
	all.Seqs, all.Ops = []base.Seq{}, []base.Op{}
	it := r.NewIter(IterOptions{Hidden: true})
	defer it.Close()
	for {
		cols, _, err := it.Next()
		must(t, err)
		if cols == nil {
			return all
		}
		all.AppendRange(cols, 0, cols.N)
	}
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	must(t, err)
	defer f.Close()
	n, err := f.Size()
	must(t, err)
	b, err := readEnd(f, n, n)
	must(t, err)
	return b
}

// TestWriterFromColumns copies files of every type through batches of random sizes: the copies must be the originals,
// byte for byte.
func TestWriterFromColumns(t *testing.T) {
	types := append([]base.Type{{Kind: base.KindBigInt}}, ssttest.AllTypes...)
	for level := 0; level < 2; level++ {
		for _, nullable := range []bool{false, true} {
			s := ssttest.MakeSchema(types, nullable, 0)
			r, info, fs := writeFile(t, small(s, level), makeRows(t, s, unlessShort(3500, 1200), int64(level), 5), nil)
			all := readRows(t, r)
			rng := rand.New(rand.NewSource(7))
			w, err := NewWriter(fs, "d/copy.parquet", small(s, level))
			must(t, err)
			for at := 0; at < all.N; {
				n := min(all.N-at, rng.Intn(700))
				must(t, w.Append(all, at, at+n))
				at += n
			}
			if w.Rows() != info.Rows {
				t.Fatalf("%d rows", w.Rows())
			}
			got, err := w.Finish()
			must(t, err)
			w.Abort()
			if got.Rows != info.Rows || got.Size != info.Size || !bytes.Equal(got.KeyMin, info.KeyMin) || !bytes.Equal(got.KeyMax, info.KeyMax) ||
				got.SeqMin != info.SeqMin || got.SeqMax != info.SeqMax || !got.Tombstones.Equals(info.Tombstones) ||
				!slices.Equal(got.NaNColumns, info.NaNColumns) {
				t.Fatalf("copy %+v, original %+v", got, info)
			}
			if !bytes.Equal(readFile(t, fs, "d/copy.parquet"), readFile(t, fs, "d/f.parquet")) {
				t.Fatal("the copy differs")
			}
		}
	}
}

// TestWriterInheritsSeqs writes a batch without sequence numbers and operations.
func TestWriterInheritsSeqs(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}}, false, 0)
	r, _, fs := writeFile(t, WriterOptions{Schema: s}, makeRows(t, s, 500, 1, 0), nil)
	all := readRows(t, r)
	for _, cols := range []*row.Columns{all, {N: all.N, Cols: all.Cols}} {
		w, err := NewWriter(fs, "d/g.parquet", WriterOptions{Schema: s, InheritSeq: true})
		must(t, err)
		must(t, w.Append(cols, 0, cols.N))
		info, err := w.Finish()
		must(t, err)
		g, err := Open(fs, "d/g.parquet", info.Size, s, nil)
		must(t, err)
		got := readRows(t, g)
		must(t, g.Close())
		if got.N != all.N || slices.Max(got.Seqs) != 0 || slices.Min(got.Ops) != base.OpPut || info.Tombstones != nil {
			t.Fatalf("%d rows, sequence numbers up to %d", got.N, slices.Max(got.Seqs))
		}
	}
}

// TestWriterRefuses takes no rows out of order, no batches of another table, and leaves no file behind.
func TestWriterRefuses(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, true, 0)
	r, _, fs := writeFile(t, WriterOptions{Schema: s}, makeRows(t, s, 500, 1, 5), nil)
	all := readRows(t, r)
	for name, bad := range map[string]func(w *Writer) error{
		"a key twice":         func(w *Writer) error { return w.Append(all, 99, 101) },
		"descending keys":     func(w *Writer) error { return w.Append(all, 0, 1) },
		"rows beyond the end": func(w *Writer) error { return w.Append(all, 100, all.N+1) },
		"too few columns": func(w *Writer) error {
			return w.Append(&row.Columns{N: all.N, Cols: all.Cols[:1], Seqs: all.Seqs}, 100, 101)
		},
		"no sequence numbers": func(w *Writer) error { return w.Append(&row.Columns{N: all.N, Cols: all.Cols}, 100, 101) },
	} {
		for _, end := range []string{"finish", "abort"} {
			w, err := NewWriter(fs, "d/bad.parquet", small(s, 1))
			must(t, err)
			must(t, w.Append(all, 0, 100))
			if err := bad(w); base.CodeOf(err) != base.CodeInvalidArgument {
				t.Fatalf("%s: %v", name, err)
			}
			if end == "abort" {
				w.Abort()
			}
			if _, err := w.Finish(); base.CodeOf(err) != base.CodeInvalidArgument {
				t.Fatalf("%s: finish after it: %v", name, err)
			}
			w.Abort()
			if _, err := fs.Stat("d/bad.parquet"); base.CodeOf(err) != base.CodeNotFound {
				t.Fatalf("%s: the file is left: %v", name, err)
			}
		}
	}
	w, err := NewWriter(fs, "d/empty.parquet", small(s, 1))
	must(t, err)
	if _, err := w.Finish(); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("a file without rows: %v", err)
	}
	if err := w.Append(all, 0, 1); err == nil {
		t.Fatal("a finished file grows")
	}
}

// TestEstimatedBytes ends files at many sizes, in the middle of row groups and before the first one is full.
func TestEstimatedBytes(t *testing.T) {
	src, _ := openBench(t, 200_000, 1)
	all := readRows(t, src)
	s := src.schema
	wide := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, {Kind: base.KindEnum, Labels: []string{"a", "b"}}, {Kind: base.KindHugeInt}}, true, 0)
	rows := makeRows(t, wide, 60_000, 1, 10)
	wr, _, _ := writeFile(t, WriterOptions{Schema: wide, Level: 1}, rows, nil)
	targets := []int64{200 << 10, 1 << 20, 2 << 20, 6 << 20}
	if testing.Short() {
		targets = targets[:2]
	}
	for _, c := range []struct {
		schema *base.Schema
		cols   *row.Columns
	}{{s, all}, {wide, readRows(t, wr)}} {
		for level := 0; level < 2; level++ {
			for _, target := range targets {
				for _, groupRows := range []int{10_000, 0} {
					fs := vfs.NewMem()
					w, err := NewWriter(fs, "f.parquet", WriterOptions{Schema: c.schema, Level: level, RowGroupRows: groupRows})
					must(t, err)
					at := 0
					for ; at < c.cols.N && w.EstimatedBytes() < target; at += 1000 {
						must(t, w.Append(c.cols, at, at+1000))
					}
					estimated := w.EstimatedBytes()
					info, err := w.Finish()
					must(t, err)
					if off := float64(estimated) / float64(info.Size); off < 0.88 || off > 1.12 {
						t.Errorf("L%d, %d rows, row groups of %d: %d bytes, %d were estimated (%.2f)", level, at, groupRows, info.Size, estimated, off)
					}
				}
			}
		}
	}
}

// TestBloomFiltersFollowTheRows has row groups of very different sizes: a filter made for the first one's keys would be
// of no use in the second, or far too large.
func TestBloomFiltersFollowTheRows(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindBigInt}, {Kind: base.KindBlob}}, true, 0)
	var table [][]base.Value
	for i := 0; i < 20_004; i++ {
		v := base.Bytes(nil)
		if i < 4 || i > 20_000 {
			v = base.Bytes(make([]byte, 30<<10))
		}
		table = append(table, []base.Value{base.Int(int64(i) * 2), v})
	}
	rows, err := ssttest.RowsOf(s, table)
	must(t, err)
	r, _, _ := writeFile(t, WriterOptions{Schema: s, RowGroupBytes: 4 * 30 << 10, RowGroupRows: 20_000}, rows, NewCache(1<<20))
	var filters []string
	for g := range r.groups {
		bf, err := r.bloom(g, &r.columns[0])
		must(t, err)
		filters = append(filters, fmt.Sprint(r.groups[g].rows, " rows: ", bf.Size()))
	}
	t.Log(filters)
	for i := 5; i < 20_000; i++ {
		if _, found, err := r.Find(benchKey(2*i + 1)); err != nil || found {
			t.Fatal(found, err)
		}
	}
	if st := r.Stats(); st.BloomNegatives < 9*st.BloomProbes/10 {
		t.Fatalf("%d of %d absent keys passed: %v", st.BloomProbes-st.BloomNegatives, st.BloomProbes, filters)
	}
}
