package engine

import (
	"bytes"
	"slices"

	"github.com/merutable/merutable/engine/internal/row"
)

// Part is what a snapshot shows of a range of keys, for readers that read data files by themselves. Where the range
// holds few rows the engine reads them: then the part has no files, and its overlay yields all rows. It may be used from
// many goroutines.
type Part struct {
	s     *Snapshot
	scan  ScanOptions
	keys  keyRange
	point []byte // the range is this one key
	files []int  // of the snapshot's, those that meet the range; none where the part is read here
	// memory bounds the rows in memory, tombstones included. The memory of a part that is read here stands for all of it.
	memory int
	direct bool
}

// How many rows a range has at most that is read here. Opening a file costs a reader by itself more than some; and with
// rows in memory, it has to look up which rows of the whole file these supersede.
const (
	directRows           = 2_048
	directRowsWithMemory = 16_384
)

// Part returns a part of the snapshot: the rows between the bounds. Only Lower and Upper and how they include count. The
// part has a reference of its own on what the snapshot shows; Close it.
func (s *Snapshot) Part(o ScanOptions) (*Part, error) {
	r, err := s.state.table.keyRange(o)
	if err != nil {
		return nil, err
	}
	p := &Part{keys: r, scan: ScanOptions{
		Lower: o.Lower, Upper: o.Upper, LowerExclusive: o.LowerExclusive, UpperExclusive: o.UpperExclusive,
	}}
	if p.s, err = s.clone(); err != nil || r.empty() {
		return p, err
	}
	if len(o.Lower) == len(s.Schema().PrimaryKey) && !o.LowerExclusive && bytes.Equal(prefixEnd(r.lower), r.upper) {
		p.point, p.direct, p.memory = r.lower, true, 1
		return p, nil
	}
	for _, run := range s.state.index.runs {
		p.files = append(p.files, meeting(s.state.files, run, r)...)
	}
	slices.Sort(p.files)
	limit := directRows
	if s.MemoryRows() > 0 {
		limit = directRowsWithMemory
	}
	p.memory = p.countMemory(limit + 1)
	n, err := p.estimate(limit - p.memory)
	if err != nil {
		p.Close()
		return nil, err
	}
	if p.memory+n <= limit {
		p.direct, p.memory = true, p.memory+n
	} else if p.memory > limit {
		p.memory = s.MemoryRows()
	}
	return p, nil
}

// clone returns another handle on what a snapshot shows.
func (s *Snapshot) clone() (*Snapshot, error) {
	if err := s.pin(); err != nil {
		return nil, err
	}
	return &Snapshot{state: s.state, seq: s.seq, visible: s.visible}, nil
}

// countMemory counts the keys in memory, up to limit.
func (p *Part) countMemory(limit int) (n int) {
	if p.s.MemoryRows() == 0 {
		return 0
	}
	it := p.s.memIter()
	for it.SeekGE(p.keys.lower); n < limit && it.Valid() && p.keys.holds(it.Key()); it.Next() {
		n++
	}
	return n
}

func (r keyRange) holds(key []byte) bool {
	return bytes.Compare(key, r.lower) >= 0 && (r.upper == nil || bytes.Compare(key, r.upper) < 0)
}

// estimate returns about how many rows the files have in the range, from above. It stops beyond limit.
func (p *Part) estimate(limit int) (n int, err error) {
	var cut []*liveFile // those that the range does not hold whole
	for _, i := range p.files {
		f := p.s.state.files[i]
		if !p.keys.holds(f.meta.KeyMin) || !p.keys.holds(f.meta.KeyMax) {
			cut = append(cut, f)
			continue
		}
		if n += int(f.meta.Live()); n > limit {
			return n, nil
		}
	}
	for _, f := range cut {
		r, err := f.open(p.s.state.table.schema)
		if err != nil {
			return 0, err
		}
		if n += int(r.EstimateRows(p.keys.lower, p.keys.upper)); n > limit {
			return n, nil
		}
	}
	return n, nil
}

// Close releases the part. A second call does nothing.
func (p *Part) Close() { p.s.Close() }

// Snapshot returns the snapshot of which this is a part. It is valid until Close.
func (p *Part) Snapshot() *Snapshot { return p.s }

// Files lists the data files to read, as indices into [Snapshot.Files].
func (p *Part) Files() []int {
	if p.direct {
		return nil
	}
	return p.files
}

// MemoryRows bounds how many rows the overlay yields.
func (p *Part) MemoryRows() int { return p.memory }

// LiveRows estimates the number of rows of the part from above.
func (p *Part) LiveRows() int64 {
	n := int64(p.memory)
	for _, i := range p.Files() {
		n += p.s.state.files[i].meta.Live()
	}
	return n
}

// Overlay returns the rows of the part that are not in its Files.
func (p *Part) Overlay(projection []int) *RowIter {
	o := p.scan
	o.Projection, o.BatchRows = projection, overlayBatchRows
	read := p.s.OverlayRange
	switch {
	case p.point != nil:
		read = p.row
	case p.direct:
		read = p.s.Scan
	}
	it, err := read(o)
	if err != nil {
		return &RowIter{err: err}
	}
	return it
}

// row returns the one row of a part.
func (p *Part) row(o ScanOptions) (*RowIter, error) {
	it, _, err := p.s.newRowIter(o, 1)
	if err != nil {
		return nil, err
	}
	record, found, err := it.state.lookUp(p.point, p.s.seq)
	if err != nil {
		it.Close()
		return nil, err
	}
	if found {
		it.push(&recordSource{scan: it, at: p.point, record: record})
	}
	return it, nil
}

// recordSource yields one row.
type recordSource struct {
	scan   *RowIter
	at     []byte
	record []byte
}

func (r *recordSource) key() []byte {
	if r.record == nil {
		return nil
	}
	return r.at
}

func (r *recordSource) rank() sourceRank { return fromFile }
func (r *recordSource) read() error      { return nil }
func (r *recordSource) close()           {}

func (r *recordSource) emit(out *row.Columns, _ []byte, _ int) int {
	r.scan.state.table.layout.AppendColumns(out, r.scan.project, [][]byte{r.record})
	r.record = nil
	return 1
}
