package row

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
)

// nestedArrowType returns the Arrow type of a nested type: struct, list, fixed_size_list, map.
func nestedArrowType(t base.Type) arrow.DataType {
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = arrowField(f.Name, f.Type, true, f.FieldID)
	}
	switch t.Kind {
	case base.KindStruct:
		return arrow.StructOf(fields...)
	case base.KindArray:
		return arrow.FixedSizeListOfField(t.Length, fields[0])
	case base.KindMap:
		fields[0].Nullable = false
		return arrow.MapOfFields(fields[0], fields[1])
	}
	return arrow.ListOfField(fields[0])
}

// arrow makes the array of a tree.
func (x *tree) arrow(dt arrow.DataType, mem memory.Allocator) (arrow.ArrayData, error) {
	o := arrowOut{col: &x.Column, n: x.n, mem: mem}
	defer o.release()
	var children []arrow.ArrayData
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	if !x.Type.Kind.IsNested() {
		if err := o.build(); err != nil {
			return nil, err
		}
		return array.NewData(dt, x.n, o.buffers, nil, o.nulls, 0), nil
	}
	o.validity()
	for i, ct := range childTypes(dt) {
		c, err := x.children[i].arrow(ct, mem)
		if err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "field %q", x.Type.Fields[i].Name)
		}
		children = append(children, c)
	}
	if x.Type.Kind == base.KindList || x.Type.Kind == base.KindMap {
		if err := o.ends(x.Offsets); err != nil {
			return nil, err
		}
	}
	if x.Type.Kind == base.KindMap {
		entries := dt.(*arrow.MapType).Elem()
		pairs := array.NewData(entries, x.children[0].n, []*memory.Buffer{nil}, children, 0, 0)
		for _, c := range children {
			c.Release()
		}
		children = []arrow.ArrayData{pairs}
	}
	return array.NewData(dt, x.n, o.buffers, children, o.nulls, 0), nil
}

// childTypes returns the Arrow types of a nested type's fields.
func childTypes(dt arrow.DataType) []arrow.DataType {
	switch dt := dt.(type) {
	case *arrow.StructType:
		types := make([]arrow.DataType, dt.NumFields())
		for i := range types {
			types[i] = dt.Field(i).Type
		}
		return types
	case *arrow.MapType:
		return []arrow.DataType{dt.KeyType(), dt.ItemType()}
	case arrow.ListLikeType:
		return []arrow.DataType{dt.Elem()}
	}
	return nil
}

// ends adds a buffer of 32-bit offsets.
func (o *arrowOut) ends(offsets []int64) error {
	if last := offsets[len(offsets)-1]; last > math.MaxInt32 {
		return base.Errorf(base.CodeInvalidArgument, "the lists of one Arrow array have %d elements: the limit is %d; take fewer rows a batch", last, math.MaxInt32)
	}
	out := o.alloc(len(offsets) * 4)
	for i, off := range offsets {
		binary.LittleEndian.PutUint32(out[i*4:], uint32(off))
	}
	return nil
}

// readNested reads values of a nested type.
func (in *arrowIn) readNested() error {
	x, err := in.tree()
	if err == nil {
		err = x.packAll(in.out)
	}
	return err
}

// tree reads the array into a tree; in.out has its NULLs already.
func (in *arrowIn) tree() (*tree, error) {
	x := &tree{Column: Column{Type: in.t, Nulls: in.out.Nulls}, n: in.n}
	children, err := in.childRanges(x)
	defer func() {
		for _, c := range children {
			c.Release() // what shares its memory is used while the whole batch is held
		}
	}()
	if err != nil {
		return nil, err
	}
	for i := range in.t.Fields {
		f := &in.t.Fields[i]
		c, err := readTree(&f.Type, children[i], x.hiddenChildren(children[i].Len()))
		if err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "field %q", f.Name)
		}
		x.children = append(x.children, c)
	}
	return x, nil
}

// readTree reads an array of any type. hidden marks values that count as NULL, whatever they are; nil: none.
func readTree(t *base.Type, data arrow.ArrayData, hidden []bool) (*tree, error) {
	if ext, ok := data.DataType().(arrow.ExtensionType); ok {
		data = array.NewData(ext.StorageType(), data.Len(), data.Buffers(), data.Children(), data.NullN(), data.Offset())
		defer data.Release()
	}
	x := &tree{Column: Column{Type: *t}, n: data.Len()}
	in, err := newArrowIn(*t, data, &x.Column)
	if err != nil {
		return nil, err
	}
	if hidden != nil {
		nulls := make([]bool, in.n)
		for i := range nulls {
			nulls[i] = hidden[i] || x.IsNull(i)
		}
		x.Nulls = nulls
	}
	if t.Kind.IsNested() {
		return in.tree()
	}
	return x, in.readValues()
}

// childRanges returns the parts of the children that the array's values have, and sets x.Offsets to match. The caller
// releases them, after an error too.
func (in *arrowIn) childRanges(x *tree) (out []arrow.ArrayData, err error) {
	off, n := in.data.Offset(), in.n
	add := func(c arrow.ArrayData, from, to int) bool {
		if from < 0 || to < from || to > c.Len() {
			err = base.Errorf(base.CodeInvalidArgument, "an Arrow array of %s takes values %d to %d of a child of %d", in.t.Kind, from, to, c.Len())
			return false
		}
		out = append(out, array.NewSliceData(c, int64(from), int64(to)))
		return true
	}
	children := in.data.Children()
	switch in.t.Kind {
	case base.KindStruct:
		for _, c := range children {
			if !add(c, off, off+n) {
				break
			}
		}
		return out, err
	case base.KindArray:
		length := int(in.t.Length)
		x.Offsets = make([]int64, n+1)
		for i := range x.Offsets {
			x.Offsets[i] = int64(i * length)
		}
		add(children[0], off*length, (off+n)*length)
		return out, err
	}
	from, err := in.listOffsets(x)
	if err != nil || !add(children[0], int(from), int(from+x.Offsets[n])) || in.t.Kind == base.KindList {
		return out, err
	}
	pairs := out[0]
	defer pairs.Release()
	out = nil
	for _, c := range pairs.Children() {
		if !add(c, pairs.Offset(), pairs.Offset()+pairs.Len()) {
			break
		}
	}
	return out, err
}

// listOffsets sets x.Offsets, from 0, and returns where in the child they start.
func (in *arrowIn) listOffsets(x *tree) (first int64, err error) {
	x.Offsets = make([]int64, in.n+1)
	if in.n == 0 {
		return 0, nil
	}
	width := 4
	if in.data.DataType().ID() == arrow.LARGE_LIST {
		width = 8
	}
	off := in.data.Offset()
	raw, err := in.buffer(1, (off+in.n+1)*width)
	if err != nil {
		return 0, err
	}
	raw = raw[off*width:]
	at := func(i int) int64 {
		if width == 4 {
			return int64(int32(binary.LittleEndian.Uint32(raw[i*4:])))
		}
		return int64(binary.LittleEndian.Uint64(raw[i*8:]))
	}
	first = at(0)
	if first < 0 {
		return 0, base.Errorf(base.CodeInvalidArgument, "the offsets of the Arrow array start with %d", first)
	}
	for i := 1; i <= in.n; i++ {
		o := at(i)
		if o-first < x.Offsets[i-1] || o > math.MaxInt32*int64(width/4) && width == 4 || o > 1<<40 {
			return 0, rowError(i-1, "the offsets of the Arrow array decrease, or are too large")
		}
		x.Offsets[i] = o - first
	}
	return first, nil
}

// hiddenChildren marks, of n values of a child, those that belong to a NULL: anything may stand there.
func (x *tree) hiddenChildren(n int) []bool {
	if x.Nulls == nil {
		return nil
	}
	if x.Type.Kind == base.KindStruct {
		return x.Nulls
	}
	hidden := make([]bool, n)
	for i, null := range x.Nulls {
		if null {
			for j := x.Offsets[i]; j < x.Offsets[i+1]; j++ {
				hidden[j] = true
			}
		}
	}
	return hidden
}

// acceptsNested is acceptsArrow for nested types. Names of fields count for a STRUCT only.
func acceptsNested(t base.Type, dt arrow.DataType) bool {
	switch dt := dt.(type) {
	case *arrow.StructType:
		if t.Kind != base.KindStruct || dt.NumFields() != len(t.Fields) {
			return false
		}
		for i, f := range t.Fields {
			if dt.Field(i).Name != f.Name {
				return false
			}
		}
	case *arrow.FixedSizeListType:
		if t.Kind != base.KindArray || dt.Len() != t.Length {
			return false
		}
	case *arrow.MapType:
		if t.Kind != base.KindMap {
			return false
		}
	case *arrow.ListType, *arrow.LargeListType:
		if t.Kind != base.KindList {
			return false
		}
	default:
		return false
	}
	for i, ct := range childTypes(dt) {
		if !acceptsField(t.Fields[i].Type, ct) {
			return false
		}
	}
	return true
}

// acceptsField is acceptsArrow for a type that may be an extension's.
func acceptsField(t base.Type, dt arrow.DataType) bool {
	if ext, ok := dt.(arrow.ExtensionType); ok {
		return !fileForm(t.Kind) && acceptsArrow(t, ext.StorageType())
	}
	return acceptsArrow(t, dt)
}
