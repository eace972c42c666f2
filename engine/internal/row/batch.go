package row

import (
	"encoding/binary"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

// NewColumns makes an empty batch of the projected columns, in that order; nil means all columns. It has no hidden
// columns: make Seqs and Ops empty but not nil to have AppendRange fill them.
func NewColumns(s *base.Schema, projection []int) *Columns {
	projection = projectionOf(s, projection)
	c := &Columns{Cols: make([]Column, len(projection))}
	for i, p := range projection {
		c.Cols[i].Type = s.Columns[p].Type
		if c.Cols[i].Type.IsVariable() {
			c.Cols[i].Offsets = []int64{0}
		}
	}
	return c
}

// AllColumns returns the projection that has every column.
func AllColumns(s *base.Schema) []int { return projectionOf(s, nil) }

// projectionOf returns the projection with nil, which stands for all columns, spelt out.
func projectionOf(s *base.Schema, projection []int) []int {
	if projection != nil {
		return projection
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// Reset empties the batch and keeps its memory for the next rows.
func (c *Columns) Reset() {
	c.N = 0
	c.Seqs, c.Ops = c.Seqs[:0], c.Ops[:0]
	for i := range c.Cols {
		col := &c.Cols[i]
		col.Nulls, col.Fixed, col.Data = nil, col.Fixed[:0], col.Data[:0]
		if len(col.Offsets) > 0 {
			col.Offsets = col.Offsets[:1]
			col.Offsets[0] = 0
		}
	}
}

// AppendRange appends rows from to to-1 of src, whose columns must be of the same types; it copies them. The hidden
// columns are appended where c has them.
func (c *Columns) AppendRange(src *Columns, from, to int) {
	if from >= to {
		return
	}
	for i := range c.Cols {
		dst, s := &c.Cols[i], &src.Cols[i]
		dst.appendNulls(c.N, s.Nulls, from, to)
		if n := dst.Type.FixedSize(); n > 0 {
			dst.Fixed = append(dst.Fixed, s.Fixed[from*n:to*n]...)
		} else if dst.Type.IsVariable() {
			shift := int64(len(dst.Data)) - s.Offsets[from]
			for _, o := range s.Offsets[from+1 : to+1] {
				dst.Offsets = append(dst.Offsets, o+shift)
			}
			dst.Data = append(dst.Data, s.Data[s.Offsets[from]:s.Offsets[to]]...)
		}
	}
	if c.Seqs != nil {
		c.Seqs = append(c.Seqs, src.Seqs[from:to]...)
	}
	if c.Ops != nil {
		c.Ops = append(c.Ops, src.Ops[from:to]...)
	}
	c.N += to - from
}

// AppendReverse is AppendRange with the rows in the other order: row to-1 first, row from last.
func (c *Columns) AppendReverse(src *Columns, from, to int) {
	if from >= to {
		return
	}
	for i := range c.Cols {
		dst, s := &c.Cols[i], &src.Cols[i]
		dst.appendNulls(c.N, s.Nulls, from, to)
		if dst.Nulls != nil {
			slices.Reverse(dst.Nulls[c.N:])
		}
		if n := dst.Type.FixedSize(); n > 0 {
			dst.Fixed = appendReverse(dst.Fixed, s.Fixed[from*n:to*n], n)
		} else if dst.Type.IsVariable() {
			dst.Data = slices.Grow(dst.Data, int(s.Offsets[to]-s.Offsets[from]))
			dst.Offsets = slices.Grow(dst.Offsets, to-from)
			for j := to - 1; j >= from; j-- {
				dst.Data = append(dst.Data, s.Data[s.Offsets[j]:s.Offsets[j+1]]...)
				dst.Offsets = append(dst.Offsets, int64(len(dst.Data)))
			}
		}
	}
	if c.Seqs != nil {
		c.Seqs = append(c.Seqs, src.Seqs[from:to]...)
		slices.Reverse(c.Seqs[c.N:])
	}
	if c.Ops != nil {
		c.Ops = append(c.Ops, src.Ops[from:to]...)
		slices.Reverse(c.Ops[c.N:])
	}
	c.N += to - from
}

// appendReverse appends values of n bytes, the last one first.
func appendReverse(dst, src []byte, n int) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(src))[:at+len(src)]
	out := dst[at:]
	if n == 8 {
		for i := len(src) - 8; i >= 0; i, out = i-8, out[8:] {
			binary.LittleEndian.PutUint64(out, binary.LittleEndian.Uint64(src[i:]))
		}
		return dst
	}
	for i := len(src) - n; i >= 0; i, out = i-n, out[n:] {
		copy(out[:n], src[i:i+n])
	}
	return dst
}

// appendNulls appends nulls[from:to] behind n rows; nil stands for rows without NULLs on both sides.
func (col *Column) appendNulls(n int, nulls []bool, from, to int) {
	if nulls == nil {
		if col.Nulls != nil {
			col.Nulls = append(col.Nulls, make([]bool, to-from)...)
		}
		return
	}
	if col.Nulls == nil {
		if !anyTrue(nulls[from:to]) {
			return
		}
		col.Nulls = make([]bool, n, n+to-from)
	}
	col.Nulls = append(col.Nulls, nulls[from:to]...)
}

func anyTrue(b []bool) bool {
	for _, x := range b {
		if x {
			return true
		}
	}
	return false
}

// IsNull reports whether value i is NULL.
func (col *Column) IsNull(i int) bool { return col.Nulls != nil && col.Nulls[i] }

// Storage returns value i in storage form; it aliases the column.
func (col *Column) Storage(i int) []byte {
	if col.Offsets != nil {
		return col.Data[col.Offsets[i]:col.Offsets[i+1]:col.Offsets[i+1]]
	}
	n := col.Type.FixedSize()
	return col.Fixed[i*n : (i+1)*n : (i+1)*n]
}

// Value returns value i; its Bytes alias the column.
func (col *Column) Value(i int) base.Value {
	if col.IsNull(i) {
		return base.Null()
	}
	return keyenc.StorageValue(col.Type, col.Storage(i))
}

// AppendKey appends the encoded key of row i to dst; keyCols are the positions of the key columns in c, in key order.
// The batch must hold valid values: it came from FromArrow, a Builder or a data file.
func (c *Columns) AppendKey(dst []byte, keyCols []int, i int) []byte {
	for _, k := range keyCols {
		col := &c.Cols[k]
		dst = keyenc.AppendStorage(dst, col.Type, col.Storage(i))
	}
	return dst
}

// AppendRecord appends the record of row i to dst. c must have all columns of the layout's schema in order, with valid
// values, and the row must be within base.MaxValueBytes, as FromArrow and a Builder ensure. It allocates only where dst
// must grow.
func (c *Columns) AppendRecord(dst []byte, l *Layout, i int) []byte {
	size := l.fixed
	for _, v := range l.varCols {
		o := c.Cols[v].Offsets[i : i+2]
		size += int(o[1] - o[0])
	}
	dst, rec := grow(dst, size)
	clear(rec[:l.nulls])
	le := binary.LittleEndian
	end := l.fixed
	cols := c.Cols[:len(l.fields)]
	for j := range l.fields {
		f, col := &l.fields[j], &cols[j]
		if col.Nulls != nil && col.Nulls[i] {
			rec[j>>3] |= 1 << (j & 7)
		}
		switch f.size {
		case 0:
			o := col.Offsets[i : i+2]
			end += copy(rec[end:], col.Data[o[0]:o[1]])
			le.PutUint32(rec[f.off:], uint32(end-l.fixed))
		case 1:
			rec[f.off] = col.Fixed[i]
		case 4:
			le.PutUint32(rec[f.off:], le.Uint32(col.Fixed[i*4:]))
		case 8:
			le.PutUint64(rec[f.off:], le.Uint64(col.Fixed[i*8:]))
		default:
			copy(rec[f.off:f.off+f.size], col.Fixed[i*f.size:])
		}
	}
	return dst
}
