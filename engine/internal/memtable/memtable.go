package memtable

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// ErrFull is returned by Add where an entry does not fit. Compare with errors.Is; nothing was added.
var ErrFull = base.Errorf(base.CodeInvalidArgument, "the row does not fit into the memtable")

const (
	wordBytesLog = 3
	// headAt is where the head is: word 0 stays unused, for offset 0 says that there is no entry.
	headAt = 8
	// heightSlack is room for towers above their budget; what lower ones leave unused adds to it.
	heightSlack = 256
	// arrivalStride is how many entries share one word of the arrival index.
	arrivalStride = 64
	maxCapacity   = 31 << 30 // what 32-bit offsets reach, with some room
)

// Memtable is an ordered set of row versions outside of Go's heap. One goroutine at a time may call Add; everything else
// is safe for any number of goroutines beside it. All methods need a reference to be held (see Ref).
type Memtable struct {
	mem      []byte
	base     unsafe.Pointer
	head     entry
	first    unsafe.Pointer // the first entry
	arrivals unsafe.Pointer // the arrival index: u32 offsets of entries 0, arrivalStride, 2*arrivalStride, …
	capacity int
	refs     atomic.Int64
	height   atomic.Uint32 // levels in use

	_ [64]byte // what the writer changes at each Add is on other cache lines than what readers need

	count atomic.Int64 // entries linked
	bytes atomic.Int64 // the sum of their EntryBytes
	w     writer
}

// writer is what only Add uses.
type writer struct {
	splice splice
	used   int // bytes of the arena that entries take, counted from the first one
	random uint64
}

// New maps a memtable for entries of capacity bytes in all (see EntryBytes), 31 GiB at most. The caller has its one
// reference. The error is CodeInvalidArgument for a capacity out of range, CodeIO where the system gives no memory.
func New(capacity int) (*Memtable, error) {
	if capacity < 0 || capacity > maxCapacity {
		return nil, base.Errorf(base.CodeInvalidArgument, "memtable capacity of %d bytes: at most %d are allowed", capacity, maxCapacity)
	}
	capacity = alignWord(capacity)
	firstAt := headAt + alignWord(headBytes)
	indexAt := firstAt + capacity + heightSlack
	indexBytes := 4 * (capacity/EntryBytes(0, 0)/arrivalStride + 1)
	mem, err := mapMemory(indexAt + indexBytes)
	if err != nil {
		return nil, err
	}
	m := &Memtable{mem: mem, base: unsafe.Pointer(unsafe.SliceData(mem)), capacity: capacity}
	m.head = unsafe.Add(m.base, headAt)
	m.first = unsafe.Add(m.base, firstAt)
	m.arrivals = unsafe.Add(m.base, indexAt)
	m.refs.Store(1)
	m.height.Store(1)
	m.w.random = 0x9e3779b97f4a7c15
	m.w.splice.reset(m)
	return m, nil
}

// EntryBytes returns how many bytes of a memtable's capacity an entry takes: Bytes grows by exactly this.
func EntryBytes(keyLen, valueLen int) int {
	return alignWord(entryHeader+towerBudget+keyLen+valueLen) + tallBudget
}

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
		unmapMemory(m.mem)
		m.mem, m.base, m.head, m.first, m.arrivals = nil, nil, nil, nil, nil
	}
}

func (m *Memtable) at(off uint32) entry { return unsafe.Add(m.base, uintptr(off)<<wordBytesLog) }

func (m *Memtable) offset(e entry) uint32 {
	return uint32((uintptr(e) - uintptr(m.base)) >> wordBytesLog)
}

// Add inserts a version of a key; key and value are copied. Callers serialise it. Of two entries with the same key and
// sequence number the later one is found first. The error is ErrFull where it does not fit, CodeInvalidArgument for a
// sequence number above base.MaxSeq or a key or value too long for the layout; nothing was added then.
func (m *Memtable) Add(key []byte, seq base.Seq, op base.Op, value []byte) error {
	if seq > base.MaxSeq || len(key) > maxKeyLen || len(value) > maxValLen {
		return base.Errorf(base.CodeInvalidArgument, "memtable entry with a key of %d bytes, a value of %d and sequence number %d: at most %d, %d and %d are allowed",
			len(key), len(value), seq, maxKeyLen, uint32(maxValLen), base.MaxSeq)
	}
	taken, need := int(m.bytes.Load()), EntryBytes(len(key), len(value))
	if need > m.capacity-taken {
		return ErrFull
	}
	height := m.randomHeight()
	size := alignWord(entryHeader + 4*height + len(key) + len(value))
	if spare := taken + need + heightSlack - m.w.used; size > spare { // as good as never: see tallBudget
		height = 1
		size = alignWord(entryHeader + 4*height + len(key) + len(value))
	}
	e := unsafe.Add(m.first, m.w.used)
	prefix := keyPrefix(key)
	*(*uint64)(e) = prefix
	*(*uint64)(unsafe.Add(e, 8)) = seq<<8 | uint64(op)
	*(*uint32)(unsafe.Add(e, 16)) = uint32(height)<<keyLenBits | uint32(len(key))
	*(*uint32)(unsafe.Add(e, 20)) = uint32(len(value))
	copy(entryKey(e), key)
	if len(value) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(e, entryHeader+4*height+len(key))), len(value)), value)
	}
	if height > int(m.height.Load()) {
		m.height.Store(uint32(height)) // the head has no successors there yet: readers that see it early find the end
	}
	s := &m.w.splice
	s.seek(m, key, prefix, seq)
	s.insert(m, e, prefix, height)

	count := int(m.count.Load())
	if count%arrivalStride == 0 {
		*(*uint32)(unsafe.Add(m.arrivals, 4*(count/arrivalStride))) = m.offset(e)
	}
	m.w.used += size
	m.bytes.Store(int64(taken + need))
	m.count.Store(int64(count + 1))
	return nil
}

// randomHeight is h with probability 3/4^h.
func (m *Memtable) randomHeight() int {
	r := m.w.random // xorshift64
	r ^= r << 13
	r ^= r >> 7
	r ^= r << 17
	m.w.random = r
	return min(bits.TrailingZeros64(r)/2+1, maxHeight)
}

// Get returns the newest version of a key with a sequence number of at most max; ok is false where there is none. A
// tombstone is a version: op says so. The value aliases the memtable's memory.
func (m *Memtable) Get(key []byte, max base.Seq) (value []byte, op base.Op, seq base.Seq, ok bool) {
	e := m.seek(key, max)
	if e == nil || entryPrefix(e) != keyPrefix(key) || compareRest(entryKey(e), key) != 0 {
		return nil, 0, 0, false
	}
	return entryValue(e), entryOp(e), entrySeq(e), true
}

// seek returns the first entry that is not before (key, seq), nil where all are.
func (m *Memtable) seek(key []byte, seq base.Seq) entry {
	prefix := keyPrefix(key)
	x := m.head
	var last uint32 // an entry known not to be before
	var next entry
	for level := int(m.height.Load()) - 1; level >= 0; level-- {
		for {
			off := loadNext(x, level)
			if off == last {
				break // also the end, on both levels
			}
			if off == 0 {
				last, next = 0, nil
				break
			}
			n := m.at(off)
			p := entryPrefix(n)
			if p > prefix || p == prefix && !before(n, key, seq) {
				last, next = off, n
				break
			}
			x = n
		}
	}
	return next
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
		e = unsafe.Add(e, entrySize(e))
	}
}
