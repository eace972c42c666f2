// Command parquetgen writes data files with known rows into a directory, for tests/parquet/check.py to read with DuckDB's
// own Parquet reader. Beside each NAME.parquet stands NAME.json: the columns with their types, and the rows of the file
// as text, one list a row, null for NULL.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/row/rowtest"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

type column struct {
	Name, Type string
	Key        bool
}

type expected struct {
	Columns []column
	Rows    [][]any
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: parquetgen DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "parquetgen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	g := &generator{dir: dir}
	g.everyType()
	g.nested()
	g.everyKey()
	for _, c := range cases {
		g.named(c.name, c.schema(), c.rows, c.groupRows)
	}
	return g.err
}

type generator struct {
	dir string
	err error
}

// everyType writes files with a column of every type.
func (g *generator) everyType() {
	types := append([]base.Type{{Kind: base.KindBigInt}}, ssttest.ScalarTypes...)
	for level := 0; level < 2; level++ {
		for _, nullable := range []bool{false, true} {
			s := ssttest.MakeSchema(types, nullable, 0)
			o := sst.WriterOptions{Schema: s, Level: level, RowGroupRows: 2000, PageBytes: 2048, KeyBlockRows: 256}
			g.random(fmt.Sprintf("types-L%d-nullable=%v", level, nullable), o, 5000, int64(level), 4)
		}
	}
}

// nested writes files with columns of nested types, around a key that is not the first column.
func (g *generator) nested() {
	k := func(kind base.Kind) base.Type { return base.Type{Kind: kind} }
	f := func(name string, t base.Type) base.Field { return base.Field{Name: name, Type: t} }
	pair := base.Struct(f("a", k(base.KindInteger)), f("B b", k(base.KindVarchar)))
	types := []base.Type{
		pair, base.List(k(base.KindBigInt)), base.List(k(base.KindVarchar)),
		{Kind: base.KindBigInt},
		base.Array(k(base.KindBlob), 3),
		base.Map(k(base.KindVarchar), k(base.KindInteger)), base.List(pair), base.List(base.List(k(base.KindVarchar))), base.List(k(base.KindHugeInt)),
		base.Struct(f("l", base.List(base.Struct(f("m", base.Map(k(base.KindInteger), base.List(k(base.KindBoolean)))), f("x", pair)))), f("u", k(base.KindUUID))),
		base.Map(k(base.KindInteger), base.Map(k(base.KindVarchar), pair)),
	}
	for level := 0; level < 2; level++ {
		for _, nullable := range []bool{false, true} {
			o := sst.WriterOptions{Schema: ssttest.MakeSchema(types, nullable, 3), Level: level, RowGroupRows: 2000, PageBytes: 2048, KeyBlockRows: 256}
			g.random(fmt.Sprintf("nested-L%d-nullable=%v", level, nullable), o, 5000, int64(level), 4)
		}
	}
}

// everyKey writes files whose key is of each type, with the writer's own sizes.
func (g *generator) everyKey() {
	for i, t := range ssttest.ScalarTypes {
		s := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, t, {Kind: base.KindInteger}}, true, 1)
		g.random(fmt.Sprintf("key-%02d", i), sst.WriterOptions{Schema: s, Level: i % 2}, 10_000, int64(100+i), 4)
	}
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, {Kind: base.KindInteger}, {Kind: base.KindUUID}}, true, 1, 0)
	g.random("key-composite", sst.WriterOptions{Schema: s, Level: 1}, 10_000, 99, 4)
}

func (g *generator) random(name string, o sst.WriterOptions, n int, seed int64, tombstones int) {
	rows, err := ssttest.MakeRows(o.Schema, n, seed, tombstones)
	if g.err == nil {
		g.err = err
	}
	g.write(name, o, rows)
}

// named writes rows given by value.
func (g *generator) named(name string, s *base.Schema, vals [][]base.Value, groupRows int) {
	rows, err := ssttest.RowsOf(s, vals)
	if g.err == nil {
		g.err = err
	}
	g.write(name, sst.WriterOptions{Schema: s, Level: 1, RowGroupRows: groupRows}, rows)
}

func (g *generator) write(name string, o sst.WriterOptions, rows []ssttest.Row) {
	if g.err != nil {
		return
	}
	e := expected{}
	for i := range o.Schema.Columns {
		c := &o.Schema.Columns[i]
		e.Columns = append(e.Columns, column{Name: c.Name, Type: c.Type.String(), Key: o.Schema.IsKey(i)})
	}
	for i := range rows {
		e.Rows = append(e.Rows, texts(o.Schema, &rows[i]))
	}
	js, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(filepath.Join(g.dir, name+".json"), js, 0o644)
	}
	if err == nil {
		_, err = sst.Write(vfs.OS, filepath.Join(g.dir, name+".parquet"), o, ssttest.NewSource(o.Schema, rows))
	}
	if err != nil {
		g.err = fmt.Errorf("%s: %w", name, err)
	}
}

// texts renders a row: its values, sequence number and operation. Of a tombstone only the key counts: "?" stands for
// the rest.
func texts(s *base.Schema, r *ssttest.Row) []any {
	var out []any
	for i := range s.Columns {
		switch v := r.Vals[i]; {
		case r.Op == base.OpDelete && !s.IsKey(i), r.Op == base.OpDelete && s.Columns[i].Type.Kind == base.KindInterval:
			out = append(out, "?")
		case v.Null:
			out = append(out, nil)
		case s.Columns[i].Type.Kind.IsNested():
			out = append(out, rowtest.Value(&s.Columns[i].Type, v.Bytes, func(t base.Type, storage []byte) any {
				return text(t, keyenc.StorageValue(t, storage))
			}))
		default:
			out = append(out, text(s.Columns[i].Type, v))
		}
	}
	return append(out, fmt.Sprint(r.Seq), fmt.Sprint(r.Op))
}

// text renders a value: integers of every kind as numbers, floats as the hex of their bits, bytes as hex.
func text(t base.Type, v base.Value) string {
	switch t.Kind {
	case base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt, base.KindBoolean:
		return fmt.Sprint(v.Lo)
	case base.KindHugeInt:
		return wide(v, true)
	case base.KindUHugeInt:
		return wide(v, false)
	case base.KindDecimal:
		if t.Precision > 18 {
			return wide(v, true)
		}
	case base.KindFloat:
		if f := math.Float32frombits(uint32(v.Lo)); f != f {
			return "nan"
		}
		return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(v.Lo)))
	case base.KindDouble:
		if f := math.Float64frombits(v.Lo); f != f {
			return "nan"
		}
		return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, v.Lo))
	case base.KindVarchar, base.KindJSON:
		return string(v.Bytes)
	case base.KindBlob, base.KindBit, base.KindFixedBinary, base.KindBignum:
		return hex.EncodeToString(v.Bytes)
	case base.KindUUID:
		return fmt.Sprintf("%016x%016x", v.Hi, v.Lo)
	case base.KindInterval:
		return fmt.Sprintf("%d,%d,%d", int32(v.Hi>>32), int32(v.Hi), int64(v.Lo))
	case base.KindEnum:
		return t.Labels[v.Lo]
	}
	return fmt.Sprint(v.Int64())
}

func wide(v base.Value, signed bool) string {
	n := new(big.Int).SetUint64(v.Hi)
	n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(v.Lo))
	if signed && v.Hi>>63 == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return n.String()
}
