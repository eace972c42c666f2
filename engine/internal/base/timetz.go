package base

// A TIMETZ is a time of day with an offset from UTC. It is kept as one int64 that sorts as DuckDB sorts TIMETZ, by the
// instant and then from the most eastern offset to the most western one: above 24 bits that hold MaxOffset - offset
// stands the local time in microseconds plus MaxOffset - offset in microseconds.
const (
	// MaxOffset is the largest offset in seconds east of UTC: 15:59:59; its negative is the smallest.
	MaxOffset     = 16*3600 - 1
	offsetBits    = 24
	offsetMask    = 1<<offsetBits - 1
	microsPerDay  = 24 * 3600 * 1_000_000
	offsetUnits   = 1_000_000
	maxOffsetCode = 2 * MaxOffset
)

// TimeTZ makes a TIMETZ of a local time in microseconds, 0 to 24 hours, and an offset in seconds east of UTC.
func TimeTZ(micros int64, offset int32) Value {
	code := int64(MaxOffset - offset)
	return Int((micros+code*offsetUnits)<<offsetBits | code)
}

// TimeTZParts is the inverse of [TimeTZ]; ok is false where no TIMETZ has the value.
func TimeTZParts(v Value) (micros int64, offset int32, ok bool) {
	code := v.Int64() & offsetMask
	micros = v.Int64()>>offsetBits - code*offsetUnits
	return micros, MaxOffset - int32(code), code <= maxOffsetCode && micros >= 0 && micros <= microsPerDay
}
