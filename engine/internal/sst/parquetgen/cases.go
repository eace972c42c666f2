package main

import (
	"fmt"
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
	// groupRows is how many rows a row group has; 0: the writer's default.
	groupRows int
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
	{name: "case-strings", types: []base.Type{integer, varchar}, rows: [][]base.Value{
		{base.Int(1), base.String(strings.Repeat("a", 15) + "éz")},
		{base.Int(2), base.String(strings.Repeat("z", 40))},
		{base.Int(3), base.String(strings.Repeat("\U0010ffff", 20))},
		{base.Int(4), base.String(strings.Repeat("b", 15) + "\ud7ffq")},
	}},
	{name: "case-long-strings", types: []base.Type{integer, varchar}, rows: [][]base.Value{
		{base.Int(1), base.String(strings.Repeat("a", 5000))},
		{base.Int(2), base.String(strings.Repeat("z", 100_000))},
		{base.Int(3), base.String("")},
		{base.Int(4), base.Null()},
	}},
	{name: "case-zero-bytes", types: []base.Type{varchar, integer}, rows: [][]base.Value{
		{base.String(""), base.Int(0)},
		{base.String("\x00"), base.Int(1)},
		{base.String("a"), base.Int(2)},
		{base.String("a\x00"), base.Int(3)},
		{base.String("a\x00b"), base.Int(4)},
		{base.String("ab"), base.Int(5)},
	}},
	{name: "case-nan", types: []base.Type{integer, double, float}, rows: [][]base.Value{
		{base.Int(1), base.Double(1), base.Float(1)},
		{base.Int(2), base.Double(math.NaN()), base.Float(float32(math.NaN()))},
		{base.Int(3), base.Double(1), base.Float(1)},
	}},
	// The second row group alone holds a NaN, and no value is in the bounds of the others.
	{name: "case-nan-late", types: []base.Type{integer, double, float}, groupRows: 2, rows: [][]base.Value{
		{base.Int(1), base.Double(1), base.Float(1)},
		{base.Int(2), base.Double(2), base.Float(2)},
		{base.Int(3), base.Double(7), base.Float(7)},
		{base.Int(4), base.Double(math.NaN()), base.Float(float32(math.NaN()))},
		{base.Int(5), base.Double(3), base.Float(3)},
	}},
	{name: "case-row-groups", types: []base.Type{bigint, varchar, integer}, rows: changingRows(30_000), groupRows: 10_000},
	{name: "case-infinity", types: []base.Type{integer, double, float}, rows: [][]base.Value{
		{base.Int(1), base.Double(-infinity), base.Float(float32(-infinity))},
		{base.Int(2), base.Double(-infinity), base.Float(float32(-infinity))},
	}},
	{name: "case-zeros", types: []base.Type{integer, double, float}, rows: [][]base.Value{
		{base.Int(1), base.Double(math.Copysign(0, -1)), base.Float(float32(math.Copysign(0, -1)))},
		{base.Int(2), base.Double(math.Copysign(0, -1)), base.Float(float32(math.Copysign(0, -1)))},
	}},
	{name: "case-zeros-positive", types: []base.Type{integer, double, float}, rows: [][]base.Value{
		{base.Int(1), base.Double(0), base.Float(0)}, {base.Int(2), base.Double(0), base.Float(0)},
	}},
	{name: "case-zero-key", types: []base.Type{double, integer}, rows: [][]base.Value{
		{base.Double(-infinity), base.Int(1)},
		{base.Double(math.Copysign(0, -1)), base.Int(2)},
		{base.Double(infinity), base.Int(3)},
		{base.Double(math.NaN()), base.Int(4)},
	}},
	{name: "case-delta-extremes", types: []base.Type{bigint, bigint, integer}, rows: extremeIntegers(100_000)},
	{name: "case-unsigned", types: []base.Type{{Kind: base.KindUBigInt}, {Kind: base.KindUTinyInt}}, rows: [][]base.Value{
		{base.Uint(0), base.Uint(0)},
		{base.Uint(1<<63 - 1), base.Uint(127)},
		{base.Uint(1 << 63), base.Uint(128)},
		{base.Uint(math.MaxUint64), base.Uint(255)},
	}},
	{name: "case-uuid", types: []base.Type{{Kind: base.KindUUID}, integer}, rows: [][]base.Value{
		{{Hi: 0x4000, Lo: 0x8000000000000001}, base.Int(1)},
		{{Hi: 0x7fffffff00004000, Lo: 1 << 63}, base.Int(2)},
		{{Hi: 0x8000000000004000, Lo: 1 << 63}, base.Int(3)},
		{{Hi: math.MaxUint64, Lo: math.MaxUint64}, base.Int(4)},
	}},
	{name: "case-all-null", types: []base.Type{integer, varchar, double, bigint, {Kind: base.KindBoolean}}, rows: [][]base.Value{
		{base.Int(1), base.Null(), base.Null(), base.Null(), base.Null()},
		{base.Int(2), base.Null(), base.Null(), base.Null(), base.Null()},
	}},
}

// changingRows makes three row groups that are encoded differently: values that repeat, values that do not, then long ones.
func changingRows(n int) [][]base.Value {
	var rows [][]base.Value
	for i := range n {
		text, number := "same", int64(i%7)
		switch i / (n / 3) {
		case 1:
			text, number = fmt.Sprintf("%d other words", i*7919), int64(int32(uint32(i)*2654435761))
		case 2:
			text = strings.Repeat(fmt.Sprint(i), 5+i%3000/2900*15_000)
		}
		rows = append(rows, []base.Value{base.Int(int64(i) * 3), base.String(text), base.Int(number)})
	}
	return rows
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
