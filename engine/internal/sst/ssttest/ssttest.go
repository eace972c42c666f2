// Package ssttest makes rows of every type for the tests of data files.
package ssttest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"sort"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/row/rowtest"
)

// AllTypes has a type of every kind and form.
var AllTypes = append(append([]base.Type{}, ScalarTypes...), rowtest.NestedTypes...)

// ScalarTypes has those that can be keys.
var ScalarTypes = []base.Type{
	{Kind: base.KindBoolean},
	{Kind: base.KindTinyInt},
	{Kind: base.KindSmallInt},
	{Kind: base.KindInteger},
	{Kind: base.KindBigInt},
	{Kind: base.KindHugeInt},
	{Kind: base.KindUTinyInt},
	{Kind: base.KindUSmallInt},
	{Kind: base.KindUInteger},
	{Kind: base.KindUBigInt},
	{Kind: base.KindUHugeInt},
	{Kind: base.KindFloat},
	{Kind: base.KindDouble},
	{Kind: base.KindDecimal, Precision: 9, Scale: 2},
	{Kind: base.KindDecimal, Precision: 18, Scale: 4},
	{Kind: base.KindDecimal, Precision: 30, Scale: 4},
	{Kind: base.KindVarchar},
	{Kind: base.KindBlob},
	{Kind: base.KindDate},
	{Kind: base.KindTime},
	{Kind: base.KindTimestampS},
	{Kind: base.KindTimestampMS},
	{Kind: base.KindTimestamp},
	{Kind: base.KindTimestampNS},
	{Kind: base.KindTimestampTZ},
	{Kind: base.KindInterval},
	{Kind: base.KindUUID},
	{Kind: base.KindBit},
	{Kind: base.KindEnum, Labels: []string{"zebra", "ape", "", "müll", "z"}},
	{Kind: base.KindFixedBinary, Width: 5},
	{Kind: base.KindJSON},
	{Kind: base.KindTimeTZ},
	{Kind: base.KindTimeNS},
	{Kind: base.KindBignum},
}

// MakeSchema makes a table of the given types, named c0, c1, …
func MakeSchema(types []base.Type, nullable bool, key ...int) *base.Schema {
	s := &base.Schema{TableName: "t", PrimaryKey: key}
	for i, t := range types {
		s.Columns = append(s.Columns, base.Column{Name: fmt.Sprintf("c%d", i), Type: t, Nullable: nullable})
	}
	for _, k := range key {
		s.Columns[k].Nullable = false
	}
	s.AssignFieldIDs()
	return s
}

// Extremes are values that the encodings and the statistics trip over, for each kind.
func Extremes(t base.Type) []base.Value {
	switch t.Kind {
	case base.KindTinyInt:
		return []base.Value{base.Int(-128), base.Int(127), base.Int(-1)}
	case base.KindSmallInt:
		return []base.Value{base.Int(-32768), base.Int(32767), base.Int(-1)}
	case base.KindInteger:
		return []base.Value{base.Int(math.MinInt32), base.Int(math.MaxInt32), base.Int(-1)}
	case base.KindBigInt:
		return []base.Value{base.Int(math.MinInt64), base.Int(math.MaxInt64), base.Int(-1)}
	case base.KindHugeInt:
		return []base.Value{{Hi: 1 << 63}, {Hi: 1<<63 - 1, Lo: math.MaxUint64}, base.Int(-1)}
	case base.KindUTinyInt:
		return []base.Value{base.Uint(127), base.Uint(128), base.Uint(255)}
	case base.KindUSmallInt:
		return []base.Value{base.Uint(1<<15 - 1), base.Uint(1 << 15), base.Uint(1<<16 - 1)}
	case base.KindUInteger:
		return []base.Value{base.Uint(1<<31 - 1), base.Uint(1 << 31), base.Uint(1<<32 - 1)}
	case base.KindUBigInt:
		return []base.Value{base.Uint(1<<63 - 1), base.Uint(1 << 63), base.Uint(math.MaxUint64)}
	case base.KindUHugeInt:
		return []base.Value{{Hi: 1<<63 - 1}, {Hi: 1 << 63}, {Hi: math.MaxUint64, Lo: math.MaxUint64}}
	case base.KindFloat:
		return []base.Value{base.Float(float32(math.Inf(1))), base.Float(float32(math.Inf(-1))), base.Float(-0.5), base.Float(math.MaxFloat32)}
	case base.KindDouble:
		return []base.Value{base.Double(math.Inf(1)), base.Double(math.Inf(-1)), base.Double(-0.5), base.Double(math.SmallestNonzeroFloat64)}
	case base.KindDecimal:
		switch {
		case t.Precision <= 9:
			return []base.Value{base.Int(-999999999), base.Int(999999999), base.Int(-1)}
		case t.Precision <= 18:
			return []base.Value{base.Int(-999999999999999999), base.Int(999999999999999999), base.Int(-1)}
		}
		return []base.Value{base.Int(-1), base.Int(1), {Hi: 1 << 30, Lo: 5}, {Hi: ^uint64(1 << 30), Lo: 7}}
	case base.KindDate:
		return []base.Value{base.Int(math.MaxInt32), base.Int(-math.MaxInt32), base.Int(-1)}
	case base.KindTime:
		return []base.Value{base.Int(0), base.Int(86_400_000_000)}
	case base.KindTimestampS, base.KindTimestampMS, base.KindTimestamp, base.KindTimestampNS, base.KindTimestampTZ:
		return []base.Value{base.Int(math.MaxInt64), base.Int(-math.MaxInt64), base.Int(-1), base.Int(-876543211)}
	case base.KindInterval:
		return []base.Value{{Hi: 1<<32 | 0xfffffffd, Lo: 0}, {Hi: math.MaxUint64, Lo: math.MaxUint64}, {}}
	case base.KindUUID:
		return []base.Value{{Lo: 1}, {Hi: 1 << 63}, {Hi: math.MaxUint64, Lo: math.MaxUint64}}
	case base.KindVarchar:
		return []base.Value{base.String(""), base.String("\x00"), base.String("a\x00"), base.String("😀zzz")}
	case base.KindBlob:
		return []base.Value{base.Bytes([]byte{}), base.Bytes([]byte{0}), base.Bytes([]byte{0, 255}), base.Bytes([]byte{255, 255, 255})}
	case base.KindBit:
		return []base.Value{base.Bytes([]byte{0, 255}), base.Bytes([]byte{3, 0b11110101})}
	}
	return nil
}

// RandomValue makes a valid value, sometimes an extreme one. card bounds the distinct ones where it is above 0.
func RandomValue(rng *rand.Rand, t base.Type, card int) base.Value {
	if card > 0 {
		rng = rand.New(rand.NewSource(int64(rng.Intn(card))))
	}
	if e := Extremes(t); len(e) > 0 && rng.Intn(20) == 0 {
		return e[rng.Intn(len(e))]
	}
	u := rng.Uint64()
	switch t.Kind {
	case base.KindBoolean:
		return base.Uint(u & 1)
	case base.KindTinyInt:
		return base.Int(int64(int8(u)))
	case base.KindSmallInt:
		return base.Int(int64(int16(u)))
	case base.KindInteger:
		return base.Int(int64(int32(u)))
	case base.KindBigInt:
		return base.Int(int64(u))
	case base.KindHugeInt, base.KindUHugeInt, base.KindUUID:
		return base.Value{Hi: u, Lo: rng.Uint64()}
	case base.KindUTinyInt:
		return base.Uint(u & 255)
	case base.KindUSmallInt:
		return base.Uint(u & (1<<16 - 1))
	case base.KindUInteger:
		return base.Uint(u & (1<<32 - 1))
	case base.KindUBigInt:
		return base.Uint(u)
	case base.KindFloat:
		return base.Float(float32(rng.NormFloat64()))
	case base.KindDouble:
		return base.Double(rng.NormFloat64())
	case base.KindDecimal:
		return base.Int(int64(u) % 999_999_999)
	case base.KindDate:
		return base.Int(int64(int32(u)) % 2_000_000)
	case base.KindTime:
		return base.Int(int64(u % 86_400_000_000))
	case base.KindTimeTZ:
		return base.TimeTZ(int64(u%86_400_000_001), int32(rng.Intn(2*base.MaxOffset+1)-base.MaxOffset))
	case base.KindTimeNS:
		return base.Int(int64(u % 86_400_000_000_001))
	case base.KindJSON:
		return base.String(fmt.Sprintf(`{"a":%d}`, u>>uint(rng.Intn(60))))
	case base.KindBignum:
		if u&1 == 0 {
			return base.Bytes([]byte{0x80, 0, 2, byte(u >> 8), byte(u >> 16)})
		}
		return base.Bytes([]byte{0x7f, 0xff, 0xfe, byte(u >> 8)})
	case base.KindTimestampS:
		return base.Int(int64(u) % 9_000_000_000)
	case base.KindTimestampMS:
		return base.Int(int64(u) % 9_000_000_000_000)
	case base.KindTimestamp, base.KindTimestampTZ:
		return base.Int(int64(u) % 9_000_000_000_000_000)
	case base.KindTimestampNS:
		return base.Int(int64(u) % 9_000_000_000_000_000_000)
	case base.KindInterval:
		return base.Value{Hi: u & 0x000000ff_0000ffff, Lo: rng.Uint64() >> 20}
	case base.KindVarchar:
		return base.String(fmt.Sprintf("s%x", u>>uint(rng.Intn(60))))
	case base.KindBlob:
		b := make([]byte, rng.Intn(20))
		rng.Read(b)
		return base.Bytes(b)
	case base.KindBit:
		return base.Bytes([]byte{0, byte(u), byte(u >> 8)})
	case base.KindEnum:
		return base.Uint(u % uint64(len(t.Labels)))
	case base.KindFixedBinary:
		b := make([]byte, t.Width)
		rng.Read(b)
		return base.Bytes(b)
	}
	if t.Kind.IsNested() {
		return base.Bytes(rowtest.Packed(rng, &t, func(t base.Type) []byte {
			return keyenc.AppendValueStorage(nil, t, RandomValue(rng, t, 0))
		}))
	}
	panic(t.String())
}

// Row is one row of a test file.
type Row struct {
	Key  []byte
	Vals []base.Value
	Seq  base.Seq
	Op   base.Op
}

// MakeRows makes up to n rows of distinct keys, sorted. Every tenth column value is NULL where allowed; columns at odd
// places have few distinct values. tombstones is how many of 100 rows are deletions.
func MakeRows(s *base.Schema, n int, seed int64, tombstones int) ([]Row, error) {
	rng := rand.New(rand.NewSource(seed))
	codec, err := keyenc.NewCodec(s)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var rows []Row
	for tries := 0; len(rows) < n && tries < 3*n; tries++ {
		r := Row{Seq: base.Seq(rng.Intn(1 << 30)), Op: base.OpPut}
		if rng.Intn(100) < tombstones {
			r.Op = base.OpDelete
		}
		for i := range s.Columns {
			c := &s.Columns[i]
			card := 0
			if i%2 == 1 && !s.IsKey(i) {
				card = 7
			}
			if c.Nullable && (rng.Intn(10) == 0 || r.Op == base.OpDelete) {
				r.Vals = append(r.Vals, base.Null())
				continue
			}
			r.Vals = append(r.Vals, RandomValue(rng, c.Type, card))
		}
		if r.Key, err = Key(codec, s, r.Vals); err != nil {
			return nil, err
		}
		if !seen[string(r.Key)] {
			seen[string(r.Key)] = true
			rows = append(rows, r)
		}
	}
	Sort(rows)
	return rows, nil
}

// Key encodes the key of a row.
func Key(codec *keyenc.Codec, s *base.Schema, vals []base.Value) ([]byte, error) {
	var key []base.Value
	for _, k := range s.PrimaryKey {
		key = append(key, vals[k])
	}
	return codec.Append(nil, key)
}

// Sort sorts rows by key.
func Sort(rows []Row) {
	sort.Slice(rows, func(i, j int) bool { return bytes.Compare(rows[i].Key, rows[j].Key) < 0 })
}

// Source yields test rows as an sst.RowSource, through buffers that it overwrites with every row, as a memtable or a log
// might.
type Source struct {
	layout     *row.Layout
	rows       []Row
	at         int
	key, value []byte
	err        error
}

// NewSource makes a source of rows in the given order.
func NewSource(s *base.Schema, rows []Row) *Source {
	return &Source{layout: row.NewLayout(s), rows: rows, at: -1}
}

// Next moves to the next row.
func (s *Source) Next() bool {
	for i := range s.key {
		s.key[i] = 0xaa
	}
	for i := range s.value {
		s.value[i] = 0xaa
	}
	if s.at++; s.at >= len(s.rows) {
		return false
	}
	r := &s.rows[s.at]
	s.key, s.value = append(s.key[:0], r.Key...), s.value[:0]
	if r.Op == base.OpPut {
		s.value, s.err = s.layout.Append(s.value, r.Vals)
	}
	return s.err == nil
}

// Key returns the row's key.
func (s *Source) Key() []byte { return s.key }

// Seq returns the row's sequence number.
func (s *Source) Seq() base.Seq { return s.rows[s.at].Seq }

// Op returns the row's operation.
func (s *Source) Op() base.Op { return s.rows[s.at].Op }

// Err returns what was wrong with a row.
func (s *Source) Err() error { return s.err }

// Value returns the row's record, nil for a tombstone.
func (s *Source) Value() []byte {
	if s.rows[s.at].Op == base.OpDelete {
		return nil
	}
	return s.value
}

// RowsOf makes sorted rows of the given values, with the sequence numbers 1, 2, ….
func RowsOf(s *base.Schema, vals [][]base.Value) ([]Row, error) {
	codec, err := keyenc.NewCodec(s)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(vals))
	for i, v := range vals {
		rows[i] = Row{Vals: v, Seq: base.Seq(i + 1), Op: base.OpPut}
		if rows[i].Key, err = Key(codec, s, v); err != nil {
			return nil, err
		}
	}
	Sort(rows)
	return rows, nil
}
