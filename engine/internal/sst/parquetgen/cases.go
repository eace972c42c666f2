package main

import (
	"math"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
)

// testCase is a small table whose values tripped other writers or readers.
type testCase struct {
	name  string
	types []base.Type
	rows  [][]base.Value
}

func (c *testCase) schema() *base.Schema { return ssttest.MakeSchema(c.types, true, 0) }

var (
	integer  = base.Type{Kind: base.KindInteger}
	bigint   = base.Type{Kind: base.KindBigInt}
	varchar  = base.Type{Kind: base.KindVarchar}
	double   = base.Type{Kind: base.KindDouble}
	float    = base.Type{Kind: base.KindFloat}
	infinity = math.Inf(1)
)

var cases = []testCase{
	{"case-strings", []base.Type{integer, varchar}, [][]base.Value{
		{base.Int(1), base.String(strings.Repeat("a", 15) + "éz")},
		{base.Int(2), base.String(strings.Repeat("z", 40))},
		{base.Int(3), base.String(strings.Repeat("\U0010ffff", 20))},
		{base.Int(4), base.String(strings.Repeat("b", 15) + "\ud7ffq")},
	}},
	{"case-long-strings", []base.Type{integer, varchar}, [][]base.Value{
		{base.Int(1), base.String(strings.Repeat("a", 5000))},
		{base.Int(2), base.String(strings.Repeat("z", 100_000))},
		{base.Int(3), base.String("")},
		{base.Int(4), base.Null()},
	}},
	{"case-zero-bytes", []base.Type{varchar, integer}, [][]base.Value{
		{base.String(""), base.Int(0)},
		{base.String("\x00"), base.Int(1)},
		{base.String("a"), base.Int(2)},
		{base.String("a\x00"), base.Int(3)},
		{base.String("a\x00b"), base.Int(4)},
		{base.String("ab"), base.Int(5)},
	}},
	{"case-nan", []base.Type{integer, double, float}, [][]base.Value{
		{base.Int(1), base.Double(1), base.Float(1)},
		{base.Int(2), base.Double(math.NaN()), base.Float(float32(math.NaN()))},
		{base.Int(3), base.Double(1), base.Float(1)},
	}},
	{"case-infinity", []base.Type{integer, double, float}, [][]base.Value{
		{base.Int(1), base.Double(-infinity), base.Float(float32(-infinity))},
		{base.Int(2), base.Double(-infinity), base.Float(float32(-infinity))},
	}},
	{"case-zeros", []base.Type{integer, double, float}, [][]base.Value{
		{base.Int(1), base.Double(math.Copysign(0, -1)), base.Float(float32(math.Copysign(0, -1)))},
		{base.Int(2), base.Double(math.Copysign(0, -1)), base.Float(float32(math.Copysign(0, -1)))},
	}},
	{"case-zeros-positive", []base.Type{integer, double, float}, [][]base.Value{
		{base.Int(1), base.Double(0), base.Float(0)}, {base.Int(2), base.Double(0), base.Float(0)},
	}},
	{"case-zero-key", []base.Type{double, integer}, [][]base.Value{
		{base.Double(-infinity), base.Int(1)},
		{base.Double(math.Copysign(0, -1)), base.Int(2)},
		{base.Double(infinity), base.Int(3)},
		{base.Double(math.NaN()), base.Int(4)},
	}},
	{"case-delta-extremes", []base.Type{bigint, bigint, integer}, extremeIntegers(100_000)},
	{"case-unsigned", []base.Type{{Kind: base.KindUBigInt}, {Kind: base.KindUTinyInt}}, [][]base.Value{
		{base.Uint(0), base.Uint(0)},
		{base.Uint(1<<63 - 1), base.Uint(127)},
		{base.Uint(1 << 63), base.Uint(128)},
		{base.Uint(math.MaxUint64), base.Uint(255)},
	}},
	{"case-uuid", []base.Type{{Kind: base.KindUUID}, integer}, [][]base.Value{
		{{Hi: 0x4000, Lo: 0x8000000000000001}, base.Int(1)},
		{{Hi: 0x7fffffff00004000, Lo: 1 << 63}, base.Int(2)},
		{{Hi: 0x8000000000004000, Lo: 1 << 63}, base.Int(3)},
		{{Hi: math.MaxUint64, Lo: math.MaxUint64}, base.Int(4)},
	}},
	{"case-all-null", []base.Type{integer, varchar, double, bigint, {Kind: base.KindBoolean}}, [][]base.Value{
		{base.Int(1), base.Null(), base.Null(), base.Null(), base.Null()},
		{base.Int(2), base.Null(), base.Null(), base.Null(), base.Null()},
	}},
}

func extremeIntegers(n int) [][]base.Value {
	var rows [][]base.Value
	for i := 0; i < n; i++ {
		r := []base.Value{base.Int(int64(i)), base.Int(0), base.Int(0)}
		switch i % 3 {
		case 0:
			r[1], r[2] = base.Int(math.MinInt64), base.Int(math.MinInt32)
		case 1:
			r[1], r[2] = base.Int(math.MaxInt64), base.Int(math.MaxInt32)
		}
		rows = append(rows, r)
	}
	return rows
}
