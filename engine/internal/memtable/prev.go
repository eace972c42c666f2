package memtable

import (
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
)

// Going back. Leaves know only the leaf to their right, so the one to the left is found from the root: it is the leaf of
// the place just before the first entry of this one. The first entry of a leaf stays its first (what comes before it
// belongs to the left), so a descent for a place comes to a leaf that has an entry before it, or to the leftmost one. No
// two versions of a key may have one sequence number here: the second would not be before the first.

// Last moves to the last entry.
func (it *Iter) Last() {
	it.m.lastView(&it.leaf)
	it.i = it.leaf.count
	it.touch(&it.leaf)
	it.before()
}

// SeekLT moves to the last entry with a key less than key.
func (it *Iter) SeekLT(key []byte) {
	t := newTarget(key, base.MaxSeq)
	it.seekBefore(&t)
	it.before()
}

// Prev moves to the key before (of NewAllIter: to the version before). The iterator must be valid and have come from Last
// or SeekLT.
func (it *Iter) Prev() { it.before() }

// seekBefore puts i behind the last entry before the target.
func (it *Iter) seekBefore(t *target) {
	n := it.m.leafFor(t)
	it.i = it.m.view(&it.leaf, n, t)
	for it.i == it.leaf.count && it.m.isRightOf(n, t) {
		n = it.m.moveRight(n, t)
		it.i = it.m.view(&it.leaf, n, t)
	}
	it.touch(&it.leaf)
}

// back moves to the entry before i, of whatever version, and returns it; nil at the start.
func (it *Iter) back() entry {
	if it.i == 0 {
		if it.leaf.count == 0 {
			return nil
		}
		first := it.m.at(it.leaf.entries[0])
		t := newTarget(entryKey(first), entrySeq(first))
		if it.seekBefore(&t); it.i == 0 {
			it.leaf.count = 0 // the start: do not look again
			return nil
		}
	}
	it.i--
	return it.m.at(it.leaf.entries[it.i])
}

// before moves to the key before i: to its newest version that is not too new. The versions of a key come oldest first.
func (it *Iter) before() {
	it.e = nil
	for e := it.back(); e != nil; e = it.back() {
		if it.e != nil && !sameKey(e, it.e) {
			it.i++ // one too far
			return
		}
		if entrySeq(e) <= it.max {
			if it.e = e; it.all {
				return
			}
		}
	}
}

// lastView copies the last leaf.
func (m *Memtable) lastView(v *leafView) {
	n, levels := m.rootOf()
	for {
		if next := atomic.LoadUint32(nextOf(n)); next != 0 {
			n = m.at(next)
			continue
		}
		if levels == 0 {
			if m.view(v, n, nil); v.next == 0 {
				return
			}
			continue // it was split meanwhile
		}
		version := atomic.LoadUint32(versionOf(n))
		order := atomic.LoadUint64(orderOf(n))
		child := atomic.LoadUint32(childAt(n, orderSlot(order, orderCount(order)-1)))
		if atomic.LoadUint32(versionOf(n)) == version {
			n = m.at(child)
			levels--
		}
	}
}
