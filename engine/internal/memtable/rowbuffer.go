package memtable

import (
	"bytes"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// RowBuffer gathers the rows of a bulk load, sorts them and yields each key once: the row that was added last. It is one
// goroutine's, except that several may read it once it is sorted.
type RowBuffer struct {
	capacity int
	chunks   []chunk
	cur      int // the chunk that takes rows
	bytes    int // the sum of RowBytes
	rows     int
	// ascending says that each key so far was above the one before: sorting has nothing to do. last is that row.
	ascending bool
	last      rowAddr
	// common is how many leading bytes all keys share.
	common int
	sorted bool
	index  sortIndex
}

// chunk is one mapping; rows do not cross its end.
type chunk struct {
	mem  []byte
	used int
}

// rowAddr is where a row is: chunk << 32 | byte offset. Later rows have greater addresses.
type rowAddr uint64

// A row in a chunk, aligned to 8 bytes:
//
//	0  u32  op << 31 | key length
//	4  u32  value length
//	8       key, value
const (
	rowHeader = 8
	opBit     = 1 << 31
	// indexBudget is what sorting needs for a row: its index entry, and one more in the sort's scratch space.
	indexBudget = 2 * int(unsafe.Sizeof(sortEntry{}))

	firstChunkBytes = 256 << 10
	maxChunkBytes   = 16 << 20
)

// NewRowBuffer makes an empty buffer for rows of capacity bytes in all (see RowBytes). Memory is mapped as rows come.
func NewRowBuffer(capacity int) (*RowBuffer, error) {
	if capacity < 0 {
		return nil, base.Errorf(base.CodeInvalidArgument, "row buffer capacity of %d bytes", capacity)
	}
	return &RowBuffer{capacity: capacity, ascending: true}, nil
}

// RowBytes returns how many bytes of a row buffer's capacity a row takes, its share of the sort index included.
func RowBytes(keyLen, valueLen int) int {
	return alignWord(rowHeader+keyLen+valueLen) + indexBudget
}

// Add copies a row. The error is ErrFull where it does not fit, unless the buffer is empty: it takes one row of any size
// up to a key of base.MaxKeyBytes and a value of base.MaxValueBytes (CodeInvalidArgument above). CodeIO says that the
// system gives no memory. After an error the buffer is as it was.
func (b *RowBuffer) Add(key []byte, op base.Op, value []byte) error {
	if len(key) > base.MaxKeyBytes || len(value) > base.MaxValueBytes {
		return base.Errorf(base.CodeInvalidArgument, "row with a key of %d bytes and a value of %d: at most %d and %d are allowed",
			len(key), len(value), base.MaxKeyBytes, base.MaxValueBytes)
	}
	need := RowBytes(len(key), len(value))
	if need > b.capacity-b.bytes && b.rows > 0 {
		return ErrFull
	}
	if err := b.index.reserve(b.rows + 1); err != nil {
		return err
	}
	size := need - indexBudget
	c, err := b.room(size)
	if err != nil {
		return err
	}
	addr := rowAddr(b.cur)<<32 | rowAddr(c.used)
	p := unsafe.Pointer(&c.mem[c.used])
	head := uint32(len(key))
	if op == base.OpDelete {
		head |= opBit
	}
	*(*uint32)(p) = head
	*(*uint32)(unsafe.Add(p, 4)) = uint32(len(value))
	n := copy(c.mem[c.used+rowHeader:], key)
	copy(c.mem[c.used+rowHeader+n:], value)
	c.used += size
	b.track(addr)
	b.bytes += need
	b.rows++
	b.sorted = false
	return nil
}

// room returns a chunk with size bytes left and makes it the current one.
func (b *RowBuffer) room(size int) (*chunk, error) {
	for ; b.cur < len(b.chunks); b.cur++ {
		if c := &b.chunks[b.cur]; len(c.mem)-c.used >= size {
			return c, nil
		}
	}
	next := firstChunkBytes
	if n := len(b.chunks); n > 0 {
		next = min(2*len(b.chunks[n-1].mem), maxChunkBytes)
	}
	// The last one is no larger than what may still come.
	next = max(min(next, alignWord(b.capacity-b.bytes)), size)
	mem, err := mapAnonymous(next)
	if err != nil {
		b.cur = max(len(b.chunks)-1, 0)
		return nil, err
	}
	b.chunks = append(b.chunks, chunk{mem: mem})
	b.cur = len(b.chunks) - 1
	return &b.chunks[b.cur], nil
}

// Reserve maps memory for so many rows of size bytes each, as RowBytes counts them, up to the largest mapping: a buffer
// whose size is known needs no mappings of growing size.
func (b *RowBuffer) Reserve(rows, size int) error {
	_, err := b.room(max(0, min(min(rows*size, b.capacity)-rows*indexBudget, maxChunkBytes)))
	return err
}

// AddAll copies the rows of o, which must not be sorted, behind those of b. That is much faster than adding them one by
// one. The error is ErrFull where they do not fit, unless b is empty; after any error b is as it was.
func (b *RowBuffer) AddAll(o *RowBuffer) error {
	if o.rows == 0 {
		return nil
	}
	if o.bytes > b.capacity-b.bytes && b.rows > 0 {
		return ErrFull
	}
	if err := b.index.reserve(b.rows + o.rows); err != nil {
		return err
	}
	before, used := b.cur, 0
	if before < len(b.chunks) {
		used = b.chunks[before].used
	}
	first, last, started := rowAddr(0), rowAddr(0), false
	for i := range o.chunks {
		rest := o.chunks[i].mem[:o.chunks[i].used]
		for len(rest) > 0 {
			from, to, n, err := b.copyRows(rest)
			if err != nil {
				b.cut(before, used)
				return err
			}
			if !started { // its first chunks may be empty, being too small for what was reserved
				first, started = from, true
			}
			last, rest = to, rest[n:]
		}
	}
	if b.rows == 0 {
		b.common, b.ascending = o.common, o.ascending
	} else {
		lastKey, firstKey := b.key(b.last), b.key(first)
		b.common = sharedPrefix(lastKey, firstKey, min(b.common, o.common))
		b.ascending = b.ascending && o.ascending && bytes.Compare(lastKey, firstKey) < 0
	}
	b.last = last
	b.bytes += o.bytes
	b.rows += o.rows
	b.sorted = false
	return nil
}

// copyRows copies as many of the rows as one chunk has room for, at least one, and returns where the first and the last
// one went and how many bytes they are.
func (b *RowBuffer) copyRows(rows []byte) (first, last rowAddr, n int, err error) {
	size := rowSize(unsafe.Pointer(&rows[0]))
	c, err := b.room(size)
	if err != nil {
		return 0, 0, 0, err
	}
	room, at := len(c.mem)-c.used, 0
	for n+size <= room {
		at = n
		if n += size; n == len(rows) {
			break
		}
		size = rowSize(unsafe.Pointer(&rows[n]))
	}
	base := rowAddr(b.cur)<<32 | rowAddr(c.used)
	c.used += copy(c.mem[c.used:], rows[:n])
	return base, base + rowAddr(at), n, nil
}

// cut drops what was added behind a place.
func (b *RowBuffer) cut(cur, used int) {
	for i := cur; i < len(b.chunks); i++ {
		b.chunks[i].used = used
		used = 0
	}
	b.cur = cur
}

// Ascending reports whether the keys came in strictly ascending order, so that sorting has nothing to do.
func (b *RowBuffer) Ascending() bool { return b.ascending }

// Each calls fn with every row, in the order in which they were added, those with equal keys included, and returns its
// first error. The slices alias the buffer's memory. The value of a tombstone is nil.
func (b *RowBuffer) Each(fn func(key []byte, op base.Op, value []byte) error) error {
	for c := range b.chunks {
		for at := 0; at < b.chunks[c].used; {
			p := unsafe.Pointer(&b.chunks[c].mem[at])
			if err := fn(rowKey(p), rowOp(p), rowValue(p)); err != nil {
				return err
			}
			at += rowSize(p)
		}
	}
	return nil
}

// track learns what sorting needs to know about the row just written.
func (b *RowBuffer) track(addr rowAddr) {
	key := b.key(addr)
	if b.rows == 0 {
		b.common = len(key)
	} else {
		lastKey := b.key(b.last)
		n := sharedPrefix(lastKey, key, b.common)
		b.common = min(b.common, n)
		b.ascending = b.ascending && compareFrom(lastKey, key, n) < 0
	}
	b.last = addr
}

// Len returns how many rows were added since the last Reset, rows with equal keys counted.
func (b *RowBuffer) Len() int { return b.rows }

// Bytes returns how much of the capacity is taken: the sum of RowBytes.
func (b *RowBuffer) Bytes() int { return b.bytes }

// Capacity returns how many bytes of rows fit.
func (b *RowBuffer) Capacity() int { return b.capacity }

// Reset empties the buffer and keeps its memory for the next rows, but for what a row larger than the capacity needed.
// Keys and values handed out are invalid then.
func (b *RowBuffer) Reset() {
	kept := b.chunks[:0]
	for _, c := range b.chunks {
		if len(c.mem) > maxChunkBytes {
			unmapAnonymous(c.mem)
			continue
		}
		kept = append(kept, chunk{mem: c.mem})
	}
	b.chunks = kept
	b.cur, b.bytes, b.rows, b.common = 0, 0, 0, 0
	b.ascending, b.sorted = true, false
	b.index.n = 0
}

// Close frees the memory; closing twice is fine, and so is filling the buffer again. Keys and values handed out are
// invalid then.
func (b *RowBuffer) Close() {
	b.Reset()
	for _, c := range b.chunks {
		unmapAnonymous(c.mem)
	}
	b.chunks = nil
	b.index.free()
}

func (b *RowBuffer) row(addr rowAddr) unsafe.Pointer {
	return unsafe.Pointer(&b.chunks[addr>>32].mem[uint32(addr)])
}

func (b *RowBuffer) key(addr rowAddr) []byte { return rowKey(b.row(addr)) }

func rowKey(p unsafe.Pointer) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p, rowHeader)), *(*uint32)(p)&^opBit)
}

func rowOp(p unsafe.Pointer) base.Op {
	if *(*uint32)(p)&opBit != 0 {
		return base.OpDelete
	}
	return base.OpPut
}

func rowValue(p unsafe.Pointer) []byte {
	n := *(*uint32)(unsafe.Add(p, 4))
	if n == 0 && rowOp(p) == base.OpDelete {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(p, rowHeader+uintptr(*(*uint32)(p)&^opBit))), n)
}

func rowSize(p unsafe.Pointer) int {
	return alignWord(rowHeader + int(*(*uint32)(p)&^opBit) + int(*(*uint32)(unsafe.Add(p, 4))))
}
