package row

import (
	"math"

	"github.com/merutable/merutable/engine/internal/base"
)

// tree is values of one type taken apart, column by column at every level: the form between packed values and Arrow.
type tree struct {
	// Column holds a scalar's values. Of a nested type it has the NULL marks and, but for a STRUCT, in Offsets which of
	// the children's values each one has.
	Column
	n        int
	children []*tree // one a field
	// expand: a NULL of an ARRAY has elements too, NULL ones, as in Arrow.
	expand bool
}

func newTree(t *base.Type, expand bool) *tree {
	x := &tree{Column: Column{Type: *t}, expand: expand}
	if t.IsVariable() && t.Kind != base.KindStruct {
		x.Offsets = []int64{0}
	}
	for i := range t.Fields {
		x.children = append(x.children, newTree(&t.Fields[i].Type, expand))
	}
	return x
}

// unpack takes a column of a nested type apart.
func unpack(col *Column, n int) (*tree, error) {
	x := newTree(&col.Type, true)
	for i := range n {
		if col.IsNull(i) {
			if err := x.appendNull(); err != nil {
				return nil, err
			}
			continue
		}
		p := unpacker{rest: col.Storage(i), budget: base.MaxElements}
		if err := x.append(&p); err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
		}
	}
	return x, nil
}

// maxExpanded is about how many bytes of NULLs a batch of Arrow may have.
const maxExpanded = 64 << 20

// ArrowRows returns how many rows of the projected columns a batch may have, so that NULLs of long ARRAYs, which take no
// room but there, stay small; nil means all columns.
func ArrowRows(s *base.Schema, projection []int) int {
	rows := math.MaxInt32
	for _, p := range projectionOf(s, projection) {
		rows = min(rows, maxExpanded/expandedBytes(&s.Columns[p].Type, maxExpanded))
	}
	return max(rows, 1)
}

// expandedBytes returns about what a NULL of a type takes in Arrow, at most limit.
func expandedBytes(t *base.Type, limit int) int {
	switch t.Kind {
	case base.KindStruct:
		n := 1
		for i := range t.Fields {
			n += expandedBytes(&t.Fields[i].Type, limit)
		}
		return min(n, limit)
	case base.KindArray:
		return min(1+int(t.Length)*expandedBytes(&t.Fields[0].Type, limit), limit)
	}
	return max(t.FixedSize(), 8)
}

// maxTreeValues bounds the values of one column that are taken apart at a time. NULLs of a long ARRAY are much larger
// there than packed.
const maxTreeValues = 1 << 30

func (x *tree) appendNull() error {
	x.setNull(x.n)
	x.n++
	switch {
	case x.n > maxTreeValues:
		return base.Errorf(base.CodeInvalidArgument, "a batch has more than %d values at one level: take fewer rows a batch", maxTreeValues)
	case x.Type.Kind == base.KindStruct:
		for _, c := range x.children {
			if err := c.appendNull(); err != nil {
				return err
			}
		}
	case x.Type.Kind == base.KindArray && x.expand:
		for range x.Type.Length {
			if err := x.children[0].appendNull(); err != nil {
				return err
			}
		}
		x.Offsets = append(x.Offsets, int64(x.children[0].n))
	case x.Type.Kind.IsNested():
		x.Offsets = append(x.Offsets, int64(x.children[0].n))
	case x.Offsets != nil:
		x.Offsets = append(x.Offsets, int64(len(x.Data)))
	default:
		x.Fixed = append(x.Fixed, make([]byte, x.Type.FixedSize())...)
	}
	return nil
}

// append takes one value that is not NULL.
func (x *tree) append(p *unpacker) error {
	if x.Nulls != nil {
		x.Nulls = append(x.Nulls, false)
	}
	x.n++
	if !x.Type.Kind.IsNested() {
		b, err := p.scalar(&x.Type)
		if x.Offsets == nil {
			x.Fixed = append(x.Fixed, b...)
		} else {
			x.Data = append(x.Data, b...)
			x.Offsets = append(x.Offsets, int64(len(x.Data)))
		}
		return err
	}
	n, nulls, err := p.head(&x.Type)
	for i := 0; i < n && err == nil; i++ {
		c := x.children[0]
		switch x.Type.Kind {
		case base.KindStruct:
			c = x.children[i]
		case base.KindMap:
			err = x.children[0].append(p)
			c = x.children[1]
		}
		if err != nil {
			return err
		}
		if bitAt(nulls, i) != 0 {
			err = c.appendNull()
		} else {
			err = c.append(p)
		}
	}
	if x.Type.Kind != base.KindStruct {
		x.Offsets = append(x.Offsets, int64(x.children[0].n))
	}
	return err
}

// pack appends value i, which is not NULL, to dst in packed form. budget is how many values it may still be made of.
func (x *tree) pack(dst []byte, i int, budget *int) ([]byte, error) {
	t := &x.Type
	if !t.Kind.IsNested() {
		return appendScalar(dst, t, x.Storage(i)), nil
	}
	from, n := 0, len(x.children)
	if t.Kind != base.KindStruct {
		from, n = int(x.Offsets[i]), int(x.Offsets[i+1]-x.Offsets[i])
	}
	if *budget -= n; *budget < 0 {
		return dst, tooManyElements()
	}
	if t.Kind == base.KindList || t.Kind == base.KindMap {
		dst = appendUvarint(dst, n)
	}
	marks := len(dst)
	dst = appendBitmap(dst, n)
	var err error
	for j := 0; j < n && err == nil; j++ {
		c, at := x.children[0], from+j
		switch t.Kind {
		case base.KindStruct:
			c, at = x.children[j], i
		case base.KindMap:
			if c.IsNull(at) {
				return dst, base.Errorf(base.CodeInvalidArgument, "a key of a MAP is NULL")
			}
			dst, err = c.pack(dst, at, budget)
			c = x.children[1]
		}
		switch {
		case err != nil:
		case c.IsNull(at):
			dst[marks+j/8] |= 1 << (j % 8)
		default:
			dst, err = c.pack(dst, at, budget)
		}
	}
	return dst, err
}

// packAll makes a column of packed values.
func (x *tree) packAll(out *Column) error {
	out.Nulls = x.Nulls
	out.Offsets = make([]int64, 1, x.n+1)
	for i := range x.n {
		if !x.IsNull(i) {
			budget := base.MaxElements
			start := len(out.Data)
			var err error
			if out.Data, err = x.pack(out.Data, i, &budget); err != nil {
				return base.Wrapf(base.CodeInvalidArgument, err, "row %d", i)
			}
			if size := len(out.Data) - start; size > base.MaxValueBytes {
				return rowError(i, "the value has %d bytes: the limit of a row is %d", size, base.MaxValueBytes)
			}
		}
		out.Offsets = append(out.Offsets, int64(len(out.Data)))
	}
	return nil
}
