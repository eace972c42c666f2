package memtable

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A node of the tree, aligned to 64 bytes:
//
//	  0  u64      order: which slots are in use, in which order
//	  8  u32      version: how often the node was split
//	 12  u32      next: the node to the right, on the same level; 0 at the right edge
//	 16  u32      high: the first entry that belongs to the right of this node; 0 at the right edge
//	 20  u32      depth: how many bytes all keys between the node's bounds share
//	 24  u64[14]  the 8 key bytes from depth on, as a number
//	136  u32[14]  the slot's entry; of an inner node: the first entry of the child
//	192  u32[14]  the child, only in inner nodes
//
// All u32 are offsets into the arena in words of 8 bytes.
//
// The order has the count of used slots in its lowest 4 bits, then a permutation of the slots, 4 bits each: used ones in
// the order of their entries, then free ones. A slot is filled before a new order makes it visible, so readers see each
// insertion whole or not. A split moves the upper half to a new node to the right: next and high are stored first, then
// the order that lets go of the slots, then the version, and only then slots are filled again. So a reader that finds the
// version as it was before it read the order has read no reused slot. A reader that comes to a node by a path that is out
// of date, because the node was split meanwhile, sees that its target is after high and goes to next.
const (
	slots = 14

	nodeVersion  = 8
	nodeNext     = 12
	nodeHigh     = 16
	nodeDepth    = 20
	nodePrefixes = 24
	nodeEntries  = nodePrefixes + 8*slots
	nodeChildren = nodeEntries + 4*slots

	leafBytes  = nodeChildren
	innerBytes = 256
	nodeAlign  = 64

	// halfSlots is what each half of a split has. Every node but the last of its level is at least that full.
	halfSlots = slots / 2
	// minDepth is from where on it pays to look at deeper bytes, maxDepth the greatest depth.
	minDepth = 4
	maxDepth = 1<<31 - 1
	// maxLevels bounds the height: 7^11 leaves exceed what offsets reach.
	maxLevels = 12

	orderSlotBits = 4
	orderMask     = 1<<orderSlotBits - 1
	orderEmpty    = 0xdcba9876543210 << orderSlotBits
)

// node is the address of a node.
type node = unsafe.Pointer

func orderOf(n node) *uint64   { return (*uint64)(n) }
func versionOf(n node) *uint32 { return (*uint32)(unsafe.Add(n, nodeVersion)) }
func nextOf(n node) *uint32    { return (*uint32)(unsafe.Add(n, nodeNext)) }
func highOf(n node) *uint32    { return (*uint32)(unsafe.Add(n, nodeHigh)) }

// depthOf is set before the node is reachable.
func depthOf(n node) int { return int(*(*uint32)(unsafe.Add(n, nodeDepth))) }

func setDepth(n node, depth int) { *(*uint32)(unsafe.Add(n, nodeDepth)) = uint32(depth) }

func prefixAt(n node, slot uint64) *uint64 {
	return (*uint64)(unsafe.Add(n, nodePrefixes+8*slot))
}

func entryAt(n node, slot uint64) *uint32 {
	return (*uint32)(unsafe.Add(n, nodeEntries+4*slot))
}

func childAt(n node, slot uint64) *uint32 {
	return (*uint32)(unsafe.Add(n, nodeChildren+4*slot))
}

func orderCount(order uint64) int { return int(order & orderMask) }

// orderSlot returns the slot of a rank; of rank count: the next free one.
func orderSlot(order uint64, rank int) uint64 {
	return order >> (orderSlotBits * uint(rank+1) & 63) & orderMask
}

// orderInsert returns the order in which the next free slot has the given rank.
func orderInsert(order uint64, rank int) uint64 {
	count := orderCount(order)
	slot := orderSlot(order, count)
	from, to := orderSlotBits*uint(rank+1), orderSlotBits*uint(count+1)
	below := uint64(1)<<from - 1
	above := ^uint64(0) << (to + orderSlotBits)
	moved := order &^ below &^ above & (1<<to - 1)
	return (order&(below|above) | moved<<orderSlotBits | slot<<from) + 1
}

// orderTruncate returns the order with only the first count slots in use.
func orderTruncate(order uint64, count int) uint64 {
	return order&^orderMask | uint64(count)
}

// rank returns how many of the slots of ranks from to count-1 have entries before the target, plus from. The target's key
// shares the node's first depth bytes.
func (m *Memtable) rank(n node, order uint64, from int, t *target) int {
	count := orderCount(order)
	r := uint64(from)
	depth := depthOf(n)
	prefix := t.prefixFrom(depth)
	for o := order >> (orderSlotBits * uint(from+1) & 63); from < count; from++ {
		_, less := bits.Sub64(atomic.LoadUint64(prefixAt(n, o&orderMask)), prefix, 0)
		r += less
		o >>= orderSlotBits
	}
	at := int(r)
	if at == count || atomic.LoadUint64(prefixAt(n, orderSlot(order, at))) != prefix {
		return at
	}
	return m.rankTied(n, order, at, t, prefix, depth)
}

// rankTied is rank among slots with the target's prefix, of which the first has rank at.
func (m *Memtable) rankTied(n node, order uint64, at int, t *target, prefix uint64, depth int) int {
	end := at + 1
	for count := orderCount(order); end < count && atomic.LoadUint64(prefixAt(n, orderSlot(order, end))) == prefix; {
		end++
	}
	for at < end {
		mid := (at + end) / 2
		if t.tieAfter(m.at(atomic.LoadUint32(entryAt(n, orderSlot(order, mid)))), depth) {
			at = mid + 1
		} else {
			end = mid
		}
	}
	return at
}
