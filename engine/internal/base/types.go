// Package base is the floor of the engine: column types, the table schema, errors and the limits that everything
// else is written against. It imports nothing of the engine.
package base

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the logical kind of a column. The numbers are stored (schema JSON carries the names, the C ABI carries the
// numbers), so they are never renumbered.
type Kind uint8

// The kinds, in the words of DuckDB's type names.
const (
	KindInvalid     Kind = iota
	KindBoolean          // one byte, 0 or 1
	KindTinyInt          // int8
	KindSmallInt         // int16
	KindInteger          // int32
	KindBigInt           // int64
	KindHugeInt          // two's complement 128-bit integer
	KindUTinyInt         // uint8
	KindUSmallInt        // uint16
	KindUInteger         // uint32
	KindUBigInt          // uint64
	KindUHugeInt         // unsigned 128-bit integer
	KindFloat            // IEEE 754 binary32
	KindDouble           // IEEE 754 binary64
	KindDecimal          // scaled two's complement integer of Precision digits
	KindVarchar          // UTF-8
	KindBlob             // bytes
	KindDate             // int32 days since 1970-01-01; the extremes are -infinity and infinity
	KindTime             // int64 microseconds since midnight, 24:00:00 included
	KindTimestampS       // int64 seconds since the epoch, no time zone
	KindTimestampMS      // int64 milliseconds
	KindTimestamp        // int64 microseconds
	KindTimestampNS      // int64 nanoseconds
	KindTimestampTZ      // int64 microseconds since the epoch, UTC
	KindInterval         // months int32, days int32, microseconds int64
	KindUUID             // 16 bytes, big-endian as printed
	KindBit              // DuckDB's bit string: one byte with the count of padding bits, then the bits
	KindEnum             // uint32 index into Labels
	KindFixedBinary      // exactly Width bytes (the C ABI's FixedLenBytes)
	KindJSON             // UTF-8 that SQL hosts take for JSON; its syntax is their affair
	KindTimeTZ           // int64: see TimeTZ
	KindTimeNS           // int64 nanoseconds since midnight, 24:00:00 included
	KindBignum           // DuckDB's integer of any length: 3 bytes of header, then the number; sorts by its bytes
	KindStruct           // Fields, in order
	KindList             // any number of Fields[0]
	KindArray            // Length values of Fields[0]
	KindMap              // pairs of Fields[0], which is never NULL, and Fields[1], in the order given
	kindEnd
)

var kindNames = [kindEnd]string{
	"INVALID", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
	"UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP_S",
	"TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "UUID", "BIT", "ENUM",
	"FIXED_BINARY", "JSON", "TIME WITH TIME ZONE", "TIME_NS", "BIGNUM", "STRUCT", "LIST", "ARRAY", "MAP",
}

// String returns the type's name as DuckDB prints it, without parameters.
func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return "KIND(" + strconv.Itoa(int(k)) + ")"
}

// KindByName is the inverse of [Kind.String]; ok is false for an unknown name.
func KindByName(name string) (k Kind, ok bool) {
	for i, n := range kindNames {
		if i != 0 && n == name {
			return Kind(i), true
		}
	}
	return KindInvalid, false
}

// Type is a column's full type: its kind and the parameters that the kind needs.
type Type struct {
	Kind Kind
	// Precision and Scale are a DECIMAL's: 1 <= Precision <= 38, 0 <= Scale <= Precision.
	Precision, Scale uint8
	// Width is a FIXED_BINARY's length in bytes, 1 to MaxFixedWidth.
	Width int32
	// Labels are an ENUM's, in order; the value is the index. At most MaxEnumLabels, distinct.
	Labels []string
	// Fields are what values of a nested type are made of: a STRUCT's fields, the "element" of a LIST or an ARRAY, the
	// "key" and the "value" of a MAP. All but a key may be NULL.
	Fields []Field
	// Length is how many elements each value of an ARRAY has, 1 to MaxArrayLength.
	Length int32
}

// FixedSize returns how many bytes a value takes in the row codec and in columnar buffers, or 0 for types of variable
// length (see IsVariable). A DECIMAL takes 4, 8 or 16 bytes by its precision (9, 18, 38), an ENUM always 4.
func (t Type) FixedSize() int {
	switch t.Kind {
	case KindBoolean, KindTinyInt, KindUTinyInt:
		return 1
	case KindSmallInt, KindUSmallInt:
		return 2
	case KindInteger, KindUInteger, KindFloat, KindDate, KindEnum:
		return 4
	case KindBigInt, KindUBigInt, KindDouble, KindTime, KindTimestampS, KindTimestampMS, KindTimestamp,
		KindTimestampNS, KindTimestampTZ, KindTimeTZ, KindTimeNS:
		return 8
	case KindHugeInt, KindUHugeInt, KindInterval, KindUUID:
		return 16
	case KindDecimal:
		switch {
		case t.Precision <= 9:
			return 4
		case t.Precision <= 18:
			return 8
		}
		return 16
	case KindFixedBinary:
		return int(t.Width)
	}
	return 0
}

// IsVariable reports whether values of the type have no fixed size. Values of nested types are among them: as a whole
// they are bytes, see package row.
func (t Type) IsVariable() bool {
	switch t.Kind {
	case KindVarchar, KindBlob, KindBit, KindJSON, KindBignum:
		return true
	}
	return t.Kind.IsNested()
}

// Equal reports whether both types hold the same values in the same form.
func (t Type) Equal(o Type) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale || t.Width != o.Width ||
		t.Length != o.Length || !slices.Equal(t.Labels, o.Labels) {
		return false
	}
	return slices.EqualFunc(t.Fields, o.Fields, func(a, b Field) bool { return a.Name == b.Name && a.Type.Equal(b.Type) })
}

// String renders the type for people: DECIMAL(18,3), ENUM('a', 'b').
func (t Type) String() string {
	switch t.Kind {
	case KindDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case KindFixedBinary:
		return fmt.Sprintf("FIXED_BINARY(%d)", t.Width)
	case KindEnum:
		quoted := make([]string, len(t.Labels))
		for i, l := range t.Labels {
			quoted[i] = "'" + strings.ReplaceAll(l, "'", "''") + "'"
		}
		return "ENUM(" + strings.Join(quoted, ", ") + ")"
	case KindStruct, KindList, KindArray, KindMap:
		return t.nestedString()
	}
	return t.Kind.String()
}

// Validate checks the parameters; the error names what is wrong.
func (t Type) Validate() error {
	switch {
	case t.Kind == KindInvalid || t.Kind >= kindEnd:
		return Errorf(CodeInvalidArgument, "unknown column type %d", t.Kind)
	case t.Kind == KindDecimal && (t.Precision < 1 || t.Precision > 38 || t.Scale > t.Precision):
		return Errorf(CodeInvalidArgument, "DECIMAL(%d,%d): precision is 1 to 38, scale 0 to precision", t.Precision, t.Scale)
	case t.Kind == KindFixedBinary && (t.Width < 1 || t.Width > MaxFixedWidth):
		return Errorf(CodeInvalidArgument, "FIXED_BINARY(%d): the length is 1 to %d", t.Width, MaxFixedWidth)
	case t.Kind == KindEnum:
		if len(t.Labels) == 0 || len(t.Labels) > MaxEnumLabels {
			return Errorf(CodeInvalidArgument, "ENUM with %d labels: 1 to %d are allowed", len(t.Labels), MaxEnumLabels)
		}
		seen := make(map[string]struct{}, len(t.Labels))
		for _, l := range t.Labels {
			if _, dup := seen[l]; dup {
				return Errorf(CodeInvalidArgument, "ENUM label %q stands twice", l)
			}
			seen[l] = struct{}{}
		}
	}
	if t.Kind.IsNested() || len(t.Fields) > 0 || t.Length != 0 {
		return t.validateNested()
	}
	return nil
}
