package engine

import (
	"bytes"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// ScanOptions bound a scan. The zero value is the whole table with all columns.
type ScanOptions struct {
	// Lower and Upper are prefixes of the key's columns; empty is open. A prefix stands for all keys that start with it:
	// an inclusive Upper takes them all, an exclusive Lower skips them all.
	Lower, Upper                   []Value
	LowerExclusive, UpperExclusive bool
	// Projection has column indices, in the order wanted; nil means all columns.
	Projection []int
	// Limit is how many rows to return at most; 0 means all.
	Limit int64
	// BatchRows is how many rows a batch has at most; the default is 8192.
	BatchRows int
}

// keyRange is a half-open range of encoded keys; nil is an open end.
type keyRange struct{ lower, upper []byte }

func (t *table) keyRange(o ScanOptions) (r keyRange, err error) {
	if len(o.Lower) > 0 {
		if r.lower, err = t.keyPrefix(o.Lower); err != nil {
			return r, err
		}
		if o.LowerExclusive {
			r.lower = prefixEnd(r.lower)
		}
	}
	if len(o.Upper) > 0 {
		if r.upper, err = t.keyPrefix(o.Upper); err != nil {
			return r, err
		}
		if !o.UpperExclusive {
			r.upper = prefixEnd(r.upper)
		}
	}
	return r, nil
}

// keyPrefix encodes the first columns of a key.
func (t *table) keyPrefix(vals []Value) ([]byte, error) {
	if len(vals) > len(t.schema.PrimaryKey) {
		return nil, base.Errorf(base.CodeInvalidArgument, "a bound has %d values, the primary key of table %q only %d columns",
			len(vals), t.schema.TableName, len(t.schema.PrimaryKey))
	}
	if len(vals) == len(t.schema.PrimaryKey) {
		return t.codec.Append(nil, vals)
	}
	var out []byte
	for i, v := range vals {
		c := t.schema.Columns[t.schema.PrimaryKey[i]]
		if v.Null {
			return nil, base.Errorf(base.CodeInvalidArgument, "a bound is NULL in key column %q", c.Name)
		}
		out = keyenc.AppendValue(out, c.Type, v)
	}
	return out, nil
}

// prefixEnd returns the smallest byte string greater than all that start with p, nil where there is none. Encoded key
// columns are self-delimiting, so byte prefixes are column prefixes.
func prefixEnd(p []byte) []byte {
	end := bytes.Clone(p)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

func (r keyRange) empty() bool {
	return r.upper != nil && r.lower != nil && bytes.Compare(r.lower, r.upper) >= 0
}

// overlaps reports whether keys from lo to hi, both inclusive, meet the range.
func (r keyRange) overlaps(lo, hi []byte) bool {
	return (r.upper == nil || bytes.Compare(lo, r.upper) < 0) && (r.lower == nil || bytes.Compare(hi, r.lower) >= 0)
}

// RowIter yields rows in key order, batch by batch. It is for one goroutine at a time and holds its own reference on
// what it reads.
type RowIter struct {
	state     *readState
	sources   []rowSource // ascending by current key; exhausted ones leave
	out       *row.Columns
	project   []int
	batchRows int
	left      int64 // rows to return yet; negative: no limit
	err       error
}

// rowSource is one sorted input of a scan; no two hold the same live key.
type rowSource interface {
	// key returns the current row's encoded key, valid until the source moves; nil at the end.
	key() []byte
	// emit appends rows from the current one on to out while their key is below limit (nil: no limit), at most n, and
	// moves past them.
	emit(out *row.Columns, limit []byte, n int) (int, error)
	close()
}

// Overlay returns the live rows that are only in memory.
func (s *Snapshot) Overlay(projection []int) *RowIter {
	it := s.newRowIter(projection, overlayBatchRows, 0)
	if it.err != nil {
		return it
	}
	it.addMemory(s, keyRange{})
	return it
}

const (
	overlayBatchRows = 16_384
	scanBatchRows    = 8_192
	// batchBytes ends a batch before it has all its rows: batches of large rows would outgrow memory, and the 2 GiB that
	// a column of an Arrow array can hold. It may be passed by one run of rows.
	batchBytes = 32 << 20
)

// Scan returns the rows of a key range.
func (s *Snapshot) Scan(o ScanOptions) (*RowIter, error) {
	for _, c := range o.Projection {
		if c < 0 || c >= len(s.Schema().Columns) {
			return nil, base.Errorf(base.CodeInvalidArgument, "column index %d of %d", c, len(s.Schema().Columns))
		}
	}
	if o.Limit < 0 {
		return nil, base.Errorf(base.CodeInvalidArgument, "limit %d is negative", o.Limit)
	}
	r, err := s.state.table.keyRange(o)
	if err != nil {
		return nil, err
	}
	if o.BatchRows <= 0 {
		o.BatchRows = scanBatchRows
	}
	it := s.newRowIter(o.Projection, o.BatchRows, o.Limit)
	if it.err != nil {
		return nil, it.err
	}
	if r.empty() {
		return it, nil
	}
	it.addMemory(s, r)
	for i, f := range s.state.files {
		if !r.overlaps(f.meta.KeyMin, f.meta.KeyMax) {
			continue
		}
		if err := it.addFile(s, i, r); err != nil {
			it.Close()
			return nil, err
		}
	}
	return it, nil
}

// newRowIter makes an iterator without sources; its err says that the snapshot is closed.
func (s *Snapshot) newRowIter(projection []int, batchRows int, limit int64) *RowIter {
	if err := s.pin(); err != nil {
		return &RowIter{err: err}
	}
	if projection == nil {
		projection = make([]int, len(s.Schema().Columns))
		for i := range projection {
			projection[i] = i
		}
	}
	it := &RowIter{state: s.state, project: projection, batchRows: batchRows, left: limit}
	if limit == 0 {
		it.left = -1
	}
	it.out = row.NewColumns(s.Schema(), projection)
	return it
}

func (it *RowIter) addMemory(s *Snapshot, r keyRange) {
	if s.MemoryRows() == 0 {
		return
	}
	m := &memSource{it: s.memIter(), upper: r.upper, layout: s.state.table.layout, project: it.project}
	if r.lower == nil {
		m.it.First()
	} else {
		m.it.SeekGE(r.lower)
	}
	m.skipDead()
	it.push(m)
}

func (it *RowIter) addFile(s *Snapshot, i int, r keyRange) error {
	f := s.state.files[i]
	skip, err := s.hidden(i, s.deletesOf(i))
	if err != nil {
		return err
	}
	reader, err := f.open(s.state.table.schema)
	if err != nil {
		return err
	}
	// The keys are needed for merging: read the key columns behind the projected ones.
	cols := append([]int(nil), it.project...)
	keyCols := make([]int, len(s.Schema().PrimaryKey))
	for k, c := range s.Schema().PrimaryKey {
		keyCols[k] = len(cols)
		cols = append(cols, c)
	}
	src := &fileSource{
		it: reader.NewIter(sst.IterOptions{
			Lower: r.lower, Upper: r.upper, LowerInclusive: true, UpperInclusive: false, Projection: cols, Skip: skip,
		}),
		keyCols: keyCols, width: len(it.project),
	}
	// Until its turn comes, the source stands where its first key can be at the earliest.
	src.cur = append(src.cur, f.meta.KeyMin...)
	if bytes.Compare(src.cur, r.lower) < 0 {
		src.cur = append(src.cur[:0], r.lower...)
	}
	it.push(src)
	return nil
}

// push puts a source at its place among the sources, or drops it at its end.
func (it *RowIter) push(src rowSource) {
	k := src.key()
	if k == nil {
		src.close()
		return
	}
	i := len(it.sources)
	for i > 0 && bytes.Compare(it.sources[i-1].key(), k) > 0 {
		i--
	}
	it.sources = append(it.sources, nil)
	copy(it.sources[i+1:], it.sources[i:])
	it.sources[i] = src
}

// Next returns the next batch, nil at the end. It is valid until the next call.
func (it *RowIter) Next() (*Columns, error) {
	if it.err != nil {
		return nil, it.err
	}
	it.out.Reset()
	for len(it.sources) > 0 && it.out.N < it.batchRows && it.left != 0 && columnBytes(it.out) < batchBytes {
		if f, ok := it.sources[0].(*fileSource); ok && !f.loaded {
			it.pop()
			if err := f.load(); err != nil {
				f.close()
				it.err = err
				return nil, err
			}
			it.push(f)
			continue
		}
		want := it.batchRows - it.out.N
		if it.left > 0 {
			want = int(min(int64(want), it.left))
		}
		src := it.sources[0]
		var limit []byte
		if len(it.sources) > 1 {
			limit = it.sources[1].key()
		}
		n, err := src.emit(it.out, limit, want)
		if err != nil {
			it.err = err
			return nil, err
		}
		if it.left > 0 {
			it.left -= int64(n)
		}
		it.pop()
		it.push(src)
	}
	if it.out.N == 0 {
		return nil, nil
	}
	return it.out, nil
}

// pop takes the first source out. The array behind the sources must not keep it: it has a batch of rows.
func (it *RowIter) pop() {
	it.sources[0] = nil
	it.sources = it.sources[1:]
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

// memSource yields the live rows in memory.
type memSource struct {
	it      *memtable.MergeIter
	upper   []byte
	layout  *row.Layout
	project []int
	recs    [][]byte // of one emit; the memtables that hold them are pinned
}

func (m *memSource) skipDead() {
	for m.it.Valid() && m.it.Op() == base.OpDelete {
		m.it.Next()
	}
}

func (m *memSource) key() []byte {
	if !m.it.Valid() || m.upper != nil && bytes.Compare(m.it.Key(), m.upper) >= 0 {
		return nil
	}
	return m.it.Key()
}

// emit transposes whole runs: the rows of a run lie anywhere in memory, and fetching them column by column would miss
// the processor's caches once a column.
func (m *memSource) emit(out *row.Columns, limit []byte, n int) (int, error) {
	m.recs = m.recs[:0]
	size := 0
	for k := m.key(); len(m.recs) < n && size < batchBytes && k != nil && (limit == nil || bytes.Compare(k, limit) < 0); k = m.key() {
		m.recs = append(m.recs, m.it.Value())
		size += len(m.it.Value())
		m.it.Next()
		m.skipDead()
	}
	m.layout.AppendColumns(out, m.project, m.recs)
	return len(m.recs), nil
}

func (m *memSource) close() {}

// fileSource yields the live rows of a data file.
type fileSource struct {
	it      *sst.Iter
	keyCols []int // where in a batch the key columns are
	width   int   // how many columns of a batch are output
	loaded  bool  // false: nothing was read yet, and cur is a bound of the first key
	cols    *row.Columns
	at      int
	cur     []byte // the current key
	probe   []byte
}

// load moves to the next batch.
func (f *fileSource) load() error {
	cols, _, err := f.it.Next()
	if err != nil {
		return err
	}
	f.loaded, f.cols, f.at = true, cols, 0
	f.refreshKey()
	return nil
}

func (f *fileSource) refreshKey() {
	if f.cols == nil {
		return
	}
	f.cur = f.cols.AppendKey(f.cur[:0], f.keyCols, f.at)
}

func (f *fileSource) key() []byte {
	if f.loaded && f.cols == nil {
		return nil
	}
	return f.cur
}

func (f *fileSource) emit(out *row.Columns, limit []byte, n int) (int, error) {
	end := f.at + f.runLength(limit, min(n, f.cols.N-f.at))
	view := row.Columns{N: f.cols.N, Cols: f.cols.Cols[:f.width]}
	out.AppendRange(&view, f.at, end)
	taken := end - f.at
	f.at = end
	if f.at == f.cols.N {
		return taken, f.load()
	}
	f.refreshKey()
	return taken, nil
}

// runLength returns how many of the next n rows have keys below limit; the first one has.
func (f *fileSource) runLength(limit []byte, n int) int {
	below := func(i int) bool {
		f.probe = f.cols.AppendKey(f.probe[:0], f.keyCols, f.at+i)
		return bytes.Compare(f.probe, limit) < 0
	}
	if limit == nil || n <= 1 || below(n-1) {
		return n
	}
	// Gallop, then bisect: row lo is below the limit, row hi is not.
	lo, hi := 0, 1
	for hi < n-1 && below(hi) {
		lo, hi = hi, min(2*hi, n-1)
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1
}

func (f *fileSource) close() { f.it.Close() }
