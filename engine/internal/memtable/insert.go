package memtable

import (
	"sync/atomic"
	"unsafe"
)

// writer is what only the goroutine that adds uses. It reads the tree without atomics: nobody else stores.
type writer struct {
	entryEnd int // where the next entry goes, in bytes from the arena's start
	nodeEnd  int // where the last node starts: nodes grow downwards
	// leaf is where the last insertion went, path the way there: level 0 is the leaf's parent.
	leaf   node
	path   [maxLevels]step
	levels int
	// near says that what is after low and not after high belongs into leaf, so an insertion there need not descend. It
	// holds until a split changes the path, and is not set where the bounds' prefixes are not at hand. A missing bound is 0.
	near                  bool
	low, high             uint32
	lowPrefix, highPrefix uint64
	// long says that some key is longer than a prefix: nodes deeper than 0 are worth their while.
	long bool
}

// step is a node of the path and the rank of the child taken.
type step struct {
	n    node
	rank int
}

// item is what a slot holds; child counts in inner nodes only. The prefix is that of a node of this depth.
type item struct {
	prefix       uint64
	depth        int
	entry, child uint32
}

// insert links entry e at the target's place.
func (m *Memtable) insert(t *target, e entry) {
	w := &m.w
	w.long = w.long || len(t.key) > prefixBytes
	if !w.near || !m.isNear(t) {
		m.descend(t)
	}
	rank := m.leafRank(w.leaf, t)
	right := m.addItem(w.leaf, leafBytes, rank, item{prefix: t.prefix, entry: m.offset(e)})
	if right == nil {
		return
	}
	w.near = false
	for level := 0; right != nil; level++ {
		it := item{*prefixAt(right, 0), depthOf(right), *entryAt(right, 0), m.offset(right)}
		if level == w.levels {
			m.addRoot(it)
			return
		}
		right = m.addItem(w.path[level].n, innerBytes, w.path[level].rank+1, it)
	}
}

func (m *Memtable) isNear(t *target) bool {
	w := &m.w
	if w.low != 0 && (t.prefix < w.lowPrefix || t.prefix == w.lowPrefix && !t.tieAfter(m.at(w.low), 0)) {
		return false
	}
	return w.high == 0 || t.prefix < w.highPrefix || t.prefix == w.highPrefix && !t.tieAfter(m.at(w.high), 0)
}

// leafRank is rank with a short cut for ascending keys.
func (m *Memtable) leafRank(n node, t *target) int {
	order := *orderOf(n)
	if count := orderCount(order); count > 0 && depthOf(n) == 0 && *prefixAt(n, orderSlot(order, count-1)) < t.prefix {
		return count
	}
	return m.rank(n, order, 0, t)
}

// descend finds the target's leaf, the path and the bounds.
func (m *Memtable) descend(t *target) {
	w := &m.w
	w.low, w.high = 0, 0
	var n node
	var lowDepth, highDepth int
	n, w.levels = m.rootOf()
	for level := w.levels - 1; level >= 0; level-- {
		order := *orderOf(n)
		rank := m.rank(n, order, 1, t) - 1
		if rank > 0 {
			slot := orderSlot(order, rank)
			w.low, w.lowPrefix, lowDepth = *entryAt(n, slot), *prefixAt(n, slot), depthOf(n)
		}
		if rank+1 < orderCount(order) {
			slot := orderSlot(order, rank+1)
			w.high, w.highPrefix, highDepth = *entryAt(n, slot), *prefixAt(n, slot), depthOf(n)
		}
		w.path[level] = step{n, rank}
		n = m.at(*childAt(n, orderSlot(order, rank)))
	}
	w.leaf, w.near = n, lowDepth == 0 && highDepth == 0
}

// addItem gives a node one more item. A full node is split first; the new node to its right is returned, which its
// parent must get. bytes is the node's size.
func (m *Memtable) addItem(n node, bytes, rank int, it item) (right node) {
	order := *orderOf(n)
	if orderCount(order) < slots {
		m.putItem(n, bytes, orderSlot(order, orderCount(order)), it)
		atomic.StoreUint64(orderOf(n), orderInsert(order, rank))
		return nil
	}
	keep := halfSlots
	if rank == slots && *highOf(n) == 0 {
		keep = slots // the keys ascend: leave the node full
	}
	right = m.upperHalf(n, bytes, keep)
	toRight := rank > keep || keep == slots
	if toRight {
		m.addItem(right, bytes, rank-keep, it)
	}
	atomic.StoreUint32(nextOf(n), m.offset(right))
	atomic.StoreUint32(highOf(n), *entryAt(right, 0))
	if keep < slots {
		atomic.StoreUint64(orderOf(n), orderTruncate(order, keep))
		atomic.AddUint32(versionOf(n), 1)
	}
	if !toRight {
		m.addItem(n, bytes, rank, it)
	}
	return right
}

// upperHalf makes a node of the items of n from a rank on; its first item is in slot 0, as is the first one added to an
// empty node.
func (m *Memtable) upperHalf(n node, bytes, from int) (right node) {
	order := *orderOf(n)
	right = m.newNode(bytes)
	*nextOf(right), *highOf(right) = *nextOf(n), *highOf(n)
	if m.w.long && *highOf(n) != 0 && from < slots {
		low, high := m.at(*entryAt(n, orderSlot(order, from))), m.at(*highOf(n))
		if d := sharedPrefix(entryKey(low), entryKey(high), maxDepth); d >= minDepth {
			setDepth(right, d)
		}
	}
	for r := from; r < slots; r++ {
		slot := orderSlot(order, r)
		it := item{prefix: *prefixAt(n, slot), depth: depthOf(n), entry: *entryAt(n, slot)}
		if bytes == innerBytes {
			it.child = *childAt(n, slot)
		}
		m.putItem(right, bytes, uint64(r-from), it)
	}
	*orderOf(right) = orderTruncate(orderEmpty, slots-from)
	return right
}

// putItem fills a free slot. Readers may still look at a slot that was in use before a split; they will notice.
func (m *Memtable) putItem(n node, bytes int, slot uint64, it item) {
	if d := depthOf(n); d != it.depth {
		it.prefix = prefixFrom(entryKey(m.at(it.entry)), d)
	}
	if *versionOf(n) == 0 { // the slot is new
		*prefixAt(n, slot), *entryAt(n, slot) = it.prefix, it.entry
		if bytes == innerBytes {
			*childAt(n, slot) = it.child
		}
		return
	}
	atomic.StoreUint64(prefixAt(n, slot), it.prefix)
	atomic.StoreUint32(entryAt(n, slot), it.entry)
	if bytes == innerBytes {
		atomic.StoreUint32(childAt(n, slot), it.child)
	}
}

// addRoot puts a root above the present one, which was split.
func (m *Memtable) addRoot(right item) {
	old, levels := m.rootOf()
	root := m.newNode(innerBytes)
	m.putItem(root, innerBytes, 0, item{child: m.offset(old)})
	m.putItem(root, innerBytes, 1, right)
	*orderOf(root) = orderTruncate(orderEmpty, 2)
	m.setRoot(root, levels+1)
}

// newNode takes an empty node from the arena.
func (m *Memtable) newNode(bytes int) node {
	m.w.nodeEnd -= bytes
	n := unsafe.Add(m.base, m.w.nodeEnd)
	*orderOf(n) = orderEmpty
	return n
}
