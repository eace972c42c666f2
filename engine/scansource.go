package engine

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// memSource yields the rows in memory. Its current key may be that of a deletion, which hides the rows of files and is
// itself no row.
type memSource struct {
	scan *RowIter
	it   *memtable.MergeIter
	r    keyRange
	recs [][]byte // of one emit; the memtables that hold them are pinned
	// seqs and numbers are of recs, where they are asked for. A sequence number of 0 is none yet.
	seqs, numbers []uint64
}

func (it *RowIter) addMemory(s *Snapshot, r keyRange) {
	if s.MemoryRows() == 0 {
		return
	}
	m := &memSource{scan: it, it: s.memIter(), r: r}
	switch {
	case it.reverse && r.upper != nil:
		m.it.SeekLT(r.upper)
	case it.reverse:
		m.it.Last()
	case r.lower != nil:
		m.it.SeekGE(r.lower)
	default:
		m.it.First()
	}
	it.push(m)
}

func (m *memSource) key() []byte {
	if !m.it.Valid() {
		return nil
	}
	k := m.it.Key()
	if m.scan.reverse {
		if m.r.lower != nil && bytes.Compare(k, m.r.lower) < 0 {
			return nil
		}
	} else if m.r.upper != nil && bytes.Compare(k, m.r.upper) >= 0 {
		return nil
	}
	return k
}

func (m *memSource) rank() sourceRank { return inMemory }
func (m *memSource) read() error      { return nil }
func (m *memSource) close()           {}

// emit transposes whole runs: the rows of a run lie anywhere in memory, and fetching them column by column would miss
// the processor's caches once a column.
func (m *memSource) emit(out *row.Columns, limit []byte, n int) int {
	m.recs, m.seqs, m.numbers = m.recs[:0], m.seqs[:0], m.numbers[:0]
	size := 0
	for k := m.key(); len(m.recs) < n && size < batchBytes && k != nil && (limit == nil || m.scan.compare(k, limit) < 0); k = m.key() {
		if m.it.Op() != base.OpDelete {
			m.recs = append(m.recs, m.it.Value())
			size += len(m.it.Value())
			if m.scan.hidden != nil {
				m.addHidden()
			}
		}
		if m.scan.reverse {
			m.it.Prev()
		} else {
			m.it.Next()
		}
	}
	for i, c := range m.scan.hidden {
		vals := m.numbers
		if c == SeqColumn(m.scan.state.table.schema) {
			vals = m.seqs
		}
		appendHidden(out, len(m.scan.project)+i, vals)
	}
	m.scan.state.table.layout.AppendColumns(out, m.scan.project, m.recs)
	m.scan.state.hasRead(size)
	return len(m.recs)
}

// A transaction's own rows get their sequence numbers when it commits; until then each of its memtables counts from 1.
const (
	privateNumber = 1 << 39
	privateRows   = 31 // bits
)

// addHidden notes the current row's sequence number, and its number among the rows in memory.
func (m *memSource) addHidden() {
	seq, source := m.it.Seq(), m.it.Source()
	if source < m.scan.state.private {
		m.seqs, m.numbers = append(m.seqs, 0), append(m.numbers, privateNumber|uint64(source)<<privateRows|seq)
		return
	}
	m.seqs, m.numbers = append(m.seqs, seq), append(m.numbers, seq)
}

// appendHidden appends values, of which 0 is NULL, to one column of a batch; the caller appends to the others, and counts.
func appendHidden(out *row.Columns, column int, vals []uint64) {
	col := &out.Cols[column]
	for i, v := range vals {
		if v == 0 && col.Nulls == nil {
			col.Nulls = make([]bool, out.N+i, out.N+len(vals))
		}
		if col.Nulls != nil {
			col.Nulls = append(col.Nulls, v == 0)
		}
		col.Fixed = binary.LittleEndian.AppendUint64(col.Fixed, v)
	}
}

// runSource yields the live rows of a run of files, one file after the other.
type runSource struct {
	scan    *RowIter
	r       keyRange
	files   []int // of the state, yet to come
	columns []int // read from the files: the projected ones, then key columns
	keyCols []int // where in a batch the key columns are; nil where keys are not needed, because there is no other source
	it      *sst.Iter
	cols    *row.Columns
	at      int
	known   bool   // cur is the key of row at of cols; else a bound
	cur     []byte // nil at the end
	probe   []byte
}

// addFiles adds the files that meet a range, behind the memory. among says that there will be other sources.
func (it *RowIter) addFiles(r keyRange, among bool) {
	var runs []*runSource
	for _, run := range it.state.index.runs {
		files := meeting(it.state.files, run, r)
		if len(files) == 0 {
			continue
		}
		if it.reverse {
			files = slices.Clone(files)
			slices.Reverse(files)
		}
		src := &runSource{scan: it, r: r, files: files, columns: it.project}
		src.setBound()
		runs = append(runs, src)
	}
	for _, src := range runs {
		if among || len(runs)+len(it.sources) > 1 {
			src.needKeys()
		}
	}
	for _, src := range runs {
		it.push(src)
	}
}

// needKeys reads the key columns too.
func (f *runSource) needKeys() {
	f.columns = slices.Clone(f.columns)
	for _, k := range f.scan.state.table.schema.PrimaryKey {
		at := slices.Index(f.columns, k)
		if at < 0 {
			at = len(f.columns)
			f.columns = append(f.columns, k)
		}
		f.keyCols = append(f.keyCols, at)
	}
}

// setBound makes the key where the next file can begin the current one.
func (f *runSource) setBound() {
	f.known, f.cols = false, nil
	if len(f.files) == 0 {
		f.cur = nil
		return
	}
	meta := f.scan.state.files[f.files[0]].meta
	bound, other := meta.KeyMin, f.r.lower
	if f.scan.reverse {
		bound, other = meta.KeyMax, f.r.upper
	}
	if other != nil && f.scan.compare(bound, other) < 0 {
		bound = other
	}
	f.cur = append(f.cur[:0], bound...)
}

func (f *runSource) key() []byte { return f.cur }

func (f *runSource) rank() sourceRank {
	if !f.known {
		return unread
	}
	return fromFile
}

// read moves to the next batch of the file, or to the bound of the next file.
func (f *runSource) read() error {
	if f.it == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	cols, _, err := f.it.Next()
	if err != nil {
		return err
	}
	if cols == nil {
		f.close()
		f.setBound()
		return nil
	}
	f.cols, f.at = cols, 0
	f.arrive()
	return nil
}

// fileBatchBytes bounds what is read of a file at a time: read-ahead holds two such batches of every run.
const fileBatchBytes = batchBytes / 2

// open opens the next file.
func (f *runSource) open() error {
	s := f.scan.state
	file := s.files[f.files[0]]
	f.files = f.files[1:]
	skip, err := file.deleted(s.core.dir)
	if err != nil {
		return err
	}
	if skip.IsEmpty() {
		skip = nil
	}
	reader, err := file.open(s.table.schema)
	if err != nil {
		return err
	}
	o := sst.IterOptions{
		Projection: f.columns, Skip: skip, Reverse: f.scan.reverse, BatchRows: f.scan.fileRows, BatchBytes: fileBatchBytes,
	}
	// A bound that the file lies within costs a lookup.
	if f.r.lower != nil && bytes.Compare(file.meta.KeyMin, f.r.lower) < 0 {
		o.Lower, o.LowerInclusive = f.r.lower, true
	}
	if f.r.upper != nil && bytes.Compare(file.meta.KeyMax, f.r.upper) >= 0 {
		o.Upper = f.r.upper
	}
	left := f.scan.left
	o.ReadAhead = (left < 0 || left > int64(o.BatchRows)) && file.meta.Rows > int64(o.BatchRows)
	f.it = reader.NewIter(o)
	return nil
}

// arrive makes row at the current one; behind the last row, the last row's key becomes the bound of what is not read.
func (f *runSource) arrive() {
	f.known = f.at < f.cols.N
	if f.keyCols != nil {
		f.cur = f.cols.AppendKey(f.cur[:0], f.keyCols, min(f.at, f.cols.N-1))
	}
}

// skip leaves the current row out.
func (f *runSource) skip() {
	f.at++
	f.arrive()
}

func (f *runSource) emit(out *row.Columns, limit []byte, n int) int {
	end := f.at + f.runLength(limit, min(n, f.cols.N-f.at))
	view := row.Columns{N: f.cols.N, Cols: f.cols.Cols[:len(f.scan.project)]}
	out.AppendRange(&view, f.at, end)
	taken := end - f.at
	f.at = end
	f.arrive()
	return taken
}

// whole returns how many rows the batch has, 0 if some of it was returned already or comes behind the limit.
func (f *runSource) whole(limit []byte) int {
	if f.at > 0 || limit != nil && f.runLength(limit, f.cols.N) < f.cols.N {
		return 0
	}
	return f.cols.N
}

// lend returns the batch and moves past it.
func (f *runSource) lend() row.Columns {
	f.at = f.cols.N
	f.arrive()
	return row.Columns{N: f.cols.N, Cols: f.cols.Cols[:len(f.scan.project)]}
}

// runLength returns how many of the next n rows have keys before limit; the first one has.
func (f *runSource) runLength(limit []byte, n int) int {
	before := func(i int) bool {
		f.probe = f.cols.AppendKey(f.probe[:0], f.keyCols, f.at+i)
		return f.scan.compare(f.probe, limit) < 0
	}
	if limit == nil || n <= 1 || before(n-1) {
		return n
	}
	return gallop(n-1, before)
}

// gallop returns how many of the first n rows come before something, where the first one does, and behind one that does
// not there is none that does. It asks about few where they are few.
func gallop(n int, before func(i int) bool) int {
	lo, hi := 0, 1 // row lo comes before, row hi does not, or is asked next
	for hi < n && before(hi) {
		lo, hi = hi, 2*hi
	}
	for hi = min(hi, n); hi-lo > 1; {
		if mid := (lo + hi) / 2; before(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1
}

// close closes the open file's iterator.
func (f *runSource) close() {
	if f.it != nil {
		f.it.Close()
		f.it = nil
	}
}
