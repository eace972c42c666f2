package engine

import (
	"bytes"
	"fmt"
	"math"
	oldrand "math/rand"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row/rowtest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// everyType has each kind, and those with parameters in several widths.
func everyType() []Type {
	out := []Type{
		{Kind: KindDecimal, Precision: 4, Scale: 1},
		{Kind: KindDecimal, Precision: 9},
		{Kind: KindDecimal, Precision: 18, Scale: 18},
		{Kind: KindDecimal, Precision: 19, Scale: 2},
		{Kind: KindDecimal, Precision: 38, Scale: 4},
		{Kind: KindEnum, Labels: []string{"b", "", "a", "naïve ✓"}},
		{Kind: KindFixedBinary, Width: 1},
		{Kind: KindFixedBinary, Width: 33},
	}
	for k := KindBoolean; k <= KindBignum; k++ {
		if k != KindDecimal && k != KindEnum && k != KindFixedBinary {
			out = append(out, Type{Kind: k})
		}
	}
	return out
}

// randomOf makes a valid value of a type, the extremes often.
func randomOf(t Type, rng *rand.Rand) Value {
	signed := func(bits uint) Value {
		switch rng.IntN(5) {
		case 0:
			return Int(-1 << (bits - 1))
		case 1:
			return Int(1<<(bits-1) - 1)
		}
		return Int(int64(rng.Uint64()) >> (64 - bits))
	}
	switch t.Kind {
	case KindBoolean:
		return Bool(rng.IntN(2) == 0)
	case KindTinyInt:
		return signed(8)
	case KindSmallInt:
		return signed(16)
	case KindInteger, KindDate:
		return signed(32)
	case KindBigInt, KindTimestamp, KindTimestampNS, KindTimestampTZ:
		return signed(64)
	case KindTimestampS, KindTimestampMS:
		if rng.IntN(4) == 0 {
			return Int([]int64{math.MaxInt64, -math.MaxInt64}[rng.IntN(2)]) // the infinities
		}
		return signed(42)
	case KindTime:
		return Int(rng.Int64N(86_400_000_001))
	case KindUTinyInt:
		return Uint(rng.Uint64() & 0xff)
	case KindUSmallInt:
		return Uint(rng.Uint64() & 0xffff)
	case KindUInteger:
		return Uint(rng.Uint64() & 0xffffffff)
	case KindUBigInt:
		return Uint(rng.Uint64())
	case KindHugeInt, KindUHugeInt, KindUUID:
		return Value{Lo: rng.Uint64(), Hi: rng.Uint64()}
	case KindFloat:
		return Float(float32(randomFloat(rng)))
	case KindDouble:
		return Double(randomFloat(rng))
	case KindDecimal:
		limit := int64(1)
		for range min(t.Precision, 18) {
			limit *= 10
		}
		return Int(rng.Int64N(2*limit-1) - limit + 1)
	case KindInterval:
		return Value{Hi: uint64(rng.Uint32()%4000)<<32 | uint64(rng.Uint32()), Lo: uint64(rng.Int64() >> rng.IntN(60))}
	case KindEnum:
		return Uint(uint64(rng.IntN(len(t.Labels))))
	case KindFixedBinary:
		return Bytes(randomBytes(rng, int(t.Width)))
	case KindBit:
		return Bytes(append([]byte{0}, randomBytes(rng, 1+rng.IntN(5))...))
	case KindVarchar:
		return String(strings.Repeat([]string{"", "a", "\x00", "ü✓"}[rng.IntN(4)], rng.IntN(20)))
	}
	switch t.Kind {
	case KindJSON:
		return String(fmt.Sprintf("[%d]", rng.Uint32()))
	case KindTimeTZ:
		return base.TimeTZ(rng.Int64N(86_400_000_001), int32(rng.IntN(2*base.MaxOffset+1)-base.MaxOffset))
	case KindTimeNS:
		return Int(rng.Int64N(86_400_000_000_001))
	case KindBignum:
		return Bytes([][]byte{{0x80, 0, 1, byte(rng.Uint32())}, {0x7f, 0xff, 0xfe, byte(rng.Uint32())}}[rng.IntN(2)])
	}
	if t.Kind.IsNested() {
		return Bytes(rowtest.Packed(oldrand.New(oldrand.NewSource(rng.Int64())), &t, func(t Type) []byte {
			b, err := AppendStorage(nil, t, randomOf(t, rng))
			if err != nil {
				panic(err)
			}
			return b
		}))
	}
	return Bytes(randomBytes(rng, rng.IntN(30)))
}

func randomFloat(rng *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64}
	if rng.IntN(2) == 0 {
		return special[rng.IntN(len(special))]
	}
	return rng.NormFloat64()
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = []byte{0, 0xff, byte(rng.Uint32())}[rng.IntN(3)]
	}
	return b
}

// TestEveryTypeAsValue keeps rows of all types in the log, the memtable, files of a flush and files of a bulk load, and
// compares what Get, Scan, Overlay and Arrow give back.
func TestEveryTypeAsValue(t *testing.T) {
	schema := &Schema{TableName: "every", PrimaryKey: []int{0}, Columns: []Column{{Name: "id", Type: Type{Kind: KindBigInt}}}}
	for i, typ := range append(everyType(), rowtest.NestedTypes...) {
		schema.Columns = append(schema.Columns, Column{Name: fmt.Sprintf("n%d", i), Type: typ, Nullable: true},
			Column{Name: fmt.Sprintf("r%d", i), Type: typ})
	}
	next := int64(0)
	runTypes(t, schema, 20, func(rng *rand.Rand) []Value {
		next++
		row := []Value{Int(next)}
		for _, c := range schema.Columns[1:] {
			if c.Nullable && rng.IntN(3) == 0 {
				row = append(row, Null())
			} else {
				row = append(row, randomOf(c.Type, rng))
			}
		}
		return row
	})
}

// TestEveryTypeAsKey has each type in a composite key, between two others.
func TestEveryTypeAsKey(t *testing.T) {
	for _, typ := range everyType() {
		t.Run(typ.String(), func(t *testing.T) {
			schema := &Schema{TableName: strings.Repeat("long ", base.MaxNameBytes/5), PrimaryKey: []int{2, 1}, Columns: []Column{
				{Name: "v", Type: Type{Kind: KindInteger}, Nullable: true}, {Name: "n", Type: Type{Kind: KindVarchar}}, {Name: "k", Type: typ},
			}}
			runTypes(t, schema, 60, func(rng *rand.Rand) []Value {
				return []Value{Int(int64(rng.Int32())), String([]string{"", "a", "\x00"}[rng.IntN(3)]), randomOf(typ, rng)}
			})
		})
	}
}

// runTypes writes n rows in each of four ways and compares after each step that changes where rows are.
func runTypes(t *testing.T, schema *Schema, n int, newRow func(rng *rand.Rand) []Value) {
	rng := rand.New(rand.NewPCG(11, 12))
	fs := vfs.NewMem()
	o := Options{MemtableBytes: minMemtableBytes, fs: fs}
	db, err := Open("/db", o)
	must(t, err)
	defer func() { db.Free() }()
	must(t, db.CreateTable(schema))
	want := map[string][]Value{} // by encoded key
	keep := func(row []Value) {
		k, err := appendKey(nil, db.c.table, keyOf(schema, row))
		must(t, err)
		want[string(k)] = row
	}
	batch := func() [][]Value {
		rows := make([][]Value, n)
		for i := range rows {
			rows[i] = newRow(rng)
			keep(rows[i])
		}
		return rows
	}
	load := func() {
		w, err := db.NewWrite()
		must(t, err)
		must(t, w.startLoadForTest())
		for _, r := range batch() {
			must(t, w.Put(r))
		}
		_, err = w.Commit()
		must(t, err)
	}
	put := func() { _, err := db.PutBatch(batch()); must(t, err) }
	reopen := func(flush bool) {
		if flush {
			must(t, db.Close())
		}
		db.Free()
		var err error
		db, err = Open("/db", o)
		must(t, err)
	}
	columns := func() {
		w, err := db.NewWrite()
		must(t, err)
		defer w.Close()
		must(t, w.PutColumns(columnsOf(t, schema, batch())))
		_, err = w.Commit()
		must(t, err)
	}
	remove := func() {
		for k, row := range want {
			_, err := db.Delete(keyOf(schema, row))
			must(t, err)
			delete(want, k)
			if rng.IntN(4) == 0 {
				return
			}
		}
	}
	steps := []func(){put, columns, func() { reopen(false) }, func() { must(t, db.Flush()) }, load, remove, put, func() { reopen(true) }, columns, load, remove}
	for i, step := range steps {
		step()
		compareTypes(t, db, schema, want, i)
	}
}

// startLoadForTest makes the change a bulk load whatever its size.
func (w *Write) startLoadForTest() (err error) {
	w.load, err = newLoad(w, nil)
	return err
}

func keyOf(s *Schema, row []Value) []Value {
	var key []Value
	for _, c := range s.PrimaryKey {
		key = append(key, row[c])
	}
	return key
}

// columnsOf brings rows into columns through Arrow, as batches of other programs come.
func columnsOf(t *testing.T, s *Schema, rows [][]Value) *Columns {
	t.Helper()
	fs := vfs.NewMem()
	db, err := Open("/columns", Options{fs: fs})
	must(t, err)
	defer db.Free()
	c := s.Clone()
	c.Columns = append(c.Columns, Column{Name: "order of arrival", Type: Type{Kind: KindBigInt}})
	c.PrimaryKey = []int{len(s.Columns)}
	must(t, db.CreateTable(c))
	for i, r := range rows {
		_, err := db.Put(append(append([]Value(nil), r...), Int(int64(i))))
		must(t, err)
	}
	snap, err := db.Snapshot()
	must(t, err)
	defer snap.Close()
	projection := make([]int, len(s.Columns))
	for i := range projection {
		projection[i] = i
	}
	it := snap.Overlay(projection)
	defer it.Close()
	cols, err := it.Next()
	must(t, err)
	rec, err := ToArrow(cols, s, nil, memory.DefaultAllocator)
	must(t, err)
	defer rec.Release()
	out, err := FromArrow(s, rec)
	must(t, err)
	return out
}

func compareTypes(t *testing.T, db *DB, schema *Schema, want map[string][]Value, step int) {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	table := s.state.table
	var last []byte
	n := 0
	it, err := s.Scan(ScanOptions{BatchRows: 7})
	must(t, err)
	for _, row := range collect(t, it) {
		k, err := appendKey(nil, table, keyOf(schema, row))
		must(t, err)
		if bytes.Compare(k, last) <= 0 {
			t.Fatalf("step %d: the scan is out of order at %v", step, row)
		}
		last = k
		sameRow(t, schema, row, want[string(k)], step)
		n++
	}
	if n != len(want) {
		t.Fatalf("step %d: the scan has %d rows, want %d", step, n, len(want))
	}
	live := n
	for _, row := range collect(t, s.Overlay(nil)) {
		k, err := appendKey(nil, table, keyOf(schema, row))
		must(t, err)
		sameRow(t, schema, row, want[string(k)], step)
		live--
	}
	for i, f := range s.Files() {
		dead, err := s.Deletes(i)
		must(t, err)
		live -= int(f.Rows) - len(dead)
	}
	if live != 0 {
		t.Fatalf("step %d: files and overlay differ from the scan by %d rows", step, live)
	}
	for _, row := range want {
		got, found, err := db.Get(keyOf(schema, row))
		must(t, err)
		if !found {
			t.Fatalf("step %d: no row for key %v", step, keyOf(schema, row))
		}
		sameRow(t, schema, got, row, step)
	}
}

func sameRow(t *testing.T, s *Schema, got, want []Value, step int) {
	t.Helper()
	if want == nil {
		t.Fatalf("step %d: a row that should not be: %v", step, got)
	}
	for i, c := range s.Columns {
		g, w := got[i], want[i]
		if isKey := s.IsKey(i); isKey && (c.Type.Kind == KindFloat || c.Type.Kind == KindDouble || c.Type.Kind == KindInterval) {
			continue // several spellings are one key; which one is found in the order of the scan is checked by the key
		}
		if g.Null != w.Null || !w.Null && (g.Lo != w.Lo || g.Hi != w.Hi || !bytes.Equal(g.Bytes, w.Bytes)) {
			t.Fatalf("step %d, column %s %s: %v, want %v", step, c.Name, c.Type, g, w)
		}
	}
}
