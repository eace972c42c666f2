package engine

import (
	"bytes"
	"slices"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
)

// Part is what a snapshot shows of some ranges of keys, for readers that read data files by themselves. Where the ranges
// hold few rows the engine reads them: then the part has no files, and its overlay yields all rows. It may be used from
// many goroutines.
type Part struct {
	s *Snapshot
	// ranges are ascending, and no two meet.
	ranges []keyRange
	// points says that each range is one key.
	points bool
	files  []int // of the snapshot's, those that meet a range; none where the part is read here
	// memory bounds the rows in memory, tombstones included. The memory of a part that is read here stands for all of it.
	memory int
	direct bool

	cut    sync.Once
	pieces []keyRange
}

// How many rows a part has at most that is read here. Opening a file costs a reader by itself more than some; and with
// rows in memory, it has to look up which rows of the whole file these supersede.
const (
	directRows           = 2_048
	directRowsWithMemory = 16_384
	// directKeys is how many keys are always looked up here. Beyond, a look-up of one must stand against scanning
	// rowsPerKey rows.
	directKeys = 16
	rowsPerKey = 1_000
	// MaxPartKeys is how many keys, or prefixes of keys, a part may be made of.
	MaxPartKeys = 1 << 16
)

// Part returns a part of the snapshot: the rows between the bounds. Only Lower and Upper and how they include count. The
// part has a reference of its own on what the snapshot shows; Close it.
func (s *Snapshot) Part(o ScanOptions) (*Part, error) {
	r, err := s.state.table.keyRange(o)
	if err != nil {
		return nil, err
	}
	if r.empty() {
		return s.newPart(nil, false)
	}
	point := len(o.Lower) == len(s.Schema().PrimaryKey) && !o.LowerExclusive && bytes.Equal(prefixEnd(r.lower), r.upper)
	return s.newPart([]keyRange{r}, point)
}

// PartOfKeys is [Snapshot.Part] for the rows whose keys begin with one of some prefixes, all of the same number of
// columns.
func (s *Snapshot) PartOfKeys(prefixes [][]Value) (*Part, error) {
	if len(prefixes) > MaxPartKeys {
		return nil, base.Errorf(base.CodeInvalidArgument, "a part of %d keys: the limit is %d", len(prefixes), MaxPartKeys)
	}
	keys := make([][]byte, len(prefixes))
	for i, p := range prefixes {
		if len(p) == 0 || len(p) != len(prefixes[0]) {
			return nil, base.Errorf(base.CodeInvalidArgument, "prefix %d has %d columns, prefix 0 has %d", i, len(p), len(prefixes[0]))
		}
		var err error
		if keys[i], err = s.state.table.keyPrefix(p); err != nil {
			return nil, base.Wrapf(base.CodeOf(err), err, "prefix %d", i)
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	ranges := make([]keyRange, len(keys))
	for i, k := range keys {
		ranges[i] = keyRange{k, prefixEnd(k)}
	}
	return s.newPart(ranges, len(prefixes) > 0 && len(prefixes[0]) == len(s.Schema().PrimaryKey))
}

func (s *Snapshot) newPart(ranges []keyRange, points bool) (p *Part, err error) {
	p = &Part{ranges: ranges, points: points}
	if p.s, err = s.clone(); err != nil || len(ranges) == 0 {
		return p, err
	}
	if points && len(ranges) <= directKeys {
		p.direct, p.memory = true, len(ranges)
		return p, nil
	}
	p.findFiles()
	if err := p.weigh(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// findFiles finds the files that meet a range.
func (p *Part) findFiles() {
	for _, run := range p.s.state.index.runs {
		next := 0 // of the run: both it and the ranges ascend
		for _, r := range p.ranges {
			met := meeting(p.s.state.files, run[next:], r)
			if len(met) == 0 {
				continue
			}
			from := slices.Index(run[next:], met[0]) + next
			p.files = append(p.files, run[from:from+len(met)]...)
			if next = from + len(met); next == len(run) {
				break
			}
		}
	}
	slices.Sort(p.files)
}

// weigh decides whether the part is read here.
func (p *Part) weigh() error {
	limit := directRows
	if p.s.MemoryRows() > 0 {
		limit = directRowsWithMemory
	}
	if p.points {
		rows := int64(p.s.MemoryRows())
		for _, i := range p.files {
			rows += p.s.state.files[i].meta.Rows
		}
		if len(p.ranges) <= limit && int64(len(p.ranges))*rowsPerKey <= rows {
			p.direct, p.memory = true, len(p.ranges)
		} else {
			p.memory = min(p.s.MemoryRows(), len(p.ranges))
		}
		return nil
	}
	p.memory = p.countMemory(limit + 1)
	n, err := p.estimate(limit - p.memory)
	if err != nil {
		return err
	}
	if p.memory+n <= limit {
		p.direct, p.memory = true, p.memory+n
	} else if p.memory > limit {
		p.memory = p.s.MemoryRows()
	}
	return nil
}

// LeaveFiles makes the part one whose files are read by the caller, however few rows they have. To be called before
// anything else.
func (p *Part) LeaveFiles() {
	if !p.direct {
		return
	}
	p.direct, p.files = false, nil
	p.findFiles()
	p.memory = p.countMemory(p.memory + 1)
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
	for _, r := range p.ranges {
		for it.SeekGE(r.lower); n < limit && it.Valid() && r.holds(it.Key()); it.Next() {
			n++
		}
		if n >= limit {
			break
		}
	}
	return n
}

func (r keyRange) holds(key []byte) bool {
	return bytes.Compare(key, r.lower) >= 0 && (r.upper == nil || bytes.Compare(key, r.upper) < 0)
}

// estimate returns about how many rows the files have in the ranges, from above. It stops beyond limit.
func (p *Part) estimate(limit int) (n int, err error) {
	var cut []*liveFile // those that no range holds whole
	for _, i := range p.files {
		f := p.s.state.files[i]
		if len(p.ranges) > 1 || !p.ranges[0].holds(f.meta.KeyMin) || !p.ranges[0].holds(f.meta.KeyMax) {
			cut = append(cut, f)
			continue
		}
		if n += int(f.meta.Live()); n > limit {
			return n, nil
		}
	}
	for _, f := range cut {
		for _, r := range p.ranges {
			if !r.overlaps(f.meta.KeyMin, f.meta.KeyMax) {
				continue
			}
			reader, err := f.open(p.s.state.table.schema)
			if err != nil {
				return 0, err
			}
			if n += int(reader.EstimateRows(r.lower, r.upper)); n > limit {
				return n, nil
			}
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

// Direct reports whether the overlay yields all rows of the part, those of files too.
func (p *Part) Direct() bool { return p.direct }

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
func (p *Part) Overlay(projection []int) *RowIter { return p.overlay(projection, p.ranges) }

// overlay returns the overlay's rows of some of the part's ranges.
func (p *Part) overlay(projection []int, ranges []keyRange) *RowIter {
	it, err := p.s.newPieceIter(projection)
	if err != nil {
		return &RowIter{err: err}
	}
	if it.hidden != nil && p.direct {
		it.Close()
		return &RowIter{err: base.Errorf(base.CodeInvalidArgument, "rows that are looked up come without sequence numbers: leave the files")}
	}
	if p.direct && p.points {
		it.push(newLookupSource(it, p.s.seq, ranges))
		return it
	}
	for _, r := range ranges {
		it.addMemory(p.s, r)
		if p.direct {
			it.addFiles(r, len(ranges) > 1)
		}
	}
	if p.direct {
		p.s.state.core.reads.scans.Add(1)
	}
	return it
}
