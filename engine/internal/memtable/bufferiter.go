package memtable

import (
	"bytes"
	"sort"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// BufferIter walks a sorted row buffer in key order. It is one goroutine's, and valid until the buffer changes.
type BufferIter struct {
	b *RowBuffer
	p unsafe.Pointer // nil: not positioned, or at the end
	i int            // with an index: its place there
	// without: the chunk, and where in it
	chunk, at int
	touched   uint64 // keeps the loads of touch alive
}

// rowsAhead is how many rows ahead touch looks.
const rowsAhead = 8

// NewIter returns an iterator over a buffer that was sorted. It stands nowhere: call First.
func (b *RowBuffer) NewIter() *BufferIter { return &BufferIter{b: b} }

// First moves to the first row.
func (it *BufferIter) First() {
	it.i, it.chunk, it.at = 0, 0, 0
	it.settle()
}

// SeekGE moves to the first row whose key is at least key.
func (it *BufferIter) SeekGE(key []byte) {
	b := it.b
	it.i, it.chunk, it.at = 0, 0, 0
	if !b.ascending {
		it.i = sort.Search(b.index.n, func(i int) bool { return bytes.Compare(b.key(b.index.entries[i].addr), key) >= 0 })
		it.settle()
		return
	}
	// Whole chunks are skipped by their first keys; inside one there are no places to jump to.
	for next := 1; next < len(b.chunks) && b.chunks[next].used > 0; next++ {
		if bytes.Compare(rowKey(unsafe.Pointer(&b.chunks[next].mem[0])), key) > 0 {
			break
		}
		it.chunk = next
	}
	for it.settle(); it.Valid() && bytes.Compare(it.Key(), key) < 0; {
		it.Next()
	}
}

// Sample calls fn with up to n keys of a sorted buffer, ascending and about evenly spaced. They alias its memory.
func (b *RowBuffer) Sample(n int, fn func(key []byte)) {
	if b.ascending {
		// Every so many rows; the walk reads one word a row.
		step, left := max(1, b.rows/max(n, 1)), 0
		for it := b.walk(); it.Valid(); it.Next() {
			if left--; left < 0 {
				fn(it.Key())
				left = step - 1
			}
		}
		return
	}
	for i := range min(n, b.index.n) {
		fn(b.key(b.index.entries[i*b.index.n/min(n, b.index.n)].addr))
	}
}

func (b *RowBuffer) walk() *BufferIter {
	it := b.NewIter()
	it.First()
	return it
}

// Next moves to the next row. The iterator must be valid.
func (it *BufferIter) Next() {
	if it.b.ascending {
		it.at += rowSize(it.p)
	} else {
		it.i++
	}
	it.settle()
}

func (it *BufferIter) settle() {
	it.p = nil
	b := it.b
	if !b.ascending {
		if it.i < b.index.n {
			it.p = b.row(b.index.entries[it.i].addr)
			it.touch()
		}
		return
	}
	for ; it.chunk < len(b.chunks); it.chunk++ {
		if c := &b.chunks[it.chunk]; it.at < c.used {
			it.p = unsafe.Pointer(&c.mem[it.at])
			return
		}
		it.at = 0
	}
}

// touch loads a word of a row some places ahead: rows lie in the order in which they came, so without it nearly each one
// would be waited for.
func (it *BufferIter) touch() {
	if i := it.i + rowsAhead; i < it.b.index.n {
		it.touched += *(*uint64)(it.b.row(it.b.index.entries[i].addr))
	}
}

// Valid reports whether the iterator stands on a row.
func (it *BufferIter) Valid() bool { return it.p != nil }

// Key returns the key. It aliases the buffer's memory, like Value.
func (it *BufferIter) Key() []byte { return rowKey(it.p) }

// Op returns what the row does: base.OpPut or base.OpDelete.
func (it *BufferIter) Op() base.Op { return rowOp(it.p) }

// Value returns the value, nil for a tombstone.
func (it *BufferIter) Value() []byte { return rowValue(it.p) }

// Err returns nil: nothing can end a walk over memory early.
func (it *BufferIter) Err() error { return nil }

// MinKey returns the least key of a sorted buffer, nil where it is empty. It aliases the buffer's memory.
func (b *RowBuffer) MinKey() []byte {
	it := b.NewIter()
	if it.First(); !it.Valid() {
		return nil
	}
	return it.Key()
}

// MaxKey returns the greatest key of a sorted buffer, nil where it is empty. It aliases the buffer's memory.
func (b *RowBuffer) MaxKey() []byte {
	switch {
	case b.rows == 0:
		return nil
	case b.ascending:
		return b.key(b.last)
	}
	return b.key(b.index.entries[b.index.n-1].addr)
}
