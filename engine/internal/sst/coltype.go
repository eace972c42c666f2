package sst

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// form says how values in storage form (see row.Columns) stand in a Parquet page.
type form uint8

const (
	formSame    form = iota // the bytes as they are
	formWiden               // one or two bytes, as four
	formScale               // a timestamp in seconds or milliseconds, as microseconds
	formReverse             // 16 bytes little-endian, as big-endian
	formFile                // by row.AppendFileForm
	formLabel               // an ENUM's index, as its label
)

// colType is what the writer and the reader need to know of one column of a file.
type colType struct {
	name     string
	fieldID  int32
	typ      base.Type
	nullable bool
	physical parquet.Type
	logical  schema.LogicalType // nil: none
	form     form
	size     int   // of a value in storage form, 0 for variable length
	width    int   // of a value in a page; 0 for BOOLEAN and byte arrays
	signed   bool  // of formWiden: sign-extend
	scale    int64 // of formScale
	bounds   bool  // whether statistics carry bounds
	// bloom says whether the column, as a key, has a bloom filter. Not columns that DuckDB's reader takes for a BLOB: it
	// hashes the printed form of the constant that it looks for (\xAB for a byte), finds it excluded, and returns no row.
	bloom  bool
	sorted bool // whether key order is the order of the Parquet type
	// labels are an ENUM's, as bytes for the writer and by label for the reader.
	labels     [][]byte
	labelIndex map[string]uint32
	// path is where the column stands in the schema, leaf says that it is part of a nested one.
	path   string
	leaf   bool
	nested *nestedType // of a nested type; most of the above is not used then
}

// newColType maps a table column to its Parquet form.
func newColType(col *base.Column) *colType {
	c := &colType{
		name: col.Name, path: col.Name, fieldID: col.FieldID, typ: col.Type, nullable: col.Nullable, size: col.Type.FixedSize(),
		bounds: true, bloom: true, sorted: true,
	}
	fixed := func(t parquet.Type, width int, logical schema.LogicalType) {
		c.physical, c.width, c.logical = t, width, logical
	}
	bits := int8(8 * c.size)
	switch k := col.Type.Kind; k {
	case base.KindBoolean:
		c.physical, c.bloom = parquet.Types.Boolean, false // the format has no hash of booleans
	case base.KindTinyInt, base.KindSmallInt:
		fixed(parquet.Types.Int32, 4, schema.NewIntLogicalType(bits, true))
		c.form, c.signed = formWiden, true
	case base.KindUTinyInt, base.KindUSmallInt:
		fixed(parquet.Types.Int32, 4, schema.NewIntLogicalType(bits, false))
		c.form = formWiden
	case base.KindInteger:
		fixed(parquet.Types.Int32, 4, schema.NewIntLogicalType(bits, true))
	case base.KindUInteger:
		fixed(parquet.Types.Int32, 4, schema.NewIntLogicalType(bits, false))
	case base.KindBigInt:
		fixed(parquet.Types.Int64, 8, schema.NewIntLogicalType(bits, true))
	case base.KindUBigInt:
		fixed(parquet.Types.Int64, 8, schema.NewIntLogicalType(bits, false))
	case base.KindFloat:
		fixed(parquet.Types.Float, 4, nil)
	case base.KindDouble:
		fixed(parquet.Types.Double, 8, nil)
	case base.KindDecimal:
		c.decimal()
	case base.KindDate:
		fixed(parquet.Types.Int32, 4, schema.DateLogicalType{})
	case base.KindTime:
		fixed(parquet.Types.Int64, 8, schema.NewTimeLogicalType(false, schema.TimeUnitMicros))
	case base.KindTimestampS, base.KindTimestampMS, base.KindTimestamp, base.KindTimestampNS, base.KindTimestampTZ:
		c.timestamp()
	case base.KindUUID:
		fixed(parquet.Types.FixedLenByteArray, 16, schema.UUIDLogicalType{})
	case base.KindHugeInt, base.KindUHugeInt:
		fixed(parquet.Types.FixedLenByteArray, 16, nil)
		c.form, c.bloom = formFile, false
	case base.KindInterval:
		// Two intervals of one length may differ in their bytes, so neither bounds nor hashes of bytes say anything.
		fixed(parquet.Types.FixedLenByteArray, 16, nil)
		c.form, c.bounds, c.bloom, c.sorted = formFile, false, false, false
	case base.KindFixedBinary:
		fixed(parquet.Types.FixedLenByteArray, c.size, nil)
		c.bloom = false
	case base.KindTimeTZ, base.KindTimeNS:
		// DuckDB's reader takes Parquet's own types for times in UTC, of which it drops the offset, and for microseconds.
		fixed(parquet.Types.Int64, 8, nil)
	case base.KindVarchar:
		c.physical, c.logical = parquet.Types.ByteArray, schema.StringLogicalType{}
	case base.KindJSON:
		// Bounds and hashes that a reader makes of JSON are its own affair.
		c.physical, c.logical, c.bounds, c.bloom = parquet.Types.ByteArray, schema.JSONLogicalType{}, false, false
	case base.KindStruct, base.KindList, base.KindArray, base.KindMap:
		c.physical, c.bounds, c.bloom, c.sorted = parquet.Types.ByteArray, false, false, false
		c.nested = newNestedType(col.Name, &c.typ)
	case base.KindEnum:
		// Keys order by index, labels by letters.
		c.physical, c.logical, c.form, c.sorted = parquet.Types.ByteArray, schema.StringLogicalType{}, formLabel, false
		c.labelIndex = make(map[string]uint32, len(col.Type.Labels))
		for i, l := range col.Type.Labels {
			c.labels = append(c.labels, append([]byte{}, l...)) // not nil, which the library takes for no value
			c.labelIndex[l] = uint32(i)
		}
	case base.KindBlob, base.KindBignum:
		c.physical, c.bloom = parquet.Types.ByteArray, false
	case base.KindBit:
		// The first byte counts padding bits: the order of the bytes is no order of bit strings.
		c.physical, c.bounds, c.bloom, c.sorted = parquet.Types.ByteArray, false, false, false
	}
	return c
}

// columnTypes returns the types of the schema's columns, then those of the hidden ones.
func columnTypes(s *base.Schema) []*colType {
	types := make([]*colType, 0, len(s.Columns)+2)
	for i := range s.Columns {
		types = append(types, newColType(&s.Columns[i]))
	}
	seq, op := hiddenTypes()
	return append(types, seq, op)
}

func (c *colType) decimal() {
	c.logical = schema.NewDecimalLogicalType(int32(c.typ.Precision), int32(c.typ.Scale))
	switch c.width = c.size; c.size {
	case 4:
		c.physical = parquet.Types.Int32
	case 8:
		c.physical = parquet.Types.Int64
	default:
		c.physical, c.form = parquet.Types.FixedLenByteArray, formReverse
	}
}

// timestamp sets unit and scale. Seconds and milliseconds are stored as microseconds, the coarsest unit that both
// Parquet and Iceberg have for times of day and date; the column's own type is in the schema.
func (c *colType) timestamp() {
	c.physical, c.width = parquet.Types.Int64, 8
	unit := schema.TimeUnitMicros
	switch c.typ.Kind {
	case base.KindTimestampS:
		c.form, c.scale = formScale, 1_000_000
	case base.KindTimestampMS:
		c.form, c.scale = formScale, 1_000
	case base.KindTimestampNS:
		unit = schema.TimeUnitNanos
	}
	c.logical = schema.NewTimestampLogicalType(c.typ.Kind == base.KindTimestampTZ, unit)
}

// hiddenTypes are the columns behind the table's: sequence number and operation.
func hiddenTypes() (seq, op *colType) {
	seq = newColType(&base.Column{Name: base.SeqColumn, Type: base.Type{Kind: base.KindBigInt}, FieldID: base.SeqFieldID})
	op = newColType(&base.Column{Name: base.OpColumn, Type: base.Type{Kind: base.KindInteger}, FieldID: base.OpFieldID})
	seq.logical, op.logical = nil, nil
	return seq, op
}

// node returns the column's entry in a file's schema.
func (c *colType) node() (schema.Node, error) {
	repetition := parquet.Repetitions.Required
	if c.nullable {
		repetition = parquet.Repetitions.Optional
	}
	if c.nested != nil {
		return nestedNode(c.name, &c.typ, repetition, c.fieldID)
	}
	length := -1
	if c.physical == parquet.Types.FixedLenByteArray {
		length = c.width
	}
	n, err := schema.NewPrimitiveNodeLogical(c.name, repetition, c.logical, c.physical, length, c.fieldID)
	if err != nil {
		return nil, base.Wrapf(base.CodeParquet, err, "column %q of type %s", c.name, c.typ)
	}
	return n, nil
}

// matches checks that a column of a file holds the form that this type is stored in.
func (c *colType) matches(d *schema.Column) error {
	if d.MaxRepetitionLevel() > 0 || d.MaxDefinitionLevel() > 1 {
		return base.Errorf(base.CodeSchemaMismatch, "column %q is nested", c.name)
	}
	return c.matchesForm(d)
}

// matchesForm is matches for a column that may be part of a nested one.
func (c *colType) matchesForm(d *schema.Column) error {
	want, err := c.node()
	if err != nil {
		return err
	}
	n, ok := want.(*schema.PrimitiveNode)
	if !ok {
		return base.Errorf(base.CodeSchemaMismatch, "column %q is not nested, where %s belongs", c.name, c.typ)
	}
	if d.PhysicalType() != c.physical || c.physical == parquet.Types.FixedLenByteArray && d.TypeLength() != c.width ||
		!n.LogicalType().Equals(d.LogicalType()) {
		return base.Errorf(base.CodeSchemaMismatch, "column %q is stored as %s (%s), where %s belongs", c.name,
			d.PhysicalType(), d.LogicalType(), c.typ)
	}
	return nil
}

// appendPage appends the page form of a value of fixed size in storage form. Not for labels.
func (c *colType) appendPage(dst, storage []byte) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	switch c.form {
	case formWiden:
		return le.AppendUint32(dst, widen(storage, c.signed))
	case formScale:
		v := int64(le.Uint64(storage))
		if !infinite(v) {
			v *= c.scale
		}
		return le.AppendUint64(dst, uint64(v))
	case formReverse:
		return be.AppendUint64(be.AppendUint64(dst, le.Uint64(storage[8:])), le.Uint64(storage))
	case formFile:
		return row.AppendFileForm(dst, c.typ.Kind, storage)
	}
	return append(dst, storage...)
}

// appendStorage is the inverse of appendPage.
func (c *colType) appendStorage(dst, page []byte) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	switch c.form {
	case formWiden:
		return append(dst, page[:c.size]...)
	case formScale:
		v := int64(le.Uint64(page))
		if !infinite(v) {
			v /= c.scale
		}
		return le.AppendUint64(dst, uint64(v))
	case formReverse:
		return le.AppendUint64(le.AppendUint64(dst, be.Uint64(page[8:])), be.Uint64(page))
	case formFile:
		return row.AppendStorageFromFileForm(dst, c.typ.Kind, page)
	}
	return append(dst, page...)
}

// infinite reports whether a timestamp is one of DuckDB's infinities, which are the same in every unit.
func infinite(v int64) bool { return v == math.MaxInt64 || v == -math.MaxInt64 }

func widen(storage []byte, signed bool) uint32 {
	if len(storage) == 1 {
		if signed {
			return uint32(int8(storage[0]))
		}
		return uint32(storage[0])
	}
	v := binary.LittleEndian.Uint16(storage)
	if signed {
		return uint32(int16(v))
	}
	return uint32(v)
}
