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
	var dst []byte
	n := rng.Intn(5)
	switch {
	case t.Kind == base.KindStruct:
		n = len(t.Fields)
	case t.Kind == base.KindArray:
		n = int(t.Length)
	case rng.Intn(200) == 0:
		n = 300
	}
	if t.Kind == base.KindList || t.Kind == base.KindMap {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	marks := len(dst)
	dst = append(dst, make([]byte, (n+7)/8)...)
	one := func(t *base.Type) {
		switch {
		case t.Kind.IsNested():
			dst = append(dst, Packed(rng, t, scalar)...)
		case t.IsVariable():
			v := scalar(*t)
			dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
		default:
			dst = append(dst, scalar(*t)...)
		}
	}
	allNull := rng.Intn(8) == 0
	for i := range n {
		part := &t.Fields[0].Type
		switch t.Kind {
		case base.KindStruct:
			part = &t.Fields[i].Type
		case base.KindMap:
			one(part)
			part = &t.Fields[1].Type
		}
		if allNull || rng.Intn(4) == 0 {
			dst[marks+i/8] |= 1 << (i % 8)
			continue
		}
		one(part)
	}
	return dst
}
