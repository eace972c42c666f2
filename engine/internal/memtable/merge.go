package memtable

import "github.com/merutable/merutable/engine/internal/base"

// MergeIter walks several memtables as one: of equal keys only the one of the newest memtable is seen, tombstones
// included. It is one goroutine's, and valid as long as its iterators are.
type MergeIter struct {
	iters []*Iter
	// heap holds the indices of iterators that stand on an entry, the least key first, of equal keys the newest memtable.
	heap []int
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
	m.build()
}

// SeekGE moves to the first key that is at least key.
func (m *MergeIter) SeekGE(key []byte) {
	for _, it := range m.iters {
		it.SeekGE(key)
	}
	m.build()
}

func (m *MergeIter) build() {
	m.heap = m.heap[:0]
	for i, it := range m.iters {
		if it.Valid() {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

// Next moves to the next key. The iterator must be valid.
func (m *MergeIter) Next() {
	last := m.iters[m.heap[0]].e
	m.advance()
	for len(m.heap) > 0 && sameKey(m.iters[m.heap[0]].e, last) {
		m.advance()
	}
}

// advance moves the top iterator on and restores the heap.
func (m *MergeIter) advance() {
	it := m.iters[m.heap[0]]
	it.Next()
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
		return p < q
	}
	c := compareRest(entryKey(x), entryKey(y))
	return c < 0 || c == 0 && a < b
}

// Valid reports whether the iterator stands on an entry.
func (m *MergeIter) Valid() bool { return len(m.heap) > 0 }

// Key returns the key. It aliases the memtable's memory, like Value.
func (m *MergeIter) Key() []byte { return m.iters[m.heap[0]].Key() }

// Seq returns the sequence number.
func (m *MergeIter) Seq() base.Seq { return m.iters[m.heap[0]].Seq() }

// Op returns what the version does: base.OpPut or base.OpDelete.
func (m *MergeIter) Op() base.Op { return m.iters[m.heap[0]].Op() }

// Value returns the value, nil for a tombstone.
func (m *MergeIter) Value() []byte { return m.iters[m.heap[0]].Value() }
