package sst

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/merutable/merutable/engine/internal/base"
)

// Bounds is what a file says of the values of a column, deleted rows included.
type Bounds struct {
	// Known says that all values lie between Min and Max, both inclusive, as far as there are values.
	Known    bool
	Min, Max base.Value
	// Empty says that there are no values: all are NULL. Known is set then.
	Empty bool
	// HasNull says that there may be NULLs.
	HasNull bool
}

// Bounded reports whether values of a type can have bounds here: those of at most 64 bits that are in the order of
// numbers. Of strings the file has only prefixes.
func Bounded(t base.Type) bool {
	switch t.Kind {
	case base.KindBoolean, base.KindTinyInt, base.KindSmallInt, base.KindInteger, base.KindBigInt, base.KindUTinyInt,
		base.KindUSmallInt, base.KindUInteger, base.KindUBigInt, base.KindFloat, base.KindDouble, base.KindDate,
		base.KindTime, base.KindTimestampS, base.KindTimestampMS, base.KindTimestamp, base.KindTimestampNS,
		base.KindTimestampTZ:
		return true
	case base.KindDecimal:
		return t.FixedSize() <= 8
	}
	return false
}

// CompareBounded compares values of a type that [Bounded] accepts. NaN must not occur.
func CompareBounded(t base.Type, a, b base.Value) int {
	switch t.Kind {
	case base.KindBoolean, base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt:
		return cmp.Compare(a.Lo, b.Lo)
	case base.KindFloat:
		return cmp.Compare(math.Float32frombits(uint32(a.Lo)), math.Float32frombits(uint32(b.Lo)))
	case base.KindDouble:
		return cmp.Compare(math.Float64frombits(a.Lo), math.Float64frombits(b.Lo))
	}
	return cmp.Compare(a.Int64(), b.Int64())
}

// Add widens the bounds by those of other rows.
func (b *Bounds) Add(t base.Type, o Bounds) {
	b.HasNull = b.HasNull || o.HasNull
	switch {
	case !b.Known || !o.Known:
		b.Known, b.Empty = false, false
	case o.Empty:
	case b.Empty:
		b.Min, b.Max, b.Empty = o.Min, o.Max, false
	default:
		if CompareBounded(t, o.Min, b.Min) < 0 {
			b.Min = o.Min
		}
		if CompareBounded(t, o.Max, b.Max) > 0 {
			b.Max = o.Max
		}
	}
}

// storedBounds is what is kept of a column's bounds while the file is known: the footer itself comes and goes, without its
// statistics.
type storedBounds struct {
	min, max              uint64
	known, empty, hasNull bool
}

// Bounds returns those of a column of the table.
func (r *Reader) Bounds(column int) Bounds {
	c := &r.columns[column]
	unknown := Bounds{HasNull: c.optional || c.ordinal < 0}
	switch {
	case c.colType == nil || !Bounded(c.typ) || c.stored != nil:
		return unknown
	case c.ordinal < 0 && c.absent == nil:
		return Bounds{Known: true, Empty: true, HasNull: true}
	case c.ordinal < 0:
		v := c.one.Value(0)
		return Bounds{Known: !IsNaN(c.typ, v), Min: v, Max: v}
	}
	b := r.bounds[c.ordinal]
	if !b.known {
		return unknown
	}
	return Bounds{Known: true, Empty: b.empty, HasNull: b.hasNull, Min: boundOf(c.typ, b.min), Max: boundOf(c.typ, b.max)}
}

// boundOf is the value of a type that [Bounded] accepts with these 64 bits.
func boundOf(t base.Type, bits uint64) base.Value {
	switch t.Kind {
	case base.KindBoolean, base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt, base.KindFloat,
		base.KindDouble:
		return base.Uint(bits)
	}
	return base.Int(int64(bits))
}

// keepBounds keeps the bounds that a footer has of the columns that are there as they are in the file.
func (o *openFile) keepBounds(columns []fileColumn, meta *metadata.FileMetaData) {
	o.bounds = make([]storedBounds, meta.Schema.NumColumns())
	for i := range columns {
		c := &columns[i]
		if c.colType == nil || c.ordinal < 0 || c.stored != nil || !Bounded(c.typ) {
			continue
		}
		if b := c.boundsIn(meta); b.Known {
			o.bounds[c.ordinal] = storedBounds{known: true, empty: b.Empty, hasNull: b.HasNull, min: b.Min.Lo, max: b.Max.Lo}
		}
	}
}

// boundsIn unites the bounds of a column's row groups.
func (c *fileColumn) boundsIn(meta *metadata.FileMetaData) Bounds {
	all := Bounds{Known: true, Empty: true}
	for _, g := range meta.RowGroups {
		// As the footer has them: the library keeps those of floats to itself, for other writers' NaN.
		st := g.Columns[c.ordinal].MetaData.Statistics
		one := Bounds{HasNull: c.optional && (st == nil || st.NullCount == nil || *st.NullCount > 0)}
		switch {
		case st == nil:
		case st.MinValue != nil && st.MaxValue != nil:
			one.Min, one.Max, one.Known = c.boundValue(st.MinValue), c.boundValue(st.MaxValue), true
			one.Known = !IsNaN(c.typ, one.Min) && !IsNaN(c.typ, one.Max)
		case c.optional && st.NullCount != nil && *st.NullCount == g.NumRows:
			one.Known, one.Empty = true, true
		}
		all.Add(c.typ, one)
	}
	return all
}

// IsNaN reports whether a value of a type is NaN.
func IsNaN(t base.Type, v base.Value) bool {
	switch t.Kind {
	case base.KindFloat:
		return math.IsNaN(float64(math.Float32frombits(uint32(v.Lo))))
	case base.KindDouble:
		return math.IsNaN(math.Float64frombits(v.Lo))
	}
	return false
}

// boundValue reads a bound of a type that [Bounded] accepts from a footer.
func (c *colType) boundValue(page []byte) base.Value {
	var raw uint64
	switch len(page) {
	case 1:
		raw = uint64(page[0])
	case 4:
		raw = uint64(binary.LittleEndian.Uint32(page))
	default:
		raw = binary.LittleEndian.Uint64(page)
	}
	switch c.typ.Kind {
	case base.KindBoolean, base.KindUTinyInt, base.KindUSmallInt, base.KindUInteger, base.KindUBigInt, base.KindFloat,
		base.KindDouble:
		return base.Uint(raw)
	}
	v := int64(raw)
	if len(page) == 4 {
		v = int64(int32(raw))
	}
	if c.form == formScale && !infinite(v) {
		v /= c.scale
	}
	return base.Int(v)
}
