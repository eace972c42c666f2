package row

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// FromArrow converts a record batch whose columns are all of s, matched by position, and checks every value, as the
// batch may come from anywhere: what it returns holds valid rows of s, none above base.MaxValueBytes, no key above
// base.MaxKeyBytes.
//
// The types are those of [ArrowSchema]. It also takes LargeUtf8, Utf8View, LargeBinary and BinaryView, dictionaries of
// strings (VARCHAR, BLOB, ENUM), decimals of 32 and 64 bits and of fewer digits, and any time zone for TIMESTAMPTZ. A
// column of another type gives CodeSchemaMismatch that names column, expected and given type; a bad value gives
// CodeInvalidArgument that names column and row (from 0).
//
// The columns may share memory with rec: keep rec retained and unchanged while they are in use.
func FromArrow(s *base.Schema, rec arrow.RecordBatch) (*Columns, error) {
	if int(rec.NumCols()) != len(s.Columns) {
		return nil, base.Errorf(base.CodeSchemaMismatch, "the batch has %d columns, table %q has %d", rec.NumCols(), s.TableName, len(s.Columns))
	}
	n := rec.NumRows()
	if n < 0 || n > math.MaxInt32 {
		return nil, base.Errorf(base.CodeInvalidArgument, "the batch has %d rows: the limit is %d", n, math.MaxInt32)
	}
	c := &Columns{N: int(n), Cols: make([]Column, len(s.Columns))}
	for i := range s.Columns {
		if err := importColumn(s, i, rec.Schema().Field(i), rec.Column(i), c); err != nil {
			return nil, err
		}
	}
	return c, c.checkSizes(s)
}

// arrowIn reads one Arrow array into a column.
type arrowIn struct {
	t    base.Type
	data arrow.ArrayData
	n    int
	out  *Column
}

func importColumn(s *base.Schema, i int, field arrow.Field, arr arrow.Array, c *Columns) error {
	def := &s.Columns[i]
	extension := ""
	if at := field.Metadata.FindKey(extensionNameKey); at >= 0 {
		extension = field.Metadata.Values()[at]
	}
	if ext, ok := arr.(array.ExtensionArray); ok {
		extension = ext.ExtensionType().ExtensionName()
		arr = ext.Storage()
	}
	// An extension may say that 16 bytes are an integer in another byte order than ours.
	if !acceptsArrow(def.Type, arr.DataType()) || extension != "" && fileForm(def.Type.Kind) {
		got := arr.DataType().String()
		if extension != "" {
			got += " (extension " + extension + ")"
		}
		return base.Errorf(base.CodeSchemaMismatch, "column %q: the batch has Arrow type %s, %s takes %s", def.Name, got, def.Type.Kind, expectedArrow(def.Type))
	}
	if arr.Len() != c.N {
		return base.Errorf(base.CodeInvalidArgument, "column %q has %d rows in a batch of %d", def.Name, arr.Len(), c.N)
	}
	c.Cols[i].Type = def.Type
	in, err := newArrowIn(def.Type, arr.Data(), &c.Cols[i])
	if err == nil {
		err = in.readValues()
	}
	if err != nil {
		return base.Wrapf(base.CodeInvalidArgument, err, "column %q", def.Name)
	}
	if !def.Nullable || s.IsKey(i) {
		if at := firstTrue(c.Cols[i].Nulls); at >= 0 {
			return base.Wrapf(base.CodeInvalidArgument, nullError(s, i), "row %d", at)
		}
	}
	return nil
}

// expectedArrow names the Arrow type of a column for an error.
func expectedArrow(t base.Type) string {
	name := arrowType(t).String()
	switch {
	case fileForm(t.Kind):
		name += " without an extension"
	case t.Kind == base.KindVarchar || t.Kind == base.KindEnum || t.Kind == base.KindJSON:
		name += " (or large_utf8, utf8_view, a dictionary of these)"
	case t.Kind == base.KindBlob:
		name += " (or large_binary, binary_view, a dictionary of these)"
	case t.Kind == base.KindBit || t.Kind == base.KindBignum:
		name += " (or large_binary, binary_view)"
	}
	return name
}

func firstTrue(b []bool) int {
	for i, x := range b {
		if x {
			return i
		}
	}
	return -1
}

func rowError(row int, format string, args ...any) error {
	return base.Wrapf(base.CodeInvalidArgument, base.Errorf(base.CodeInvalidArgument, format, args...), "row %d", row)
}

// newArrowIn starts on an array with its NULLs.
func newArrowIn(t base.Type, data arrow.ArrayData, out *Column) (*arrowIn, error) {
	const limit = 1 << 40 // keeps products with widths far from overflow
	in := &arrowIn{t: t, data: data, n: data.Len(), out: out}
	if off := data.Offset(); off < 0 || in.n < 0 || off > limit || in.n > limit {
		return nil, base.Errorf(base.CodeInvalidArgument, "the Arrow array has %d rows from %d on", in.n, off)
	}
	return in, in.readNulls()
}

// buffer returns the bytes of the array's buffer, at least need of them, which the array's length asks for.
func (in *arrowIn) buffer(i int, need int) ([]byte, error) {
	var b []byte
	if bufs := in.data.Buffers(); i < len(bufs) && bufs[i] != nil {
		b = bufs[i].Bytes()
	}
	if len(b) < need {
		return nil, base.Errorf(base.CodeInvalidArgument, "buffer %d of the Arrow array has %d bytes, its %d rows from %d on take %d", i, len(b), in.n, in.data.Offset(), need)
	}
	return b, nil
}

// readNulls turns the validity bitmap into NULL marks. A producer's own count of NULLs is not believed.
func (in *arrowIn) readNulls() error {
	bufs := in.data.Buffers()
	if len(bufs) == 0 || bufs[0] == nil || bufs[0].Len() == 0 || in.n == 0 {
		return nil
	}
	off := in.data.Offset()
	bitmap, err := in.buffer(0, (off+in.n+7)/8)
	if err != nil || countBits(bitmap, off, in.n) == in.n {
		return err
	}
	in.out.Nulls = make([]bool, in.n)
	unpackBits(boolBytes(in.out.Nulls), bitmap, off, in.n, 1)
	return nil
}

func (in *arrowIn) readValues() error {
	switch in.t.Kind {
	case base.KindBoolean:
		off := in.data.Offset()
		bitmap, err := in.buffer(1, (off+in.n+7)/8)
		if err != nil {
			return err
		}
		in.out.Fixed = make([]byte, in.n)
		unpackBits(in.out.Fixed, bitmap, off, in.n, 0)
		in.clearNulls(1)
		return nil
	case base.KindDecimal:
		return in.readDecimals()
	case base.KindVarchar, base.KindBlob, base.KindBit, base.KindJSON, base.KindBignum:
		return in.readStrings()
	case base.KindEnum:
		return in.readLabels()
	case base.KindStruct, base.KindList, base.KindArray, base.KindMap:
		return in.readNested()
	}
	size := in.t.FixedSize()
	raw, err := in.fixed(size)
	if err != nil {
		return err
	}
	switch {
	case fileForm(in.t.Kind):
		in.out.Fixed = AppendStorageFromFileForm(make([]byte, 0, len(raw)), in.t.Kind, raw)
		in.clearNulls(size)
	case in.out.Nulls != nil:
		in.out.Fixed = append([]byte(nil), raw...)
		in.clearNulls(size)
	default:
		in.out.Fixed = raw
	}
	return in.checkRange()
}

// fixed returns the values of an array of fixed width.
func (in *arrowIn) fixed(width int) ([]byte, error) {
	off := in.data.Offset()
	b, err := in.buffer(1, (off+in.n)*width)
	if err != nil {
		return nil, err
	}
	return b[off*width : (off+in.n)*width : (off+in.n)*width], nil
}

// clearNulls zeroes the slots of NULLs, in which Arrow allows anything. Fixed must be the column's own memory.
func (in *arrowIn) clearNulls(size int) {
	for i, null := range in.out.Nulls {
		if null {
			clear(in.out.Fixed[i*size : (i+1)*size])
		}
	}
}

// checkRange checks the kinds of 8 bytes in which not every integer is a value; NULLs are zero by now, which is one.
func (in *arrowIn) checkRange() error {
	var low, high int64
	switch in.t.Kind {
	case base.KindTime:
		low, high = 0, keyenc.MaxTime
	case base.KindTimeNS:
		low, high = 0, keyenc.MaxTime*1000
	case base.KindTimeTZ:
		return in.checkTimeTZ()
	case base.KindTimestampS:
		low, high = -keyenc.MaxTimestampS, keyenc.MaxTimestampS
	case base.KindTimestampMS:
		low, high = -keyenc.MaxTimestampMS, keyenc.MaxTimestampMS
	default:
		return nil
	}
	for i := 0; i < in.n; i++ {
		if v := int64(binary.LittleEndian.Uint64(in.out.Fixed[i*8:])); v < low || v > high {
			if err := keyenc.CheckValue(in.t, base.Int(v)); err != nil { // the infinities pass
				return base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
			}
		}
	}
	return nil
}

func (in *arrowIn) checkTimeTZ() error {
	for i := 0; i < in.n; i++ {
		if !in.out.IsNull(i) {
			if err := checkStorage(in.t, in.out.Storage(i)); err != nil {
				return base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
			}
		}
	}
	return nil
}

// readDecimals brings decimals of 4, 8 or 16 bytes to the column's width and checks their digits.
func (in *arrowIn) readDecimals() error {
	from, to := in.data.DataType().(arrow.DecimalType).BitWidth()/8, in.t.FixedSize()
	raw, err := in.fixed(from)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	in.out.Fixed = make([]byte, in.n*to)
	for i := 0; i < in.n; i++ {
		if in.out.IsNull(i) {
			continue
		}
		var lo, hi uint64
		switch from {
		case 4:
			lo = uint64(int64(int32(le.Uint32(raw[i*4:]))))
			hi = uint64(int64(lo) >> 63)
		case 8:
			lo = le.Uint64(raw[i*8:])
			hi = uint64(int64(lo) >> 63)
		default:
			lo, hi = le.Uint64(raw[i*16:]), le.Uint64(raw[i*16+8:])
		}
		if !keyenc.FitsDecimal(hi, lo, in.t.Precision) {
			return rowError(i, "%s has more than %d digits: it does not fit %s", decimal128.New(int64(hi), lo).ToString(int32(in.t.Scale)), in.t.Precision, in.t)
		}
		switch to {
		case 4:
			le.PutUint32(in.out.Fixed[i*4:], uint32(lo))
		case 8:
			le.PutUint64(in.out.Fixed[i*8:], lo)
		default:
			le.PutUint64(in.out.Fixed[i*16:], lo)
			le.PutUint64(in.out.Fixed[i*16+8:], hi)
		}
	}
	return nil
}

// checkSizes refuses rows and keys above their limits. Batches far below them cost a look at the totals only.
func (c *Columns) checkSizes(s *base.Schema) error {
	total := 0
	for i := range c.Cols {
		total += len(c.Cols[i].Data)
	}
	l := NewLayout(s)
	if total+l.fixed > base.MaxValueBytes {
		for i := 0; i < c.N; i++ {
			size := l.fixed
			for _, v := range l.varCols {
				o := c.Cols[v].Offsets
				if size += int(o[i+1] - o[i]); size > base.MaxValueBytes {
					return base.Wrapf(base.CodeInvalidArgument, rowTooLarge(size, l.fields[v].name), "row %d", i)
				}
			}
		}
	}
	return c.checkKeySizes(l)
}

func (c *Columns) checkKeySizes(l *Layout) error {
	worst := 0
	for _, k := range l.keys {
		if size := l.fields[k].size; size > 0 {
			worst += size
			continue
		}
		longest, o := int64(0), c.Cols[k].Offsets
		for i := 0; i < c.N; i++ {
			longest = max(longest, o[i+1]-o[i])
		}
		worst += keyenc.MaxEscaped(int(longest))
	}
	if worst <= base.MaxKeyBytes {
		return nil
	}
	var key []byte
	for i := 0; i < c.N; i++ {
		key = key[:0]
		for _, k := range l.keys {
			b := c.Cols[k].Storage(i)
			// A part that is too long as it is need not be encoded.
			if n := len(key) + len(b); n > base.MaxKeyBytes {
				return base.Wrapf(base.CodeInvalidArgument, keyenc.KeyTooLong(n, l.fields[k].name), "row %d", i)
			}
			key = keyenc.AppendStorage(key, l.fields[k].typ, b)
			if n := len(key); n > base.MaxKeyBytes {
				return base.Wrapf(base.CodeInvalidArgument, keyenc.KeyTooLong(n, l.fields[k].name), "row %d", i)
			}
		}
	}
	return nil
}

// enumIndices maps the labels of an ENUM to their indices.
func enumIndices(t base.Type) map[string]uint32 {
	m := make(map[string]uint32, len(t.Labels))
	for i, l := range t.Labels {
		m[l] = uint32(i)
	}
	return m
}
