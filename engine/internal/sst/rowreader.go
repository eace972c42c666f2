package sst

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// RowReader reads whole rows of a file, each as a record. It keeps the last page of every column, so that rows that are
// asked for in order of their positions cost each page once. It is for one goroutine at a time; the file must stay open.
type RowReader struct {
	r      *Reader
	layout *row.Layout
	pages  []*page // by column
	cells  []row.Cell
	read   bool // the last row took reading, beyond the pages held and cached
}

// NewRowReader makes a reader of rows in a layout of the schema that the file was opened with.
func (r *Reader) NewRowReader(l *row.Layout) *RowReader {
	n := len(r.schema.Columns)
	return &RowReader{r: r, layout: l, pages: make([]*page, n), cells: make([]row.Cell, n)}
}

// Append appends the record of the row at a position to dst.
func (x *RowReader) Append(dst []byte, pos int64) ([]byte, error) {
	if pos < 0 || pos >= x.r.rows {
		return dst, base.Errorf(base.CodeInvalidArgument, "%s: row %d of %d", x.r.path, pos, x.r.rows)
	}
	x.read = false
	err := guard(x.r.path, "reading a row", func() error {
		for i := range x.cells {
			if err := x.cell(i, pos); err != nil {
				return base.Wrapf(codeOr(err, base.CodeCorruption), err, "row %d, column %q", pos, x.r.columns[i].name)
			}
		}
		dst = x.layout.AppendCells(dst, x.cells)
		return nil
	})
	return dst, err
}

// cell finds the value of a column.
func (x *RowReader) cell(i int, pos int64) (err error) {
	if c := &x.r.columns[i]; c.ordinal < 0 {
		x.cells[i] = row.Cell{Col: &c.one}
		return nil
	}
	p := x.pages[i]
	if p == nil || pos < p.first || pos >= p.first+int64(p.rows) {
		var cached bool
		if p, cached, err = x.r.cachedPage(i, pos); err != nil {
			return err
		}
		x.pages[i] = p
		x.read = x.read || !cached
	}
	x.cells[i] = row.Cell{Col: &p.col, Row: int(pos - p.first)}
	return nil
}

// Read reports whether the last row took reading: some page of it was neither held nor in the cache.
func (x *RowReader) Read() bool { return x.read }

// Record returns the record of one row, and whether it took reading (see [RowReader.Read]).
func (r *Reader) Record(l *row.Layout, pos int64) (record []byte, read bool, err error) {
	x, ok := r.rowReaders.Get().(*RowReader)
	if !ok || x.layout != l {
		x = r.NewRowReader(l)
	}
	record, err = x.Append(nil, pos)
	read = x.read
	// The pages are the cache's to keep.
	clear(x.pages)
	clear(x.cells)
	r.rowReaders.Put(x)
	return record, read, err
}
