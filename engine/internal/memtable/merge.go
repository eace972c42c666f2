package memtable

import "github.com/merutable/merutable/engine/internal/base"

// MergeIter walks several memtables as one: of equal keys only the one of the newest memtable is seen, tombstones
// included. It is one goroutine's, and valid as long as its iterators are.
type MergeIter struct {
	iters []*Iter
	// heap holds the indices of iterators that stand on an entry, the least key first (going back: the greatest), of equal
	// keys the newest memtable.
	heap []int
	back bool // the last positioning was Last or SeekLT
}

// NewMergeIter merges iterators given newest memtable first. It owns them from now on.
func NewMergeIter(iters ...*Iter) *MergeIter {
	return &MergeIter{iters: iters, heap: make([]int, 0, len(iters))}
}

// First moves to the first key.
func (m *MergeIter) First() {
	for _, it := range m.iters {
		it.First()
	}
	m.build(false)
}

// Last moves to the last key, from where Prev goes on.
func (m *MergeIter) Last() {
	for _, it := range m.iters {
		it.Last()
	}
	m.build(true)
}

// SeekLT moves to the last key that is less than key, from where Prev goes on.
func (m *MergeIter) SeekLT(key []byte) {
	for _, it := range m.iters {
		it.SeekLT(key)
	}
	m.build(true)
}

// SeekGE moves to the first key that is at least key.
func (m *MergeIter) SeekGE(key []byte) {
	for _, it := range m.iters {
		it.SeekGE(key)
	}
	m.build(false)
}

func (m *MergeIter) build(back bool) {
	m.heap, m.back = m.heap[:0], back
	for i, it := range m.iters {
		if it.Valid() {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

// Next moves to the next key. The iterator must be valid and have come from First or SeekGE.
func (m *MergeIter) Next() { m.skip() }

// Prev moves to the key before. The iterator must be valid and have come from Last or SeekLT.
func (m *MergeIter) Prev() { m.skip() }

// skip moves all iterators off the current key.
func (m *MergeIter) skip() {
	last := m.iters[m.heap[0]].e
	m.advance()
	for len(m.heap) > 0 && sameKey(m.iters[m.heap[0]].e, last) {
		m.advance()
	}
}

// advance moves the top iterator on and restores the heap.
func (m *MergeIter) advance() {
	it := m.iters[m.heap[0]]
	if m.back {
		it.Prev()
	} else {
		it.Next()
	}
	if !it.Valid() {
		n := len(m.heap) - 1
		m.heap[0] = m.heap[n]
		m.heap = m.heap[:n]
	}
	m.sink(0)
}

func (m *MergeIter) sink(i int) {
	h := m.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && m.less(h[c+1], h[c]) {
			c++
		}
		if !m.less(h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func (m *MergeIter) less(a, b int) bool {
	x, y := m.iters[a].e, m.iters[b].e
	if p, q := keyPrefix(entryKey(x)), keyPrefix(entryKey(y)); p != q {
		return p < q != m.back
	}
	c := compareRest(entryKey(x), entryKey(y))
	if m.back {
		c = -c
	}
	return c < 0 || c == 0 && a < b
}

// Valid reports whether the iterator stands on an entry.
func (m *MergeIter) Valid() bool { return len(m.heap) > 0 }

// Key returns the key. It aliases the memtable's memory, like Value.
func (m *MergeIter) Key() []byte { return m.iters[m.heap[0]].Key() }

// Seq returns the sequence number.
func (m *MergeIter) Seq() base.Seq { return m.iters[m.heap[0]].Seq() }

// Source returns the place of the memtable that the entry is of.
func (m *MergeIter) Source() int { return m.heap[0] }

// Op returns what the version does: base.OpPut or base.OpDelete.
func (m *MergeIter) Op() base.Op { return m.iters[m.heap[0]].Op() }

// Value returns the value, nil for a tombstone.
func (m *MergeIter) Value() []byte { return m.iters[m.heap[0]].Value() }
