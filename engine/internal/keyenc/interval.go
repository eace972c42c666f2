package keyenc

import "math/bits"

const (
	microsPerDay   = 24 * 60 * 60 * 1_000_000
	microsPerMonth = 30 * microsPerDay
)

// Intervals compare by their length in all. DuckDB 1.5 carries whole days into months and compares the three parts in
// turn, which is the same order unless the parts of one interval differ in sign: there '1 month -1 day' is above
// '29 days', here they are one key. A range of an SQL filter on an INTERVAL key must therefore be checked row by row.

// intervalTotal returns an interval's length in microseconds as a two's complement 128-bit integer. It takes 74 bits at
// most.
func intervalTotal(months, days int32, micros int64) (hi, lo uint64) {
	hi, lo = mulInt64(int64(months), microsPerMonth)
	h, l := mulInt64(int64(days), microsPerDay)
	hi, lo = add128(hi, lo, h, l)
	return add128(hi, lo, uint64(micros>>63), uint64(micros))
}

// intervalOfTotal returns the interval of that length with as much as fits in months, then in days. ok is false where no
// interval is so long.
func intervalOfTotal(hi, lo uint64) (months, days int32, micros int64, ok bool) {
	neg := hi>>63 != 0
	if neg {
		hi, lo = negate128(hi, lo)
	}
	if hi >= microsPerMonth { // the quotient would not fit
		return 0, 0, 0, false
	}
	m, d, u, ok := splitTotal(hi, lo, neg)
	if !ok {
		return 0, 0, 0, false
	}
	if neg {
		m, d, u = -m, -d, -u
	}
	return int32(m), int32(d), int64(u), true
}

// splitTotal splits a magnitude; a negative range reaches one further than a positive one.
func splitTotal(hi, lo uint64, neg bool) (m, d, u uint64, ok bool) {
	var extra uint64
	if neg {
		extra = 1
	}
	max32, max64 := uint64(1<<31-1)+extra, uint64(1<<63-1)+extra
	m, _ = bits.Div64(hi, lo, microsPerMonth)
	m = min(m, max32)
	h, l := bits.Mul64(m, microsPerMonth)
	lo, borrow := bits.Sub64(lo, l, 0)
	hi, _ = bits.Sub64(hi, h, borrow)
	if hi >= microsPerDay {
		return 0, 0, 0, false
	}
	d, _ = bits.Div64(hi, lo, microsPerDay)
	d = min(d, max32)
	h, l = bits.Mul64(d, microsPerDay)
	lo, borrow = bits.Sub64(lo, l, 0)
	hi, _ = bits.Sub64(hi, h, borrow)
	return m, d, lo, hi == 0 && lo <= max64
}

func mulInt64(a int64, b uint64) (hi, lo uint64) {
	if a < 0 {
		hi, lo = bits.Mul64(uint64(-a), b)
		return negate128(hi, lo)
	}
	return bits.Mul64(uint64(a), b)
}

func add128(hi, lo, h, l uint64) (uint64, uint64) {
	lo, carry := bits.Add64(lo, l, 0)
	hi, _ = bits.Add64(hi, h, carry)
	return hi, lo
}

func negate128(hi, lo uint64) (uint64, uint64) {
	lo, carry := bits.Add64(^lo, 1, 0)
	return ^hi + carry, lo
}
