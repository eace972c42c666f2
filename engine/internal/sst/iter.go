package sst

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// defaultBatchRows is how many rows a batch has by default.
const defaultBatchRows = 8192

// IterOptions say which rows and columns an iteration yields. The zero value means all of them.
type IterOptions struct {
	// Lower and Upper are encoded keys or prefixes of keys; nil for no bound.
	Lower, Upper                   []byte
	LowerInclusive, UpperInclusive bool
	// Projection holds columns of the table's schema, nil for all.
	Projection []int
	// Skip holds positions of rows to leave out. It must not change during the iteration.
	Skip *roaring.Bitmap
	// Hidden also yields sequence numbers and operations.
	Hidden bool
	// BatchRows bounds the rows of a batch. The default value is 8192.
	BatchRows int
}

// Iter yields the rows of a file in key order, in batches. It is for one goroutine at a time.
type Iter struct {
	r       *Reader
	o       IterOptions
	columns []int // of r.columns
	next    int64 // the next row to read
	end     int64
	started bool
	err     error

	group     int
	readers   []file.ColumnChunkReader // of the open row group; nil for columns that the file does not have
	out, kept *row.Columns
	hidden    [2]row.Column
	positions []uint32
	scratch   scratch
}

// NewIter makes an iteration. It reads nothing before the first Next, which also reports errors of the options.
func (r *Reader) NewIter(o IterOptions) *Iter {
	it := &Iter{r: r, o: o, group: -1, err: r.checkProjection(o.Projection)}
	if it.o.BatchRows <= 0 {
		it.o.BatchRows = defaultBatchRows
	}
	if it.err != nil {
		return it
	}
	it.out, it.kept = row.NewColumns(r.schema, o.Projection), row.NewColumns(r.schema, o.Projection)
	for i := range it.out.Cols {
		c := i
		if o.Projection != nil {
			c = o.Projection[i]
		}
		it.columns = append(it.columns, c)
	}
	if o.Hidden {
		n := len(r.schema.Columns)
		it.columns = append(it.columns, n, n+1)
		for _, c := range []*row.Columns{it.out, it.kept} {
			c.Seqs, c.Ops = []base.Seq{}, []base.Op{}
		}
	}
	it.readers = make([]file.ColumnChunkReader, len(it.columns))
	return it
}

// Next returns the next batch and the position of its first row, nil at the end. The batch is the iteration's own
// memory, valid until the next call. The rows of a batch follow each other in the file unless some were left out: see
// Positions.
func (it *Iter) Next() (cols *row.Columns, first int64, err error) {
	if it.err != nil {
		return nil, 0, it.err
	}
	it.err = guard(it.r.path, "scanning", func() error {
		if !it.started {
			it.started = true
			if err := it.setBounds(); err != nil {
				return err
			}
		}
		for it.next < it.end {
			if cols, err = it.batch(); cols != nil || err != nil {
				return err
			}
		}
		return nil
	})
	if it.err != nil {
		return nil, 0, it.err
	}
	if cols == nil {
		it.closeReaders()
		return nil, 0, nil
	}
	if len(it.positions) > 0 {
		return cols, int64(it.positions[0]), nil
	}
	return cols, it.next - int64(cols.N), nil
}

// Positions returns the position of each row of the last batch, or nil when they follow each other from its first.
func (it *Iter) Positions() []uint32 {
	if len(it.positions) == 0 {
		return nil
	}
	return it.positions
}

// Close ends the iteration.
func (it *Iter) Close() {
	it.closeReaders()
	if it.err == nil {
		it.err = base.Errorf(base.CodeClosed, "%s: the iterator is closed", it.r.path)
	}
}

func (it *Iter) closeReaders() {
	for i, cr := range it.readers {
		if cr != nil {
			_ = cr.Close() // it only frees buffers
			it.readers[i] = nil
		}
	}
	it.group = -1
}

// setBounds turns the key bounds into rows.
func (it *Iter) setBounds() error {
	it.end = it.r.rows
	var err error
	if it.o.Lower != nil {
		if it.next, err = it.r.bound(it.o.Lower, !it.o.LowerInclusive); err != nil {
			return err
		}
	}
	if it.o.Upper != nil {
		it.end, err = it.r.bound(it.o.Upper, it.o.UpperInclusive)
	}
	return err
}

// bound returns the first row whose key is not below the given one; with after, the first whose key is above it.
func (r *Reader) bound(key []byte, after bool) (int64, error) {
	b := r.index.find(key)
	if b < 0 {
		if len(r.index.last) > 0 && string(key) > string(r.index.last) {
			return r.rows, nil
		}
		return 0, nil
	}
	block, err := r.block(b)
	if err != nil {
		return 0, err
	}
	i, exact := block.seek(key, 0)
	if exact && after {
		i++
	}
	return block.first + int64(i), nil
}

// batch reads up to a batch of rows of one row group; nil when all of them are left out.
func (it *Iter) batch() (*row.Columns, error) {
	if err := it.openGroup(); err != nil {
		return nil, err
	}
	g := &it.r.groups[it.group]
	n := int(min(int64(it.o.BatchRows), it.end-it.next, g.first+g.rows-it.next))
	it.out.Reset()
	for i, c := range it.columns {
		if err := it.readColumn(i, c, n); err != nil {
			return nil, base.Wrapf(codeOr(err, base.CodeCorruption), err, "rows from %d, column %q", it.next, it.r.columns[c].name)
		}
	}
	it.out.N = n
	it.next += int64(n)
	return it.leaveOut(n), nil
}

// openGroup opens the row group of the next row.
func (it *Iter) openGroup() error {
	if it.group >= 0 {
		if g := &it.r.groups[it.group]; it.next < g.first+g.rows {
			return nil
		}
		it.closeReaders()
	}
	it.group = it.r.group(it.next)
	group := it.r.scan.RowGroup(it.group)
	for i, c := range it.columns {
		ordinal := it.r.columns[c].ordinal
		if ordinal < 0 {
			continue
		}
		cr, err := group.Column(ordinal)
		if err != nil {
			return err
		}
		it.readers[i] = cr
		if at := it.next - it.r.groups[it.group].first; at > 0 {
			if err := cr.SeekToRow(at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (it *Iter) readColumn(i, c, n int) error {
	col := &it.r.columns[c]
	out := (*row.Column)(nil)
	if i < len(it.out.Cols) {
		out = &it.out.Cols[i]
	} else {
		out = &it.hidden[i-len(it.out.Cols)]
		out.Type, out.Fixed = col.typ, out.Fixed[:0]
	}
	if col.ordinal < 0 {
		return col.fill(out, 0, n)
	}
	if err := col.decode(it.readers[i], out, 0, n, &it.scratch); err != nil {
		return err
	}
	switch i - len(it.out.Cols) {
	case 0:
		it.out.Seqs = append(it.out.Seqs, cast[base.Seq](out.Fixed)...)
	case 1:
		for _, v := range cast[int32](out.Fixed) {
			op, err := toOp(v)
			if err != nil {
				return err
			}
			it.out.Ops = append(it.out.Ops, op)
		}
	}
	return nil
}

// leaveOut takes the rows to skip out of the batch that was just read.
func (it *Iter) leaveOut(n int) *row.Columns {
	it.positions = it.positions[:0]
	first := uint64(it.next) - uint64(n)
	if it.o.Skip == nil || !it.o.Skip.IntersectsWithInterval(first, first+uint64(n)) {
		return it.out
	}
	it.kept.Reset()
	skip := it.o.Skip.Iterator()
	skip.AdvanceIfNeeded(uint32(first))
	at := 0
	for at < n {
		gap := n
		if skip.HasNext() && uint64(skip.PeekNext())-first < uint64(n) {
			gap = int(uint64(skip.Next()) - first)
		}
		it.kept.AppendRange(it.out, at, gap)
		for i := at; i < gap; i++ {
			it.positions = append(it.positions, uint32(first)+uint32(i))
		}
		at = gap + 1
	}
	if it.kept.N == 0 {
		return nil
	}
	return it.kept
}
