package row

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// Check validates a record of unknown origin, as when a log is replayed: all that the readers of Layout rely on, and
// that every value is one of its type. It never panics and allocates nothing for a valid record. The error is a
// CodeCorruption that names column and offset.
func (l *Layout) Check(rec []byte) error {
	if len(rec) < l.fixed || len(rec) > base.MaxValueBytes {
		return base.Errorf(base.CodeCorruption, "a record of table %q has %d bytes: %d to %d are possible", l.schema.TableName, len(rec), l.fixed, base.MaxValueBytes)
	}
	if spare := len(l.fields) & 7; spare != 0 && rec[l.nulls-1]>>spare != 0 {
		return base.Errorf(base.CodeCorruption, "a record of table %q: spare bits at offset %d are set", l.schema.TableName, l.nulls-1)
	}
	if err := l.checkEnds(rec); err != nil {
		return err
	}
	for i := range l.fields {
		f := &l.fields[i]
		b := l.Storage(rec, i)
		if l.IsNull(rec, i) {
			switch {
			case f.required:
				return base.Wrapf(base.CodeCorruption, nullError(l.schema, i), "a record's null bitmap")
			case !allZero(b) || f.size == 0 && len(b) > 0:
				return base.Errorf(base.CodeCorruption, "column %q of a record: NULL at offset %d has a value", f.name, f.off)
			}
			continue
		}
		if f.checked {
			if err := checkStorage(f.typ, b); err != nil {
				return base.Wrapf(base.CodeCorruption, err, "column %q of a record, offset %d", f.name, f.off)
			}
		}
	}
	return nil
}

// checkEnds checks that the values of variable size follow each other and fill the variable region.
func (l *Layout) checkEnds(rec []byte) error {
	last, size := 0, len(rec)-l.fixed
	for _, i := range l.varCols {
		f := &l.fields[i]
		end := int(binary.LittleEndian.Uint32(rec[f.off:]))
		if end < last || end > size {
			return base.Errorf(base.CodeCorruption, "column %q of a record, offset %d: its end %d is not within %d to %d", f.name, f.off, end, last, size)
		}
		last = end
	}
	if last != size {
		return base.Errorf(base.CodeCorruption, "a record of table %q has %d bytes behind its last column, at offset %d", l.schema.TableName, size-last, l.fixed+last)
	}
	return nil
}

// checkStorage reports why bytes of the right length are no value of the type.
func checkStorage(t base.Type, b []byte) error {
	if t.Kind.IsNested() {
		return CheckPacked(&t, b)
	}
	return keyenc.CheckValue(t, keyenc.StorageValue(t, b))
}

// checkValue is checkStorage for a value.
func checkValue(t base.Type, v base.Value) error {
	if t.Kind.IsNested() {
		return CheckPacked(&t, v.Bytes)
	}
	return keyenc.CheckValue(t, v)
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// AppendStorage appends one value's storage form (see [Columns]) to dst, checked as [Layout.Append] checks it. It is the
// form of Schema defaults.
func AppendStorage(dst []byte, t base.Type, v base.Value) ([]byte, error) {
	if v.Null {
		return dst, base.Errorf(base.CodeInvalidArgument, "NULL has no storage form")
	}
	if err := checkValue(t, v); err != nil {
		return dst, err
	}
	return keyenc.AppendValueStorage(dst, t, v), nil
}

// StorageValue is the inverse of [AppendStorage] for bytes of unknown origin; the value's Bytes alias storage. Bytes that
// are no value of the type give CodeCorruption.
func StorageValue(t base.Type, storage []byte) (base.Value, error) {
	if n := t.FixedSize(); !t.IsVariable() && len(storage) != n {
		return base.Value{}, base.Errorf(base.CodeCorruption, "%d bytes for a %s, which takes %d", len(storage), t, n)
	}
	if err := checkStorage(t, storage); err != nil {
		return base.Value{}, base.Wrapf(base.CodeCorruption, err, "a stored %s", t.Kind)
	}
	return keyenc.StorageValue(t, storage), nil
}
