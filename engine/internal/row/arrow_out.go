package row

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
)

// ToArrow returns the batch, whose columns are those of the projection of s in that order (nil: all columns), as an
// Arrow record batch of [ArrowSchema]'s types. The caller releases it.
//
// With an allocator the record batch owns memory of mem and c may be reused at once. With mem nil it shares the memory
// of c wherever the storage form is Arrow's own, so c must not be changed or reset while the record batch lives; such a
// batch must not cross to C.
//
// A batch whose columns are not the projection's, or one with more than 2 GiB in a column of strings, gives
// CodeInvalidArgument naming the column.
func (c *Columns) ToArrow(s *base.Schema, projection []int, mem memory.Allocator) (arrow.RecordBatch, error) {
	projection = projectionOf(s, projection)
	if len(c.Cols) != len(projection) {
		return nil, base.Errorf(base.CodeInvalidArgument, "a batch of table %q has %d columns, not %d", s.TableName, len(c.Cols), len(projection))
	}
	schema := ArrowSchema(s, projection)
	arrays := make([]arrow.Array, 0, len(projection))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for i, p := range projection {
		col := &c.Cols[i]
		if !col.Type.Equal(s.Columns[p].Type) {
			return nil, base.Errorf(base.CodeInvalidArgument, "column %q of a batch is %s, not %s", s.Columns[p].Name, col.Type, s.Columns[p].Type)
		}
		data, err := col.arrow(schema.Field(i).Type, c.N, mem)
		if err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "column %q", s.Columns[p].Name)
		}
		arrays = append(arrays, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(schema, arrays, int64(c.N)), nil
}

// arrow makes the array of a column.
func (col *Column) arrow(dt arrow.DataType, n int, mem memory.Allocator) (arrow.ArrayData, error) {
	if col.Type.Kind.IsNested() {
		x, err := unpack(col, n)
		if err != nil {
			return nil, err
		}
		return x.arrow(dt, mem)
	}
	return (&tree{Column: *col, n: n}).arrow(dt, mem)
}

// arrowOut builds the buffers of one Arrow array.
type arrowOut struct {
	col     *Column
	n       int
	mem     memory.Allocator // nil: share the column's memory where possible
	buffers []*memory.Buffer
	nulls   int
}

func (o *arrowOut) release() {
	for _, b := range o.buffers {
		if b != nil {
			b.Release()
		}
	}
}

// alloc adds a buffer of size bytes of any content.
func (o *arrowOut) alloc(size int) []byte {
	var b *memory.Buffer
	if o.mem == nil {
		b = memory.NewBufferBytes(make([]byte, size))
	} else {
		b = memory.NewResizableBuffer(o.mem)
		b.Resize(size)
	}
	o.buffers = append(o.buffers, b)
	return b.Bytes()
}

// share adds a buffer with the given bytes.
func (o *arrowOut) share(data []byte) {
	if o.mem == nil {
		o.buffers = append(o.buffers, memory.NewBufferBytes(data))
		return
	}
	copy(o.alloc(len(data)), data)
}

func (o *arrowOut) build() error {
	o.validity()
	t := o.col.Type
	switch {
	case t.Kind == base.KindBoolean:
		packBits(o.alloc((o.n+7)/8), o.col.Fixed[:o.n], 0)
	case t.Kind == base.KindEnum:
		return o.labels()
	case t.IsVariable():
		return o.strings()
	case t.Kind == base.KindDecimal && t.FixedSize() < 16:
		o.decimals(t.FixedSize())
	case fileForm(t.Kind):
		out := o.alloc(o.n * 16)
		AppendFileForm(out[:0], t.Kind, o.col.Fixed[:o.n*16])
		o.clearNulls(out, 16)
	default:
		o.share(o.col.Fixed[:o.n*t.FixedSize()])
	}
	return nil
}

// validity adds the validity bitmap, which is absent where nothing is NULL.
func (o *arrowOut) validity() {
	if o.col.Nulls == nil {
		o.buffers = append(o.buffers, nil)
		return
	}
	o.nulls = o.n - packBits(o.alloc((o.n+7)/8), boolBytes(o.col.Nulls[:o.n]), 1)
}

// clearNulls zeroes the slots of NULLs where the conversion does not make zero of zero.
func (o *arrowOut) clearNulls(out []byte, size int) {
	if o.nulls == 0 {
		return
	}
	for i, null := range o.col.Nulls[:o.n] {
		if null {
			clear(out[i*size : (i+1)*size])
		}
	}
}

func (o *arrowOut) decimals(size int) {
	out, in, le := o.alloc(o.n*16), o.col.Fixed, binary.LittleEndian
	for i := 0; i < o.n; i++ {
		var v int64
		if size == 4 {
			v = int64(int32(le.Uint32(in[i*4:])))
		} else {
			v = int64(le.Uint64(in[i*8:]))
		}
		le.PutUint64(out[i*16:], uint64(v))
		le.PutUint64(out[i*16+8:], uint64(v>>63))
	}
}

func (o *arrowOut) strings() error {
	if err := checkArrowBytes(len(o.col.Data)); err != nil {
		return err
	}
	ends := o.alloc((o.n + 1) * 4)
	for i, off := range o.col.Offsets[:o.n+1] {
		binary.LittleEndian.PutUint32(ends[i*4:], uint32(off))
	}
	o.share(o.col.Data)
	return nil
}

func checkArrowBytes(n int) error {
	if n > math.MaxInt32 {
		return base.Errorf(base.CodeInvalidArgument, "the strings of one Arrow array have %d bytes: the limit is %d; take fewer rows a batch", n, math.MaxInt32)
	}
	return nil
}

// labels writes the labels of an ENUM's indices.
func (o *arrowOut) labels() error {
	labels, in := o.col.Type.Labels, o.col.Fixed
	total := 0
	for i := 0; i < o.n; i++ {
		if o.col.IsNull(i) {
			continue
		}
		index := binary.LittleEndian.Uint32(in[i*4:])
		if int64(index) >= int64(len(labels)) {
			return base.Errorf(base.CodeInvalidArgument, "row %d: label index %d: the ENUM has %d labels", i, index, len(labels))
		}
		total += len(labels[index])
	}
	if err := checkArrowBytes(total); err != nil {
		return err
	}
	ends := o.alloc((o.n + 1) * 4)
	out := o.alloc(total)
	binary.LittleEndian.PutUint32(ends, 0)
	at := 0
	for i := 0; i < o.n; i++ {
		if !o.col.IsNull(i) {
			at += copy(out[at:], labels[binary.LittleEndian.Uint32(in[i*4:])])
		}
		binary.LittleEndian.PutUint32(ends[(i+1)*4:], uint32(at))
	}
	return nil
}
