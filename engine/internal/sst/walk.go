package sst

import (
	"slices"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// walker reads the rows of an iteration, one batch after the other. It is for one goroutine at a time.
type walker struct {
	r       *Reader
	o       IterOptions
	columns []int // of r.columns
	low     int64 // the rows still to be read are low to high-1
	high    int64
	started bool

	lib     *library // while readers are open
	group   int
	readers []file.ColumnChunkReader // of the open row group; nil for columns that the file does not have, and nested ones
	nested  []*nestedReader          // of the open row group; nil for other columns
	at      int64                    // the row at which these stand
	limit   int                      // rows of a batch of the open row group
	hidden  [2]row.Column
	scratch scratch
}

func newWalker(r *Reader, o IterOptions) *walker {
	w := &walker{r: r, o: o, group: -1}
	for i := range r.schema.Columns {
		if o.Projection == nil {
			w.columns = append(w.columns, i)
		}
	}
	w.columns = append(w.columns, o.Projection...)
	if o.Hidden {
		n := len(r.schema.Columns)
		w.columns = append(w.columns, n, n+1)
	}
	w.readers = make([]file.ColumnChunkReader, len(w.columns))
	w.nested = make([]*nestedReader, len(w.columns))
	return w
}

func (w *walker) newBatch() *batch {
	b := &batch{out: row.NewColumns(w.r.schema, w.o.Projection), kept: row.NewColumns(w.r.schema, w.o.Projection)}
	if w.o.Hidden {
		for _, c := range []*row.Columns{b.out, b.kept} {
			c.Seqs, c.Ops = []base.Seq{}, []base.Op{}
		}
	}
	return b
}

// next fills a batch and reports whether there was one. It closes what it reads from at the end and after an error.
func (w *walker) next(b *batch) (more bool, err error) {
	err = guard(w.r.path, "scanning", func() error {
		if !w.started {
			w.started = true
			if err := w.setBounds(); err != nil {
				return err
			}
		}
		for w.low < w.high && !more {
			if err := w.read(b); err != nil {
				return err
			}
			more = b.rows != nil
		}
		return nil
	})
	if !more {
		w.closeReaders()
	}
	return more && err == nil, err
}

func (w *walker) closeReaders() {
	for i, cr := range w.readers {
		if cr != nil {
			_ = cr.Close() // it only frees buffers
			w.readers[i] = nil
		}
	}
	for i, nr := range w.nested {
		if nr != nil {
			nr.close()
			w.nested[i] = nil
		}
	}
	w.lib, w.group = nil, -1
}

// setBounds turns the key bounds into rows.
func (w *walker) setBounds() error {
	w.high = w.r.rows
	var err error
	if w.o.Lower != nil {
		if w.low, err = w.r.bound(w.o.Lower, !w.o.LowerInclusive); err != nil {
			return err
		}
	}
	if w.o.Upper != nil {
		w.high, err = w.r.bound(w.o.Upper, w.o.UpperInclusive)
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

// read decodes the next rows of one row group into b. b.rows is nil when all of them are left out.
func (w *walker) read(b *batch) error {
	next := w.low
	if w.o.Reverse {
		next = w.high - 1
	}
	if err := w.openGroup(next); err != nil {
		return err
	}
	g := &w.r.groups[w.group]
	from, to := max(w.low, g.first), min(w.high, g.first+g.rows)
	if w.o.Reverse {
		// Batches start where those of a scan upwards from the row group's start would: with pages, mostly.
		from = max(from, g.first+(next-g.first)/int64(w.limit)*int64(w.limit))
		w.high = from
	} else {
		to = min(to, from+int64(w.limit))
		w.low = to
	}
	if err := w.seek(from, to); err != nil {
		return err
	}
	b.out.Reset()
	n := int(to - from)
	for i, c := range w.columns {
		if err := w.readColumn(b.out, i, c, n); err != nil {
			return base.Wrapf(codeOr(err, base.CodeCorruption), err, "rows from %d, column %q", from, w.r.columns[c].name)
		}
	}
	b.out.N = n
	b.take(uint64(from), &w.o)
	return nil
}

// openGroup opens the row group of a row.
func (w *walker) openGroup(next int64) error {
	if w.group >= 0 {
		if g := &w.r.groups[w.group]; next >= g.first && next < g.first+g.rows {
			return nil
		}
		w.closeReaders()
	}
	var err error
	if w.lib, err = w.r.library(); err != nil {
		return err
	}
	w.group = w.r.group(next)
	group := w.lib.scan.RowGroup(w.group)
	w.at = w.r.groups[w.group].first
	bytes := int64(0)
	open := func(ordinal int) (file.ColumnChunkReader, error) {
		meta, err := group.MetaData().ColumnChunk(ordinal)
		if err != nil {
			return nil, err
		}
		bytes += meta.TotalUncompressedSize()
		return group.Column(ordinal)
	}
	for i, c := range w.columns {
		col := &w.r.columns[c]
		switch {
		case col.ordinal < 0:
		case col.inFile != nil:
			w.nested[i] = newNestedReader(col)
			for _, l := range w.nested[i].leaves {
				if l.cr, err = open(l.c.ordinal); err != nil {
					return err
				}
			}
		default:
			if w.readers[i], err = open(col.ordinal); err != nil {
				return err
			}
		}
	}
	rows := w.r.groups[w.group].rows
	w.limit = int(max(1, min(int64(w.o.BatchRows), int64(w.o.BatchBytes)/max(1, bytes/rows))))
	return nil
}

// seek makes the column readers stand at a row, from which on those below to are read.
func (w *walker) seek(from, to int64) error {
	if w.at != from {
		for _, cr := range w.readers {
			if cr == nil {
				continue
			}
			if err := cr.SeekToRow(from - w.r.groups[w.group].first); err != nil {
				return err
			}
		}
		for _, nr := range w.nested {
			if nr == nil {
				continue
			}
			if err := nr.seek(w.r, w.group, from-w.r.groups[w.group].first, &w.scratch); err != nil {
				return err
			}
		}
	}
	w.at = to
	return nil
}

func (w *walker) readColumn(cols *row.Columns, i, c, n int) error {
	col := &w.r.columns[c]
	out := (*row.Column)(nil)
	if i < len(cols.Cols) {
		out = &cols.Cols[i]
	} else {
		out = &w.hidden[i-len(cols.Cols)]
		out.Type, out.Fixed = col.typ, out.Fixed[:0]
	}
	if col.ordinal < 0 {
		return col.fill(out, 0, n)
	}
	if w.nested[i] != nil {
		return w.nested[i].read(out, 0, n, false, &w.scratch)
	}
	if err := col.decode(w.readers[i], out, 0, n, &w.scratch); err != nil {
		return err
	}
	switch i - len(cols.Cols) {
	case 0:
		cols.Seqs = append(cols.Seqs, cast[base.Seq](out.Fixed)...)
	case 1:
		for _, v := range cast[int32](out.Fixed) {
			op, err := toOp(v)
			if err != nil {
				return err
			}
			cols.Ops = append(cols.Ops, op)
		}
	}
	return nil
}

// take makes of the rows decoded, of which the first stands at position first, those that the caller gets.
func (b *batch) take(first uint64, o *IterOptions) {
	n := b.out.N
	b.positions = b.positions[:0]
	skips := o.Skip != nil && o.Skip.IntersectsWithInterval(first, first+uint64(n))
	if !skips && !o.Reverse {
		b.rows, b.first = b.out, int64(first)
		return
	}
	b.kept.Reset()
	b.rows = b.kept
	if !skips {
		b.kept.AppendReverse(b.out, 0, n)
		b.first = int64(first) + int64(n) - 1
		return
	}
	for _, run := range keptRuns(first, n, o) {
		if !o.Reverse {
			b.kept.AppendRange(b.out, run.from, run.to)
			for i := run.from; i < run.to; i++ {
				b.positions = append(b.positions, uint32(first)+uint32(i))
			}
			continue
		}
		b.kept.AppendReverse(b.out, run.from, run.to)
		for i := run.to - 1; i >= run.from; i-- {
			b.positions = append(b.positions, uint32(first)+uint32(i))
		}
	}
	if b.kept.N == 0 {
		b.rows = nil
		return
	}
	b.first = int64(b.positions[0])
}

type run struct{ from, to int }

// keptRuns returns the rows between those to skip, of n that start at position first, in the order of the iteration.
func keptRuns(first uint64, n int, o *IterOptions) []run {
	var runs []run
	skip := o.Skip.Iterator()
	skip.AdvanceIfNeeded(uint32(first))
	for at := 0; at < n; {
		gap := n
		if skip.HasNext() && uint64(skip.PeekNext())-first < uint64(n) {
			gap = int(uint64(skip.Next()) - first)
		}
		if gap > at {
			runs = append(runs, run{at, gap})
		}
		at = gap + 1
	}
	if o.Reverse {
		slices.Reverse(runs)
	}
	return runs
}
