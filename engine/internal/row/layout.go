// Package row holds rows in the engine's two forms and converts between them: a record is one row in one byte string
// (memtable, log), Columns are many rows column by column (Parquet, Arrow).
package row

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// Layout is the record codec of one schema. A record holds every column, key columns included:
//
//	null bitmap     one bit a column, lowest bit first, 1 is NULL; whole bytes, spare bits 0
//	fixed region    column by column: a value of fixed size in storage form (zero where NULL), or for a value of variable
//	                size the u32 LE offset of its end in the variable region
//	variable region the values of variable size in column order; NULL is empty
//
// So every fixed value is at one offset in all records of a schema. A Layout is immutable and safe for concurrent use.
type Layout struct {
	schema  *base.Schema
	fields  []field
	varCols []int // the columns of variable size
	nulls   int   // bytes of the null bitmap
	fixed   int   // bytes of bitmap and fixed region: where the variable region starts
	keys    []int // the key columns in key order
}

// field is where one column is in a record.
type field struct {
	typ      base.Type
	name     string
	required bool // no NULLs: declared so, or a key column
	checked  bool // not every byte string of the right length is a value
	size     int  // of the storage form; 0 where it varies
	off      int  // of the value, or of the end offset of a value of variable size
	prevEnd  int  // offset of the end offset of the variable column before; 0: there is none
}

// NewLayout makes the layout of a valid schema, which must not change afterwards.
func NewLayout(schema *base.Schema) *Layout {
	n := len(schema.Columns)
	l := &Layout{schema: schema, fields: make([]field, n), nulls: (n + 7) / 8, keys: schema.PrimaryKey}
	at, prevEnd := l.nulls, 0
	for i := range schema.Columns {
		c := &schema.Columns[i]
		f := &l.fields[i]
		*f = field{typ: c.Type, name: c.Name, required: !c.Nullable, checked: needsCheck(c.Type), size: c.Type.FixedSize(), off: at}
		if c.Type.IsVariable() {
			f.prevEnd, prevEnd = prevEnd, at
			l.varCols = append(l.varCols, i)
			at += 4
		} else {
			at += f.size
		}
	}
	l.fixed = at
	for _, k := range l.keys {
		l.fields[k].required = true
	}
	return l
}

// needsCheck reports whether some bytes of the right length are no value of the type.
func needsCheck(t base.Type) bool {
	switch t.Kind {
	case base.KindBoolean, base.KindEnum, base.KindTime, base.KindTimestampS, base.KindTimestampMS, base.KindDecimal,
		base.KindVarchar, base.KindBit, base.KindJSON, base.KindBignum, base.KindTimeTZ, base.KindTimeNS:
		return true
	}
	return t.Kind.IsNested()
}

// Append appends the record of a row, given as one value a column, to dst and returns it. It checks everything that
// makes a row valid; an error is a CodeInvalidArgument that names the column, and dst is then returned as it was. vals
// are copied.
func (l *Layout) Append(dst []byte, vals []base.Value) ([]byte, error) {
	if len(vals) != len(l.fields) {
		return dst, base.Errorf(base.CodeInvalidArgument, "a row of table %q has %d columns, not %d", l.schema.TableName, len(l.fields), len(vals))
	}
	size := l.fixed
	for i := range l.fields {
		f := &l.fields[i]
		if vals[i].Null {
			if f.required {
				return dst, nullError(l.schema, i)
			}
			continue
		}
		if f.size == 0 {
			size += len(vals[i].Bytes)
			if size > base.MaxValueBytes { // before anything walks the bytes
				return dst, rowTooLarge(size, f.name)
			}
		}
		if err := checkValue(f.typ, vals[i]); err != nil {
			return dst, base.Wrapf(base.CodeInvalidArgument, err, "column %q", f.name)
		}
	}
	dst, rec := grow(dst, size)
	clear(rec[:l.fixed])
	end := l.fixed
	for i := range l.fields {
		f := &l.fields[i]
		v := &vals[i]
		if f.size == 0 {
			if !v.Null {
				end += copy(rec[end:], v.Bytes)
			}
			binary.LittleEndian.PutUint32(rec[f.off:], uint32(end-l.fixed))
		} else if !v.Null {
			keyenc.AppendValueStorage(rec[f.off:f.off], f.typ, *v)
		}
		if v.Null {
			rec[i>>3] |= 1 << (i & 7)
		}
	}
	return dst, nil
}

// grow lengthens dst by n bytes of any content and returns it and the new part.
func grow(dst []byte, n int) (all, tail []byte) {
	at := len(dst)
	if cap(dst)-at < n {
		bigger := make([]byte, at, max(2*cap(dst), at+n))
		copy(bigger, dst)
		dst = bigger
	}
	dst = dst[:at+n]
	return dst, dst[at:]
}

func nullError(s *base.Schema, col int) error {
	what := "column"
	if s.IsKey(col) {
		what = "key column"
	}
	return base.Errorf(base.CodeInvalidArgument, "NOT NULL constraint failed: %s %q of table %q is NULL", what, s.Columns[col].Name, s.TableName)
}

func rowTooLarge(size int, column string) error {
	return base.Errorf(base.CodeInvalidArgument, "the row has at least %d bytes at column %q: the limit is %d", size, column, base.MaxValueBytes)
}

// The readers below trust the record: it came from Append, AppendRecord, or passed Check.

// IsNull reports whether a column is NULL.
func (l *Layout) IsNull(rec []byte, col int) bool {
	return rec[col>>3]>>(col&7)&1 != 0
}

// Storage returns a column's value in storage form; it aliases rec. A NULL is zero bytes of the type's size, or empty.
func (l *Layout) Storage(rec []byte, col int) []byte {
	f := &l.fields[col]
	if f.size > 0 {
		return rec[f.off : f.off+f.size : f.off+f.size]
	}
	start, end := l.varRange(f, rec)
	return rec[start:end:end]
}

// varRange returns where in a record a value of variable size is.
func (l *Layout) varRange(f *field, rec []byte) (start, end int) {
	start, end = l.fixed, l.fixed+int(binary.LittleEndian.Uint32(rec[f.off:]))
	if f.prevEnd > 0 {
		start += int(binary.LittleEndian.Uint32(rec[f.prevEnd:]))
	}
	return start, end
}

// Value returns a column's value; its Bytes alias rec.
func (l *Layout) Value(rec []byte, col int) base.Value {
	if l.IsNull(rec, col) {
		return base.Null()
	}
	return keyenc.StorageValue(l.fields[col].typ, l.Storage(rec, col))
}

// KeyFromRecord appends the encoded primary key of a record to dst. It fails only for a key above base.MaxKeyBytes, with
// dst as it was.
func KeyFromRecord(dst []byte, l *Layout, rec []byte) ([]byte, error) {
	start := len(dst)
	for _, k := range l.keys {
		f := &l.fields[k]
		dst = keyenc.AppendStorage(dst, f.typ, l.Storage(rec, k))
		if n := len(dst) - start; n > base.MaxKeyBytes {
			return dst[:start], keyenc.KeyTooLong(n, f.name)
		}
	}
	return dst, nil
}
