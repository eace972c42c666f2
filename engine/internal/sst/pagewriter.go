package sst

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// pageShape says where the pages of a column end and whether it has bounds.
type pageShape struct {
	bytes int
	// starts are the first rows of the pages, for key columns: a block of the key index is one page of each. nil: pages
	// end by bytes.
	starts []int
	// rows is how many rows a page has, for columns with a dictionary; 0: pages end by bytes.
	rows int
	// noBounds: the column holds a NaN in this row group.
	noBounds bool
}

// pageWriter writes column chunks page by page. Its buffers are reused from chunk to chunk.
type pageWriter struct {
	levels  []int16 // definition levels
	ones    []int16 // of rows without NULLs
	dense   []byte  // page-form values without the NULLs
	offsets []int64
	arrays  []parquet.ByteArray
	fixed   []parquet.FixedLenByteArray
}

// chunkWriter is the part of the library's typed column writers that all of them share.
type chunkWriter interface {
	file.ColumnChunkWriter
	FlushCurrentPage() error
}

// write writes n values of a column.
func (p *pageWriter) write(cw file.ColumnChunkWriter, t *colType, col *row.Column, n int, shape pageShape) error {
	w, ok := cw.(chunkWriter)
	if !ok {
		return base.Errorf(base.CodeParquet, "unknown column writer %T", cw)
	}
	if bf := cw.GetBloomFilter(); bf != nil {
		addEqualFloats(bf, t, col)
	}
	for from, page := 0, 1; from < n; page++ {
		to := n
		switch {
		case shape.starts != nil && page < len(shape.starts):
			to = shape.starts[page]
		case shape.starts == nil && shape.rows > 0:
			to = min(n, from+shape.rows)
		case shape.starts == nil:
			to = pageEnd(t, col, from, n, shape.bytes)
		}
		if err := p.writePage(cw, t, col, from, to); err != nil {
			return err
		}
		if stats := cw.PageStatistics(); shape.noBounds && stats != nil {
			// Bounds leave NaN out: without this the page's and the chunk's would be too narrow.
			nulls, values := stats.NullCount(), stats.NumValues()
			stats.Reset()
			stats.IncNulls(nulls)
			stats.IncNumValues(values)
		}
		if err := w.FlushCurrentPage(); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// vectorRows is how many rows DuckDB's scan reads at a time. It is fastest when pages end where its vectors do.
const vectorRows = 2048

// pageEnd returns the row behind the page of about so many bytes that starts at row from.
func pageEnd(t *colType, col *row.Column, from, n, bytes int) int {
	limit := min(n, from+maxPageRows)
	if t.size > 0 {
		return wholeVectors(from, min(limit, from+max(1, bytes/max(t.width, 1))), n)
	}
	size := func(to int) int { return int(col.Offsets[to]-col.Offsets[from]) + 4*(to-from) }
	// Narrow values: a page of a whole vector may be larger than asked for by half.
	if v := from + vectorRows; v <= limit && size(v) > bytes && size(v) <= bytes*12/5 {
		bytes = min(size(v), bytes*8/5)
	}
	to := from + 1
	for to < limit && size(to+1) <= bytes {
		to++
	}
	return wholeVectors(from, to, n)
}

// wholeVectors ends a page of more than a vector with a whole one.
func wholeVectors(from, to, n int) int {
	if to < n && to-from > vectorRows {
		to -= (to - from) % vectorRows
	}
	return to
}

// holdsNaN reports whether a column of this row group has a NaN.
func holdsNaN(t *colType, col *row.Column) bool {
	b := col.Fixed
	switch t.typ.Kind {
	case base.KindFloat:
		for ; len(b) >= 4; b = b[4:] {
			if binary.LittleEndian.Uint32(b)&math.MaxInt32 > 0x7f800000 {
				return true
			}
		}
	case base.KindDouble:
		for ; len(b) >= 8; b = b[8:] {
			if binary.LittleEndian.Uint64(b)&math.MaxInt64 > 0x7ff0000000000000 {
				return true
			}
		}
	}
	return false
}

// addEqualFloats adds to a filter the other forms of values that compare equal but differ in their bits: a probe for one
// zero or one NaN must find the others.
func addEqualFloats(bf metadata.BloomFilterBuilder, t *colType, col *row.Column) {
	zero, nan := false, false
	switch t.typ.Kind {
	case base.KindFloat:
		for b := col.Fixed; len(b) >= 4; b = b[4:] {
			v := binary.LittleEndian.Uint32(b) & math.MaxInt32
			zero, nan = zero || v == 0, nan || v > 0x7f800000
		}
		for _, v := range equalForms(zero, nan, []uint32{0, 1 << 31}, []uint32{0x7fc00000, 0xffc00000}) {
			bf.InsertHash(bf.Hasher().Sum64(binary.LittleEndian.AppendUint32(nil, v)))
		}
	case base.KindDouble:
		for b := col.Fixed; len(b) >= 8; b = b[8:] {
			v := binary.LittleEndian.Uint64(b) & math.MaxInt64
			zero, nan = zero || v == 0, nan || v > 0x7ff0000000000000
		}
		for _, v := range equalForms(zero, nan, []uint64{0, 1 << 63}, []uint64{0x7ff8000000000000, 0xfff8000000000000}) {
			bf.InsertHash(bf.Hasher().Sum64(binary.LittleEndian.AppendUint64(nil, v)))
		}
	}
}

func equalForms[T any](zero, nan bool, zeros, nans []T) (out []T) {
	if zero {
		out = append(out, zeros...)
	}
	if nan {
		out = append(out, nans...)
	}
	return out
}

// writeSeqs and writeOps write the hidden columns.
func (p *pageWriter) writeSeqs(cw file.ColumnChunkWriter, seqs []base.Seq, pageBytes int) error {
	w, ok := cw.(*file.Int64ColumnChunkWriter)
	if !ok {
		return base.Errorf(base.CodeParquet, "unknown column writer %T", cw)
	}
	values := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(seqs))), len(seqs))
	step := max(1, min(pageBytes/8, maxPageRows))
	for from := 0; from < len(values); from += step {
		if _, err := w.WriteBatch(values[from:min(from+step, len(values))], nil, nil); err != nil {
			return err
		}
		if err := w.FlushCurrentPage(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pageWriter) writeOps(cw file.ColumnChunkWriter, ops []base.Op) error {
	w, ok := cw.(*file.Int32ColumnChunkWriter)
	if !ok {
		return base.Errorf(base.CodeParquet, "unknown column writer %T", cw)
	}
	for from := 0; from < len(ops); from += maxPageRows {
		page := ops[from:min(from+maxPageRows, len(ops))]
		p.dense = p.dense[:0]
		for _, op := range page {
			p.dense = binary.LittleEndian.AppendUint32(p.dense, uint32(op))
		}
		if _, err := w.WriteBatch(cast[int32](p.dense), nil, nil); err != nil {
			return err
		}
		if err := w.FlushCurrentPage(); err != nil {
			return err
		}
	}
	return nil
}

// cast views bytes in little-endian order as numbers. The engine runs on little-endian machines only (see endian.go).
func cast[T any](b []byte) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	if len(b) < size {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// levels are definition and repetition levels; nil where the column has none.
type levels struct{ def, rep []int16 }

// writePage writes the values of rows from to to-1 into the open page.
func (p *pageWriter) writePage(cw file.ColumnChunkWriter, t *colType, col *row.Column, from, to int) error {
	return p.writeValues(cw, t, col, from, to, levels{def: p.definitionLevels(t, col, from, to)})
}

// writeValues writes values from to to-1, of which those that are NULL are left out, with their levels.
func (p *pageWriter) writeValues(cw file.ColumnChunkWriter, t *colType, col *row.Column, from, to int, lv levels) (err error) {
	switch w := cw.(type) {
	case *file.Int32ColumnChunkWriter:
		_, err = w.WriteBatch(cast[int32](p.fixedValues(t, col, from, to)), lv.def, lv.rep)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(cast[int64](p.fixedValues(t, col, from, to)), lv.def, lv.rep)
	case *file.Float32ColumnChunkWriter:
		_, err = w.WriteBatch(cast[float32](p.fixedValues(t, col, from, to)), lv.def, lv.rep)
	case *file.Float64ColumnChunkWriter:
		_, err = w.WriteBatch(cast[float64](p.fixedValues(t, col, from, to)), lv.def, lv.rep)
	case *file.BooleanColumnChunkWriter:
		_, err = w.WriteBatch(cast[bool](p.fixedValues(t, col, from, to)), lv.def, lv.rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		values := p.fixedValues(t, col, from, to)
		p.fixed = p.fixed[:0]
		for ; len(values) >= t.width && len(values) > 0; values = values[t.width:] {
			p.fixed = append(p.fixed, parquet.FixedLenByteArray(values[:t.width:t.width]))
		}
		_, err = w.WriteBatch(p.fixed, lv.def, lv.rep)
	case *file.ByteArrayColumnChunkWriter:
		err = p.writeBytes(w, t, col, from, to, lv)
	default:
		err = base.Errorf(base.CodeParquet, "unknown column writer %T", cw)
	}
	return err
}

// definitionLevels returns 0 for each NULL and 1 for each value of an optional column, nil for a required one.
func (p *pageWriter) definitionLevels(t *colType, col *row.Column, from, to int) []int16 {
	if !t.nullable {
		return nil
	}
	if col.Nulls == nil {
		for len(p.ones) < to-from {
			p.ones = append(p.ones, 1)
		}
		return p.ones[:to-from]
	}
	p.levels = p.levels[:0]
	for _, null := range col.Nulls[from:to] {
		level := int16(1)
		if null {
			level = 0
		}
		p.levels = append(p.levels, level)
	}
	return p.levels
}

// fixedValues returns the page form of the values without the NULLs; for BOOLEAN one byte each.
func (p *pageWriter) fixedValues(t *colType, col *row.Column, from, to int) []byte {
	values := col.Fixed[from*t.size : to*t.size]
	if t.form == formSame && (col.Nulls == nil || !t.nullable) {
		return values
	}
	p.dense = p.dense[:0]
	for i := from; i < to; i++ {
		if t.nullable && col.Nulls != nil && col.Nulls[i] {
			continue
		}
		p.dense = t.appendPage(p.dense, col.Fixed[i*t.size:(i+1)*t.size])
	}
	return p.dense
}

func (p *pageWriter) writeBytes(w *file.ByteArrayColumnChunkWriter, t *colType, col *row.Column, from, to int, lv levels) error {
	isNull := func(i int) bool { return t.nullable && col.Nulls != nil && col.Nulls[i] }
	if t.form == formLabel {
		p.arrays = p.arrays[:0]
		for i := from; i < to; i++ {
			if isNull(i) {
				continue
			}
			label := int(binary.LittleEndian.Uint32(col.Fixed[i*4:]))
			if label >= len(t.typ.Labels) {
				return base.Errorf(base.CodeInvalidArgument, "label %d of an ENUM of %d", label, len(t.typ.Labels))
			}
			p.arrays = append(p.arrays, t.labels[label])
		}
		_, err := w.WriteBatch(p.arrays, lv.def, lv.rep)
		return err
	}
	data := col.Data
	if data == nil {
		data = []byte{} // empty strings are slices of it: nil ones would not count as values in the statistics
	}
	if w.SupportsArrowOffsets() {
		offsets := col.Offsets[from : to+1]
		if t.nullable && col.Nulls != nil {
			p.offsets = append(p.offsets[:0], offsets[0])
			for i := from; i < to; i++ {
				if !col.Nulls[i] {
					p.offsets = append(p.offsets, col.Offsets[i+1])
				}
			}
			offsets = p.offsets
		}
		_, err := w.WriteBatchArrow64(data, offsets, lv.def, lv.rep)
		return err
	}
	p.arrays = p.arrays[:0]
	for i := from; i < to; i++ {
		if !isNull(i) {
			p.arrays = append(p.arrays, data[col.Offsets[i]:col.Offsets[i+1]:col.Offsets[i+1]])
		}
	}
	_, err := w.WriteBatch(p.arrays, lv.def, lv.rep)
	return err
}
