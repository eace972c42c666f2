package row

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// texts renders a column for comparison.
func texts(c *Column, n int) string {
	var out []string
	for i := 0; i < n; i++ {
		if c.IsNull(i) {
			out = append(out, "NULL")
		} else {
			out = append(out, fmt.Sprintf("%q", c.Storage(i)))
		}
	}
	return strings.Join(out, " ")
}

// In Arrow a NULL's slot may hold anything, also bytes that would be no value.
func TestArrowGarbageUnderNulls(t *testing.T) {
	valid := []byte{0b101}
	got, err := importOne(kind(base.KindVarchar), true, rawArray(arrow.BinaryTypes.String, 3, 0, nil, valid, le32(0, 1, 3, 5), []byte("a\xff\xfebc")))
	if err != nil || texts(got, 3) != `"a" NULL "bc"` {
		t.Errorf("%v, %v", got, err)
	}
	checkColumn(t, got, 3)
	got, err = importOne(kind(base.KindTime), true, rawArray(arrow.FixedWidthTypes.Time64us, 3, 0, nil, valid, le64(1, -1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	checkColumn(t, got, 3)
	got, err = importOne(kind(base.KindHugeInt), true, rawArray(&arrow.FixedSizeBinaryType{ByteWidth: 16}, 3, 0, nil, valid, make([]byte, 48)))
	if err != nil {
		t.Fatal(err)
	}
	checkColumn(t, got, 3)
	got, err = importOne(kind(base.KindBoolean), true, rawArray(arrow.FixedWidthTypes.Boolean, 3, 0, nil, valid, []byte{0b111}))
	if err != nil {
		t.Fatal(err)
	}
	checkColumn(t, got, 3)
	dec := base.Type{Kind: base.KindDecimal, Precision: 3}
	got, err = importOne(dec, true, rawArray(&arrow.Decimal128Type{Precision: 3}, 3, 0, nil, valid, le64(999, 0, 1, 1, -999, -1)))
	if err != nil || texts(got, 3) != fmt.Sprintf("%q NULL %q", le32(999), le32(-999)) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestArrowStringForms(t *testing.T) {
	want := `"" NULL "long enough for a buffer of its own" "naïve ✓"`
	values, valid := []string{"", "x", "long enough for a buffer of its own", "naïve ✓"}, []bool{true, false, true, true}
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView} {
		b := array.NewBuilder(memory.DefaultAllocator, dt)
		switch b := b.(type) {
		case *array.StringBuilder:
			b.AppendValues(append([]string{"skipped"}, values...), append([]bool{true}, valid...))
		case *array.LargeStringBuilder:
			b.AppendValues(append([]string{"skipped"}, values...), append([]bool{true}, valid...))
		case *array.StringViewBuilder:
			b.AppendValues(append([]string{"skipped"}, values...), append([]bool{true}, valid...))
		}
		arr := array.NewSlice(b.NewArray(), 1, 5)
		if got, err := importOne(kind(base.KindVarchar), true, arr); err != nil || texts(got, 4) != want {
			t.Errorf("%s: %v, %v", dt, got, err)
		} else {
			checkColumn(t, got, 4)
		}
	}
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView, arrow.BinaryTypes.Binary} {
		b := array.NewBuilder(memory.DefaultAllocator, dt).(array.BinaryLikeBuilder)
		b.Append([]byte("\x00\xff"))
		b.AppendNull()
		got, err := importOne(kind(base.KindBlob), true, b.NewArray())
		if err != nil || texts(got, 2) != `"\x00\xff" NULL` {
			t.Errorf("%s: %v, %v", dt, got, err)
		}
		if _, err = importOne(kind(base.KindBit), true, b.NewArray()); err != nil {
			t.Errorf("%s as BIT: %v", dt, err)
		}
	}
}

func TestArrowDictionaries(t *testing.T) {
	dict := rawArray(arrow.BinaryTypes.String, 3, 1, nil, []byte{0b1011}, le32(0, 1, 2, 2, 4), []byte("zaqq")).Data()
	enum := base.Type{Kind: base.KindEnum, Labels: []string{"qq", "a"}}
	for _, c := range []struct {
		index arrow.DataType
		raw   []byte
	}{
		{arrow.PrimitiveTypes.Int8, []byte{9, 2, 0, 77, 1, 2}},
		{arrow.PrimitiveTypes.Uint16, []byte{9, 9, 2, 0, 0, 0, 77, 77, 1, 0, 2, 0}},
		{arrow.PrimitiveTypes.Int32, le32(9, 2, 0, 77, 1, 2)},
		{arrow.PrimitiveTypes.Int64, le64(9, 2, 0, 77, 1, 2)},
	} {
		dt := &arrow.DictionaryType{IndexType: c.index, ValueType: arrow.BinaryTypes.String}
		arr := rawArray(dt, 5, 1, dict, []byte{0b110110}, c.raw)
		got, err := importOne(kind(base.KindVarchar), true, arr)
		if err != nil || texts(got, 5) != `"qq" "a" NULL NULL "qq"` {
			t.Errorf("%s: %v, %v", c.index, got, err)
		} else {
			checkColumn(t, got, 5)
		}
		got, err = importOne(enum, true, arr)
		if err != nil || texts(got, 5) != fmt.Sprintf("%q %q NULL NULL %q", le32(0), le32(1), le32(0)) {
			t.Errorf("%s as ENUM: %v, %v", c.index, got, err)
		}
		if _, err = importOne(kind(base.KindVarchar), false, arr); err == nil || !strings.Contains(err.Error(), "row 2") {
			t.Errorf("%s NOT NULL: %v", c.index, err)
		}
		enum2 := base.Type{Kind: base.KindEnum, Labels: []string{"qq"}}
		if _, err = importOne(enum2, true, arr); err == nil || !strings.Contains(err.Error(), `row 1: label "a"`) {
			t.Errorf("%s unknown label: %v", c.index, err)
		}
	}
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, index := range []byte{3, 0xff} {
		if _, err := importOne(kind(base.KindVarchar), true, rawArray(dt, 1, 0, dict, nil, []byte{index})); err == nil || !strings.Contains(err.Error(), "dictionary of 3") {
			t.Errorf("index %d: %v", index, err)
		}
	}
	bad := rawArray(arrow.BinaryTypes.String, 1, 0, nil, nil, le32(0, 1), []byte("\xff")).Data()
	if _, err := importOne(kind(base.KindVarchar), true, rawArray(dt, 1, 0, bad, nil, []byte{0})); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Error(err)
	}
}

func TestArrowDecimals(t *testing.T) {
	dec := func(p, s uint8) base.Type { return base.Type{Kind: base.KindDecimal, Precision: p, Scale: s} }
	for _, c := range []struct {
		t    base.Type
		arr  arrow.Array
		want string // storage, or part of an error
	}{
		{dec(9, 2), rawArray(&arrow.Decimal32Type{Precision: 9, Scale: 2}, 1, 1, nil, nil, le32(0, -5)), fmt.Sprintf("%q", le32(-5))},
		{dec(38, 2), rawArray(&arrow.Decimal32Type{Precision: 9, Scale: 2}, 1, 1, nil, nil, le32(0, -5)), fmt.Sprintf("%q", le64(-5, -1))},
		{dec(18, 0), rawArray(&arrow.Decimal64Type{Precision: 18}, 1, 0, nil, nil, le64(-7)), fmt.Sprintf("%q", le64(-7))},
		{dec(4, 0), rawArray(&arrow.Decimal128Type{Precision: 4}, 1, 0, nil, nil, le64(10_000, 0)), "row 0: 10000 has more than 4 digits"},
		{dec(4, 1), rawArray(&arrow.Decimal128Type{Precision: 4, Scale: 1}, 1, 0, nil, nil, le64(1, 1)), "digits"},
		{dec(4, 0), rawArray(&arrow.Decimal128Type{Precision: 5}, 1, 0, nil, nil, le64(1, 0)), "decimal(4, 0)"},
		{dec(4, 0), rawArray(&arrow.Decimal128Type{Precision: 4, Scale: 1}, 1, 0, nil, nil, le64(1, 0)), "decimal(4, 0)"},
		{dec(38, 0), rawArray(&arrow.Decimal256Type{Precision: 38}, 1, 0, nil, nil, make([]byte, 32)), "decimal(38, 0)"},
	} {
		got, err := importOne(c.t, true, c.arr)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && texts(got, 1) != c.want {
			t.Errorf("%s from %s: %v, %v; want %s", c.t, c.arr.DataType(), got, err, c.want)
		}
	}
}

func TestArrowRefusesTypes(t *testing.T) {
	i64 := rawArray(arrow.PrimitiveTypes.Int64, 1, 0, nil, nil, le64(1))
	for _, typ := range allTypes() {
		if typ.Kind == base.KindBigInt || typ.Kind == base.KindTimeTZ { // which are int64
			continue
		}
		_, err := importOne(typ, true, i64)
		if base.CodeOf(err) != base.CodeSchemaMismatch || !strings.Contains(err.Error(), `"the column"`) || !strings.Contains(err.Error(), "int64") {
			t.Errorf("%s: %v", typ, err)
		}
	}
	us := rawArray(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"}, 1, 0, nil, nil, le64(1))
	if _, err := importOne(kind(base.KindTimestampTZ), true, us); err != nil {
		t.Error(err)
	}
	if _, err := importOne(kind(base.KindTimestamp), true, us); base.CodeOf(err) != base.CodeSchemaMismatch {
		t.Error(err)
	}
	text := rawArray(arrow.BinaryTypes.Binary, 1, 0, nil, nil, le32(0, 1), []byte("a"))
	if _, err := importOne(kind(base.KindVarchar), true, text); base.CodeOf(err) != base.CodeSchemaMismatch {
		t.Error(err)
	}
}

// Sixteen bytes under another's name may be in another byte order.
func TestArrowExtensions(t *testing.T) {
	fsb := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	for _, c := range []struct {
		kind base.Kind
		name string
		ok   bool
	}{
		{base.KindHugeInt, "", true}, {base.KindHugeInt, "arrow.opaque", false}, {base.KindUUID, "arrow.uuid", true}, {base.KindInterval, "x", false},
	} {
		s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{{Name: "x", Type: kind(c.kind)}}}
		s.AssignFieldIDs()
		field := arrow.Field{Name: "x", Type: fsb}
		if c.name != "" {
			field.Metadata = arrow.NewMetadata([]string{extensionNameKey}, []string{c.name})
		}
		arr := rawArray(fsb, 1, 0, nil, nil, make([]byte, 16))
		_, err := FromArrow(s, array.NewRecordBatch(arrow.NewSchema([]arrow.Field{field}, nil), []arrow.Array{arr}, 1))
		if (err == nil) != c.ok || err != nil && base.CodeOf(err) != base.CodeSchemaMismatch {
			t.Errorf("%s as %q: %v", c.kind, c.name, err)
		}
	}
}

func TestArrowRefusesValues(t *testing.T) {
	ts := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }
	view := func(size, buf, off int32) []byte { return le32(size, 0, buf, off) }
	for _, c := range []struct {
		t    base.Type
		arr  arrow.Array
		want string
	}{
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.String, 2, 0, nil, []byte{1}, le32(0, 1, 1), []byte("a")), "row 1: NOT NULL"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.String, 2, 0, nil, nil, le32(0, 1, 2), []byte("a\xff")), "row 1: VARCHAR of 1 bytes is not valid UTF-8"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.String, 2, 0, nil, nil, le32(0, 1, 2), []byte("é")), "row 0: VARCHAR"}, // split inside a character
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.String, 3, 0, nil, nil, le32(0, 2, 1, 3), []byte("abc")), "row 1: the offsets"},
		{kind(base.KindBlob), rawArray(arrow.BinaryTypes.LargeBinary, 2, 0, nil, nil, le64(0, 2, 1), []byte("abc")), "row 1: the offsets"},
		{kind(base.KindTime), rawArray(arrow.FixedWidthTypes.Time64us, 2, 0, nil, nil, le64(keyenc.MaxTime, keyenc.MaxTime+1)), "row 1: TIME"},
		{kind(base.KindTimestampS), rawArray(ts(arrow.Second), 3, 0, nil, nil, le64(math.MaxInt64, -math.MaxInt64, math.MinInt64)), "row 2: TIMESTAMP_S"},
		{kind(base.KindTimestampMS), rawArray(ts(arrow.Millisecond), 1, 0, nil, nil, le64(keyenc.MaxTimestampMS+1)), "row 0: TIMESTAMP_MS"},
		{kind(base.KindBit), rawArray(arrow.BinaryTypes.Binary, 1, 0, nil, nil, le32(0, 0), []byte{}), "row 0: a BIT"},
		{base.Type{Kind: base.KindEnum, Labels: []string{"a"}}, rawArray(arrow.BinaryTypes.String, 1, 0, nil, nil, le32(0, 1), []byte("b")), `row 0: label "b"`},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.StringView, 1, 0, nil, nil, view(13, 1, 0), []byte("0123456789abc")), "data buffer 1 of 1"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.StringView, 1, 0, nil, nil, view(13, 0, 1), []byte("0123456789abc")), "13 bytes at 1"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.StringView, 1, 0, nil, nil, view(13, 0, -1), []byte("0123456789abc")), "13 bytes at -1"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.StringView, 1, 0, nil, nil, view(-1, 0, 0)), "length -1"},
		{kind(base.KindVarchar), rawArray(arrow.BinaryTypes.StringView, 9, 0, nil, nil, bytes.Repeat(view(1<<27, 0, 0), 9), make([]byte, 1<<27)), "take fewer rows"},
	} {
		_, err := importOne(c.t, false, c.arr)
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), `column "the column"`) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s from %s: %v; want %s", c.t, c.arr.DataType(), err, c.want)
		}
	}
}

func TestArrowRefusesSizes(t *testing.T) {
	s := oneColumn(kind(base.KindBlob), false)
	s.PrimaryKey = []int{1}
	if err := importKeys(s, base.MaxKeyBytes-2, 1); err != nil {
		t.Error(err)
	}
	if err := importKeys(s, base.MaxKeyBytes-1, 1); err == nil || !strings.Contains(err.Error(), `row 2: the encoded primary key`) {
		t.Error(err)
	}
	if err := importKeys(s, base.MaxKeyBytes/2, 0); err == nil || !strings.Contains(err.Error(), `row 2: the encoded primary key`) {
		t.Error(err)
	}
	s.PrimaryKey = []int{0}
	if err := importKeys(s, base.MaxValueBytes-4-4-1, 0); err != nil {
		t.Error(err)
	}
	if err := importKeys(s, base.MaxValueBytes, 0); err == nil || !strings.Contains(err.Error(), `row 2: the row has`) {
		t.Error(err)
	}
	rec := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 3)
	if _, err := FromArrow(s, rec); base.CodeOf(err) != base.CodeSchemaMismatch {
		t.Error(err)
	}
}

// importKeys reads three rows, of which the last has n bytes of value b in its BLOB.
func importKeys(s *base.Schema, n int, b byte) error {
	arr := rawArray(arrow.BinaryTypes.Binary, 3, 0, nil, nil, le32(0, 1, 1, int32(n+1)), bytes.Repeat([]byte{b}, n+1))
	keys := rawArray(arrow.PrimitiveTypes.Int32, 3, 0, nil, nil, le32(1, 2, 3))
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: keys.DataType()}, {Name: "x", Type: arr.DataType()}}, nil)
	_, err := FromArrow(s, array.NewRecordBatch(schema, []arrow.Array{keys, arr}, 3))
	return err
}

// FuzzArrowStrings gives buffers of any content under each form of strings: FromArrow must not panic, and what it takes
// must be right.
func FuzzArrowStrings(f *testing.F) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String}
	forms := []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dict}
	f.Add(uint8(0), uint8(2), uint8(0), []byte(nil), le32(0, 1, 2), []byte("ab"))
	f.Add(uint8(1), uint8(1), uint8(1), []byte{3}, le64(0, 1, 2), []byte("é"))
	f.Add(uint8(2), uint8(1), uint8(0), []byte{1}, le32(13, 0, 0, 1), []byte("0123456789abcdef"))
	f.Add(uint8(3), uint8(2), uint8(0), []byte{3}, []byte{0, 0, 1, 0}, []byte("abc"))
	f.Fuzz(func(t *testing.T, form, rows, off uint8, valid, raw, data []byte) {
		dt := forms[int(form)%len(forms)]
		bufs := []*memory.Buffer{nil, memory.NewBufferBytes(raw)}
		if valid != nil {
			bufs[0] = memory.NewBufferBytes(valid)
		}
		d := array.NewData(dt, int(rows), append(bufs, memory.NewBufferBytes(data)), nil, 0, int(off))
		if dt == dict {
			half := int32(len(data) / 2)
			values := rawArray(arrow.BinaryTypes.String, 2, 0, nil, nil, le32(0, half, int32(len(data))), data).Data()
			d = array.NewDataWithDictionary(dt, int(rows), bufs, 0, int(off), values.(*array.Data))
		}
		col := Column{Type: kind(base.KindVarchar)}
		in, err := newArrowIn(col.Type, d, &col)
		if err == nil {
			err = in.readValues()
		}
		if err != nil {
			if base.CodeOf(err) != base.CodeInvalidArgument {
				t.Fatal(err)
			}
			return
		}
		checkColumn(t, &col, int(rows))
		for i := 0; i < int(rows); i++ {
			if err := checkStorage(col.Type, col.Storage(i)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
