package base

import "math"

// Value is one value of any column type, as the row APIs pass it. Which fields count depends on the column's kind:
//
//   - BOOLEAN: Lo is 0 or 1.
//   - signed integers, DATE, TIME, the TIMESTAMP family, DECIMAL up to 18 digits: Lo is the two's complement int64.
//   - unsigned integers up to 64 bits, ENUM (the label's index): Lo.
//   - HUGEINT, UHUGEINT, DECIMAL above 18 digits: Hi and Lo are the upper and lower half.
//   - FLOAT: Lo holds the 32 bits of the IEEE form; DOUBLE: its 64 bits.
//   - INTERVAL: Hi is months<<32 | uint32(days), Lo the microseconds.
//   - UUID: Hi and Lo are the first and last 8 bytes, read big-endian.
//   - TIMETZ: Lo is the int64 of TimeTZ; TIME_NS: Lo is the int64 of nanoseconds.
//   - VARCHAR, JSON, BLOB, BIT, BIGNUM, FIXED_BINARY: Bytes.
//   - nested types: Bytes, the value in packed form (package row).
type Value struct {
	Null   bool
	Lo, Hi uint64
	Bytes  []byte
}

// Null is the NULL of every type.
func Null() Value { return Value{Null: true} }

// Bool makes a BOOLEAN.
func Bool(b bool) Value {
	if b {
		return Value{Lo: 1}
	}
	return Value{}
}

// Int makes a value of any type whose Lo is an int64; the upper half is sign-extended, so it serves HUGEINT and wide
// DECIMALs too.
func Int(i int64) Value { return Value{Lo: uint64(i), Hi: uint64(i >> 63)} }

// Uint makes a value of any unsigned type.
func Uint(u uint64) Value { return Value{Lo: u} }

// Float makes a FLOAT.
func Float(f float32) Value { return Value{Lo: uint64(math.Float32bits(f))} }

// Double makes a DOUBLE.
func Double(f float64) Value { return Value{Lo: math.Float64bits(f)} }

// String makes a VARCHAR.
func String(s string) Value { return Value{Bytes: []byte(s)} }

// Bytes makes a BLOB, BIT or FIXED_BINARY. The slice is borrowed.
func Bytes(b []byte) Value { return Value{Bytes: b} }

// Int64 returns Lo as a signed integer.
func (v Value) Int64() int64 { return int64(v.Lo) }
