package engine

import (
	"slices"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// CountRows returns how many rows the snapshot shows: those of the files that it does not hide, and the keys in memory
// whose newest version is no deletion. What was counted is kept per memtable and grows with it, as [resolution] does, so
// that a count costs what came since the last one.
func (s *Snapshot) CountRows() (int64, error) {
	if err := s.pin(); err != nil {
		return 0, err
	}
	defer s.state.unref()
	var n int64
	for i, f := range s.state.files {
		if s.MemoryRows() == 0 {
			n += f.meta.Live()
			continue
		}
		hidden, err := s.hidden(i, s.deletesOf(i))
		if err != nil {
			return 0, err
		}
		n += f.meta.Rows - int64(hidden.GetCardinality())
	}
	return n + int64(s.liveInMemory()), nil
}

// liveCount is how many keys of a memtable and those below it have a row.
type liveCount struct {
	mu sync.Mutex
	// below are the memtables below it, and seen how many of their entries were visible.
	below []*memEntry
	seen  []int
	upTo  int // entries of the memtable that are counted
	live  int
}

// liveInMemory returns how many keys in memory have a row.
func (s *Snapshot) liveInMemory() int {
	for i, e := range s.state.mems {
		if s.visible[i] > 0 {
			return e.counted.at(s, i)
		}
	}
	return 0
}

// at returns the count for the memtable at place i of the snapshot's and all below it.
func (c *liveCount) at(s *Snapshot, i int) int {
	e, n := s.state.mems[i], s.visible[i]
	below, seen := s.state.mems[i+1:], s.visible[i+1:]
	c.mu.Lock()
	defer c.mu.Unlock()
	known := slices.Equal(c.below, below) && slices.Equal(c.seen, seen)
	if known && n < c.upTo { // a snapshot older than the last count
		return s.walkLive(i)
	}
	// A walk takes a step for every entry, a look-up some for each new one.
	const walkShare = 8
	if !known || n-c.upTo > max(e.mt.Len()/walkShare, maxSorted/walkShare) {
		c.below, c.seen, c.upTo, c.live = slices.Clone(below), slices.Clone(seen), n, s.walkLive(i)
		return c.live
	}
	e.mt.Arrivals(c.upTo, n, func(key []byte, seq base.Seq, op base.Op) {
		if op != base.OpDelete {
			c.live++
		}
		if s.liveBefore(i, key, seq) {
			c.live--
		}
	})
	c.upTo = n
	return c.live
}

// liveBefore reports whether a key had a row in the memtables from place i on before its version seq of the first of them.
func (s *Snapshot) liveBefore(i int, key []byte, seq base.Seq) bool {
	if seq > 0 {
		if _, op, _, ok := s.state.mems[i].mt.Get(key, seq-1); ok {
			return op != base.OpDelete
		}
	}
	for at := i + 1; at < len(s.state.mems); at++ {
		e := s.state.mems[at]
		if _, op, _, ok := e.mt.Get(key, s.state.bound(at, s.seq)); ok {
			return op != base.OpDelete
		}
	}
	return false
}

// walkLive walks the memtables from place i on.
func (s *Snapshot) walkLive(i int) (n int) {
	iters := make([]*memtable.Iter, 0, len(s.state.mems)-i)
	for at, e := range s.state.mems[i:] {
		iters = append(iters, e.mt.NewIter(s.state.bound(i+at, s.seq)))
	}
	it := memtable.NewMergeIter(iters...)
	for it.First(); it.Valid(); it.Next() {
		if it.Op() != base.OpDelete {
			n++
		}
	}
	return n
}
