package memtable

import (
	"sync/atomic"
	"unsafe"
)

// The tree as readers see it; see node.go for why they need no locks.

// rootOf unpacks where the root is and how many levels of inner nodes there are.
func (m *Memtable) rootOf() (root node, levels int) {
	packed := m.root.Load()
	return m.at(uint32(packed)), int(packed >> 32)
}

func (m *Memtable) setRoot(root node, levels int) {
	m.root.Store(uint64(levels)<<32 | uint64(m.offset(root)))
}

// leafFor returns the target's leaf. The leaf may be split meanwhile: then the place is there or further right.
func (m *Memtable) leafFor(t *target) node {
	n, levels := m.rootOf()
	for levels > 0 {
		version := atomic.LoadUint32(versionOf(n))
		order := atomic.LoadUint64(orderOf(n))
		rank := m.rank(n, order, 1, t)
		if rank == orderCount(order) && m.isRightOf(n, t) {
			n = m.moveRight(n, t)
			continue
		}
		child := atomic.LoadUint32(childAt(n, orderSlot(order, rank-1)))
		if atomic.LoadUint32(versionOf(n)) == version {
			n = m.at(child)
			levels--
		}
	}
	return n
}

// isRightOf reports whether the target's place is to the right of a node.
func (m *Memtable) isRightOf(n node, t *target) bool {
	high := atomic.LoadUint32(highOf(n))
	return high != 0 && t.after(m.at(high))
}

// moveRight returns the node on this level that has the target's place, which is to the right of n.
func (m *Memtable) moveRight(n node, t *target) node {
	for {
		n = m.at(atomic.LoadUint32(nextOf(n)))
		if !m.isRightOf(n, t) {
			return n
		}
	}
}

// seek returns the entry at the target's place, nil at the end.
func (m *Memtable) seek(t *target) entry {
	n := m.leafFor(t)
	for {
		version := atomic.LoadUint32(versionOf(n))
		order := atomic.LoadUint64(orderOf(n))
		rank := m.rank(n, order, 0, t)
		var off uint32
		if rank < orderCount(order) {
			off = atomic.LoadUint32(entryAt(n, orderSlot(order, rank)))
		} else {
			off = atomic.LoadUint32(highOf(n))
			if off != 0 && t.after(m.at(off)) {
				n = m.moveRight(n, t)
				continue
			}
		}
		if atomic.LoadUint32(versionOf(n)) != version {
			continue
		}
		if off == 0 {
			return nil
		}
		return m.at(off)
	}
}

// leafView is a copy of a leaf: its entries in order, and the leaf to the right. If the leaf is split while it is copied,
// the copy may have all of its entries and yet the new leaf as its next: whoever goes on there skips what it has seen.
type leafView struct {
	entries [slots]uint32
	count   int
	next    uint32
}

// view copies a leaf and returns the rank of the target's place in the copy, 0 without a target.
func (m *Memtable) view(v *leafView, n node, t *target) (rank int) {
	for {
		version := atomic.LoadUint32(versionOf(n))
		order := atomic.LoadUint64(orderOf(n))
		v.count = orderCount(order)
		for i, o := 0, order>>orderSlotBits; i < v.count; i++ {
			v.entries[i] = atomic.LoadUint32(entryAt(n, o&orderMask))
			o >>= orderSlotBits
		}
		if t != nil {
			rank = m.rank(n, order, 0, t)
		}
		v.next = atomic.LoadUint32(nextOf(n))
		if atomic.LoadUint32(versionOf(n)) == version {
			return rank
		}
	}
}

func (m *Memtable) at(off uint32) unsafe.Pointer {
	return unsafe.Add(m.base, uintptr(off)<<wordLog)
}

func (m *Memtable) offset(p unsafe.Pointer) uint32 {
	return uint32((uintptr(p) - uintptr(m.base)) >> wordLog)
}
