package row

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/merutable/merutable/engine/internal/base"
)

// Widen turns a value in storage form into the same value of a wider type. It appends it to dst.
type Widen func(dst, value []byte) []byte

// NewWiden returns the conversion from one type to another that it widens to (base.Type.Widens), nil where the storage
// form stays the same.
func NewWiden(from, to base.Type) Widen {
	if from.Kind == to.Kind && from.Kind != base.KindDecimal {
		return nil // ENUM: the labels that there were keep their places
	}
	switch from.Kind {
	case base.KindFloat:
		return func(dst, v []byte) []byte {
			f := math.Float32frombits(binary.LittleEndian.Uint32(v))
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(f)))
		}
	case base.KindDecimal:
		return widenDecimal(from, to)
	case base.KindTimestampS, base.KindTimestampMS:
		return widenTimestamp(from, to)
	case base.KindDate:
		return widenDate
	case base.KindEnum:
		return func(dst, v []byte) []byte { return append(dst, from.Labels[binary.LittleEndian.Uint32(v)]...) }
	}
	return widenInteger(from, to)
}

// int128 is a two's complement integer.
type int128 struct{ hi, lo uint64 }

// integerOf reads an integer of 1 to 16 bytes.
func integerOf(v []byte, signed bool) (x int128) {
	if len(v) == 16 {
		return int128{binary.LittleEndian.Uint64(v[8:]), binary.LittleEndian.Uint64(v)}
	}
	for i := len(v) - 1; i >= 0; i-- {
		x.lo = x.lo<<8 | uint64(v[i])
	}
	if signed {
		shift := 64 - 8*len(v)
		x.lo = uint64(int64(x.lo<<shift) >> shift)
		x.hi = uint64(int64(x.lo) >> 63)
	}
	return x
}

func (x int128) append(dst []byte, size int) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], x.lo)
	binary.LittleEndian.PutUint64(b[8:], x.hi)
	return append(dst, b[:size]...)
}

// scaled returns x times ten to the n-th. It does not overflow where the type is wide enough.
func (x int128) scaled(n uint8) int128 {
	for range n {
		hi, lo := bits.Mul64(x.lo, 10)
		x = int128{x.hi*10 + hi, lo}
	}
	return x
}

func widenInteger(from, to base.Type) Widen {
	signed, size := from.Signed(), to.FixedSize()
	switch to.Kind {
	case base.KindVarchar:
		return func(dst, v []byte) []byte {
			if x := integerOf(v, signed); signed {
				return strconv.AppendInt(dst, int64(x.lo), 10)
			} else {
				return strconv.AppendUint(dst, x.lo, 10)
			}
		}
	case base.KindFloat:
		return func(dst, v []byte) []byte {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(int64(integerOf(v, signed).lo))))
		}
	case base.KindDouble:
		return func(dst, v []byte) []byte {
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(int64(integerOf(v, signed).lo))))
		}
	case base.KindDecimal:
		return func(dst, v []byte) []byte { return integerOf(v, signed).scaled(to.Scale).append(dst, size) }
	}
	return func(dst, v []byte) []byte { return integerOf(v, signed).append(dst, size) }
}

func widenDecimal(from, to base.Type) Widen {
	size, shift := to.FixedSize(), to.Scale-from.Scale
	if size == from.FixedSize() && shift == 0 {
		return nil
	}
	return func(dst, v []byte) []byte { return integerOf(v, true).scaled(shift).append(dst, size) }
}

func widenTimestamp(from, to base.Type) Widen {
	factor := int64(1000)
	if from.Kind == base.KindTimestampS && to.Kind == base.KindTimestamp {
		factor = 1_000_000
	}
	return func(dst, v []byte) []byte {
		t := int64(binary.LittleEndian.Uint64(v))
		if t != math.MaxInt64 && t != -math.MaxInt64 {
			t *= factor
		}
		return binary.LittleEndian.AppendUint64(dst, uint64(t))
	}
}

// widenDate makes what is beyond TIMESTAMP, which only rows that are deleted can be, infinite.
func widenDate(dst, v []byte) []byte {
	t := int64(0)
	switch day := int32(binary.LittleEndian.Uint32(v)); {
	case day > base.MaxTimestampDay:
		t = math.MaxInt64
	case day < base.MinTimestampDay:
		t = -math.MaxInt64
	default:
		t = int64(day) * 86_400_000_000
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(t))
}

// AppendWidened appends the first n values of c, converted, to out, which has rows rows.
func (c *Column) AppendWidened(out *Column, rows, n int, widen Widen) {
	if c.Nulls != nil && slices.Contains(c.Nulls[:n], true) {
		if out.Nulls == nil {
			out.Nulls = make([]bool, rows, rows+n)
		}
		out.Nulls = append(out.Nulls, c.Nulls[:n]...)
	} else if out.Nulls != nil {
		out.Nulls = append(out.Nulls, make([]bool, n)...)
	}
	size := out.Type.FixedSize()
	for i := range n {
		null := c.IsNull(i)
		switch {
		case size == 0:
			if !null {
				out.Data = appendWidened(out.Data, c.Storage(i), widen)
			}
			out.Offsets = append(out.Offsets, int64(len(out.Data)))
		case null:
			at := len(out.Fixed)
			out.Fixed = slices.Grow(out.Fixed, size)[:at+size]
			clear(out.Fixed[at:])
		default:
			out.Fixed = appendWidened(out.Fixed, c.Storage(i), widen)
		}
	}
}

func appendWidened(dst, value []byte, widen Widen) []byte {
	if widen == nil {
		return append(dst, value...)
	}
	return widen(dst, value)
}
