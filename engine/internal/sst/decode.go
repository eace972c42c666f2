package sst

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// scratch holds the buffers that decoding needs beside its output.
type scratch struct {
	levels []int16
	// def and rep are the levels of a leaf of a nested column, values is how many values came with them.
	def, rep []int16
	values   int
	dense    []byte
	bools    []bool
	arrays   []parquet.ByteArray
	fixed    []parquet.FixedLenByteArray
	narrow   row.Column
}

// sized returns a slice of n elements, in b's memory where it is large enough.
func sized[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}

// decode reads the next n rows of a chunk and appends them to out, which has rows rows, in storage form.
func (c *fileColumn) decode(cr file.ColumnChunkReader, out *row.Column, rows, n int, s *scratch) error {
	for n > 0 {
		got, err := c.decodeSome(cr, out, rows, n, s)
		if err != nil {
			return err
		}
		if got <= 0 || got > n {
			if err := cr.Err(); err != nil {
				return err
			}
			return base.Errorf(base.CodeCorruption, "column %q ends %d rows early", c.name, n)
		}
		rows += got
		n -= got
	}
	return nil
}

// decodeSome appends what the current page still has, at most n rows, and returns how many.
func (c *fileColumn) decodeSome(cr file.ColumnChunkReader, out *row.Column, rows, n int, s *scratch) (int, error) {
	if c.stored != nil {
		return c.decodeNarrow(cr, out, rows, n, s)
	}
	lv := c.levels(n, s)
	switch r := cr.(type) {
	case *file.Int32ColumnChunkReader:
		return decodeNumbers[int32](c, r, out, rows, n, lv, s)
	case *file.Int64ColumnChunkReader:
		return decodeNumbers[int64](c, r, out, rows, n, lv, s)
	case *file.Float32ColumnChunkReader:
		return decodeNumbers[float32](c, r, out, rows, n, lv, s)
	case *file.Float64ColumnChunkReader:
		return decodeNumbers[float64](c, r, out, rows, n, lv, s)
	case *file.BooleanColumnChunkReader:
		s.bools = sized(s.bools, n)
		got, values, err := r.ReadBatchInPage(int64(n), s.bools, lv.def, lv.rep)
		if err != nil {
			return 0, err
		}
		s.dense = s.dense[:0]
		for _, b := range s.bools[:values] {
			v := byte(0)
			if b {
				v = 1
			}
			s.dense = append(s.dense, v)
		}
		return int(got), c.spread(out, rows, c.taken(got, values, s), values, lv.def, s.dense, 1)
	case *file.FixedLenByteArrayColumnChunkReader:
		s.fixed = sized(s.fixed, n)
		got, values, err := r.ReadBatchInPage(int64(n), s.fixed, lv.def, lv.rep)
		if err != nil {
			return 0, err
		}
		s.dense = s.dense[:0]
		for _, v := range s.fixed[:values] {
			if len(v) != c.width {
				return 0, base.Errorf(base.CodeCorruption, "column %q has a value of %d bytes, not %d", c.name, len(v), c.width)
			}
			s.dense = append(s.dense, v...)
		}
		return int(got), c.spread(out, rows, c.taken(got, values, s), values, lv.def, s.dense, c.width)
	case *file.ByteArrayColumnChunkReader:
		s.arrays = sized(s.arrays, n)
		got, values, err := r.ReadBatchInPage(int64(n), s.arrays, lv.def, lv.rep)
		if err != nil {
			return 0, err
		}
		if c.form == formLabel {
			return int(got), c.labelsTo(out, rows, c.taken(got, values, s), values, lv.def, s)
		}
		return int(got), c.appendArrays(out, rows, c.taken(got, values, s), values, lv.def, s.arrays)
	}
	return 0, base.Errorf(base.CodeParquet, "unknown column reader %T", cr)
}

// decodeNarrow is decodeSome for a column that has become wider since.
func (c *fileColumn) decodeNarrow(cr file.ColumnChunkReader, out *row.Column, rows, n int, s *scratch) (int, error) {
	narrow := &s.narrow
	*narrow = row.Column{Type: c.stored.typ, Fixed: narrow.Fixed[:0], Data: narrow.Data[:0], Offsets: narrow.Offsets[:0]}
	if narrow.Type.IsVariable() {
		narrow.Offsets = append(narrow.Offsets, 0)
	}
	got, err := c.stored.decodeSome(cr, narrow, 0, n, s)
	if err == nil {
		narrow.AppendWidened(out, rows, got, c.widen)
	}
	return got, err
}

// levels returns room for the levels of n rows, or of n values of a leaf.
func (c *fileColumn) levels(n int, s *scratch) levels {
	switch {
	case c.leaf:
		s.def = sized(s.def, n)
		lv := levels{def: s.def}
		if c.maxRep > 0 {
			s.rep = sized(s.rep, n)
			lv.rep = s.rep
		}
		return lv
	case c.optional:
		s.levels = sized(s.levels, n)
		return levels{def: s.levels}
	}
	return levels{}
}

// taken returns how many rows the values read make: a leaf gets no NULLs.
func (c *fileColumn) taken(got int64, values int, s *scratch) int {
	if c.leaf {
		s.values = values
		return values
	}
	return int(got)
}

type numberReader[T any] interface {
	ReadBatchInPage(n int64, values []T, defLevels, repLevels []int16) (int64, int, error)
}

func decodeNumbers[T any](c *fileColumn, r numberReader[T], out *row.Column, rows, n int, lv levels, s *scratch) (int, error) {
	if c.form == formSame && !c.optional && !c.leaf {
		// The common case: values go straight to their place.
		at := len(out.Fixed)
		out.Fixed = slices.Grow(out.Fixed, n*c.width)[:at+n*c.width]
		_, values, err := r.ReadBatchInPage(int64(n), cast[T](out.Fixed[at:]), nil, nil)
		out.Fixed = out.Fixed[:at+max(values, 0)*c.width]
		return values, err
	}
	s.dense = sized(s.dense, n*c.width)
	got, values, err := r.ReadBatchInPage(int64(n), cast[T](s.dense), lv.def, lv.rep)
	if err != nil {
		return 0, err
	}
	return int(got), c.spread(out, rows, c.taken(got, values, s), values, lv.def, s.dense[:values*c.width], c.width)
}

// nulls appends the NULL marks of n rows behind rows to out and checks them against the count of values. Also where the
// table's column is NOT NULL: rows that were deleted before it became so may be NULL.
func (c *fileColumn) nulls(out *row.Column, rows, n, values int, levels []int16) error {
	if values == n {
		if out.Nulls != nil {
			out.Nulls = append(out.Nulls, make([]bool, n)...)
		}
		return nil
	}
	if levels == nil {
		return base.Errorf(base.CodeCorruption, "column %q is NOT NULL and has %d values in %d rows", c.name, values, n)
	}
	if out.Nulls == nil {
		out.Nulls = make([]bool, rows, rows+n)
	}
	defined := 0
	for _, l := range levels[:n] {
		out.Nulls = append(out.Nulls, l == 0)
		defined += int(l & 1)
	}
	if defined != values {
		return base.Errorf(base.CodeCorruption, "column %q has %d values, its levels say %d", c.name, values, defined)
	}
	return nil
}

// spread appends n rows of fixed size, of which values are not NULL and stand in page form in dense.
func (c *fileColumn) spread(out *row.Column, rows, n, values int, levels []int16, dense []byte, width int) error {
	if err := c.nulls(out, rows, n, values, levels); err != nil {
		return err
	}
	if values == n && c.form == formSame {
		out.Fixed = append(out.Fixed, dense...)
		return nil
	}
	out.Fixed = slices.Grow(out.Fixed, n*c.size)
	for i := 0; i < n; i++ {
		if out.Nulls != nil && out.Nulls[rows+i] {
			at := len(out.Fixed)
			out.Fixed = out.Fixed[:at+c.size]
			clear(out.Fixed[at:])
			continue
		}
		out.Fixed = c.appendStorage(out.Fixed, dense[:width])
		dense = dense[width:]
	}
	return nil
}

// appendArrays appends n rows of variable length.
func (c *fileColumn) appendArrays(out *row.Column, rows, n, values int, levels []int16, arrays []parquet.ByteArray) error {
	if err := c.nulls(out, rows, n, values, levels); err != nil {
		return err
	}
	size := 0
	for _, a := range arrays[:values] {
		size += len(a)
	}
	data, at := slices.Grow(out.Data, size), len(out.Data)
	data = data[:at+size]
	first := len(out.Offsets)
	out.Offsets = slices.Grow(out.Offsets, n)[:first+n]
	ends := out.Offsets[first:]
	if values == n {
		for i, a := range arrays[:n] {
			at += copy(data[at:], a)
			ends[i] = int64(at)
		}
	} else {
		nulls, next := out.Nulls[rows:], 0
		for i := range ends {
			if !nulls[i] {
				at += copy(data[at:], arrays[next])
				next++
			}
			ends[i] = int64(at)
		}
	}
	out.Data = data
	return nil
}

// labelsTo appends n rows of an ENUM: the labels' indices.
func (c *fileColumn) labelsTo(out *row.Column, rows, n, values int, levels []int16, s *scratch) error {
	s.dense = s.dense[:0]
	for _, a := range s.arrays[:values] {
		i, ok := c.labelIndex[string(a)]
		if !ok {
			return base.Errorf(base.CodeCorruption, "column %q holds %q, which is no label of its type", c.name, truncated(a))
		}
		s.dense = binary.LittleEndian.AppendUint32(s.dense, i)
	}
	return c.spread(out, rows, n, values, levels, s.dense, 4)
}

func truncated(b []byte) []byte { return b[:min(len(b), 64)] }

// fill appends n rows of a column that the file is too old to have.
func (c *fileColumn) fill(out *row.Column, rows, n int) error {
	if c.absent == nil {
		if err := c.nulls(out, rows, n, 0, make([]int16, n)); err != nil {
			return err
		}
	} else if err := c.nulls(out, rows, n, n, nil); err != nil {
		return err
	}
	if c.size > 0 {
		value := c.absent
		if value == nil {
			value = make([]byte, c.size)
		}
		for i := 0; i < n; i++ {
			out.Fixed = append(out.Fixed, value...)
		}
		return nil
	}
	for i := 0; i < n; i++ {
		out.Data = append(out.Data, c.absent...)
		out.Offsets = append(out.Offsets, int64(len(out.Data)))
	}
	return nil
}
