package engine

import "github.com/merutable/merutable/engine/internal/row"

// AppendStorage appends the storage form of a value that is not NULL to dst: the form of [Column.InitialDefault] and
// [Column.WriteDefault]. The error says why the type cannot hold the value.
func AppendStorage(dst []byte, t Type, v Value) ([]byte, error) { return row.AppendStorage(dst, t, v) }

// StorageValue is the inverse of [AppendStorage]; the value's Bytes alias storage. Bytes that are no value of the type
// give CodeCorruption.
func StorageValue(t Type, storage []byte) (Value, error) { return row.StorageValue(t, storage) }

// Schema returns the schema that the rows of the write must have: the table's when the write began. Do not change it.
func (w *Write) Schema() *Schema { return w.table.schema }

// InitialDefaults returns one row of what the rows have that are older than the columns, NULL where that is nothing.
func InitialDefaults(s *Schema) *Columns {
	out := row.NewColumns(s, nil)
	out.N = 1
	for i := range out.Cols {
		col, value := &out.Cols[i], s.Columns[i].InitialDefault
		if value == nil {
			col.Nulls = []bool{true}
			value = make([]byte, col.Type.FixedSize())
		}
		if col.Type.IsVariable() {
			col.Data = append(col.Data, value...)
			col.Offsets = append(col.Offsets, int64(len(value)))
		} else {
			col.Fixed = append(col.Fixed, value...)
		}
	}
	return out
}
