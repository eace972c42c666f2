package row

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// A value of a nested type that is not NULL is held in packed form, wherever rows are: in records, in Columns, in spilled
// runs. Only data files and Arrow take it apart. Packed form:
//
//	STRUCT  a bitmap with one bit a field, lowest bit first, 1 is NULL; whole bytes, spare bits 0; then the fields that
//	        are not NULL, in order
//	LIST    the number of elements as uvarint, their bitmap, then the elements that are not NULL
//	ARRAY   the bitmap of its elements, then those that are not NULL
//	MAP     the number of entries as uvarint, the bitmap of their values, then of each entry the key and, unless it is
//	        NULL, the value
//
// A field, element, key or value stands as: storage form for types of fixed size; uvarint of its length and storage form
// for scalars of variable size; packed form for nested types.

// CheckPacked reports, as a CodeInvalidArgument, why bytes are no value of a nested type. It allocates nothing.
func CheckPacked(t *base.Type, b []byte) error {
	p := unpacker{rest: b, budget: base.MaxElements}
	if err := p.check(t); err != nil {
		return err
	}
	if len(p.rest) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "%d bytes are left behind a %s of %d", len(p.rest), t.Kind, len(b)-len(p.rest))
	}
	return nil
}

// unpacker takes values off the front of packed bytes.
type unpacker struct {
	rest []byte
	// budget is how many values may still come.
	budget int
}

func (p *unpacker) take(n int) ([]byte, error) {
	if n < 0 || n > len(p.rest) {
		return nil, base.Errorf(base.CodeInvalidArgument, "a packed value needs %d bytes, %d are left", n, len(p.rest))
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b, nil
}

func (p *unpacker) uvarint() (int, error) {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || v > base.MaxValueBytes*8 {
		return 0, base.Errorf(base.CodeInvalidArgument, "a packed value has no length, or one that is too large")
	}
	p.rest = p.rest[n:]
	return int(v), nil
}

// bitmap takes the NULL marks of n values.
func (p *unpacker) bitmap(n int) ([]byte, error) {
	if p.budget -= n; p.budget < 0 {
		return nil, tooManyElements()
	}
	b, err := p.take((n + 7) / 8)
	if err == nil && n%8 != 0 && b[len(b)-1]>>(n%8) != 0 {
		err = base.Errorf(base.CodeInvalidArgument, "spare bits of a packed value's NULL marks are set")
	}
	return b, err
}

func tooManyElements() error {
	return base.Errorf(base.CodeInvalidArgument, "a nested value is made of more than %d values", base.MaxElements)
}

// fixedParts returns how many values each value of a nested type is made of; a LIST or MAP tells for itself.
func fixedParts(t *base.Type) (n int, fixed bool) {
	switch t.Kind {
	case base.KindStruct:
		return len(t.Fields), true
	case base.KindArray:
		return int(t.Length), true
	default:
		return 0, false
	}
}

// head takes the number of the values that a nested value is made of, and their NULL marks: of a MAP those of its values.
func (p *unpacker) head(t *base.Type) (n int, nulls []byte, err error) {
	n, fixed := fixedParts(t)
	if !fixed {
		if n, err = p.uvarint(); err != nil {
			return 0, nil, err
		}
	}
	nulls, err = p.bitmap(n)
	return n, nulls, err
}

// scalar takes a value that is not nested in storage form.
func (p *unpacker) scalar(t *base.Type) ([]byte, error) {
	n := t.FixedSize()
	if n == 0 {
		var err error
		if n, err = p.uvarint(); err != nil {
			return nil, err
		}
	}
	return p.take(n)
}

// check takes one value of a type.
func (p *unpacker) check(t *base.Type) error {
	if !t.Kind.IsNested() {
		b, err := p.scalar(t)
		if err == nil && needsCheck(*t) {
			err = keyenc.CheckValue(*t, keyenc.StorageValue(*t, b))
		}
		return err
	}
	n, nulls, err := p.head(t)
	for i := 0; i < n && err == nil; i++ {
		null := bitAt(nulls, i) != 0
		switch {
		case t.Kind == base.KindStruct:
			if !null {
				err = p.check(&t.Fields[i].Type)
			}
		case t.Kind == base.KindMap:
			if err = p.check(&t.Fields[0].Type); err == nil && !null {
				err = p.check(&t.Fields[1].Type)
			}
		case !null:
			err = p.check(&t.Fields[0].Type)
		}
	}
	return err
}

// emptyPacked returns the value of a nested type that has nothing in it: NULL fields, no elements.
func emptyPacked(t *base.Type) []byte {
	n, fixed := fixedParts(t)
	if !fixed {
		return []byte{0}
	}
	b := make([]byte, (n+7)/8)
	for i := range n {
		b[i/8] |= 1 << (i % 8)
	}
	return b
}

// appendUvarint appends a length.
func appendUvarint(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

// appendScalar appends a scalar as it stands in a packed value.
func appendScalar(dst []byte, t *base.Type, storage []byte) []byte {
	if t.IsVariable() {
		dst = appendUvarint(dst, len(storage))
	}
	return append(dst, storage...)
}

// appendBitmap appends the place of n NULL marks, none of which is set.
func appendBitmap(dst []byte, n int) []byte { return append(dst, make([]byte, (n+7)/8)...) }
