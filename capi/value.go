package main

/*
#include "capi.h"
*/
import "C"

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// columnTypes has the C type of each kind.
var columnTypes = map[engine.Kind]C.MeruColumnType{
	engine.KindBoolean:     C.MeruColumnType_Boolean,
	engine.KindTinyInt:     C.MeruColumnType_Int8,
	engine.KindSmallInt:    C.MeruColumnType_Int16,
	engine.KindInteger:     C.MeruColumnType_Int32,
	engine.KindBigInt:      C.MeruColumnType_Int64,
	engine.KindHugeInt:     C.MeruColumnType_Int128,
	engine.KindUTinyInt:    C.MeruColumnType_UInt8,
	engine.KindUSmallInt:   C.MeruColumnType_UInt16,
	engine.KindUInteger:    C.MeruColumnType_UInt32,
	engine.KindUBigInt:     C.MeruColumnType_UInt64,
	engine.KindUHugeInt:    C.MeruColumnType_UInt128,
	engine.KindFloat:       C.MeruColumnType_Float,
	engine.KindDouble:      C.MeruColumnType_Double,
	engine.KindDecimal:     C.MeruColumnType_Decimal,
	engine.KindVarchar:     C.MeruColumnType_Utf8,
	engine.KindBlob:        C.MeruColumnType_ByteArray,
	engine.KindFixedBinary: C.MeruColumnType_FixedLenBytes,
	engine.KindDate:        C.MeruColumnType_Date,
	engine.KindTime:        C.MeruColumnType_Time,
	engine.KindTimestampS:  C.MeruColumnType_TimestampS,
	engine.KindTimestampMS: C.MeruColumnType_TimestampMs,
	engine.KindTimestamp:   C.MeruColumnType_TimestampUs,
	engine.KindTimestampNS: C.MeruColumnType_TimestampNs,
	engine.KindTimestampTZ: C.MeruColumnType_TimestampTz,
	engine.KindInterval:    C.MeruColumnType_Interval,
	engine.KindUUID:        C.MeruColumnType_Uuid,
	engine.KindBit:         C.MeruColumnType_Bit,
	engine.KindEnum:        C.MeruColumnType_Enum,
	engine.KindJSON:        C.MeruColumnType_Json,
	engine.KindTimeTZ:      C.MeruColumnType_TimeTz,
	engine.KindTimeNS:      C.MeruColumnType_TimeNs,
	engine.KindBignum:      C.MeruColumnType_Bignum,
	engine.KindStruct:      C.MeruColumnType_Struct,
	engine.KindList:        C.MeruColumnType_List,
	engine.KindArray:       C.MeruColumnType_Array,
	engine.KindMap:         C.MeruColumnType_Map,
}

// columnKinds is the inverse of columnTypes.
var columnKinds = func() map[C.MeruColumnType]engine.Kind {
	m := make(map[C.MeruColumnType]engine.Kind, len(columnTypes))
	for k, t := range columnTypes {
		m[t] = k
	}
	return m
}()

// maxValueBytes bounds the bytes of a value that is looked at; what a row may hold is the engine's to say.
const maxValueBytes = 1 << 31

// inner reads the member of a value's union that is a T.
func inner[T any](v *C.MeruValue) T { return *(*T)(unsafe.Pointer(&v.inner)) }

// goValue reads a value for a column. Its bytes are the caller's: they are valid during the call.
func goValue(v *C.MeruValue, c *engine.Column) (engine.Value, error) {
	if v.is_null != 0 {
		return engine.Null(), nil
	}
	if c.Type.Kind.IsNested() {
		return engine.Value{}, nestedValue(c)
	}
	own := columnTypes[c.Type.Kind]
	if v.tag == own {
		return ownValue(v, c)
	}
	switch {
	case isInteger(c.Type.Kind) && v.tag == C.MeruColumnType_Int32:
		return widened(int64(inner[int32](v)), c)
	case isInteger(c.Type.Kind) && v.tag == C.MeruColumnType_Int64:
		return widened(inner[int64](v), c)
	case (own == C.MeruColumnType_Utf8 || own == C.MeruColumnType_Json) && v.tag == C.MeruColumnType_ByteArray,
		own == C.MeruColumnType_Json && v.tag == C.MeruColumnType_Utf8,
		own == C.MeruColumnType_ByteArray && v.tag == C.MeruColumnType_Utf8:
		return bytesValue(v, c)
	case own == C.MeruColumnType_Enum && v.tag == C.MeruColumnType_Utf8:
		return labelValue(v, c)
	}
	return engine.Value{}, engine.Errorf(engine.CodeSchemaMismatch, "column %q is %s, but the value has type tag %d: %d is expected",
		c.Name, c.Type, int(v.tag), int(own))
}

// nestedValue is the error for a value of a nested type, which a MeruValue has no form for.
func nestedValue(c *engine.Column) error {
	return engine.Errorf(engine.CodeUnsupported, "column %q is %s: rows with values of nested types are written and read as Arrow", c.Name, c.Type)
}

// ownValue reads a value whose tag is the column's own.
func ownValue(v *C.MeruValue, c *engine.Column) (engine.Value, error) {
	switch c.Type.Kind {
	case engine.KindBoolean:
		return engine.Bool(inner[uint8](v) != 0), nil
	case engine.KindTinyInt, engine.KindSmallInt, engine.KindInteger, engine.KindDate:
		return engine.Int(int64(inner[int32](v))), nil
	case engine.KindBigInt, engine.KindTime, engine.KindTimestampS, engine.KindTimestampMS, engine.KindTimestamp,
		engine.KindTimestampNS, engine.KindTimestampTZ, engine.KindTimeTZ, engine.KindTimeNS:
		return engine.Int(inner[int64](v)), nil
	case engine.KindUTinyInt, engine.KindUSmallInt, engine.KindUInteger, engine.KindUBigInt, engine.KindEnum:
		return engine.Uint(inner[uint64](v)), nil
	case engine.KindFloat:
		return engine.Float(inner[float32](v)), nil
	case engine.KindDouble:
		return engine.Double(inner[float64](v)), nil
	case engine.KindHugeInt, engine.KindUHugeInt:
		i := inner[C.MeruInt128](v)
		return engine.Value{Lo: uint64(i.lo), Hi: uint64(i.hi)}, nil
	case engine.KindDecimal:
		return decimalValue(inner[C.MeruInt128](v), c)
	case engine.KindInterval:
		i := inner[C.MeruInterval](v)
		return engine.Value{Hi: uint64(uint32(i.months))<<32 | uint64(uint32(i.days)), Lo: uint64(i.micros)}, nil
	case engine.KindUUID:
		u := inner[[16]byte](v)
		return engine.Value{Hi: binary.BigEndian.Uint64(u[:8]), Lo: binary.BigEndian.Uint64(u[8:])}, nil
	}
	return bytesValue(v, c)
}

// decimalValue reads a scaled integer. The engine looks at the lower half only where the precision needs no more.
func decimalValue(i C.MeruInt128, c *engine.Column) (engine.Value, error) {
	val := engine.Value{Lo: uint64(i.lo), Hi: uint64(i.hi)}
	if c.Type.FixedSize() <= 8 && val.Hi != uint64(int64(val.Lo)>>63) {
		return engine.Value{}, invalid("column %q: the value has more than %d digits: it does not fit %s", c.Name, c.Type.Precision, c.Type)
	}
	return val, nil
}

func isInteger(k engine.Kind) bool {
	switch k {
	case engine.KindTinyInt, engine.KindSmallInt, engine.KindInteger, engine.KindBigInt, engine.KindHugeInt,
		engine.KindUTinyInt, engine.KindUSmallInt, engine.KindUInteger, engine.KindUBigInt, engine.KindUHugeInt:
		return true
	}
	return false
}

// widened makes a value of an integer column out of a signed integer; the engine checks the range.
func widened(i int64, c *engine.Column) (engine.Value, error) {
	switch c.Type.Kind {
	case engine.KindUTinyInt, engine.KindUSmallInt, engine.KindUInteger, engine.KindUBigInt, engine.KindUHugeInt:
		if i < 0 {
			return engine.Value{}, invalid("column %q: value %d is out of the range of %s", c.Name, i, c.Type)
		}
	}
	return engine.Int(i), nil
}

func bytesValue(v *C.MeruValue, c *engine.Column) (engine.Value, error) {
	b, err := viewBytes(inner[C.MeruBytesView](v))
	if err != nil {
		return engine.Value{}, invalid("column %q: %s", c.Name, err)
	}
	return engine.Bytes(b), nil
}

// labelValue looks an ENUM's label up.
func labelValue(v *C.MeruValue, c *engine.Column) (engine.Value, error) {
	val, err := bytesValue(v, c)
	if err != nil {
		return val, err
	}
	for i, l := range c.Type.Labels {
		if l == string(val.Bytes) {
			return engine.Uint(uint64(i)), nil
		}
	}
	const shown = 200
	label := val.Bytes[:min(len(val.Bytes), shown)]
	if !utf8.Valid(val.Bytes) {
		return engine.Value{}, invalid("column %q: the label is not valid UTF-8: %q", c.Name, label)
	}
	return engine.Value{}, invalid("column %q: %q is not a label of its ENUM", c.Name, label)
}

// viewBytes returns the caller's bytes without copying them. Never nil: that would be no value to some.
func viewBytes(b C.MeruBytesView) ([]byte, error) {
	n := uint64(b.len)
	switch {
	case n == 0:
		return []byte{}, nil
	case b.data == nil:
		return nil, invalid("its data is NULL, its length %d", n)
	case n > maxValueBytes:
		return nil, invalid("its length is %d bytes: the limit is %d", n, maxValueBytes)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(b.data)), int(n)), nil
}

// rowValues reads the fields of a row into vals, which has one entry a column. A NULL in a column that takes none is
// what the column's write default says, where it has one.
func rowValues(vals []engine.Value, row *C.MeruRow, s *engine.Schema) error {
	if n := uint64(row.field_count); n != uint64(len(s.Columns)) {
		return engine.Errorf(engine.CodeSchemaMismatch, "the row has %d fields, table %q has %d columns", n, s.TableName, len(s.Columns))
	}
	if row.fields == nil {
		return invalid("argument fields of the row is NULL")
	}
	fields := unsafe.Slice(row.fields, len(s.Columns))
	for i := range fields {
		c := &s.Columns[i]
		v, err := goValue(&fields[i], c)
		if err == nil && v.Null && !c.Nullable && c.WriteDefault != nil {
			v, err = engine.StorageValue(c.Type, c.WriteDefault)
		}
		if err != nil {
			return err
		}
		vals[i] = v
	}
	return nil
}

// keyValues reads n values for the first n columns of the primary key; exact asks for all of them.
func keyValues(pk *C.MeruValue, n C.uintptr_t, s *engine.Schema, argument string, exact bool) ([]engine.Value, error) {
	want := len(s.PrimaryKey)
	switch {
	case uint64(n) > uint64(want) || exact && uint64(n) != uint64(want):
		return nil, invalid("argument %s has %d values, the primary key of table %q has %d columns", argument, uint64(n), s.TableName, want)
	case n == 0:
		return nil, nil
	case pk == nil:
		return nil, invalid("argument %s is NULL", argument)
	}
	vals := make([]engine.Value, n)
	for i := range vals {
		c := &s.Columns[s.PrimaryKey[i]]
		v, err := goValue(&unsafe.Slice(pk, n)[i], c)
		if err != nil {
			return nil, err
		}
		if v.Null {
			return nil, invalid("argument %s: key column %q is NULL", argument, c.Name)
		}
		vals[i] = v
	}
	return vals, nil
}

// fillValue writes a value to zeroed C memory; its bytes are copied into o.
func fillValue(dst *C.MeruValue, v engine.Value, t engine.Type, o *object) error {
	dst.tag = columnTypes[t.Kind]
	if v.Null {
		dst.is_null = 1
		return nil
	}
	if t.Kind.IsNested() {
		return engine.Errorf(engine.CodeUnsupported, "a value of type %s is in the row: such values are read as Arrow", t)
	}
	union := unsafe.Pointer(&dst.inner)
	if usesBytes(t.Kind) {
		data, err := o.bytes(v.Bytes)
		if err != nil {
			return err
		}
		*(*C.MeruBytesView)(union) = C.MeruBytesView{data: (*C.uint8_t)(data), len: C.uintptr_t(len(v.Bytes))}
		return nil
	}
	switch t.Kind {
	case engine.KindBoolean:
		*(*uint8)(union) = uint8(v.Lo)
	case engine.KindTinyInt, engine.KindSmallInt, engine.KindInteger, engine.KindDate:
		*(*int32)(union) = int32(v.Lo)
	case engine.KindFloat:
		*(*float32)(union) = math.Float32frombits(uint32(v.Lo))
	case engine.KindHugeInt, engine.KindUHugeInt:
		*(*[2]uint64)(union) = [2]uint64{v.Lo, v.Hi}
	case engine.KindDecimal:
		*(*[2]uint64)(union) = decimalHalves(v, t)
	case engine.KindInterval:
		*(*C.MeruInterval)(union) = C.MeruInterval{months: C.int32_t(v.Hi >> 32), days: C.int32_t(v.Hi), micros: C.int64_t(v.Lo)}
	case engine.KindUUID:
		u := (*[16]byte)(union)
		binary.BigEndian.PutUint64(u[:8], v.Hi)
		binary.BigEndian.PutUint64(u[8:], v.Lo)
	default: // the rest is 64 bits wide
		*(*uint64)(union) = v.Lo
	}
	return nil
}

// decimalHalves sign-extends what the engine keeps in the lower half alone.
func decimalHalves(v engine.Value, t engine.Type) [2]uint64 {
	if t.FixedSize() <= 8 {
		return [2]uint64{v.Lo, uint64(int64(v.Lo) >> 63)}
	}
	return [2]uint64{v.Lo, v.Hi}
}
