package engine

import (
	"math"
	"math/rand/v2"
	"testing"

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
		// Of floats the library that writes the files keeps no bounds.
		if st := stats(); st.HasBounds == flush || st.HasBounds && !math.IsInf(math.Float64frombits(st.Min.Lo), -1) {
			t.Fatalf("flush %v: %+v", flush, st)
		}
		put(3, math.NaN())
		if st := stats(); st.HasBounds {
			t.Fatalf("flush %v: bounds beside NaN: %+v", flush, st)
		}
		db.Free()
	}
}
