package row

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/merutable/merutable/engine/internal/base"
)

// Keys of the metadata that every field of an Arrow schema carries, and Arrow's own.
const (
	typeMetadataKey      = "merutable.type"
	fieldIDMetadataKey   = "merutable.field_id"
	extensionNameKey     = "ARROW:extension:name"
	extensionMetadataKey = "ARROW:extension:metadata"
	uuidExtension        = "arrow.uuid"
)

// ArrowSchema returns the Arrow types of the projected columns, in that order; nil means all columns. Kinds that Arrow
// has no type for are FixedSizeBinary(16) (HUGEINT, UHUGEINT, INTERVAL) or Binary (BIT) in file form (see
// [AppendFileForm]); BIGNUM is Binary, TIMETZ is Int64 (see base.TimeTZ), JSON is Utf8; nested types are Arrow's own, of
// these; ENUM is Utf8 with the labels; UUID is FixedSizeBinary(16), marked as the extension arrow.uuid. The
// metadata of a field has the SQL type and the field id.
func ArrowSchema(s *base.Schema, projection []int) *arrow.Schema {
	projection = projectionOf(s, projection)
	fields := make([]arrow.Field, len(projection))
	for i, p := range projection {
		c := &s.Columns[p]
		fields[i] = arrowField(c.Name, c.Type, c.Nullable, c.FieldID)
	}
	return arrow.NewSchema(fields, nil)
}

func arrowField(name string, t base.Type, nullable bool, id int32) arrow.Field {
	keys := []string{typeMetadataKey, fieldIDMetadataKey}
	vals := []string{t.String(), strconv.Itoa(int(id))}
	if t.Kind == base.KindUUID {
		keys = append(keys, extensionNameKey, extensionMetadataKey)
		vals = append(vals, uuidExtension, "")
	}
	return arrow.Field{Name: name, Type: arrowType(t), Nullable: nullable, Metadata: arrow.NewMetadata(keys, vals)}
}

// arrowType returns the Arrow type that ToArrow makes and that FromArrow expects first of all.
func arrowType(t base.Type) arrow.DataType {
	switch t.Kind {
	case base.KindBoolean:
		return arrow.FixedWidthTypes.Boolean
	case base.KindTinyInt:
		return arrow.PrimitiveTypes.Int8
	case base.KindSmallInt:
		return arrow.PrimitiveTypes.Int16
	case base.KindInteger:
		return arrow.PrimitiveTypes.Int32
	case base.KindBigInt:
		return arrow.PrimitiveTypes.Int64
	case base.KindUTinyInt:
		return arrow.PrimitiveTypes.Uint8
	case base.KindUSmallInt:
		return arrow.PrimitiveTypes.Uint16
	case base.KindUInteger:
		return arrow.PrimitiveTypes.Uint32
	case base.KindUBigInt:
		return arrow.PrimitiveTypes.Uint64
	case base.KindFloat:
		return arrow.PrimitiveTypes.Float32
	case base.KindDouble:
		return arrow.PrimitiveTypes.Float64
	case base.KindDecimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case base.KindVarchar, base.KindEnum, base.KindJSON:
		return arrow.BinaryTypes.String
	case base.KindBlob, base.KindBit, base.KindBignum:
		return arrow.BinaryTypes.Binary
	case base.KindTimeTZ:
		return arrow.PrimitiveTypes.Int64
	case base.KindTimeNS:
		return arrow.FixedWidthTypes.Time64ns
	case base.KindStruct, base.KindList, base.KindArray, base.KindMap:
		return nestedArrowType(t)
	case base.KindDate:
		return arrow.FixedWidthTypes.Date32
	case base.KindTime:
		return arrow.FixedWidthTypes.Time64us
	case base.KindTimestampS:
		return &arrow.TimestampType{Unit: arrow.Second}
	case base.KindTimestampMS:
		return &arrow.TimestampType{Unit: arrow.Millisecond}
	case base.KindTimestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case base.KindTimestampNS:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case base.KindTimestampTZ:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case base.KindFixedBinary:
		return &arrow.FixedSizeBinaryType{ByteWidth: int(t.Width)}
	}
	return &arrow.FixedSizeBinaryType{ByteWidth: 16} // HUGEINT, UHUGEINT, INTERVAL, UUID
}

// fileForm reports whether Arrow holds the kind in a form of ours that differs from the storage form.
func fileForm(k base.Kind) bool {
	return k == base.KindHugeInt || k == base.KindUHugeInt || k == base.KindInterval
}

// acceptsArrow reports whether FromArrow takes an Arrow type for a column's: the values are then all there, without a
// cast.
func acceptsArrow(t base.Type, dt arrow.DataType) bool {
	switch t.Kind {
	case base.KindVarchar, base.KindEnum, base.KindJSON:
		return isUtf8(dictionaryValues(dt))
	case base.KindBlob:
		return isBinary(dictionaryValues(dt))
	case base.KindBit, base.KindBignum:
		return isBinary(dt)
	case base.KindStruct, base.KindList, base.KindArray, base.KindMap:
		return acceptsNested(t, dt)
	case base.KindDecimal:
		// The scale must be the column's. Fewer digits than the column's always fit.
		d, ok := dt.(arrow.DecimalType)
		return ok && dt.ID() != arrow.DECIMAL256 && d.GetScale() == int32(t.Scale) && d.GetPrecision() <= int32(t.Precision)
	case base.KindTimestampTZ:
		// Microseconds since the epoch in UTC, whatever zone they are to be shown in.
		ts, ok := dt.(*arrow.TimestampType)
		return ok && ts.Unit == arrow.Microsecond && ts.TimeZone != ""
	case base.KindTimestampS, base.KindTimestampMS, base.KindTimestamp, base.KindTimestampNS:
		ts, ok := dt.(*arrow.TimestampType)
		return ok && ts.Unit == arrowType(t).(*arrow.TimestampType).Unit && ts.TimeZone == ""
	}
	return arrow.TypeEqual(arrowType(t), dt)
}

func isUtf8(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	}
	return false
}

func isBinary(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return true
	}
	return false
}

// dictionaryValues returns the type of a dictionary's values, and other types as they are.
func dictionaryValues(dt arrow.DataType) arrow.DataType {
	if d, ok := dt.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return dt
}
