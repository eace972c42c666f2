package memtable

import (
	"bytes"
	"sync/atomic"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// ErrFull is returned by Add where an entry does not fit. Compare with errors.Is; nothing was added.
var ErrFull = base.Errorf(base.CodeInvalidArgument, "the row does not fit into the memtable")

const (
	wordLog = 3
	// firstEntry is where entries start; offset 0 says that there is nothing.
	firstEntry = 64
	// nodeBudget is what EntryBytes counts for the tree: at least halfSlots entries share a leaf, as many leaves a parent
	// and so on, which makes 192/7 + 256/49 + 256/343 + … = 33.5 bytes. nodeSlack is for the last node of each level,
	// which may be emptier; it is also what one insertion can take at most.
	nodeBudget = 34
	nodeSlack  = leafBytes + maxLevels*innerBytes
	// arrivalStride is how many entries share one word of the arrival index.
	arrivalStride = 64
	maxCapacity   = 31 << 30 // what 32-bit offsets reach, with some room
)

// Memtable is an ordered set of row versions outside of Go's heap. One goroutine at a time may call Add; everything else
// is safe for any number of goroutines beside it. All methods need a reference to be held (see Ref).
type Memtable struct {
	mem       []byte
	unmap     func()
	base      unsafe.Pointer
	firstLeaf node
	arrivals  unsafe.Pointer // the arrival index: u32 offsets of entries 0, arrivalStride, 2*arrivalStride, …
	capacity  int
	refs      atomic.Int64
	root      atomic.Uint64 // levels of inner nodes << 32 | offset

	_ [64]byte // what the writer changes at each Add is on other cache lines than what readers need

	count atomic.Int64 // entries in the tree
	bytes atomic.Int64 // the sum of their EntryBytes
	w     writer
}

// New maps a memtable for entries of capacity bytes in all (see EntryBytes), 31 GiB at most. The caller has its one
// reference. The error is CodeInvalidArgument for a capacity out of range, CodeIO where the system gives no memory.
func New(capacity int) (*Memtable, error) {
	return NewIn(capacity, Anonymous)
}

// Anonymous is the memory of [New]: pages that were written to stay in memory.
func Anonymous(size int) (mem []byte, unmap func(), err error) {
	mem, err = mapAnonymous(size)
	return mem, func() { unmapAnonymous(mem) }, err
}

// NewIn is New with memory of another kind: mapped returns size bytes of zeros, aligned to pages, and what frees them
// once the last reference is gone.
func NewIn(capacity int, mapped func(size int) (mem []byte, unmap func(), err error)) (*Memtable, error) {
	if capacity < 0 || capacity > maxCapacity {
		return nil, base.Errorf(base.CodeInvalidArgument, "memtable capacity of %d bytes: 0 to %d are allowed", capacity,
			maxCapacity)
	}
	nodesEnd := (firstEntry + capacity + 2*nodeSlack + nodeAlign) &^ (nodeAlign - 1)
	indexBytes := 4 * (capacity/EntryBytes(0, 0)/arrivalStride + 1)
	mem, unmap, err := mapped(nodesEnd + indexBytes)
	if err != nil {
		return nil, err
	}
	m := &Memtable{mem: mem, unmap: unmap, base: unsafe.Pointer(unsafe.SliceData(mem)), capacity: capacity}
	m.arrivals = unsafe.Add(m.base, nodesEnd)
	m.w.entryEnd, m.w.nodeEnd = firstEntry, nodesEnd
	m.firstLeaf = m.newNode(leafBytes)
	m.setRoot(m.firstLeaf, 0)
	m.refs.Store(1)
	return m, nil
}

// EntryBytes returns how many bytes of a memtable's capacity an entry takes: Bytes grows by exactly this.
func EntryBytes(keyLen, valueLen int) int { return entrySize(keyLen, valueLen) + nodeBudget }

// Fits reports whether an entry can still be added. Only the writer may rely on the answer.
func (m *Memtable) Fits(keyLen, valueLen int) bool {
	return EntryBytes(keyLen, valueLen) <= m.capacity-int(m.bytes.Load())
}

// Len returns how many entries there are, each version counted.
func (m *Memtable) Len() int { return int(m.count.Load()) }

// Bytes returns how much of the capacity is taken: the sum of EntryBytes.
func (m *Memtable) Bytes() int { return int(m.bytes.Load()) }

// Capacity returns how many bytes of entries fit.
func (m *Memtable) Capacity() int { return m.capacity }

// Ref adds a reference. The caller must know that one is held.
func (m *Memtable) Ref() { m.refs.Add(1) }

// Unref drops a reference. With the last one the memory is unmapped: keys and values handed out are invalid then, as are
// iterators.
func (m *Memtable) Unref() {
	if m.refs.Add(-1) == 0 {
		m.unmap()
		m.mem, m.base, m.firstLeaf, m.arrivals, m.w = nil, nil, nil, nil, writer{}
	}
}

// Add inserts a version of a key; key and value are copied. Callers serialise it. Of two entries with the same key and
// sequence number the later one is found first. The error is ErrFull where it does not fit, CodeInvalidArgument for a
// sequence number above base.MaxSeq or a key or value of 4 GiB; nothing was added then.
func (m *Memtable) Add(key []byte, seq base.Seq, op base.Op, value []byte) error {
	if seq > base.MaxSeq || len(key) > maxEntryLen || len(value) > maxEntryLen {
		return base.Errorf(base.CodeInvalidArgument,
			"memtable entry with a key of %d bytes, a value of %d and sequence number %d: at most %d, %d and %d are allowed",
			len(key), len(value), seq, maxEntryLen, maxEntryLen, base.MaxSeq)
	}
	taken, need := int(m.bytes.Load()), EntryBytes(len(key), len(value))
	size := entrySize(len(key), len(value))
	// The second condition never holds if nodeBudget is right; were it wrong, memory would be overwritten.
	if need > m.capacity-taken || size+nodeSlack > m.w.nodeEnd-m.w.entryEnd {
		return ErrFull
	}
	e := unsafe.Add(m.base, m.w.entryEnd)
	m.w.entryEnd += size
	writeEntry(e, key, seq, op, value)
	t := newTarget(key, seq)
	m.insert(&t, e)

	count := int(m.count.Load())
	if count%arrivalStride == 0 {
		*(*uint32)(unsafe.Add(m.arrivals, 4*(count/arrivalStride))) = m.offset(e)
	}
	m.bytes.Store(int64(taken + need))
	m.count.Store(int64(count + 1))
	return nil
}

// Get returns the newest version of a key with a sequence number of at most max; ok is false where there is none. A
// tombstone is a version: op says so. The value aliases the memtable's memory.
func (m *Memtable) Get(key []byte, max base.Seq) (value []byte, op base.Op, seq base.Seq, ok bool) {
	t := newTarget(key, max)
	e := m.seek(&t)
	if e == nil || !bytes.Equal(entryKey(e), key) {
		return nil, 0, 0, false
	}
	return entryValue(e), entryOp(e), entrySeq(e), true
}

// Arrivals calls fn with the entries from (inclusive) to to (exclusive) in the order of their arrival, counted from 0.
// Entries beyond Len are left out. The key aliases the memtable's memory.
func (m *Memtable) Arrivals(from, to int, fn func(key []byte, seq base.Seq, op base.Op)) {
	from, to = max(from, 0), min(to, m.Len())
	if from >= to {
		return
	}
	e := m.at(*(*uint32)(unsafe.Add(m.arrivals, 4*(from/arrivalStride))))
	for i := from &^ (arrivalStride - 1); i < to; i++ {
		if i >= from {
			fn(entryKey(e), entrySeq(e), entryOp(e))
		}
		e = unsafe.Add(e, entrySize(entryKeyLen(e), entryValueLen(e)))
	}
}
