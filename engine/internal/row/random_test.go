package row

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/row/rowtest"
)

// allTypes has every kind, and the kinds with parameters in several widths.
func allTypes() []base.Type {
	types := []base.Type{
		{Kind: base.KindDecimal, Precision: 4, Scale: 1},
		{Kind: base.KindDecimal, Precision: 9},
		{Kind: base.KindDecimal, Precision: 10, Scale: 10},
		{Kind: base.KindDecimal, Precision: 18, Scale: 3},
		{Kind: base.KindDecimal, Precision: 19, Scale: 2},
		{Kind: base.KindDecimal, Precision: 38, Scale: 38},
		{Kind: base.KindEnum, Labels: []string{"p", "", "naïve ✓", "q"}},
		{Kind: base.KindFixedBinary, Width: 1},
		{Kind: base.KindFixedBinary, Width: 20},
	}
	for k := base.KindBoolean; k <= base.KindBignum; k++ {
		if k != base.KindDecimal && k != base.KindEnum && k != base.KindFixedBinary {
			types = append(types, base.Type{Kind: k})
		}
	}
	return append(types, rowtest.NestedTypes...)
}

// randomSchema has up to 20 columns of random types and a key of up to three of them.
func randomSchema(rng *rand.Rand) *base.Schema {
	types := allTypes()
	n := 1 + rng.Intn(20)
	s := &base.Schema{TableName: "t"}
	for i := 0; i < n; i++ {
		s.Columns = append(s.Columns, base.Column{Name: fmt.Sprintf("c%d", i), Type: types[rng.Intn(len(types))], Nullable: rng.Intn(3) > 0})
	}
	s.Columns[0].Type = base.Type{Kind: base.KindBigInt} // some scalar
	for _, k := range rng.Perm(n)[:1+rng.Intn(min(3, n))] {
		if s.Columns[k].Type.Kind.IsNested() {
			k = 0
		}
		if s.IsKey(k) {
			continue
		}
		s.PrimaryKey = append(s.PrimaryKey, k)
		s.Columns[k].Nullable = false
	}
	s.AssignFieldIDs()
	return s
}

// everyKind has one nullable and one required column of each type behind a BIGINT key.
func everyKind() *base.Schema {
	s := &base.Schema{TableName: "every", PrimaryKey: []int{0}}
	s.Columns = []base.Column{{Name: "id", Type: base.Type{Kind: base.KindBigInt}}}
	for i, t := range allTypes() {
		s.Columns = append(s.Columns, base.Column{Name: fmt.Sprintf("n%d", i), Type: t, Nullable: true}, base.Column{Name: fmt.Sprintf("r%d", i), Type: t})
	}
	s.AssignFieldIDs()
	return s
}

func randomInt(rng *rand.Rand, bits uint) int64 {
	switch rng.Intn(6) {
	case 0:
		return 0
	case 1:
		return -1 << (bits - 1)
	case 2:
		return 1<<(bits-1) - 1
	}
	return int64(rng.Uint64()) >> (64 - bits) >> rng.Intn(int(bits))
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
		if rng.Intn(4) == 0 {
			b[i] = []byte{0, 0xff}[rng.Intn(2)]
		}
	}
	return b
}

func randomText(rng *rand.Rand) []byte {
	runes := []rune{'a', 'b', 0, 'é', '✓', 0x10ffff, 0xd7ff}
	var out []rune
	for n := rng.Intn(12); n > 0; n-- {
		out = append(out, runes[rng.Intn(len(runes))])
	}
	if rng.Intn(3) == 0 {
		return bytes.Repeat([]byte("x"), rng.Intn(100))
	}
	return []byte(string(out))
}

func randomBit(rng *rand.Rand) []byte {
	b := append([]byte{byte(rng.Intn(8))}, randomBytes(rng, 1+rng.Intn(4))...)
	b[1] |= byte(uint(0xff00) >> b[0])
	if rng.Intn(8) == 0 {
		return []byte{0}
	}
	return b
}

func randomFloat(rng *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.SmallestNonzeroFloat64, 1}
	if rng.Intn(2) == 0 {
		return special[rng.Intn(len(special))]
	}
	return rng.NormFloat64()
}

// randomValue makes a valid value, the extremes often.
func randomValue(rng *rand.Rand, t base.Type) base.Value {
	switch t.Kind {
	case base.KindBoolean:
		return base.Bool(rng.Intn(2) == 1)
	case base.KindTinyInt:
		return base.Int(randomInt(rng, 8))
	case base.KindSmallInt:
		return base.Int(randomInt(rng, 16))
	case base.KindInteger, base.KindDate:
		return base.Int(randomInt(rng, 32))
	case base.KindUTinyInt:
		return base.Uint(uint64(uint8(randomInt(rng, 8))))
	case base.KindUSmallInt:
		return base.Uint(uint64(uint16(randomInt(rng, 16))))
	case base.KindUInteger:
		return base.Uint(uint64(uint32(randomInt(rng, 32))))
	case base.KindUBigInt:
		return base.Uint(uint64(randomInt(rng, 64)))
	case base.KindHugeInt, base.KindUHugeInt, base.KindUUID, base.KindInterval:
		return base.Value{Hi: uint64(randomInt(rng, 64)), Lo: uint64(randomInt(rng, 64))}
	case base.KindFloat:
		return base.Float(float32(randomFloat(rng)))
	case base.KindDouble:
		return base.Double(randomFloat(rng))
	case base.KindDecimal:
		return randomDecimal(rng, t)
	case base.KindTime:
		return base.Int([]int64{0, keyenc.MaxTime, rng.Int63n(keyenc.MaxTime)}[rng.Intn(3)])
	case base.KindTimestampS:
		return base.Int([]int64{math.MaxInt64, -math.MaxInt64, keyenc.MaxTimestampS, -keyenc.MaxTimestampS, randomInt(rng, 40)}[rng.Intn(5)])
	case base.KindTimestampMS:
		return base.Int([]int64{math.MaxInt64, -math.MaxInt64, keyenc.MaxTimestampMS, -keyenc.MaxTimestampMS, randomInt(rng, 50)}[rng.Intn(5)])
	case base.KindVarchar:
		return base.Bytes(randomText(rng))
	case base.KindBlob:
		return base.Bytes(randomBytes(rng, rng.Intn(20)))
	case base.KindBit:
		return base.Bytes(randomBit(rng))
	case base.KindEnum:
		return base.Uint(uint64(rng.Intn(len(t.Labels))))
	case base.KindFixedBinary:
		return base.Bytes(randomBytes(rng, int(t.Width)))
	}
	switch t.Kind {
	case base.KindJSON:
		return base.Bytes(randomText(rng))
	case base.KindTimeTZ:
		return base.TimeTZ(rng.Int63n(keyenc.MaxTime+1), int32(rng.Intn(2*base.MaxOffset+1)-base.MaxOffset))
	case base.KindTimeNS:
		return base.Int([]int64{0, keyenc.MaxTime * 1000, rng.Int63n(keyenc.MaxTime * 1000)}[rng.Intn(3)])
	case base.KindBignum:
		return base.Bytes([][]byte{{0x80, 0, 1, 0}, {0x80, 0, 2, 7, byte(rng.Uint32())}, {0x7f, 0xff, 0xfe, byte(rng.Uint32())}}[rng.Intn(3)])
	}
	if t.Kind.IsNested() {
		return base.Bytes(rowtest.Packed(rng, &t, func(t base.Type) []byte { return keyenc.AppendValueStorage(nil, t, randomValue(rng, t)) }))
	}
	return base.Int(randomInt(rng, 64)) // BIGINT and the other TIMESTAMPs
}

func randomDecimal(rng *rand.Rand, t base.Type) base.Value {
	// The magnitude is below 10^Precision: all nines now and then.
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
	v := new(big.Int).Sub(limit, big.NewInt(1))
	if rng.Intn(3) > 0 {
		v.Rand(rng, limit)
		v.Rsh(v, uint(rng.Intn(v.BitLen()+1)))
	}
	if rng.Intn(2) == 0 {
		v.Neg(v)
	}
	low := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64))
	return base.Value{Hi: uint64(new(big.Int).Rsh(v, 64).Int64()), Lo: low.Uint64()}
}

func randomRow(rng *rand.Rand, s *base.Schema) []base.Value {
	vals := make([]base.Value, len(s.Columns))
	for i, c := range s.Columns {
		if c.Nullable && rng.Intn(3) == 0 {
			vals[i] = base.Null()
			continue
		}
		vals[i] = randomValue(rng, c.Type)
	}
	return vals
}

func randomRecords(t testing.TB, rng *rand.Rand, s *base.Schema, n int) (l *Layout, recs [][]byte, rows [][]base.Value) {
	t.Helper()
	l = NewLayout(s)
	for i := 0; i < n; i++ {
		row := randomRow(rng, s)
		rec, err := l.Append(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		recs, rows = append(recs, rec), append(rows, row)
	}
	return l, recs, rows
}

// buildColumns makes columns of records.
func buildColumns(s *base.Schema, recs [][]byte) *Columns {
	b := NewBuilder(s, nil)
	b.AppendRecords(recs, make([]base.Seq, len(recs)), make([]base.Op, len(recs)))
	return b.Columns()
}

// sameValue compares values as stored: NaNs by their bits, nil and empty bytes alike, Hi only where it counts.
func sameValue(t base.Type, a, b base.Value) bool {
	if a.Null || b.Null {
		return a.Null == b.Null
	}
	return bytes.Equal(keyenc.AppendValueStorage(nil, t, a), keyenc.AppendValueStorage(nil, t, b))
}

// sameColumns compares batches value by value and checks the invariants of Columns.
func sameColumns(t *testing.T, got, want *Columns) {
	t.Helper()
	if got.N != want.N || len(got.Cols) != len(want.Cols) {
		t.Fatalf("got %d rows of %d columns, want %d of %d", got.N, len(got.Cols), want.N, len(want.Cols))
	}
	for i := range want.Cols {
		g, w := &got.Cols[i], &want.Cols[i]
		if !g.Type.Equal(w.Type) {
			t.Fatalf("column %d is %s, want %s", i, g.Type, w.Type)
		}
		checkColumn(t, g, got.N)
		for r := 0; r < want.N; r++ {
			if g.IsNull(r) != w.IsNull(r) || !bytes.Equal(g.Storage(r), w.Storage(r)) {
				t.Fatalf("column %d (%s), row %d: got %v %x, want %v %x", i, g.Type, r, g.IsNull(r), g.Storage(r), w.IsNull(r), w.Storage(r))
			}
		}
	}
}

func checkColumn(t *testing.T, c *Column, n int) {
	t.Helper()
	if c.Nulls != nil && len(c.Nulls) != n {
		t.Fatalf("%s: %d NULL marks for %d rows", c.Type, len(c.Nulls), n)
	}
	if c.Type.IsVariable() {
		if len(c.Offsets) != n+1 || c.Offsets[0] != 0 || c.Offsets[n] != int64(len(c.Data)) {
			t.Fatalf("%s: %d offsets, last %v, for %d rows in %d bytes", c.Type, len(c.Offsets), c.Offsets, n, len(c.Data))
		}
	} else if len(c.Fixed) != n*c.Type.FixedSize() {
		t.Fatalf("%s: %d bytes for %d rows", c.Type, len(c.Fixed), n)
	}
	for i := 0; i < n; i++ {
		if c.IsNull(i) && !allZero(c.Storage(i)) {
			t.Fatalf("%s, row %d: NULL has the value %x", c.Type, i, c.Storage(i))
		}
	}
}
