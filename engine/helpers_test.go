package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func init() {
	checkCommits = true
	compactRetryEvery = 20 * time.Millisecond
}

// testSchema is a table with a composite key whose order is not the column order.
func testSchema() *Schema {
	return &Schema{
		TableName: "t",
		Columns: []Column{
			{Name: "grp", Type: Type{Kind: KindVarchar}},
			{Name: "id", Type: Type{Kind: KindBigInt}},
			{Name: "name", Type: Type{Kind: KindVarchar}, Nullable: true},
			{Name: "x", Type: Type{Kind: KindDouble}, Nullable: true},
		},
		PrimaryKey: []int{1, 0},
	}
}

func testRow(id int64, payload int64) []Value {
	r := []Value{String(fmt.Sprintf("g%d", id%7)), Int(id), String(fmt.Sprintf("row %d", payload)), Double(float64(payload))}
	if payload%5 == 0 {
		r[2] = Null()
	}
	return r
}

func testKey(id int64) []Value { return []Value{Int(id), String(fmt.Sprintf("g%d", id%7))} }

// model is what the table must hold: id to payload.
type model map[int64]int64

// openMem opens a database in a memory file system, creating the table where there is none.
func openMem(t testing.TB, fs vfs.FS, o Options) *DB {
	t.Helper()
	o.fs = fs
	db, err := Open("/db", o)
	if err != nil {
		t.Fatal(err)
	}
	if !db.HasTable() && !o.ReadOnly {
		if err := db.CreateTable(testSchema()); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// unlessShort is how much of its kind a test does: what it proves it proves with few as well, if less surely.
func unlessShort(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check compares every read path with the model.
func check(t testing.TB, db *DB, m model) {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	checkSnapshot(t, s, m)
	for id, payload := range m {
		row, found, err := db.Get(testKey(id))
		must(t, err)
		if !found || fmt.Sprint(row) != fmt.Sprint(testRow(id, payload)) {
			t.Fatalf("get %d: found %v, %v; want payload %d", id, found, row, payload)
		}
		break // map order is random: one is enough here
	}
}

func checkSnapshot(t testing.TB, s *Snapshot, m model) {
	t.Helper()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	got := collect(t, it)
	want := slices.Sorted(maps.Keys(m))
	if len(got) != len(want) {
		t.Fatalf("scan: %d rows, want %d", len(got), len(want))
	}
	for i, id := range want {
		if !equalRows(got[i], testRow(id, m[id])) {
			t.Fatalf("scan row %d: %v, want %v", i, got[i], testRow(id, m[id]))
		}
	}
	checkReverse(t, s, got)
	checkMultiGet(t, s, m)
	checkParts(t, s, m)
}

// checkReverse compares a scan downwards with one upwards.
func checkReverse(t testing.TB, s *Snapshot, rows [][]Value) {
	t.Helper()
	it, err := s.Scan(ScanOptions{Reverse: true})
	must(t, err)
	got := collect(t, it)
	slices.Reverse(got)
	if !slices.EqualFunc(got, rows, equalRows) {
		t.Fatalf("a scan downwards has %d rows, upwards %d:\n%v\n%v", len(got), len(rows), got, rows)
	}
}

// checkMultiGet asks for all keys of the model and as many absent ones, in an order of its own.
func checkMultiGet(t testing.TB, s *Snapshot, m model) {
	t.Helper()
	var keys [][]Value
	var want [][]Value
	var found []bool
	ask := func(id int64) {
		keys = append(keys, testKey(id))
		payload, ok := m[id]
		if found = append(found, ok); ok {
			want = append(want, testRow(id, payload))
		}
	}
	for id := range m { // the order of a map is random
		ask(id)
		ask(-1 - id)
		if id%3 == 0 {
			ask(id)
		}
	}
	rows, got, err := s.MultiGet(keys)
	must(t, err)
	if !slices.Equal(got, found) || rows.N != len(want) {
		t.Fatalf("multi-get: %d rows, want %d; found %v, want %v", rows.N, len(want), got, found)
	}
	for i := range want {
		if r := rowOf(rows, i); !equalRows(r, want[i]) {
			t.Fatalf("multi-get: row %d is %v, want %v", i, r, want[i])
		}
	}
}

// checkParts reads as the DuckDB extension does: files without the deleted positions, and the overlay.
func checkParts(t testing.TB, s *Snapshot, m model) {
	t.Helper()
	seen := model{}
	add := func(row []Value) {
		id := row[1].Int64()
		if _, dup := seen[id]; dup {
			t.Fatalf("key %d stands twice in files and overlay", id)
		}
		seen[id] = m[id]
		if !equalRows(row, testRow(id, m[id])) {
			t.Fatalf("key %d: %v, want payload %d", id, row, m[id])
		}
	}
	for i, f := range s.state.files {
		dead, err := s.Deletes(i)
		must(t, err)
		if !slices.IsSorted(dead) {
			t.Fatalf("deletes of file %d are not ascending", i)
		}
		reader, err := f.open(s.state.table.schema)
		must(t, err)
		for pos := int64(0); pos < f.meta.Rows; pos++ {
			if _, found := slices.BinarySearch(dead, uint32(pos)); found {
				continue
			}
			cols, err := reader.ReadRow(pos, nil)
			must(t, err)
			add(rowOf(cols, 0))
		}
	}
	for _, row := range collect(t, s.Overlay(nil)) {
		add(row)
	}
	if len(seen) != len(m) {
		t.Fatalf("files and overlay have %d rows, want %d", len(seen), len(m))
	}
}

// equalRows is much faster than printing both.
func equalRows(a, b []Value) bool {
	return slices.EqualFunc(a, b, func(x, y Value) bool {
		return x.Null == y.Null && (x.Null || x.Lo == y.Lo && x.Hi == y.Hi && bytes.Equal(x.Bytes, y.Bytes))
	})
}

func rowOf(c *Columns, i int) []Value {
	row := make([]Value, len(c.Cols))
	for j := range row {
		row[j] = c.Cols[j].Value(i)
		row[j].Bytes = slices.Clone(row[j].Bytes)
	}
	return row
}

func collect(t testing.TB, it *RowIter) [][]Value {
	t.Helper()
	defer it.Close()
	var out [][]Value
	for {
		c, err := it.Next()
		must(t, err)
		if c == nil {
			return out
		}
		for i := range c.N {
			out = append(out, rowOf(c, i))
		}
	}
}

func wantCode(t testing.TB, err error, code base.Code) {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("error %v has code %d, want %d", err, base.CodeOf(err), code)
	}
}

func doubleOf(v Value) float64 { return math.Float64frombits(v.Lo) }

// setClock may be called while the database works.
func (d *database) setClock(clock func() time.Time) { d.clock.Store(&clock) }
