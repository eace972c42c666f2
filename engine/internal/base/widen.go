package base

// Widens reports whether values of type t are, each exactly, also values of type to: what a column's type may become
// without a rewrite. Files keep the values that they were written with; reads convert them (row.Widen). The order of
// several steps does not matter: what t widens to over another type it widens to at once, with the same result.
func (t Type) Widens(to Type) bool {
	switch {
	case t.Equal(to):
		return true
	case t.integerBits() > 0:
		return t.integerWidens(to)
	}
	switch t.Kind {
	case KindFloat:
		return to.Kind == KindDouble
	case KindDecimal:
		return to.Kind == KindDecimal && to.Scale >= t.Scale && to.Precision-to.Scale >= t.Precision-t.Scale
	case KindTimestampS:
		return to.Kind == KindTimestampMS || to.Kind == KindTimestamp // files hold all three in microseconds
	case KindTimestampMS:
		return to.Kind == KindTimestamp
	case KindDate:
		return to.Kind == KindTimestamp // as far as MinTimestampDay and MaxTimestampDay go
	case KindEnum:
		return to.Kind == KindVarchar || to.Kind == KindEnum && startsWith(to.Labels, t.Labels)
	}
	return false
}

// WidensTo names the kinds that columns of the type may be changed to, for people; empty for none.
func (t Type) WidensTo() string {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindInteger, KindBigInt, KindUTinyInt, KindUSmallInt, KindUInteger, KindUBigInt:
		return "wider integers, DECIMAL with room for all its values, FLOAT and DOUBLE where they are exact, and VARCHAR"
	case KindFloat:
		return "DOUBLE"
	case KindDecimal:
		return "DECIMAL with as many digits or more on both sides of the point"
	case KindTimestampS, KindTimestampMS, KindDate:
		return "TIMESTAMP"
	case KindEnum:
		return "VARCHAR, and ENUM with more labels behind those that there are"
	}
	return ""
}

// integerBits returns the width of the integer types that widen to others; 128-bit ones do not.
func (t Type) integerBits() int {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindInteger, KindBigInt, KindUTinyInt, KindUSmallInt, KindUInteger, KindUBigInt:
		return 8 * t.FixedSize()
	}
	return 0
}

// Signed reports whether an integer type has negative values.
func (t Type) Signed() bool {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindInteger, KindBigInt, KindHugeInt:
		return true
	}
	return false
}

func (t Type) integerWidens(to Type) bool {
	bits := t.integerBits()
	switch to.Kind {
	case KindTinyInt, KindSmallInt, KindInteger, KindBigInt, KindHugeInt:
		return 8*to.FixedSize() > bits
	case KindUTinyInt, KindUSmallInt, KindUInteger, KindUBigInt, KindUHugeInt:
		return !t.Signed() && 8*to.FixedSize() > bits
	case KindFloat:
		return bits <= 16
	case KindDouble:
		return bits <= 32
	case KindDecimal:
		digits := map[int]uint8{8: 3, 16: 5, 32: 10, 64: 19}[bits]
		if bits == 64 && !t.Signed() {
			digits = 20
		}
		return to.Precision-to.Scale >= digits
	case KindVarchar:
		return true
	}
	return false
}

func startsWith(labels, prefix []string) bool {
	if len(labels) < len(prefix) {
		return false
	}
	for i, l := range prefix {
		if labels[i] != l {
			return false
		}
	}
	return true
}

// The days whose midnight is a TIMESTAMP. The extremes of DATE are its infinities, which
// TIMESTAMP has as well.
const (
	MinTimestampDay = -106751991
	MaxTimestampDay = 106751991
)
