// Package rowtest makes values of nested types for tests.
package rowtest

import (
	"encoding/binary"
	"math/rand"

	"github.com/merutable/merutable/engine/internal/base"
)

// NestedTypes has each nested type around scalars of all forms, and in each other.
var NestedTypes = func() []base.Type {
	k := func(kind base.Kind) base.Type { return base.Type{Kind: kind} }
	f := func(name string, t base.Type) base.Field { return base.Field{Name: name, Type: t} }
	enum := base.Type{Kind: base.KindEnum, Labels: []string{"p", "", "naïve ✓"}}
	rare := base.Struct(f("h", k(base.KindHugeInt)), f("u", k(base.KindUUID)), f("i", k(base.KindInterval)), f("b", k(base.KindBit)),
		f("e", enum), f("d", base.Type{Kind: base.KindDecimal, Precision: 30, Scale: 3}), f("t", k(base.KindTimestampTZ)),
		f("s", k(base.KindTimestampS)), f("n", k(base.KindTimestampNS)), f("z", k(base.KindTimeTZ)), f("w", k(base.KindTimeNS)),
		f("x", k(base.KindTinyInt)), f("y", k(base.KindBoolean)), f("g", k(base.KindBignum)), f("j", k(base.KindJSON)), f("f", k(base.KindDouble)))
	return []base.Type{
		base.Struct(f("a", k(base.KindInteger)), f("B", k(base.KindVarchar))),
		base.List(k(base.KindBigInt)), base.List(k(base.KindVarchar)), base.List(enum), base.List(k(base.KindHugeInt)),
		base.Array(k(base.KindFloat), 3), base.Array(k(base.KindVarchar), 9),
		base.Map(k(base.KindVarchar), k(base.KindInteger)), base.Map(k(base.KindInteger), base.List(k(base.KindUUID))),
		rare, base.List(rare), base.List(base.List(base.List(k(base.KindSmallInt)))),
		base.Struct(f("s", base.Struct(f("l", base.List(base.Struct(f("m", base.Map(k(base.KindDate), base.Array(k(base.KindBlob), 2))), f("k", k(base.KindBoolean))))))), f("c", base.Array(base.Array(k(base.KindInteger), 2), 2))),
		base.Map(base.Struct(f("a", k(base.KindInteger)), f("b", base.List(k(base.KindVarchar)))), base.Map(k(base.KindUTinyInt), k(base.KindTime))),
	}
}()

// Packed makes a value of a nested type in packed form. scalar makes one of another type in storage form.
func Packed(rng *rand.Rand, t *base.Type, scalar func(t base.Type) []byte) []byte {
	n := rng.Intn(5)
	switch {
	case t.Kind == base.KindStruct:
		n = len(t.Fields)
	case t.Kind == base.KindArray:
		n = int(t.Length)
	case rng.Intn(200) == 0:
		n = 300
	}
	one := func(t *base.Type) []byte {
		switch {
		case t.Kind.IsNested():
			return Packed(rng, t, scalar)
		case t.IsVariable():
			v := scalar(*t)
			return append(binary.AppendUvarint(nil, uint64(len(v))), v...)
		}
		return scalar(*t)
	}
	var keys [][]byte
	if t.Kind == base.KindMap { // which are distinct
		seen := map[string]bool{}
		for range n {
			if k := one(&t.Fields[0].Type); !seen[string(k)] {
				seen[string(k)] = true
				keys = append(keys, k)
			}
		}
		n = len(keys)
	}
	var dst []byte
	if t.Kind == base.KindList || t.Kind == base.KindMap {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	marks := len(dst)
	dst = append(dst, make([]byte, (n+7)/8)...)
	allNull := rng.Intn(8) == 0
	for i := range n {
		part := &t.Fields[0].Type
		switch t.Kind {
		case base.KindStruct:
			part = &t.Fields[i].Type
		case base.KindMap:
			dst = append(dst, keys[i]...)
			part = &t.Fields[1].Type
		}
		if allNull || rng.Intn(4) == 0 {
			dst[marks+i/8] |= 1 << (i % 8)
			continue
		}
		dst = append(dst, one(part)...)
	}
	return dst
}

// Value takes a packed value apart: a slice with one entry a field or element, a pair an entry of a MAP, nil where NULL.
// scalar renders a storage form. b must be a value of the type.
func Value(t *base.Type, b []byte, scalar func(t base.Type, storage []byte) any) any {
	v, _ := value(t, b, scalar)
	return v
}

func value(t *base.Type, b []byte, scalar func(t base.Type, storage []byte) any) (any, []byte) {
	length := func() int {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return int(n)
	}
	n := t.FixedSize()
	switch {
	case !t.Kind.IsNested():
		if n == 0 {
			n = length()
		}
		return scalar(*t, b[:n]), b[n:]
	case t.Kind == base.KindStruct:
		n = len(t.Fields)
	case t.Kind == base.KindArray:
		n = int(t.Length)
	default:
		n = length()
	}
	nulls := b[:(n+7)/8]
	b = b[len(nulls):]
	out := make([]any, n)
	for i := range n {
		part := &t.Fields[0].Type
		var key any
		switch t.Kind {
		case base.KindStruct:
			part = &t.Fields[i].Type
		case base.KindMap:
			key, b = value(part, b, scalar)
			part = &t.Fields[1].Type
		}
		if nulls[i/8]>>(i%8)&1 == 0 {
			out[i], b = value(part, b, scalar)
		}
		if t.Kind == base.KindMap {
			out[i] = []any{key, out[i]}
		}
	}
	return out, b
}
