package engine

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// The vocabulary of the engine's API. The types are documented where they are declared.
type (
	// Schema is a table's columns and primary key.
	Schema = base.Schema
	// Column is one column of a schema.
	Column = base.Column
	// Type is a column's type with its parameters.
	Type = base.Type
	// Field is a part of a nested type.
	Field = base.Field
	// Kind is a column's logical kind.
	Kind = base.Kind
	// Value is one value of any type.
	Value = base.Value
	// Columns is a batch of rows held column by column.
	Columns = row.Columns
	// Error is an error with a code.
	Error = base.Error
	// Code is the kind of an error.
	Code = base.Code
)

// Bounds of nested types, and the names of fields that have none of their own.
const (
	MaxTypeDepth    = base.MaxTypeDepth
	MaxNestedFields = base.MaxNestedFields
	ElementName     = base.ElementName
	KeyName         = base.KeyName
	ValueName       = base.ValueName
)

// The kinds of columns; see package documentation of the types for what each holds.
const (
	KindBoolean     = base.KindBoolean
	KindTinyInt     = base.KindTinyInt
	KindSmallInt    = base.KindSmallInt
	KindInteger     = base.KindInteger
	KindBigInt      = base.KindBigInt
	KindHugeInt     = base.KindHugeInt
	KindUTinyInt    = base.KindUTinyInt
	KindUSmallInt   = base.KindUSmallInt
	KindUInteger    = base.KindUInteger
	KindUBigInt     = base.KindUBigInt
	KindUHugeInt    = base.KindUHugeInt
	KindFloat       = base.KindFloat
	KindDouble      = base.KindDouble
	KindDecimal     = base.KindDecimal
	KindVarchar     = base.KindVarchar
	KindBlob        = base.KindBlob
	KindDate        = base.KindDate
	KindTime        = base.KindTime
	KindTimestampS  = base.KindTimestampS
	KindTimestampMS = base.KindTimestampMS
	KindTimestamp   = base.KindTimestamp
	KindTimestampNS = base.KindTimestampNS
	KindTimestampTZ = base.KindTimestampTZ
	KindInterval    = base.KindInterval
	KindUUID        = base.KindUUID
	KindBit         = base.KindBit
	KindEnum        = base.KindEnum
	KindFixedBinary = base.KindFixedBinary
	KindJSON        = base.KindJSON
	KindTimeTZ      = base.KindTimeTZ
	KindTimeNS      = base.KindTimeNS
	KindBignum      = base.KindBignum
	KindStruct      = base.KindStruct
	KindList        = base.KindList
	KindArray       = base.KindArray
	KindMap         = base.KindMap
)

// The error codes, equal to the statuses of the C interface.
const (
	CodeOK              = base.CodeOK
	CodeIO              = base.CodeIO
	CodeCorruption      = base.CodeCorruption
	CodeSchemaMismatch  = base.CodeSchemaMismatch
	CodeNotFound        = base.CodeNotFound
	CodeInvalidArgument = base.CodeInvalidArgument
	CodeReadOnly        = base.CodeReadOnly
	CodeClosed          = base.CodeClosed
	CodeObjectStore     = base.CodeObjectStore
	CodeParquet         = base.CodeParquet
	CodeAlreadyExists   = base.CodeAlreadyExists
	CodeLocked          = base.CodeLocked
	CodeConflict        = base.CodeConflict
	CodeNoSpace         = base.CodeNoSpace
	CodeCancelled       = base.CodeCancelled
	CodeTimeout         = base.CodeTimeout
	CodeUnsupported     = base.CodeUnsupported
	CodeUnknown         = base.CodeUnknown
)

// Null is the NULL of every type.
func Null() Value { return base.Null() }

// Bool makes a BOOLEAN.
func Bool(b bool) Value { return base.Bool(b) }

// Int makes a value of a signed integer type, date, time, timestamp or decimal.
func Int(i int64) Value { return base.Int(i) }

// Uint makes a value of an unsigned integer type or an ENUM's index.
func Uint(u uint64) Value { return base.Uint(u) }

// Float makes a FLOAT.
func Float(f float32) Value { return base.Float(f) }

// Double makes a DOUBLE.
func Double(f float64) Value { return base.Double(f) }

// String makes a VARCHAR.
func String(s string) Value { return base.String(s) }

// Bytes makes a BLOB, BIT or FIXED_BINARY. The slice is borrowed.
func Bytes(b []byte) Value { return base.Bytes(b) }

// CodeOf returns the code of an error: CodeOK for nil, CodeUnknown for an error that has none.
func CodeOf(err error) Code { return base.CodeOf(err) }

// Errorf makes an error of a code.
func Errorf(code Code, format string, args ...any) error { return base.Errorf(code, format, args...) }

// KeySchema returns the key columns of s in key order as a schema of their own, for batches of keys.
func KeySchema(s *Schema) *Schema { return KeyPrefixSchema(s, len(s.PrimaryKey)) }

// KeyPrefixSchema is [KeySchema] for the first n columns of the key.
func KeyPrefixSchema(s *Schema, n int) *Schema {
	k := &Schema{TableName: s.TableName, SchemaID: s.SchemaID, LastColumnID: s.LastColumnID}
	for i, c := range s.PrimaryKey[:n] {
		k.Columns = append(k.Columns, s.Columns[c])
		k.PrimaryKey = append(k.PrimaryKey, i)
	}
	return k
}

// ArrowSchema returns the Arrow types of the table's rows; projection nil means all columns. Kinds without an Arrow
// type of their own travel as merutable.h says at meru_arrow_schema.
func ArrowSchema(s *Schema, projection []int) *arrow.Schema { return row.ArrowSchema(s, projection) }

// ToArrow converts a batch whose columns are those of the projection. The record batch owns memory of mem.
func ToArrow(c *Columns, s *Schema, projection []int, mem memory.Allocator) (arrow.RecordBatch, error) {
	return c.ToArrow(s, projection, mem)
}

// FromArrow converts a record batch whose columns are all of s in order, and checks every value. The error names column
// and row.
func FromArrow(s *Schema, rec arrow.RecordBatch) (*Columns, error) { return row.FromArrow(s, rec) }
