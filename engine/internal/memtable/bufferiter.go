package memtable

import (
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
