package keyenc

import (
	"bytes"
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
)

const (
	sign16 = 1 << 15
	sign32 = 1 << 31
	sign64 = 1 << 63

	nan32 = 0x7fc00000
	inf32 = 0x7f800000
	nan64 = 0x7ff8000000000000
	inf64 = 0x7ff0000000000000
)

// AppendStorage appends the encoding of one value in storage form (see row.Columns) to dst. The value must be a valid
// one of the type. It allocates only where dst must grow.
func AppendStorage(dst []byte, t base.Type, storage []byte) []byte {
	be, le := binary.BigEndian, binary.LittleEndian
	switch t.Kind {
	case base.KindBoolean, base.KindUTinyInt:
		return append(dst, storage[0])
	case base.KindTinyInt:
		return append(dst, storage[0]^0x80)
	case base.KindSmallInt:
		return be.AppendUint16(dst, le.Uint16(storage)^sign16)
	case base.KindUSmallInt:
		return be.AppendUint16(dst, le.Uint16(storage))
	case base.KindInteger, base.KindDate:
		return be.AppendUint32(dst, le.Uint32(storage)^sign32)
	case base.KindUInteger, base.KindEnum:
		return be.AppendUint32(dst, le.Uint32(storage))
	case base.KindBigInt, base.KindTime, base.KindTimestampS, base.KindTimestampMS, base.KindTimestamp,
		base.KindTimestampNS, base.KindTimestampTZ, base.KindTimeTZ, base.KindTimeNS:
		return be.AppendUint64(dst, le.Uint64(storage)^sign64)
	case base.KindUBigInt:
		return be.AppendUint64(dst, le.Uint64(storage))
	case base.KindFloat:
		return be.AppendUint32(dst, floatKey32(le.Uint32(storage)))
	case base.KindDouble:
		return be.AppendUint64(dst, floatKey64(le.Uint64(storage)))
	case base.KindDecimal:
		switch len(storage) {
		case 4:
			return be.AppendUint32(dst, le.Uint32(storage)^sign32)
		case 8:
			return be.AppendUint64(dst, le.Uint64(storage)^sign64)
		}
		return append128(dst, le.Uint64(storage[8:])^sign64, le.Uint64(storage))
	case base.KindHugeInt:
		return append128(dst, le.Uint64(storage[8:])^sign64, le.Uint64(storage))
	case base.KindUHugeInt:
		return append128(dst, le.Uint64(storage[8:]), le.Uint64(storage))
	case base.KindInterval:
		hi, lo := intervalTotal(int32(le.Uint32(storage)), int32(le.Uint32(storage[4:])), int64(le.Uint64(storage[8:])))
		return append128(dst, hi^sign64, lo)
	case base.KindUUID, base.KindFixedBinary:
		return append(dst, storage...)
	}
	return appendEscaped(dst, storage)
}

// DecodeStorage takes one value off the front of an encoded key, appends its storage form to dst and returns dst and
// what is left of the key. It is the inverse of [AppendStorage] up to equal values: the interval, zero or NaN that comes
// back is the canonical one. Bytes that no value encodes to give CodeCorruption.
func DecodeStorage(dst []byte, t base.Type, key []byte) (out, rest []byte, err error) {
	if t.IsVariable() {
		return decodeEscaped(dst, key)
	}
	n := t.FixedSize()
	if n == 0 || len(key) < n {
		return dst, key, base.Errorf(base.CodeCorruption, "%s takes %d bytes in a key, %d are left", t.Kind, n, len(key))
	}
	be, le := binary.BigEndian, binary.LittleEndian
	k, rest := key[:n], key[n:]
	switch t.Kind {
	case base.KindBoolean:
		if k[0] > 1 {
			return dst, key, base.Errorf(base.CodeCorruption, "byte %d is no BOOLEAN in a key", k[0])
		}
		return append(dst, k[0]), rest, nil
	case base.KindFloat:
		bits := floatBits32(be.Uint32(k))
		if floatKey32(bits) != be.Uint32(k) {
			return dst, key, base.Errorf(base.CodeCorruption, "%x is no FLOAT in a key", k)
		}
		return le.AppendUint32(dst, bits), rest, nil
	case base.KindDouble:
		bits := floatBits64(be.Uint64(k))
		if floatKey64(bits) != be.Uint64(k) {
			return dst, key, base.Errorf(base.CodeCorruption, "%x is no DOUBLE in a key", k)
		}
		return le.AppendUint64(dst, bits), rest, nil
	case base.KindEnum:
		if i := be.Uint32(k); int64(i) >= int64(len(t.Labels)) {
			return dst, key, base.Errorf(base.CodeCorruption, "label %d in a key: the ENUM has %d", i, len(t.Labels))
		}
	case base.KindInterval:
		months, days, micros, ok := intervalOfTotal(be.Uint64(k)^sign64, be.Uint64(k[8:]))
		if !ok {
			return dst, key, base.Errorf(base.CodeCorruption, "%x is no INTERVAL in a key", k)
		}
		dst = le.AppendUint32(dst, uint32(months))
		dst = le.AppendUint32(dst, uint32(days))
		return le.AppendUint64(dst, uint64(micros)), rest, nil
	case base.KindUUID, base.KindFixedBinary:
		return append(dst, k...), rest, nil
	}
	// The rest are integers: turn the bytes around and flip the sign back, which then is in the last byte.
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, k[i])
	}
	if signed(t.Kind) {
		dst[len(dst)-1] ^= 0x80
	}
	return dst, rest, nil
}

func signed(k base.Kind) bool {
	switch k {
	case base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt, base.KindUHugeInt, base.KindEnum:
		return false
	}
	return true
}

func append128(dst []byte, hi, lo uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, hi), lo)
}

func floatKey32(bits uint32) uint32 {
	switch {
	case bits&^sign32 > inf32: // any NaN
		bits = nan32
	case bits == sign32: // -0.0
		bits = 0
	}
	if bits&sign32 != 0 {
		return ^bits
	}
	return bits | sign32
}

func floatBits32(key uint32) uint32 {
	if key&sign32 != 0 {
		return key &^ sign32
	}
	return ^key
}

func floatKey64(bits uint64) uint64 {
	switch {
	case bits&^sign64 > inf64: // any NaN
		bits = nan64
	case bits == sign64: // -0.0
		bits = 0
	}
	if bits&sign64 != 0 {
		return ^bits
	}
	return bits | sign64
}

func floatBits64(key uint64) uint64 {
	if key&sign64 != 0 {
		return key &^ sign64
	}
	return ^key
}

// appendEscaped appends bytes of any length: 00 becomes 00 FF, and 00 00 ends the value. As 00 00 is below 00 FF and
// below every byte that is not 00, a value stands before all that it is a prefix of.
func appendEscaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, b[:i+1]...), 0xff)
		b = b[i+1:]
	}
	return append(append(dst, b...), 0, 0)
}

// MaxEscaped returns how many bytes a value of n bytes of a type of variable length takes at most in a key.
func MaxEscaped(n int) int { return 2*n + 2 }

func decodeEscaped(dst, key []byte) (out, rest []byte, err error) {
	start, b := len(dst), key
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 == len(b) {
			return dst[:start], key, base.Errorf(base.CodeCorruption, "a value of variable length in a key has no end within %d bytes", len(key))
		}
		switch b[i+1] {
		case 0:
			return append(dst, b[:i]...), b[i+2:], nil
		case 0xff:
			dst = append(dst, b[:i+1]...)
			b = b[i+2:]
		default:
			return dst[:start], key, base.Errorf(base.CodeCorruption, "byte 00 is followed by %02x in a key", b[i+1])
		}
	}
}
