package spill

import (
	"bytes"
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
)

// Source is a walk over sorted rows, each key once: an [Iter], or the iterator of a row buffer.
type Source interface {
	First()
	// SeekGE moves to the first row whose key is at least key.
	SeekGE(key []byte)
	Valid() bool
	Next()
	Key() []byte
	Op() base.Op
	Value() []byte
	// Err returns what ended the walk early.
	Err() error
}

// Merge walks several sources as one: of equal keys only the row of the last source that has it is seen. It is a Source
// itself, and one goroutine's.
type Merge struct {
	sources []Source
	// heap has the sources that stand on a row, the least key first, of equal keys the last source.
	heap []head
	err  error
}

type head struct {
	prefix uint64 // the first bytes of key, as a number
	key    []byte
	source Source
	order  int
}

// NewMerge merges sources, given in the order in which their rows came.
func NewMerge(sources ...Source) *Merge { return &Merge{sources: sources} }

// First moves to the first row.
func (m *Merge) First() { m.start(Source.First) }

// SeekGE moves to the first row whose key is at least key.
func (m *Merge) SeekGE(key []byte) { m.start(func(s Source) { s.SeekGE(key) }) }

func (m *Merge) start(move func(Source)) {
	m.heap, m.err = m.heap[:0], nil
	for i, s := range m.sources {
		move(s)
		if s.Valid() {
			m.heap = append(m.heap, head{prefix(s.Key()), s.Key(), s, i})
		} else if s.Err() != nil {
			m.fail(s.Err())
			return
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

func (m *Merge) fail(err error) {
	m.err = err
	m.heap = m.heap[:0]
}

// Next moves to the next key. The merge must be valid.
func (m *Merge) Next() {
	was := m.heap[0]
	m.advance()
	for len(m.heap) > 0 && m.heap[0].prefix == was.prefix && bytes.Equal(m.heap[0].key, was.key) {
		m.advance()
	}
}

func (m *Merge) advance() {
	top := &m.heap[0]
	top.source.Next()
	if top.source.Valid() {
		top.key = top.source.Key()
		top.prefix = prefix(top.key)
	} else {
		if err := top.source.Err(); err != nil {
			m.fail(err)
			return
		}
		n := len(m.heap) - 1
		m.heap[0] = m.heap[n]
		m.heap = m.heap[:n]
	}
	m.sink(0)
}

func (m *Merge) sink(i int) {
	h := m.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && less(&h[c+1], &h[c]) {
			c++
		}
		if !less(&h[c], &h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func less(a, b *head) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	c := bytes.Compare(a.key, b.key)
	return c < 0 || c == 0 && a.order > b.order
}

// prefix orders as keys do as far as it goes: bytes that a key has not count as zeros.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// Valid reports whether the merge stands on a row.
func (m *Merge) Valid() bool { return len(m.heap) > 0 }

// Key, Op and Value describe the row; they are valid as those of its source are.
func (m *Merge) Key() []byte   { return m.heap[0].key }
func (m *Merge) Op() base.Op   { return m.heap[0].source.Op() }
func (m *Merge) Value() []byte { return m.heap[0].source.Value() }

// Err returns what ended the walk early.
func (m *Merge) Err() error { return m.err }
