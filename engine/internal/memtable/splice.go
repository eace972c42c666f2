package memtable

import (
	"math"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
)

// splice is a place in the list: on each level the entry before and the entry after it, with their prefixes, so that
// comparing with them touches no entry. The places are nested: prev on a level is at or before prev on the level below,
// next at or after. It is the writer's memory of the last insertion.
type splice struct {
	prev, next             [maxHeight]uint32 // next is 0 at the end of the list
	prevPrefix, nextPrefix [maxHeight]uint64
	head                   uint32
}

// reset makes it the place in an empty list.
func (s *splice) reset(m *Memtable) {
	s.head = m.offset(m.head)
	for l := range maxHeight {
		s.prev[l], s.prevPrefix[l] = s.head, 0
		s.next[l], s.nextPrefix[l] = 0, math.MaxUint64
	}
}

// holds reports whether (key, seq) is between prev and next on a level.
func (s *splice) holds(m *Memtable, level int, key []byte, prefix uint64, seq base.Seq) bool {
	return s.afterPrev(m, level, key, prefix, seq) && !s.afterNext(m, level, key, prefix, seq)
}

func (s *splice) afterPrev(m *Memtable, level int, key []byte, prefix uint64, seq base.Seq) bool {
	if p := s.prevPrefix[level]; p != prefix {
		return p < prefix
	}
	return s.prev[level] == s.head || before(m.at(s.prev[level]), key, seq)
}

func (s *splice) afterNext(m *Memtable, level int, key []byte, prefix uint64, seq base.Seq) bool {
	if p := s.nextPrefix[level]; p != prefix {
		return p < prefix
	}
	return s.next[level] != 0 && before(m.at(s.next[level]), key, seq)
}

// seek moves the splice to the place of (key, seq): up from the last place until a level holds it, then down again.
func (s *splice) seek(m *Memtable, key []byte, prefix uint64, seq base.Seq) {
	height := int(m.height.Load())
	level := 0
	for level < height && !s.holds(m, level, key, prefix, seq) {
		level++
	}
	x, xPrefix := s.head, uint64(0)
	after, afterPrefix := uint32(0), uint64(math.MaxUint64)
	if level < height {
		x, xPrefix, after, afterPrefix = s.prev[level], s.prevPrefix[level], s.next[level], s.nextPrefix[level]
	}
	for level--; level >= 0; level-- {
		for {
			off := *entryNext(m.at(x), level)
			if off == after {
				break
			}
			if off == 0 {
				after, afterPrefix = 0, math.MaxUint64
				break
			}
			n := m.at(off)
			p := entryPrefix(n)
			if p > prefix || p == prefix && !before(n, key, seq) {
				after, afterPrefix = off, p
				break
			}
			x, xPrefix = off, p
		}
		s.prev[level], s.prevPrefix[level] = x, xPrefix
		s.next[level], s.nextPrefix[level] = after, afterPrefix
	}
}

// insert links e at the splice, from the lowest level up: an entry that is found on a level is on all below. The splice
// is then the place right after e.
func (s *splice) insert(m *Memtable, e entry, prefix uint64, height int) {
	off := m.offset(e)
	for l := range height {
		*entryNext(e, l) = s.next[l]
	}
	for l := range height {
		atomic.StoreUint32(entryNext(m.at(s.prev[l]), l), off)
		s.prev[l], s.prevPrefix[l] = off, prefix
	}
}
