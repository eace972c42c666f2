package sst

import (
	"math"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
)

// widenCases are steps from a type to a wider one, with the wide value of a narrow one.
var widenCases = []struct {
	from, to base.Type
	wide     func(v base.Value) base.Value
}{
	{base.Type{Kind: base.KindTinyInt}, base.Type{Kind: base.KindSmallInt}, same},
	{base.Type{Kind: base.KindTinyInt}, base.Type{Kind: base.KindHugeInt}, same},
	{base.Type{Kind: base.KindSmallInt}, base.Type{Kind: base.KindBigInt}, same},
	{base.Type{Kind: base.KindInteger}, base.Type{Kind: base.KindBigInt}, same},
	{base.Type{Kind: base.KindBigInt}, base.Type{Kind: base.KindHugeInt}, same},
	{base.Type{Kind: base.KindUTinyInt}, base.Type{Kind: base.KindInteger}, same},
	{base.Type{Kind: base.KindUSmallInt}, base.Type{Kind: base.KindUBigInt}, same},
	{base.Type{Kind: base.KindUBigInt}, base.Type{Kind: base.KindUHugeInt}, same},
	{base.Type{Kind: base.KindUBigInt}, base.Type{Kind: base.KindHugeInt}, same},
	{base.Type{Kind: base.KindInteger}, base.Type{Kind: base.KindVarchar}, func(v base.Value) base.Value {
		return base.Bytes([]byte(strconv.FormatInt(int64(v.Lo), 10)))
	}},
	{base.Type{Kind: base.KindUBigInt}, base.Type{Kind: base.KindVarchar}, func(v base.Value) base.Value {
		return base.Bytes([]byte(strconv.FormatUint(v.Lo, 10)))
	}},
	{base.Type{Kind: base.KindInteger}, base.Type{Kind: base.KindDouble}, func(v base.Value) base.Value {
		return base.Value{Lo: math.Float64bits(float64(int64(v.Lo)))}
	}},
	{base.Type{Kind: base.KindSmallInt}, base.Type{Kind: base.KindDecimal, Precision: 7, Scale: 2}, func(v base.Value) base.Value {
		return base.Int(int64(v.Lo) * 100)
	}},
	{base.Type{Kind: base.KindDecimal, Precision: 9, Scale: 2}, base.Type{Kind: base.KindDecimal, Precision: 20, Scale: 3}, func(v base.Value) base.Value {
		return base.Int(int64(v.Lo) * 10)
	}},
	{base.Type{Kind: base.KindDecimal, Precision: 9, Scale: 2}, base.Type{Kind: base.KindDecimal, Precision: 12, Scale: 2}, same},
	{base.Type{Kind: base.KindFloat}, base.Type{Kind: base.KindDouble}, func(v base.Value) base.Value {
		return base.Value{Lo: math.Float64bits(float64(math.Float32frombits(uint32(v.Lo))))}
	}},
	{base.Type{Kind: base.KindEnum, Labels: []string{"b", "a"}}, base.Type{Kind: base.KindEnum, Labels: []string{"b", "a", "c"}}, same},
	{base.Type{Kind: base.KindEnum, Labels: []string{"b", "a"}}, base.Type{Kind: base.KindVarchar}, func(v base.Value) base.Value {
		return base.Bytes([]byte([]string{"b", "a"}[v.Lo]))
	}},
}

func same(v base.Value) base.Value { return v }

// TestWidened: a file read with a schema whose columns became wider has the same values, in scans and in point reads, beside
// readers of the schema that it was written with.
func TestWidened(t *testing.T) {
	types := []base.Type{{Kind: base.KindInteger}}
	for _, c := range widenCases {
		types = append(types, c.from)
	}
	narrow := ssttest.MakeSchema(types, true, 0)
	wide := narrow.Clone()
	for i, c := range widenCases {
		if !c.from.Widens(c.to) {
			t.Fatalf("%s does not widen to %s", c.from, c.to)
		}
		wide.Columns[i+1].Type = c.to
	}
	wide.SchemaID++
	rows := makeRows(t, narrow, 3000, 5, 10)
	for _, cache := range []*Cache{nil, NewCache(8 << 20)} {
		r, _, _ := writeFile(t, small(narrow, 1), rows, cache)
		w, err := r.WithSchema(wide)
		must(t, err)
		old, all := scan(t, r, IterOptions{}), scan(t, w, IterOptions{})
		for _, reverse := range []bool{false, true} {
			if n := scan(t, w, IterOptions{Reverse: reverse, BatchRows: 77}).cols.N; n != len(rows) {
				t.Fatalf("%d rows, want %d", n, len(rows))
			}
		}
		layout := row.NewLayout(wide)
		for i := range rows {
			for j, c := range widenCases {
				was := old.cols.Cols[j+1].Value(i)
				want := was
				if !was.Null {
					want = c.wide(was)
				}
				if got := all.cols.Cols[j+1].Value(i); !sameValue(got, want) {
					t.Fatalf("row %d, %s as %s: %+v is %+v, want %+v", i, c.from, c.to, was, got, want)
				}
			}
			if i%97 != 0 {
				continue
			}
			rec, _, err := w.Record(layout, int64(i))
			must(t, err)
			one, err := w.ReadRow(int64(i), nil)
			must(t, err)
			for c := range wide.Columns {
				want := all.cols.Cols[c].Value(i)
				if !sameValue(layout.Value(rec, c), want) || !sameValue(one.Cols[c].Value(0), want) {
					t.Fatalf("row %d, column %d: %+v, %+v, want %+v", i, c, layout.Value(rec, c), one.Cols[c].Value(0), want)
				}
			}
			before, err := r.ReadRow(int64(i), nil)
			must(t, err)
			if !sameValue(before.Cols[4].Value(0), old.cols.Cols[4].Value(i)) {
				t.Fatalf("row %d: the reader of the old schema reads %+v", i, before.Cols[4].Value(0))
			}
		}
		must(t, w.Verify(VerifyOptions{}))
	}
}

// TestNarrowed: what does not widen is a mismatch that names both types.
func TestNarrowed(t *testing.T) {
	for _, to := range []base.Type{
		{Kind: base.KindInteger},
		{Kind: base.KindDouble},
		{Kind: base.KindDecimal, Precision: 18},
		{Kind: base.KindUHugeInt},
		{Kind: base.KindBlob},
	} {
		s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindBigInt}}, true, 0)
		r, _, _ := writeFile(t, small(s, 0), makeRows(t, s, 10, 1, 0), nil)
		other := s.Clone()
		other.Columns[1].Type = to
		if _, err := r.WithSchema(other); base.CodeOf(err) != base.CodeSchemaMismatch {
			t.Errorf("BIGINT as %s: %v", to, err)
		}
	}
}

// TestNotNullSince: rows that were deleted before a column became NOT NULL may be NULL there.
func TestNotNullSince(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindBigInt}, {Kind: base.KindVarchar}}, true, 0)
	rows := makeRows(t, s, 2000, 3, 0)
	r, _, _ := writeFile(t, small(s, 0), rows, nil)
	strict := s.Clone()
	strict.Columns[1].Nullable, strict.Columns[2].Nullable = false, false
	dead := roaring.New()
	for i, row := range rows {
		if row.Vals[1].Null || row.Vals[2].Null {
			dead.AddInt(i)
		}
	}
	if dead.IsEmpty() {
		t.Fatal("no NULLs")
	}
	w, err := r.WithSchema(strict)
	must(t, err)
	got := scan(t, w, IterOptions{Skip: dead})
	if got.cols.N != len(rows)-int(dead.GetCardinality()) {
		t.Fatalf("%d rows of %d, %d dead", got.cols.N, len(rows), dead.GetCardinality())
	}
	for i := range got.cols.N {
		if got.cols.Cols[1].IsNull(i) || !sameValue(got.cols.Cols[2].Value(i), rows[got.at[i]].Vals[2]) {
			t.Fatalf("row %d", i)
		}
	}
}
