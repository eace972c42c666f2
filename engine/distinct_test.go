package engine

import (
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestDistinct: planners are told about how many distinct values a column has, over several files, before and after a
// compaction, and after changes in memory.
func TestDistinct(t *testing.T) {
	schema := &Schema{
		TableName: "t", PrimaryKey: []int{0, 1},
		Columns: []Column{
			{Name: "a", Type: Type{Kind: KindInteger}},
			{Name: "b", Type: Type{Kind: KindBigInt}},
			{Name: "city", Type: Type{Kind: KindVarchar}, Nullable: true},
			{Name: "payload", Type: Type{Kind: KindBigInt}, Nullable: true},
			{Name: "flag", Type: Type{Kind: KindBoolean}, Nullable: true},
		},
	}
	db, err := Open("/db", Options{fs: vfs.NewMem(), MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(schema))
	const rows = 12_000
	cities := []string{"Aachen", "Berlin", "Chur", "Delft", "Enna", "Forst", "Genf"}
	put := func(from, to int64) {
		w, err := db.NewWrite()
		must(t, err)
		defer w.Close()
		for i := from; i < to; i++ {
			must(t, w.Put([]Value{Int(i % 500), Int(i), String(cities[i%7]), Int(i * 7919), Int(i % 2)}))
		}
		_, err = w.Commit()
		must(t, err)
	}
	check := func(when string) {
		t.Helper()
		s := mustSnapshot(t, db)
		for column, want := range []float64{500, rows, 7, rows, 2} {
			for range 2 { // the second time it is known
				st, err := s.ColumnStats(column)
				must(t, err)
				if off := float64(st.Distinct) / want; off < 0.8 || off > 1.2 {
					t.Errorf("%s: column %d has about %d distinct values, not %v", when, column, st.Distinct, want)
				}
			}
		}
		s.Close()
	}
	for i := range int64(3) {
		put(i*rows/3, (i+1)*rows/3)
		must(t, db.Flush())
	}
	check("flushed")
	must(t, db.Compact())
	check("compacted")
	put(0, 50)
	check("with changes in memory")
}
