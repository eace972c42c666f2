package keyenc

import (
	"bytes"
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
)

// AppendValue appends the encoding of one value that is valid for the type (see [CheckValue]) and not NULL.
func AppendValue(dst []byte, t base.Type, v base.Value) []byte {
	if usesBytes(t.Kind) {
		return AppendStorage(dst, t, v.Bytes)
	}
	var buf [16]byte
	return AppendStorage(dst, t, AppendValueStorage(buf[:0], t, v))
}

// DecodeValue takes one value off the front of an encoded key and returns it with what is left of the key. Bytes may
// alias key. Bytes that no value encodes to give CodeCorruption.
func DecodeValue(t base.Type, key []byte) (v base.Value, rest []byte, err error) {
	if t.IsVariable() {
		// A value without zero bytes stands in the key as it is.
		if i := bytes.IndexByte(key, 0); i >= 0 && i+1 < len(key) && key[i+1] == 0 {
			return base.Value{Bytes: key[:i:i]}, key[i+2:], nil
		}
		b, rest, err := decodeEscaped(nil, key)
		if err != nil {
			return base.Value{}, key, err
		}
		return base.Value{Bytes: b}, rest, nil
	}
	if t.Kind == base.KindFixedBinary {
		n := int(t.Width)
		if len(key) < n {
			return base.Value{}, key, base.Errorf(base.CodeCorruption, "%s takes %d bytes in a key, %d are left", t.Kind, n, len(key))
		}
		return base.Value{Bytes: key[:n:n]}, key[n:], nil
	}
	var buf [16]byte
	b, rest, err := DecodeStorage(buf[:0], t, key)
	if err != nil {
		return base.Value{}, key, err
	}
	return StorageValue(t, b), rest, nil
}

// usesBytes reports whether values of the kind live in Value.Bytes.
func usesBytes(k base.Kind) bool {
	return base.Type{Kind: k}.IsVariable() || k == base.KindFixedBinary
}

// AppendValueStorage appends the storage form (see row.Columns) of a value that is valid for the type and not NULL.
func AppendValueStorage(dst []byte, t base.Type, v base.Value) []byte {
	le := binary.LittleEndian
	if usesBytes(t.Kind) {
		return append(dst, v.Bytes...)
	}
	switch t.Kind {
	case base.KindUUID:
		return append128(dst, v.Hi, v.Lo)
	case base.KindInterval:
		dst = le.AppendUint32(dst, uint32(v.Hi>>32))
		dst = le.AppendUint32(dst, uint32(v.Hi))
		return le.AppendUint64(dst, v.Lo)
	}
	switch t.FixedSize() {
	case 1:
		return append(dst, byte(v.Lo))
	case 2:
		return le.AppendUint16(dst, uint16(v.Lo))
	case 4:
		return le.AppendUint32(dst, uint32(v.Lo))
	case 8:
		return le.AppendUint64(dst, v.Lo)
	}
	return le.AppendUint64(le.AppendUint64(dst, v.Lo), v.Hi)
}

// StorageValue returns the value whose storage form is given, which must be as long as the type's. Bytes alias storage.
func StorageValue(t base.Type, storage []byte) base.Value {
	le := binary.LittleEndian
	if usesBytes(t.Kind) {
		return base.Value{Bytes: storage}
	}
	switch t.Kind {
	case base.KindBoolean, base.KindUTinyInt:
		return base.Uint(uint64(storage[0]))
	case base.KindTinyInt:
		return base.Int(int64(int8(storage[0])))
	case base.KindSmallInt:
		return base.Int(int64(int16(le.Uint16(storage))))
	case base.KindUSmallInt:
		return base.Uint(uint64(le.Uint16(storage)))
	case base.KindInteger, base.KindDate:
		return base.Int(int64(int32(le.Uint32(storage))))
	case base.KindUInteger, base.KindEnum, base.KindFloat:
		return base.Uint(uint64(le.Uint32(storage)))
	case base.KindUBigInt, base.KindDouble:
		return base.Uint(le.Uint64(storage))
	case base.KindInterval:
		return base.Value{Hi: uint64(le.Uint32(storage))<<32 | uint64(le.Uint32(storage[4:])), Lo: le.Uint64(storage[8:])}
	case base.KindUUID:
		return base.Value{Hi: binary.BigEndian.Uint64(storage), Lo: binary.BigEndian.Uint64(storage[8:])}
	}
	// Signed integers of 4, 8 and 16 bytes, and UHUGEINT, whose halves are the same.
	switch len(storage) {
	case 4:
		return base.Int(int64(int32(le.Uint32(storage))))
	case 8:
		return base.Int(int64(le.Uint64(storage)))
	}
	return base.Value{Lo: le.Uint64(storage), Hi: le.Uint64(storage[8:])}
}
