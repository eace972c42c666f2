package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestColumnStats checks the statistics of random histories: every row keeps to them, and exact bounds are reached.
func TestColumnStats(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, TargetFileBytes: 64 << 10})
	defer db.Free()
	m := model{}
	for step := range 30 {
		switch {
		case step%11 == 7:
			must(t, db.Compact())
		case step%4 == 2:
			must(t, db.Flush())
		}
		writeRandom(t, db, rng, m, 6_000, []int{4000, 300, 2}[rng.IntN(3)])
		s, err := db.Snapshot()
		must(t, err)
		checkStats(t, s, m)
		s.Close()
	}
	// All rows deleted: no bounds that anybody could take for a value.
	w, err := db.NewWrite()
	must(t, err)
	for id := range m {
		must(t, w.Delete(testKey(id)))
	}
	_, err = w.Commit()
	must(t, err)
	for range 2 {
		s, err := db.Snapshot()
		must(t, err)
		checkStats(t, s, model{})
		s.Close()
		must(t, db.Flush())
	}
}

func checkStats(t *testing.T, s *Snapshot, m model) {
	t.Helper()
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for id := range m {
		lo, hi = min(lo, id), max(hi, id)
	}
	exact, err := s.ExactBounds(1)
	must(t, err)
	if exact.HasBounds != (len(m) > 0) || exact.HasBounds && (exact.Min.Int64() != lo || exact.Max.Int64() != hi) {
		t.Fatalf("exact bounds of the key %+v, want %d to %d", exact, lo, hi)
	}
	id, err := s.ColumnStats(1)
	must(t, err)
	if id.HasNull || len(m) > 0 && (!id.HasBounds || id.Min.Int64() > lo || id.Max.Int64() < hi) {
		t.Fatalf("key %+v, want %d to %d", id, lo, hi)
	}
	x, err := s.ColumnStats(3)
	must(t, err)
	for _, payload := range m {
		if v := float64(payload); x.HasBounds && (math.Float64frombits(x.Min.Lo) > v || math.Float64frombits(x.Max.Lo) < v) {
			t.Fatalf("x %+v, but there is %v", x, v)
		}
	}
	name, err := s.ColumnStats(2)
	must(t, err)
	if name.HasBounds || !name.HasNull {
		t.Fatalf("name %+v", name)
	}
}

// TestColumnStatsSpecialFloats: NaN has no place among bounds, infinities have.
func TestColumnStatsSpecialFloats(t *testing.T) {
	for _, flush := range []bool{false, true} {
		db := openMem(t, vfs.NewMem(), Options{})
		put := func(id int64, x float64) {
			w, err := db.NewWrite()
			must(t, err)
			row := testRow(id, id)
			row[3] = Double(x)
			must(t, w.Put(row))
			_, err = w.Commit()
			must(t, err)
			if flush {
				must(t, db.Flush())
			}
		}
		stats := func() ColumnStats {
			s, err := db.Snapshot()
			must(t, err)
			defer s.Close()
			st, err := s.ColumnStats(3)
			must(t, err)
			return st
		}
		put(1, math.Inf(-1))
		put(2, 5)
		if st := stats(); !st.HasBounds || !math.IsInf(math.Float64frombits(st.Min.Lo), -1) || math.Float64frombits(st.Max.Lo) != 5 {
			t.Fatalf("flush %v: %+v", flush, st)
		}
		put(3, math.NaN())
		if st := stats(); st.HasBounds {
			t.Fatalf("flush %v: bounds beside NaN: %+v", flush, st)
		}
		db.Free()
	}
}

// TestFileStats compares what is said of a column in each file with the file's rows, for types that have bounds and others,
// with NULLs, after changes, after a compaction, and for a column that files are older than.
func TestFileStats(t *testing.T) {
	schema := &Schema{
		TableName: "t", PrimaryKey: []int{0},
		Columns: []Column{
			{Name: "id", Type: Type{Kind: KindVarchar}},
			{Name: "small", Type: Type{Kind: KindTinyInt}, Nullable: true},
			{Name: "u", Type: Type{Kind: KindUBigInt}, Nullable: true},
			{Name: "ts", Type: Type{Kind: KindTimestampS}},
			{Name: "dec", Type: Type{Kind: KindDecimal, Precision: 9, Scale: 2}, Nullable: true},
			{Name: "f", Type: Type{Kind: KindFloat}, Nullable: true},
			{Name: "name", Type: Type{Kind: KindVarchar}, Nullable: true},
		},
	}
	db, err := Open("/db", Options{fs: vfs.NewMem(), MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(schema))
	rng := rand.New(rand.NewPCG(3, 3))
	maybe := func(v Value) Value {
		if rng.IntN(4) == 0 {
			return Null()
		}
		return v
	}
	for step := range int64(6) {
		w, err := db.NewWrite()
		must(t, err)
		for i := range int64(1500) {
			at := step*1500 + i
			row := []Value{
				String(fmt.Sprint(hash64(at))), maybe(Int(step*20 - 60 + i%10)), maybe(Value{Lo: 1<<63 + uint64(at)}), Int(at - 4000),
				maybe(Int(-at)), maybe(Float(float32(at+1) / 2)), maybe(String("x")),
			}
			if step == 4 {
				row[1] = Null()
			}
			must(t, w.Put(row))
		}
		_, err = w.Commit()
		must(t, err)
		w.Close()
		must(t, db.Flush())
		if step == 2 {
			must(t, db.Compact())
		}
	}
	must(t, db.Alter(AddColumn{Column: Column{Name: "later", Type: Type{Kind: KindInteger}, InitialDefault: []byte{9, 0, 0, 0}}}))
	s := mustSnapshot(t, db)
	defer s.Close()
	var places []int
	for i := range s.Files() {
		places = append(places, i)
	}
	for column := range s.Schema().Columns {
		stats, err := s.FileStats(column, places)
		must(t, err)
		for i, st := range stats {
			checkFileStats(t, s, column, places[i], st)
		}
	}
	for _, bad := range []int{-1, len(places)} {
		_, err := s.FileStats(1, []int{bad})
		wantCode(t, err, CodeInvalidArgument)
		_, err = s.FileStats(bad*100, nil)
		wantCode(t, err, CodeInvalidArgument)
	}
}

func hash64(i int64) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 }

// checkFileStats wants the narrowest bounds.
func checkFileStats(t *testing.T, s *Snapshot, column, file int, st ColumnStats) {
	t.Helper()
	typ := s.Schema().Columns[column].Type
	r, err := s.state.files[file].open(s.Schema())
	must(t, err)
	it := r.NewIter(sst.IterOptions{})
	defer it.Close()
	all := sst.Bounds{Known: true, Empty: true}
	for {
		cols, _, err := it.Next()
		must(t, err)
		if cols == nil {
			break
		}
		for i := range cols.N {
			all.Add(typ, boundsOf(typ, cols.Cols[column].Value(i)))
		}
	}
	want := ColumnStats{HasNull: all.HasNull}
	if want.HasBounds = sst.Bounded(typ) && !all.Empty; want.HasBounds {
		want.Min, want.Max = all.Min, all.Max
	} else {
		want.HasNull = st.HasNull || all.HasNull // strings: there may be some
	}
	if fmt.Sprint(st) != fmt.Sprint(want) {
		t.Errorf("column %d of file %d: %+v, want %+v", column, file, st, want)
	}
}
