package row

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row/rowtest"
)

// TestPackedDamage: no bytes make a reader of packed values panic or allocate by a length that they carry.
func TestPackedDamage(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, typ := range rowtest.NestedTypes {
		for range 50 {
			good := randomValue(rng, typ).Bytes
			if err := CheckPacked(&typ, good); err != nil {
				t.Fatalf("%s: %x: %v", typ, good, err)
			}
			if err := CheckPacked(&typ, append(bytes.Clone(good), 0)); err == nil {
				t.Fatalf("%s: a byte too many was taken", typ)
			}
			bad := bytes.Clone(good)
			bad[rng.Intn(len(bad))] ^= byte(1 << rng.Intn(8))
			if CheckPacked(&typ, bad) == nil { // still a value
				col := Column{Type: typ, Offsets: []int64{0, int64(len(bad))}, Data: bad}
				if _, err := unpack(&col, 1); err != nil {
					t.Fatalf("%s: %x passes, but: %v", typ, bad, err)
				}
			}
			for n := range good {
				if err := CheckPacked(&typ, good[:n]); err == nil {
					t.Fatalf("%s: %x: the first %d bytes pass", typ, good, n)
				}
			}
		}
	}
	list := base.List(base.Type{Kind: base.KindBigInt})
	huge := binary.AppendUvarint(nil, 1<<62)
	if allocs := testing.AllocsPerRun(1, func() { _ = CheckPacked(&list, huge) }); allocs > 20 {
		t.Errorf("%v allocations for a length that is not there", allocs)
	}
	for _, b := range [][]byte{huge, binary.AppendUvarint(nil, base.MaxElements+1), {3, 0}, {1, 0xff}, nil} {
		if err := CheckPacked(&list, b); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func nestedSchema(t base.Type) *base.Schema {
	s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{
		{Name: "id", Type: kind(base.KindBigInt)}, {Name: "the column", Type: t, Nullable: true},
	}}
	s.AssignFieldIDs()
	return s
}

func importNested(typ base.Type, arr arrow.Array) (*Columns, error) {
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	for i := range arr.Len() {
		ids.Append(int64(i))
	}
	id := ids.NewInt64Array()
	defer id.Release()
	fields := []arrow.Field{{Name: "id", Type: id.DataType()}, {Name: "the column", Type: arr.DataType(), Nullable: true}}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), []arrow.Array{id, arr}, int64(arr.Len()))
	defer rec.Release()
	return FromArrow(nestedSchema(typ), rec)
}

// TestNestedArrowGarbage: what stands under a NULL is nobody's, and need not be a value.
func TestNestedArrowGarbage(t *testing.T) {
	child := rawArray(arrow.BinaryTypes.String, 3, 0, nil, nil, le32(0, 1, 2, 3), []byte("a\xffb"))
	data := array.NewData(arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}), 3,
		[]*memory.Buffer{memory.NewBufferBytes([]byte{0b101})}, []arrow.ArrayData{child.Data()}, 1, 0)
	typ := base.Struct(base.Field{Name: "s", Type: kind(base.KindVarchar)})
	got, err := importNested(typ, array.MakeFromData(data))
	if err != nil {
		t.Fatal(err)
	}
	if c := &got.Cols[1]; !c.IsNull(1) || c.IsNull(0) || string(c.Storage(2)) != "\x00\x01b" {
		t.Fatalf("%v %q", c.Nulls, c.Data)
	}
	all := array.NewData(data.DataType(), 3, []*memory.Buffer{nil}, []arrow.ArrayData{child.Data()}, 0, 0)
	if _, err := importNested(typ, array.MakeFromData(all)); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), `"the column"`) || !strings.Contains(err.Error(), `"s"`) {
		t.Fatal(err)
	}
}

func TestNestedArrowRefuses(t *testing.T) {
	ints := rawArray(arrow.PrimitiveTypes.Int32, 2, 0, nil, nil, le32(1, 2))
	list := func(offsets []byte) arrow.Array {
		return array.MakeFromData(array.NewData(arrow.ListOf(arrow.PrimitiveTypes.Int32), 2,
			[]*memory.Buffer{nil, memory.NewBufferBytes(offsets)}, []arrow.ArrayData{ints.Data()}, 0, 0))
	}
	integers := base.List(kind(base.KindInteger))
	if _, err := importNested(integers, list(le32(0, 1, 2))); err != nil {
		t.Fatal(err)
	}
	for _, offsets := range [][]byte{le32(0, 3, 2), le32(0, 1, 3), le32(1, 0, 2), le32(0, 1)} {
		if _, err := importNested(integers, list(offsets)); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Errorf("offsets %v: %v", offsets, err)
		}
	}
	for _, typ := range []base.Type{base.List(kind(base.KindBigInt)), base.Array(kind(base.KindInteger), 2), kind(base.KindInteger), base.Struct(base.Field{Name: "a", Type: kind(base.KindInteger)})} {
		if _, err := importNested(typ, list(le32(0, 1, 2))); base.CodeOf(err) != base.CodeSchemaMismatch {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestMapKeyNotNull(t *testing.T) {
	// Below array.Map, which panics for it.
	keys := rawArray(arrow.PrimitiveTypes.Int32, 1, 0, nil, []byte{0}, le32(1))
	values := rawArray(arrow.PrimitiveTypes.Int32, 1, 0, nil, nil, le32(1))
	dt := arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32)
	pairs := array.NewData(dt.Elem(), 1, []*memory.Buffer{nil}, []arrow.ArrayData{keys.Data(), values.Data()}, 0, 0)
	data := array.NewData(dt, 1, []*memory.Buffer{nil, memory.NewBufferBytes(le32(0, 1))}, []arrow.ArrayData{pairs}, 0, 0)
	typ := base.Map(kind(base.KindInteger), kind(base.KindInteger))
	var out Column
	in, err := newArrowIn(typ, data, &out)
	if err == nil {
		err = in.readValues()
	}
	if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "key of a MAP is NULL") {
		t.Fatal(err)
	}
}

func TestArrowRows(t *testing.T) {
	s := nestedSchema(base.Array(kind(base.KindFloat), 1000))
	if n := ArrowRows(s, nil); n < 4096 || n > 16384 {
		t.Error(n)
	}
	if n := ArrowRows(s, []int{0}); n < 1<<20 {
		t.Error(n)
	}
	deep := base.Type{Kind: base.KindDouble}
	for range base.MaxTypeDepth {
		deep = base.Array(deep, base.MaxArrayLength)
	}
	if n := ArrowRows(nestedSchema(deep), nil); n != 1 {
		t.Error(n)
	}
}
