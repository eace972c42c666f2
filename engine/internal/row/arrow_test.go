package row

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
)

func toArrow(t *testing.T, c *Columns, s *base.Schema, projection []int, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	rec, err := c.ToArrow(s, projection, mem)
	if err != nil {
		t.Fatal(err)
	}
	if rec.NumRows() != int64(c.N) {
		t.Fatalf("%d rows became %d", c.N, rec.NumRows())
	}
	return rec
}

func TestArrowRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for i := 0; i < 150; i++ {
		s := randomSchema(rng)
		if i == 0 {
			s = everyKind()
		}
		n := rng.Intn(300)
		_, recs, _ := randomRecords(t, rng, s, n)
		c := buildColumns(s, recs)
		for _, a := range []memory.Allocator{mem, nil} {
			rec := toArrow(t, c, s, nil, a)
			if got, want := rec.Schema(), ArrowSchema(s, nil); !got.Equal(want) {
				t.Fatalf("schema %s, want %s", got, want)
			}
			for k := range s.Columns {
				nulls := 0
				for r := 0; r < n; r++ {
					if c.Cols[k].IsNull(r) != rec.Column(k).IsNull(r) {
						t.Fatalf("%s, row %d: NULL is %v in Arrow", s.Columns[k].Type, r, rec.Column(k).IsNull(r))
					}
					if c.Cols[k].IsNull(r) {
						nulls++
					}
				}
				if rec.Column(k).NullN() != nulls {
					t.Fatalf("%d NULLs counted, %d there", rec.Column(k).NullN(), nulls)
				}
			}
			got, err := FromArrow(s, rec)
			if err != nil {
				t.Fatal(err)
			}
			sameColumns(t, got, c)
			from := rng.Intn(n + 1)
			to := from + rng.Intn(n+1-from)
			slice := rec.NewSlice(int64(from), int64(to))
			if got, err = FromArrow(s, slice); err != nil {
				t.Fatal(err)
			}
			sameColumns(t, got, buildColumns(s, recs[from:to]))
			slice.Release()
			rec.Release()
		}
	}
}

func TestArrowProjection(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	s := everyKind()
	_, recs, _ := randomRecords(t, rng, s, 10)
	projection := []int{5, 0, 5}
	b := NewBuilder(s, projection)
	b.AppendRecords(recs, make([]base.Seq, 10), make([]base.Op, 10))
	rec := toArrow(t, b.Columns(), s, projection, memory.DefaultAllocator)
	defer rec.Release()
	if rec.NumCols() != 3 || rec.ColumnName(0) != s.Columns[5].Name || rec.ColumnName(1) != "id" {
		t.Fatal(rec.Schema())
	}
	if _, err := b.Columns().ToArrow(s, []int{0, 5, 5}, nil); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatal(err)
	}
	if _, err := b.Columns().ToArrow(s, nil, nil); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatal(err)
	}
}

func TestArrowOwnsItsMemory(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	s := everyKind()
	_, recs, _ := randomRecords(t, rng, s, 50)
	c := buildColumns(s, recs)
	rec := toArrow(t, c, s, nil, memory.DefaultAllocator)
	defer rec.Release()
	for i := range c.Cols { // what a reused batch does
		clear(c.Cols[i].Fixed)
		clear(c.Cols[i].Data)
		clear(c.Cols[i].Nulls)
		clear(c.Cols[i].Offsets)
	}
	got, err := FromArrow(s, rec)
	if err != nil {
		t.Fatal(err)
	}
	sameColumns(t, got, buildColumns(s, recs))
}

func TestArrowSchemaMetadata(t *testing.T) {
	s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{
		{Name: "u", Type: kind(base.KindUUID)},
		{Name: "d", Type: base.Type{Kind: base.KindDecimal, Precision: 9, Scale: 2}, Nullable: true},
		{Name: "z", Type: kind(base.KindTimestampTZ)},
		{Name: "h", Type: kind(base.KindHugeInt)},
	}}
	s.AssignFieldIDs()
	fields := ArrowSchema(s, nil).Fields()
	for i, want := range []string{"fixed_size_binary[16]", "decimal(9, 2)", "timestamp[us, tz=UTC]", "fixed_size_binary[16]"} {
		if got := fields[i].Type.String(); got != want {
			t.Errorf("column %d is %s, want %s", i, got, want)
		}
	}
	m := fields[1].Metadata.ToMap()
	if m["merutable.type"] != "DECIMAL(9,2)" || m["merutable.field_id"] != "2" || !fields[1].Nullable || fields[0].Nullable {
		t.Error(m)
	}
	if fields[0].Metadata.ToMap()["ARROW:extension:name"] != "arrow.uuid" {
		t.Error(fields[0].Metadata)
	}
}

func TestBitmaps(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for i := 0; i < 300; i++ {
		n, off := rng.Intn(200), rng.Intn(70)
		bitmap := make([]byte, (n+off+7)/8)
		rng.Read(bitmap)
		for _, flip := range []byte{0, 1} {
			got, want, set := make([]byte, n), make([]byte, n), 0
			for k := range want {
				want[k] = bitAt(bitmap, off+k) ^ flip
				set += int(want[k])
			}
			unpackBits(got, bitmap, off, n, flip)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bits from %d: %v, want %v", n, off, got, want)
			}
			if flip == 0 && countBits(bitmap, off, n) != set {
				t.Fatalf("%d bits from %d: counted %d of %d", n, off, countBits(bitmap, off, n), set)
			}
			packed, back := make([]byte, (n+7)/8), make([]byte, n)
			if k := packBits(packed, want, 0); k != set {
				t.Fatalf("packed %d of %d", k, set)
			}
			unpackBits(back, packed, 0, n, 0)
			if !bytes.Equal(back, want) {
				t.Fatalf("%v came back as %v", want, back)
			}
			packBits(packed, want, 1)
			unpackBits(back, packed, 0, n, 1)
			if !bytes.Equal(back, want) || n%8 != 0 && packed[n/8]>>(n%8) != 0 {
				t.Fatalf("%v came back flipped as %v", want, back)
			}
		}
	}
	for _, b := range [][]byte{nil, bytes.Repeat([]byte("a"), 67)} {
		if !isASCII(b) {
			t.Errorf("%q", b)
		}
		for k := range b {
			b[k] = 0x80
			if isASCII(b) {
				t.Errorf("byte %d of %d", k, len(b))
			}
			b[k] = 'a'
		}
	}
}

// rawArray makes an array of buffers as a foreign producer might give it.
func rawArray(dt arrow.DataType, n, off int, dict arrow.ArrayData, buffers ...[]byte) arrow.Array {
	bufs := make([]*memory.Buffer, len(buffers))
	for i, b := range buffers {
		if b != nil {
			bufs[i] = memory.NewBufferBytes(b)
		}
	}
	if dict != nil {
		return array.MakeFromData(array.NewDataWithDictionary(dt, n, bufs, array.UnknownNullCount, off, dict.(*array.Data)))
	}
	return array.MakeFromData(array.NewData(dt, n, bufs, nil, array.UnknownNullCount, off))
}

// importOne reads one array as the second column of a table; the first is a key 0, 1, 2, …
func importOne(typ base.Type, nullable bool, arr arrow.Array) (*Column, error) {
	s := oneColumn(typ, nullable)
	n := arr.Len()
	keys := make([]byte, 4*n)
	for i := 0; i < n; i++ {
		binary.LittleEndian.PutUint32(keys[i*4:], uint32(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32}, {Name: "x", Type: arr.DataType(), Nullable: true}}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{rawArray(arrow.PrimitiveTypes.Int32, n, 0, nil, nil, keys), arr}, int64(n))
	c, err := FromArrow(s, rec)
	if err != nil {
		return nil, err
	}
	return &c.Cols[1], nil
}

func le32(v ...int32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func le64(v ...int64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}
