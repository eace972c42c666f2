package memtable

import (
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
)

// Iter walks a memtable in key order. It is one goroutine's; the caller holds a reference to the memtable as long as it
// is used. Entries that are added meanwhile may be seen or not: bound the sequence number for a stable view. It goes one
// way after each positioning: Next after First and SeekGE, Prev after Last and SeekLT (see prev.go).
type Iter struct {
	m   *Memtable
	max base.Seq
	all bool
	e   entry // nil: not positioned, or at the end
	i   int   // the rank of e in leaf; going back: of the entry where the search before e goes on
	// leaf is a copy: entries that come later do not disturb it. In a scan, ahead is the copy of the leaf after it.
	leaf, ahead leafView
	scanning    bool
	// touched keeps the loads alive that bring entries into the cache.
	touched uint64
}

// NewIter returns an iterator over the newest version of each key with a sequence number of at most max, tombstones
// included. It stands nowhere: call First, SeekGE, Last or SeekLT.
func (m *Memtable) NewIter(max base.Seq) *Iter { return &Iter{m: m, max: max} }

// NewAllIter returns an iterator over all versions: by key, newest first.
func (m *Memtable) NewAllIter() *Iter { return &Iter{m: m, max: base.MaxSeq, all: true} }

// First moves to the first entry.
func (it *Iter) First() {
	it.m.view(&it.leaf, it.m.firstLeaf, nil)
	it.start(0, &target{})
}

// SeekGE moves to the first entry with a key of at least key.
func (it *Iter) SeekGE(key []byte) {
	t := newTarget(key, base.MaxSeq)
	n := it.m.leafFor(&t)
	rank := it.m.view(&it.leaf, n, &t)
	for rank == it.leaf.count && it.m.isRightOf(n, &t) {
		n = it.m.moveRight(n, &t)
		rank = it.m.view(&it.leaf, n, &t)
	}
	it.start(rank, &t)
}

// start moves to the entry of a rank in the leaf, or where there is none to the first one further right that is not
// before the target.
func (it *Iter) start(rank int, t *target) {
	it.touch(&it.leaf)
	it.i, it.scanning = rank, false
	if it.e = nil; rank < it.leaf.count {
		it.e = it.m.at(it.leaf.entries[rank])
	} else {
		it.nextLeaf(t)
	}
	it.settle()
}

// Next moves to the next key (of NewAllIter: the next version). The iterator must be valid.
func (it *Iter) Next() {
	last := it.e
	it.step()
	if !it.all {
		for it.e != nil && sameKey(it.e, last) {
			it.step()
		}
	}
	it.settle()
}

// settle skips versions that are too new.
func (it *Iter) settle() {
	for it.e != nil && entrySeq(it.e) > it.max {
		it.step()
	}
}

// step moves to the next entry.
func (it *Iter) step() {
	if it.i++; it.i < it.leaf.count {
		it.e = it.m.at(it.leaf.entries[it.i])
		return
	}
	t := newTarget(entryKey(it.e), entrySeq(it.e))
	it.nextLeaf(&t)
}

// nextLeaf moves to the first entry in the leaves further right that is not before the target, nor the one it stood on.
func (it *Iter) nextLeaf(t *target) {
	for it.leaf.next != 0 {
		it.advance()
		for it.i = 0; it.i < it.leaf.count; it.i++ {
			if e := it.m.at(it.leaf.entries[it.i]); e != it.e && !t.after(e) {
				it.e = e
				return
			}
		}
	}
	it.e = nil
}

// advance copies the next leaf, and from the second one on the leaf after it, so that what is needed next is under way
// while the caller looks at the rows of this one.
func (it *Iter) advance() {
	if it.scanning {
		it.leaf = it.ahead
	} else {
		it.m.view(&it.leaf, it.m.at(it.leaf.next), nil)
		it.touch(&it.leaf)
	}
	if it.scanning = it.leaf.next != 0; it.scanning {
		it.m.view(&it.ahead, it.m.at(it.leaf.next), nil)
		it.touch(&it.ahead)
	}
}

// touch loads a word of each entry of a leaf, and of each cache line that a view of the next leaf needs. So the cache
// misses overlap, instead of coming one after the other.
func (it *Iter) touch(v *leafView) {
	var sum uint64
	if v.next != 0 {
		n := it.m.at(v.next)
		sum = atomic.LoadUint64(orderOf(n)) + uint64(atomic.LoadUint32(entryAt(n, 0)))
	}
	for _, off := range v.entries[:v.count] {
		sum += entryTrailer(it.m.at(off))
	}
	it.touched += sum
}

// Valid reports whether the iterator stands on an entry.
func (it *Iter) Valid() bool { return it.e != nil }

// Key returns the key. It aliases the memtable's memory, like Value.
func (it *Iter) Key() []byte { return entryKey(it.e) }

// Seq returns the sequence number.
func (it *Iter) Seq() base.Seq { return entrySeq(it.e) }

// Op returns what the version does: base.OpPut or base.OpDelete.
func (it *Iter) Op() base.Op { return entryOp(it.e) }

// Value returns the value, nil for a tombstone.
func (it *Iter) Value() []byte { return entryValue(it.e) }
