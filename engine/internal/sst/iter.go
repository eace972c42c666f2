package sst

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// Bounds of a batch.
const (
	defaultBatchRows  = 8192
	defaultBatchBytes = 4 << 20
)

// IterOptions say which rows and columns an iteration yields, and how. The zero value means all of them, upwards.
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
	// Reverse yields the rows in descending order: the batches from the last one on, and the rows of each.
	Reverse bool
	// ReadAhead decodes the next batch on another goroutine while the caller uses the last one. At most two batches are
	// held at a time. Close ends the goroutine.
	ReadAhead bool
	// BatchRows bounds the rows of a batch. The default value is 8192.
	BatchRows int
	// BatchBytes is about how many bytes the values of a batch take at most, by the average of the row group. No batch is
	// larger than its row group's rows were in the writer, whatever the average says. The default value is 4 MiB.
	BatchBytes int
}

// Iter yields the rows of a file in batches. It is for one goroutine at a time, and must be closed.
type Iter struct {
	walk  *walker
	last  *batch // the batch that the caller has
	ahead *readAhead
	done  bool // all rows were yielded
	err   error
}

// batch is rows of the file. Its memory is used again and again.
type batch struct {
	rows *row.Columns // one of the others; nil: all rows of this part of the file are left out
	out  *row.Columns // as decoded
	kept *row.Columns // without the rows to skip, or turned around
	// first is the position of the first row, positions are those of all rows unless they follow each other.
	first     int64
	positions []uint32
}

// NewIter makes an iteration. It reads nothing before the first Next, which also reports errors of the options.
func (r *Reader) NewIter(o IterOptions) *Iter {
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = defaultBatchBytes
	}
	if err := r.checkProjection(o.Projection); err != nil {
		return &Iter{err: err}
	}
	it := &Iter{walk: newWalker(r, o)}
	if o.ReadAhead {
		it.ahead = newReadAhead(it.walk)
	} else {
		it.last = it.walk.newBatch()
	}
	return it
}

// Next returns the next batch and the position of its first row, nil at the end. The batch is the iteration's own
// memory, valid until the next call. The rows of a batch follow each other in the file, downwards in reverse, unless
// some were left out: see Positions.
func (it *Iter) Next() (cols *row.Columns, first int64, err error) {
	if it.err != nil || it.done {
		return nil, 0, it.err
	}
	more := false
	if it.ahead != nil {
		it.last, it.err = it.ahead.next(it.last)
		more = it.last != nil
	} else {
		more, it.err = it.walk.next(it.last)
	}
	if it.err != nil || !more {
		it.done = true
		return nil, 0, it.err
	}
	return it.last.rows, it.last.first, nil
}

// Positions returns the position of each row of the last batch, or nil when they follow each other from its first.
func (it *Iter) Positions() []uint32 {
	if it.last == nil || len(it.last.positions) == 0 {
		return nil
	}
	return it.last.positions
}

// Close ends the iteration.
func (it *Iter) Close() {
	if it.walk == nil {
		return // the options were wrong
	}
	if it.ahead != nil {
		it.ahead.stop()
	}
	it.walk.closeReaders()
	if it.err == nil {
		it.err = base.Errorf(base.CodeClosed, "%s: the iterator is closed", it.walk.r.path)
	}
}
