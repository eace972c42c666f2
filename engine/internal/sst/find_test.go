package sst

import (
	"math/rand"
	"sort"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
)

func bigintSchema() *base.Schema {
	return ssttest.MakeSchema([]base.Type{{Kind: base.KindBigInt}, {Kind: base.KindVarchar}}, true, 0)
}

// TestFindMany looks for present, absent and outlying keys, in every density.
func TestFindMany(t *testing.T) {
	for _, s := range []*base.Schema{
		bigintSchema(),
		ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, {Kind: base.KindInteger}}, true, 0, 1),
		ssttest.MakeSchema([]base.Type{{Kind: base.KindBlob}}, true, 0),
	} {
		s.Columns[len(s.Columns)-1].Nullable = !s.IsKey(len(s.Columns) - 1)
		all := makeRows(t, s, 6000, 1, 0)
		rng := rand.New(rand.NewSource(2))
		var rows, others []testRow
		for _, r := range all {
			if rng.Intn(2) == 0 {
				rows = append(rows, r)
			} else {
				others = append(others, r)
			}
		}
		at := map[string]int64{}
		for i, r := range rows {
			at[string(r.Key)] = int64(i)
		}
		for _, cache := range []*Cache{nil, NewCache(1 << 16), NewCache(64 << 20)} {
			r, _, _ := writeFile(t, small(s, 0), rows, cache)
			for _, of := range []int{1, 3, 100, 2000} {
				var keys [][]byte
				for _, set := range [][]testRow{rows, others} {
					for _, row := range set {
						if rng.Intn(of) == 0 {
							keys = append(keys, row.Key)
						}
					}
				}
				sort.Slice(keys, func(i, j int) bool { return string(keys[i]) < string(keys[j]) })
				checkFindMany(t, r, keys, at)
			}
		}
	}
}

func checkFindMany(t *testing.T, r *Reader, keys [][]byte, at map[string]int64) {
	t.Helper()
	next, hits := 0, 0
	var buf []byte
	err := r.FindMany(func() ([]byte, bool) {
		for i := range buf {
			buf[i] = 0xee // a key is only valid until the next call
		}
		if next == len(keys) {
			return nil, false
		}
		buf = append(buf[:0], keys[next]...)
		next++
		return buf, true
	}, func(i int, pos int64) error {
		want, ok := at[string(keys[i])]
		if !ok || want != pos {
			t.Fatalf("key %d: hit at %d, want %d (%v)", i, pos, want, ok)
		}
		hits++
		return nil
	})
	must(t, err)
	want := 0
	for _, k := range keys {
		if _, ok := at[string(k)]; ok {
			want++
		}
	}
	if hits != want {
		t.Fatalf("%d hits of %d", hits, want)
	}
}

func TestFindManyStops(t *testing.T) {
	s := bigintSchema()
	rows := makeRows(t, s, 1000, 1, 0)
	r, _, _ := writeFile(t, small(s, 1), rows, nil)
	stop := base.Errorf(base.CodeCancelled, "enough")
	next := 0
	err := r.FindMany(func() ([]byte, bool) { next++; return rows[next].Key, true }, func(int, int64) error { return stop })
	if err != stop || next != 1 {
		t.Fatalf("the walk went on to key %d: %v", next, err)
	}
}

// TestIterBounds compares ranges with every combination of bounds, with rows left out, against the rows themselves.
func TestIterBounds(t *testing.T) {
	s := bigintSchema()
	all := makeRows(t, s, 5000, 3, 3)
	var rows, others []testRow
	for i, r := range all {
		if i%3 == 0 {
			others = append(others, r)
		} else {
			rows = append(rows, r)
		}
	}
	r, _, _ := writeFile(t, small(s, 1), rows, NewCache(1<<20))
	rng := rand.New(rand.NewSource(4))
	bound := func() []byte {
		switch rng.Intn(8) {
		case 0:
			return nil
		case 1:
			return []byte{}
		case 2:
			return []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		case 3:
			return rows[rng.Intn(len(rows))].Key[:rng.Intn(8)] // a prefix
		case 4, 5:
			return others[rng.Intn(len(others))].Key
		}
		return rows[rng.Intn(len(rows))].Key
	}
	for round := 0; round < 400; round++ {
		o := IterOptions{
			Lower: bound(), Upper: bound(), LowerInclusive: rng.Intn(2) == 0, UpperInclusive: rng.Intn(2) == 0,
			BatchRows: 1 + rng.Intn(700), Hidden: true,
		}
		if rng.Intn(2) == 0 {
			o.Skip = randomSkip(rng, len(rows))
		}
		if rng.Intn(3) == 0 {
			o.Projection = [][]int{{}, {1}, {0}, {1, 0, 1}}[rng.Intn(4)]
		}
		var want []int
		for i := range rows {
			k := string(rows[i].Key)
			if (o.Lower == nil || k > string(o.Lower) || o.LowerInclusive && k == string(o.Lower)) &&
				(o.Upper == nil || k < string(o.Upper) || o.UpperInclusive && k == string(o.Upper)) &&
				(o.Skip == nil || !o.Skip.Contains(uint32(i))) {
				want = append(want, i)
			}
		}
		checkRange(t, r, s, o, rows, want)
	}
}

func randomSkip(rng *rand.Rand, n int) *roaring.Bitmap {
	b := roaring.New()
	switch rng.Intn(4) {
	case 0:
		b.AddRange(0, uint64(n))
	case 1:
		from := rng.Intn(n)
		b.AddRange(uint64(from), uint64(from+rng.Intn(n-from)))
	default:
		for i := 0; i < rng.Intn(n); i++ {
			b.Add(uint32(rng.Intn(n)))
		}
	}
	return b
}

func checkRange(t *testing.T, r *Reader, s *base.Schema, o IterOptions, rows []testRow, want []int) {
	t.Helper()
	proj := o.Projection
	if proj == nil {
		proj = []int{0, 1}
	}
	it := r.NewIter(o)
	defer it.Close()
	var got []int
	for {
		cols, first, err := it.Next()
		must(t, err)
		if cols == nil {
			break
		}
		if cols.N == 0 || cols.N > o.BatchRows {
			t.Fatalf("a batch of %d rows, where %d is the limit", cols.N, o.BatchRows)
		}
		for i := 0; i < cols.N; i++ {
			pos := int(first) + i
			if p := it.Positions(); p != nil {
				pos = int(p[i])
			}
			got = append(got, pos)
			for j, c := range proj {
				if v, known := wantRow(s, &rows[pos], c); known && !sameValue(cols.Cols[j].Value(i), v) {
					t.Fatalf("row %d, column %d: %+v, wrote %+v", pos, c, cols.Cols[j].Value(i), v)
				}
			}
			if cols.Seqs[i] != rows[pos].Seq || cols.Ops[i] != rows[pos].Op {
				t.Fatalf("row %d: version %d %d", pos, cols.Seqs[i], cols.Ops[i])
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%+v: %d rows, want %d", o, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%+v: row %d of the range is %d, want %d", o, i, got[i], want[i])
		}
	}
}

// TestReadsOnlyWhatItNeeds holds a get to one page a column, and a short range to a part of the file.
func TestReadsOnlyWhatItNeeds(t *testing.T) {
	s := benchSchema()
	r, info := openBench(t, 50_000, 1)
	opened := r.Stats()
	if opened.BytesRead > info.Size/8 {
		t.Fatalf("opening read %d bytes of %d", opened.BytesRead, info.Size)
	}
	pos, found, err := r.Find(benchKey(3 * 12_345))
	must(t, err)
	if !found || pos != 12_345 {
		t.Fatal(found, pos)
	}
	_, err = r.ReadRow(pos, nil)
	must(t, err)
	st := r.Stats()
	if pages := st.PagesRead - opened.PagesRead; pages > int64(len(s.Columns))+1 { // the key's page twice: there is no cache
		t.Fatalf("a get read %d pages", pages)
	}
	if bytes := st.BytesRead - opened.BytesRead; bytes > 300<<10 {
		t.Fatalf("a get read %d bytes", bytes)
	}
	it := r.NewIter(IterOptions{Lower: benchKey(3 * 1000), LowerInclusive: true, Upper: benchKey(3 * 1100), Projection: []int{0}})
	cols, _, err := it.Next()
	must(t, err)
	if cols.N != 100 {
		t.Fatalf("%d rows", cols.N)
	}
	it.Close()
	if bytes := r.Stats().BytesRead - st.BytesRead; bytes > info.Size/8 {
		t.Fatalf("a range of 100 rows read %d bytes of %d", bytes, info.Size)
	}
}

// TestBloomSparesPages checks that absent keys mostly cost no page.
func TestBloomSparesPages(t *testing.T) {
	s := bigintSchema()
	rows := makeRows(t, s, 5000, 1, 0)
	r, _, _ := writeFile(t, small(s, 1), rows, NewCache(1<<20))
	before := r.Stats()
	absent := makeRows(t, s, 1000, 99, 0)
	checkAbsent(t, r, rows, absent)
	st := r.Stats()
	if neg := st.BloomNegatives - before.BloomNegatives; neg < 900 {
		t.Fatalf("%d of 1000 absent keys were excluded by the bloom filters", neg)
	}
}

// TestFindManySkipsPages looks for keys in a hundredth of the file: pages elsewhere are not read.
func TestFindManySkipsPages(t *testing.T) {
	const rows, blocks = 200_000, 100
	r, _ := openBench(t, rows, 1)
	before := r.Stats().PagesRead
	at, hits := rows/2, 0
	err := r.FindMany(func() ([]byte, bool) {
		at++
		return benchKey(3 * (at - 1)), at <= rows/2+rows/100
	}, func(i int, pos int64) error {
		if pos != int64(rows/2+i) {
			t.Fatalf("key %d is at %d", i, pos)
		}
		hits++
		return nil
	})
	must(t, err)
	if pages := r.Stats().PagesRead - before; hits != rows/100 || pages > 3 || r.index.blocks() < blocks-5 {
		t.Fatalf("%d keys found in %d pages of %d", hits, pages, r.index.blocks())
	}
}
