package engine

import (
	"bytes"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// RowIter yields rows in key order, batch by batch. It is for one goroutine at a time and holds its own reference on
// what it reads.
//
// It merges sorted sources: the memtables as one, and each run of files as one. Everything in memory is newer than
// everything in files, so where both have a key the file's row is left out. Rows go over in runs: as long as one source
// holds the first keys, its rows are copied column by column; a whole batch of a file is not even copied.
type RowIter struct {
	state   *readState
	sources []rowSource // in the order of their keys; exhausted ones leave
	reverse bool
	out     *row.Columns
	lent    row.Columns // a source's own batch, handed out
	project []int
	// hidden are columns behind those of project: SeqColumn, NumberColumn.
	hidden    []int
	batchRows int
	fileRows  int   // how many rows to read of a file at a time
	left      int64 // rows to return yet; negative: no limit
	err       error
}

// rowSource is one sorted input of a scan. No two of rank fromFile hold the same live key.
type rowSource interface {
	// key returns the current row's encoded key, valid until the source moves; nil at the end. With rank unread it is a
	// bound: no row comes before it.
	key() []byte
	rank() sourceRank
	// read makes the next row known, or the next bound; for rank unread only.
	read() error
	// emit appends rows from the current one on to out while their key comes before limit (nil: no limit), at most n, and
	// moves past them.
	emit(out *row.Columns, limit []byte, n int) int
	close()
}

// sourceRank orders sources at one key.
type sourceRank int

const (
	unread sourceRank = iota
	inMemory
	fromFile
)

// newRowIter takes over a reference on the state.
func newRowIter(state *readState, o ScanOptions, batchRows int) *RowIter {
	schema := state.table.schema
	project := o.Projection
	if project == nil {
		project = row.AllColumns(schema)
	}
	it := &RowIter{
		state: state, reverse: o.Reverse, project: project, batchRows: batchRows, fileRows: batchRows, left: o.Limit,
		out: row.NewColumns(schema, project),
	}
	if o.Limit == 0 {
		it.left = -1
	} else if o.Limit < int64(batchRows) {
		// The first rows of a file may all be deleted: few at a time would take long.
		const least = 512
		it.batchRows, it.fileRows = int(o.Limit), min(batchRows, max(int(o.Limit), least))
	}
	return it
}

// compare compares keys in the order of the iteration.
func (it *RowIter) compare(a, b []byte) int {
	if it.reverse {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

// push puts a source at its place among the sources, or drops it at its end.
func (it *RowIter) push(src rowSource) {
	k := src.key()
	if k == nil {
		src.close()
		return
	}
	i := len(it.sources)
	for i > 0 {
		other := it.sources[i-1]
		if c := it.compare(other.key(), k); c < 0 || c == 0 && other.rank() <= src.rank() {
			break
		}
		i--
	}
	it.sources = append(it.sources, nil)
	copy(it.sources[i+1:], it.sources[i:])
	it.sources[i] = src
}

// pop takes the first source out. The array behind the sources must not keep it: it has a batch of rows.
func (it *RowIter) pop() rowSource {
	src := it.sources[0]
	it.sources[0] = nil
	it.sources = it.sources[1:]
	return src
}

// Next returns the next batch, nil at the end. It is valid until the next call; do not change it.
func (it *RowIter) Next() (*Columns, error) {
	if it.err != nil {
		return nil, it.err
	}
	it.out.Reset()
	for len(it.sources) > 0 && it.out.N < it.batchRows && it.left != 0 && columnBytes(it.out) < batchBytes {
		src := it.pop()
		if src.rank() == unread {
			if it.err = src.read(); it.err != nil {
				src.close()
				return nil, it.err
			}
			it.push(src)
			continue
		}
		it.dropSuperseded(src)
		if it.lend(src) {
			it.push(src)
			return &it.lent, nil
		}
		n := src.emit(it.out, it.limit(), it.wanted())
		if it.left > 0 {
			it.left -= int64(n)
		}
		it.push(src)
	}
	if it.out.N == 0 {
		return nil, nil
	}
	return it.out, nil
}

// limit returns the key that the source taken out may not reach: that of the next one.
func (it *RowIter) limit() []byte {
	if len(it.sources) == 0 {
		return nil
	}
	return it.sources[0].key()
}

// wanted returns how many rows the batch takes yet.
func (it *RowIter) wanted() int {
	n := it.batchRows - it.out.N
	if it.left > 0 {
		n = int(min(int64(n), it.left))
	}
	return n
}

// dropSuperseded leaves out the file's row that has the current key of the memtables, if src is these.
func (it *RowIter) dropSuperseded(src rowSource) {
	if src.rank() != inMemory {
		return
	}
	for len(it.sources) > 0 {
		f, ok := it.sources[0].(*runSource)
		if !ok || !f.known || !bytes.Equal(f.key(), src.key()) {
			return
		}
		it.pop()
		f.skip()
		it.push(f)
	}
}

// lend hands out the batch of a file as it is, if nothing has been gathered yet, no other source comes between its rows
// and it is not much smaller than what is wanted.
func (it *RowIter) lend(src rowSource) bool {
	file, ok := src.(*runSource)
	if !ok || it.out.N > 0 {
		return false
	}
	n, want := file.whole(it.limit()), it.wanted()
	if n == 0 || n > want || 2*n < want && 2*columnBytes(file.cols) < batchBytes {
		return false
	}
	it.lent = file.lend()
	if it.left > 0 {
		it.left -= int64(n)
	}
	return true
}

// columnBytes returns the size of a batch's values.
func columnBytes(c *row.Columns) (n int) {
	for i := range c.Cols {
		n += len(c.Cols[i].Fixed) + len(c.Cols[i].Data)
	}
	return n
}

// Close ends the iteration. A second call does nothing.
func (it *RowIter) Close() {
	for _, s := range it.sources {
		s.close()
	}
	it.sources = nil
	if it.state != nil {
		it.state.unref()
		it.state = nil
	}
	if it.err == nil {
		it.err = base.Errorf(base.CodeClosed, "the iterator is closed")
	}
}
