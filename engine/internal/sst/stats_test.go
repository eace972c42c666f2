package sst

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
)

// less orders values as the Parquet format orders the column's type.
func less(c *colType, a, b base.Value) bool {
	switch c.physical {
	case parquet.Types.Boolean:
		return a.Lo < b.Lo
	case parquet.Types.Int32, parquet.Types.Int64:
		switch c.typ.Kind {
		case base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt:
			return a.Lo < b.Lo
		}
		return a.Int64() < b.Int64()
	case parquet.Types.Float:
		return math.Float32frombits(uint32(a.Lo)) < math.Float32frombits(uint32(b.Lo))
	case parquet.Types.Double:
		return math.Float64frombits(a.Lo) < math.Float64frombits(b.Lo)
	}
	if c.typ.Kind == base.KindDecimal {
		return int64(a.Hi) < int64(b.Hi) || a.Hi == b.Hi && a.Lo < b.Lo
	}
	return bytes.Compare(pageBytes(c, a), pageBytes(c, b)) < 0
}

// pageBytes is a value as it stands in the statistics.
func pageBytes(c *colType, v base.Value) []byte {
	le := binary.LittleEndian
	switch {
	case c.form == formLabel:
		return []byte(c.typ.Labels[v.Lo])
	case c.typ.IsVariable(), c.typ.Kind == base.KindFixedBinary:
		return v.Bytes
	case c.typ.Kind == base.KindUUID:
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Hi), v.Lo)
	case c.typ.Kind == base.KindHugeInt:
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Hi^1<<63), v.Lo)
	case c.size == 16:
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Hi), v.Lo)
	case c.physical == parquet.Types.Boolean:
		return []byte{byte(v.Lo)}
	case c.width == 4:
		return le.AppendUint32(nil, uint32(v.Lo))
	case c.form == formScale && !infinite(v.Int64()):
		return le.AppendUint64(nil, uint64(v.Int64()*c.scale))
	}
	return le.AppendUint64(nil, v.Lo)
}

// parquetReader is the library's, with all that the footer holds.
func parquetReader(t *testing.T, r *Reader) *file.Reader {
	pq, err := file.NewParquetReader(r.newSource())
	must(t, err)
	return pq
}

// checkStatistics recomputes the bounds and NULL counts of every chunk and of every page.
func checkStatistics(t *testing.T, r *Reader, rows []testRow) {
	t.Helper()
	pq := parquetReader(t, r)
	meta := pq.MetaData()
	first := 0
	for g := 0; g < meta.NumRowGroups(); g++ {
		rg := meta.RowGroup(g)
		idx, err := pq.GetPageIndexReader().RowGroup(g)
		must(t, err)
		group := rows[first : first+int(rg.NumRows())]
		for i := range r.schema.Columns {
			c := r.columns[i].colType
			chunk, err := rg.ColumnChunk(i)
			must(t, err)
			st, err := chunk.Statistics()
			must(t, err)
			min, max, nulls, nan := bounds(c, group, i)
			switch {
			case !c.bounds || nan:
				if st != nil && st.HasMinMax() {
					t.Fatalf("row group %d, column %d (%s): has bounds", g, i, c.typ)
				}
			case st == nil || st.NullCount() != nulls:
				t.Fatalf("row group %d, column %d (%s): NULL count is not %d", g, i, c.typ, nulls)
			case min != nil && len(min) <= maxBoundBytes && len(max) <= maxBoundBytes:
				if !st.HasMinMax() || !bytes.Equal(st.EncodeMin(), min) || !bytes.Equal(st.EncodeMax(), max) {
					t.Fatalf("row group %d, column %d (%s): bounds %x and %x, want %x and %x", g, i, c.typ, st.EncodeMin(), st.EncodeMax(), min, max)
				}
			}
			ci, err := idx.GetColumnIndex(i)
			must(t, err)
			if ci == nil {
				continue // left out because a page has no bounds
			}
			checkPages(t, r, g, i, group, ci)
		}
		first += int(rg.NumRows())
	}
}

func checkPages(t *testing.T, r *Reader, g, i int, group []testRow, ci metadata.ColumnIndex) {
	t.Helper()
	c := r.columns[i].colType
	starts, err := r.pageRows(g, i)
	must(t, err)
	for p, start := range starts {
		end := len(group)
		if p+1 < len(starts) {
			end = int(starts[p+1])
		}
		min, max, nulls, nan := bounds(c, group[start:end], i)
		if nan || ci.GetNullPages()[p] != (min == nil) || ci.GetNullCounts()[p] != nulls ||
			!bytes.Equal(ci.GetMinValues()[p], min) || !bytes.Equal(ci.GetMaxValues()[p], max) {
			t.Fatalf("row group %d, column %d (%s), page %d: bounds %x and %x, %d NULLs, want %x, %x and %d", g, i, c.typ, p,
				ci.GetMinValues()[p], ci.GetMaxValues()[p], ci.GetNullCounts()[p], min, max, nulls)
		}
	}
}

// bounds recomputes what the statistics of some rows must say.
func bounds(c *colType, rows []testRow, column int) (min, max []byte, nulls int64, nan bool) {
	var low, high *base.Value
	for i := range rows {
		v := &rows[i].Vals[column]
		if v.Null {
			nulls++
			continue
		}
		switch c.typ.Kind {
		case base.KindFloat:
			nan = nan || math.IsNaN(float64(math.Float32frombits(uint32(v.Lo))))
		case base.KindDouble:
			nan = nan || math.IsNaN(math.Float64frombits(v.Lo))
		}
		if low == nil || less(c, *v, *low) {
			low = v
		}
		if high == nil || less(c, *high, *v) {
			high = v
		}
	}
	if low == nil {
		return nil, nil, nulls, nan
	}
	min, max = bytes.Clone(pageBytes(c, *low)), bytes.Clone(pageBytes(c, *high))
	if c.typ.Kind == base.KindFloat || c.typ.Kind == base.KindDouble {
		// A zero bound takes the sign that has both zeros inside.
		if n := len(min) - 1; min[n]&0x7f == 0 && bytes.Count(min[:n], []byte{0}) == n {
			min[n] = 0x80
		}
		if n := len(max) - 1; max[n]&0x7f == 0 && bytes.Count(max[:n], []byte{0}) == n {
			max[n] = 0
		}
	}
	return min, max, nulls, nan
}

// TestStatistics writes several row groups through buffers that are overwritten with every row, and compares all bounds
// with recomputed ones: none may point into memory that meanwhile holds other rows.
func TestStatistics(t *testing.T) {
	types := append([]base.Type{{Kind: base.KindBigInt}}, ssttest.AllTypes...)
	for level := 0; level < 2; level++ {
		s := ssttest.MakeSchema(types, true, 0)
		rows := makeRows(t, s, unlessShort(3500, 1200), int64(level), 0)
		r, _, _ := writeFile(t, small(s, level), rows, nil)
		checkStatistics(t, r, rows)
	}
}

func TestStatisticsOfHardValues(t *testing.T) {
	negZero, nan := math.Copysign(0, -1), math.NaN()
	inf := math.Inf(1)
	for name, vals := range map[string][]base.Value{
		"empty strings":        {base.String(""), base.String("")},
		"an empty first":       {base.String(""), base.String("zz"), base.String("a"), base.String("b")},
		"an empty page":        {base.String("b"), base.String("c"), base.String(""), base.String("")},
		"infinities":           {base.Double(-inf), base.Double(-inf)},
		"positive infinities":  {base.Double(inf), base.Double(inf)},
		"zeros":                {base.Double(0), base.Double(0)},
		"negative zeros":       {base.Double(negZero), base.Double(negZero)},
		"NaN":                  {base.Double(nan), base.Double(nan)},
		"a NaN in a late page": {base.Double(1), base.Double(2), base.Double(1), base.Double(nan)},
		"nothing":              {base.Null(), base.Null()},
	} {
		kind := base.KindDouble
		if vals[0].Bytes != nil {
			kind = base.KindVarchar
		}
		s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: kind}}, true, 0)
		var table [][]base.Value
		for i, v := range vals {
			table = append(table, []base.Value{base.Int(int64(i)), v})
		}
		rows, err := ssttest.RowsOf(s, table)
		must(t, err)
		// Pages of two rows, so that bounds of pages are merged.
		r, _, _ := writeFile(t, WriterOptions{Schema: s, PageBytes: 16}, rows, nil)
		t.Run(name, func(t *testing.T) { checkStatistics(t, r, rows) })
	}
}

// TestNaNInOneRowGroup has a NaN in the second row group only. That one has no bounds, in the chunk and in every page; the
// others have those of their rows; and the file is said to hold a NaN, so that nobody makes bounds of the file from them.
func TestNaNInOneRowGroup(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindDouble}, {Kind: base.KindFloat}, {Kind: base.KindDouble}}, true, 0)
	var table [][]base.Value
	for i := 0; i < 3000; i++ {
		v, f := base.Double(float64(i)), base.Float(float32(i))
		if i == 1900 {
			v, f = base.Double(math.NaN()), base.Uint(0xffc00001) // one with its sign and payload set
		}
		table = append(table, []base.Value{base.Int(int64(i)), v, f, base.Null()})
	}
	rows, err := ssttest.RowsOf(s, table)
	must(t, err)
	r, info, _ := writeFile(t, small(s, 1), rows, nil)
	checkStatistics(t, r, rows)
	if !slices.Equal(info.NaNColumns, []int{1, 2}) {
		t.Fatalf("NaN in columns %v", info.NaNColumns)
	}
	pq := parquetReader(t, r)
	for g, want := range []bool{true, false, true} {
		chunk, err := pq.MetaData().RowGroup(g).ColumnChunk(1)
		must(t, err)
		if st, err := chunk.Statistics(); err != nil || st.HasMinMax() != want {
			t.Fatalf("row group %d has bounds: %v", g, !want)
		}
	}
}

// TestSketches reads about how many distinct values a file has in each column, and unites two files'.
func TestSketches(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindBigInt}, {Kind: base.KindVarchar}, {Kind: base.KindDouble}, {Kind: base.KindBoolean}}, true, 0)
	write := func(from, n int) *Reader {
		var table [][]base.Value
		for i := from; i < from+n; i++ {
			null := base.Null()
			if i%2 == 0 {
				null = base.Double(float64(i % 70))
			}
			table = append(table, []base.Value{base.Int(int64(i)), base.String(strconv.Itoa(i / 3)), null, base.Uint(1)})
		}
		rows, err := ssttest.RowsOf(s, table)
		must(t, err)
		r, _, _ := writeFile(t, small(s, 1), rows, NewCache(1<<20))
		return r
	}
	a, b := write(0, 6000), write(3000, 6000)
	for column, want := range map[int][2]float64{1: {2000, 3000}, 2: {35, 35}} {
		one, err := a.Sketch(column)
		must(t, err)
		all := NewSketch()
		must(t, all.Merge(one))
		other, err := b.Sketch(column)
		must(t, err)
		must(t, all.Merge(other))
		for i, got := range []uint64{one.Estimate(), all.Estimate()} {
			if off := float64(got) / want[i]; off < 0.8 || off > 1.2 {
				t.Errorf("column %d: about %d distinct values, there are %v", column, got, want[i])
			}
		}
	}
	few := write(0, minSketchRows-1)
	for _, c := range []struct {
		r      *Reader
		column int
	}{{a, 0}, {a, 3}, {few, 1}} {
		if got, err := c.r.Sketch(c.column); err != nil || got != nil {
			t.Errorf("column %d has a sketch: %v", c.column, err)
		}
	}
	for _, damaged := range []string{"?", "AQ==", "AQU=", "AgGA"} {
		if got, err := findSketch(damaged, 2); err == nil {
			t.Errorf("%q is a sketch: %v", damaged, got)
		}
	}
}
