package row

import "encoding/binary"

// Cell is one value of a row that is put together of columns from different places.
type Cell struct {
	Col *Column
	Row int // of Col
}

// AppendCells appends the record of a row to dst, given as one valid value for each column of the layout, in order. The
// row must be within base.MaxValueBytes.
func (l *Layout) AppendCells(dst []byte, cells []Cell) []byte {
	size := l.fixed
	for _, v := range l.varCols {
		o := cells[v].Col.Offsets[cells[v].Row:]
		size += int(o[1] - o[0])
	}
	dst, rec := grow(dst, size)
	clear(rec[:l.nulls])
	end := l.fixed
	for j := range l.fields {
		f, c := &l.fields[j], cells[j]
		if c.Col.Nulls != nil && c.Col.Nulls[c.Row] {
			rec[j>>3] |= 1 << (j & 7)
		}
		if f.size > 0 {
			copy(rec[f.off:f.off+f.size], c.Col.Fixed[c.Row*f.size:])
			continue
		}
		o := c.Col.Offsets[c.Row:]
		end += copy(rec[end:], c.Col.Data[o[0]:o[1]])
		binary.LittleEndian.PutUint32(rec[f.off:], uint32(end-l.fixed))
	}
	return dst
}

// isNull is the NULL mark of a single row. Nobody writes to it.
var isNull = []bool{true}

// Row returns the row of a record as a batch of all columns, which aliases the record. Neither may be changed while the
// other one is used.
func (l *Layout) Row(rec []byte) *Columns {
	c := &Columns{N: 1, Cols: make([]Column, len(l.fields))}
	offsets := make([]int64, 2*len(l.varCols))
	for j := range l.fields {
		f, col := &l.fields[j], &c.Cols[j]
		col.Type = f.typ
		if l.IsNull(rec, j) {
			col.Nulls = isNull
		}
		v := l.Storage(rec, j)
		if f.size > 0 {
			col.Fixed = v
			continue
		}
		col.Data, col.Offsets = v, offsets[:2:2]
		offsets[1] = int64(len(v))
		offsets = offsets[2:]
	}
	return c
}
