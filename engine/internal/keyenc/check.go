package keyenc

import (
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/merutable/merutable/engine/internal/base"
)

const (
	// MaxTimestampS is the largest finite TIMESTAMP_S in seconds that microseconds can express; its negative is the
	// smallest.
	MaxTimestampS = math.MaxInt64 / 1_000_000
	// MaxTimestampMS is the same for a TIMESTAMP_MS in milliseconds.
	MaxTimestampMS = math.MaxInt64 / 1_000
	// MaxTime is the largest TIME in microseconds: 24:00:00.
	MaxTime = microsPerDay
)

// CheckValue reports, as a CodeInvalidArgument, why a type cannot hold a value that is not NULL: out of the integer's
// range, too many digits for the DECIMAL, no such ENUM label, a TIMESTAMP_S or TIMESTAMP_MS beyond what microseconds can
// express, a time outside 00:00:00 to 24:00:00, invalid UTF-8, a malformed BIT or BIGNUM, a FIXED_BINARY of another
// length. Of nested types it checks nothing: package row does.
func CheckValue(t base.Type, v base.Value) error {
	switch t.Kind {
	case base.KindBoolean:
		return checkUnsigned(t, v.Lo, 1)
	case base.KindTinyInt:
		return checkSigned(t, v, 8)
	case base.KindSmallInt:
		return checkSigned(t, v, 16)
	case base.KindInteger, base.KindDate:
		return checkSigned(t, v, 32)
	case base.KindUTinyInt:
		return checkUnsigned(t, v.Lo, math.MaxUint8)
	case base.KindUSmallInt:
		return checkUnsigned(t, v.Lo, math.MaxUint16)
	case base.KindUInteger, base.KindFloat:
		return checkUnsigned(t, v.Lo, math.MaxUint32)
	case base.KindEnum:
		if v.Lo >= uint64(len(t.Labels)) {
			return base.Errorf(base.CodeInvalidArgument, "label index %d: the ENUM has %d labels", v.Lo, len(t.Labels))
		}
	case base.KindTime:
		if v.Lo > MaxTime {
			return base.Errorf(base.CodeInvalidArgument, "TIME of %d microseconds is not within 0 to %d", v.Int64(), int64(MaxTime))
		}
	case base.KindTimeNS:
		if v.Lo > MaxTime*1000 {
			return base.Errorf(base.CodeInvalidArgument, "TIME_NS of %d nanoseconds is not within 0 to %d", v.Int64(), int64(MaxTime*1000))
		}
	case base.KindTimeTZ:
		if _, _, ok := base.TimeTZParts(v); !ok {
			return base.Errorf(base.CodeInvalidArgument, "%d is no TIMETZ", v.Int64())
		}
	case base.KindTimestampS:
		return checkTimestamp(t, v.Int64(), MaxTimestampS)
	case base.KindTimestampMS:
		return checkTimestamp(t, v.Int64(), MaxTimestampMS)
	case base.KindDecimal:
		return checkDecimal(t, v)
	case base.KindVarchar, base.KindJSON:
		if !utf8.Valid(v.Bytes) {
			return base.Errorf(base.CodeInvalidArgument, "%s of %d bytes is not valid UTF-8", t.Kind, len(v.Bytes))
		}
	case base.KindBignum:
		return checkBignum(v.Bytes)
	case base.KindBit:
		return checkBit(v.Bytes)
	case base.KindFixedBinary:
		if len(v.Bytes) != int(t.Width) {
			return base.Errorf(base.CodeInvalidArgument, "%d bytes for a %s", len(v.Bytes), t)
		}
	}
	return nil
}

func checkUnsigned(t base.Type, lo, limit uint64) error {
	if lo > limit {
		return base.Errorf(base.CodeInvalidArgument, "value %d is out of the range of %s: the limit is %d", lo, t, limit)
	}
	return nil
}

func checkSigned(t base.Type, v base.Value, width uint) error {
	i := v.Int64()
	if shift := 64 - width; i<<shift>>shift != i {
		return base.Errorf(base.CodeInvalidArgument, "value %d is out of the range of %s", i, t)
	}
	return nil
}

// checkTimestamp lets the infinities pass: they are the extremes of int64 in every unit.
func checkTimestamp(t base.Type, i, limit int64) error {
	if i > limit && i != math.MaxInt64 || i < -limit && i != -math.MaxInt64 {
		return base.Errorf(base.CodeInvalidArgument, "%s %d is out of the range of microseconds: the limits are -%d and %d", t, i, limit, limit)
	}
	return nil
}

func checkDecimal(t base.Type, v base.Value) error {
	hi := v.Hi
	if t.FixedSize() <= 8 {
		hi = uint64(v.Int64() >> 63)
	}
	if !FitsDecimal(hi, v.Lo, t.Precision) {
		return base.Errorf(base.CodeInvalidArgument, "the value has more than %d digits: it does not fit %s", t.Precision, t)
	}
	return nil
}

// FitsDecimal reports whether a two's complement 128-bit integer has at most precision digits (up to 38).
func FitsDecimal(hi, lo uint64, precision uint8) bool {
	if int64(hi) < 0 {
		hi, lo = negate128(hi, lo)
	}
	limit := &powersOf10[precision]
	return hi < limit.hi || hi == limit.hi && lo < limit.lo
}

// powersOf10 has 10 to the power of each precision of a DECIMAL.
var powersOf10 = func() (p [39]struct{ hi, lo uint64 }) {
	p[0].lo = 1
	for i := 1; i < len(p); i++ {
		carry, lo := bits.Mul64(p[i-1].lo, 10)
		p[i].hi, p[i].lo = p[i-1].hi*10+carry, lo
	}
	return p
}()

// checkBignum checks DuckDB's form: 3 bytes, of which the highest bit is set for a number that is not negative and the
// rest is the count of bytes of the number, all bits flipped for a negative one; then these bytes, one at least.
func checkBignum(b []byte) error {
	const header = 3
	if len(b) <= header {
		return base.Errorf(base.CodeInvalidArgument, "a BIGNUM has %d bytes: %d is the least", len(b), header+1)
	}
	n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if n&(1<<23) == 0 {
		n = ^n & (1<<24 - 1)
	}
	if n &= 1<<23 - 1; n != len(b)-header {
		return base.Errorf(base.CodeInvalidArgument, "a BIGNUM of %d bytes says that it has %d", len(b), n+header)
	}
	return nil
}

// checkBit checks DuckDB's form: a byte that counts the padding bits, then whole bytes, the padding at the front of the
// first one and set to 1. The empty bit string is the single byte 0.
func checkBit(b []byte) error {
	switch {
	case len(b) == 0:
		return base.Errorf(base.CodeInvalidArgument, "a BIT has 0 bytes: its count of padding bits is missing")
	case b[0] > 7 || b[0] > 0 && len(b) == 1:
		return base.Errorf(base.CodeInvalidArgument, "a BIT of %d bytes says that it has %d padding bits", len(b), b[0])
	case b[0] > 0 && b[1]>>(8-b[0]) != 1<<b[0]-1:
		return base.Errorf(base.CodeInvalidArgument, "the %d padding bits of a BIT are not all 1", b[0])
	}
	return nil
}
