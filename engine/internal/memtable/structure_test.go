package memtable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// checkTree walks every level of the tree and checks what node.go and insert.go promise.
func checkTree(t *testing.T, m *Memtable) {
	t.Helper()
	leftmost, levels := m.rootOf()
	for level := levels; level >= 0; level-- {
		var last node
		for n := leftmost; ; n = m.at(*nextOf(n)) {
			checkNode(t, m, n, last, level)
			last = n
			if *nextOf(n) == 0 {
				break
			}
		}
		if level > 0 {
			leftmost = m.at(*childAt(leftmost, orderSlot(*orderOf(leftmost), 0)))
		}
	}
	if leftmost != m.firstLeaf {
		t.Fatal("the first leaf is not the leftmost one")
	}
	if free := m.w.nodeEnd - m.w.entryEnd; free < m.capacity-m.Bytes()+nodeSlack {
		t.Fatalf("%d bytes left in the arena, %d of the capacity", free, m.capacity-m.Bytes())
	}
}

func checkNode(t *testing.T, m *Memtable, n, left node, level int) {
	t.Helper()
	order := *orderOf(n)
	count := orderCount(order)
	var seen [slots]bool
	for r := range slots {
		slot := orderSlot(order, r)
		if seen[slot] {
			t.Fatalf("order %x has a slot twice", order)
		}
		seen[slot] = true
	}
	if (*nextOf(n) == 0) != (*highOf(n) == 0) || *nextOf(n) != 0 && count < halfSlots {
		t.Fatalf("level %d: a node with %d items, next %d, high %d", level, count, *nextOf(n), *highOf(n))
	}
	from := 0
	if level > 0 && left == nil {
		from = 1 // the leftmost child has no lower bound
	}
	for r := from; r < count; r++ {
		slot := orderSlot(order, r)
		e := m.at(*entryAt(n, slot))
		if got := *prefixAt(n, slot); got != prefixFrom(entryKey(e), depthOf(n)) {
			t.Fatalf("level %d: prefix %x of %q at depth %d", level, got, entryKey(e), depthOf(n))
		}
		if level > 0 {
			child := m.at(*childAt(n, slot))
			if first := *entryAt(child, orderSlot(*orderOf(child), 0)); m.at(first) != e {
				t.Fatalf("level %d: a child does not start with its separator", level)
			}
		}
		if r > from && !ordered(m.at(*entryAt(n, orderSlot(order, r-1))), e) {
			t.Fatalf("level %d: %q is out of order", level, entryKey(e))
		}
		if high := *highOf(n); high != 0 && !ordered(e, m.at(high)) {
			t.Fatalf("level %d: %q is not below the node's bound", level, entryKey(e))
		}
	}
	if left != nil && m.at(*highOf(left)) != m.at(*entryAt(n, orderSlot(order, 0))) {
		t.Fatalf("level %d: a node's bound is not the first entry of the next node", level)
	}
}

// ordered reports whether a may come before b: entries with one key and sequence number stand in any order.
func ordered(a, b entry) bool {
	if c := bytes.Compare(entryKey(a), entryKey(b)); c != 0 {
		return c < 0
	}
	return entrySeq(a) >= entrySeq(b)
}

// TestTree fills memtables to the last byte in orders that stress splits, and checks structure and memory.
func TestTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	const n = 1 << 20
	capacity := 4 << 20
	if raceEnabled || testing.Short() {
		capacity = 1 << 20
	}
	for name, makeKey := range map[string]func(i int) []byte{
		"ascending":       func(i int) []byte { return benchKey(nil, uint64(i)) },
		"descending":      func(i int) []byte { return benchKey(nil, uint64(n-i)) },
		"outwards":        func(i int) []byte { return benchKey(nil, uint64(n+i*(i%2*2-1))) },
		"inwards":         func(i int) []byte { return benchKey(nil, uint64(n+(n-i)*(i%2*2-1))) },
		"random":          func(int) []byte { return benchKey(nil, r.Uint64()) },
		"one key":         func(int) []byte { return benchKey(nil, 1) },
		"no key":          func(int) []byte { return nil },
		"text":            func(int) []byte { return fmt.Appendf(nil, "a shared beginning %d", r.IntN(n)) },
		"ascending text":  func(i int) []byte { return fmt.Appendf(nil, "a shared beginning %09d", i) },
		"runs":            func(i int) []byte { return fmt.Appendf(nil, "run %d: %09d", i%7, i) },
		"runs in the gap": func(i int) []byte { return benchKey(nil, uint64(i%64)<<32|uint64(i)) },
		"prefixes":        func(i int) []byte { return bytes.Repeat([]byte{'a'}, i%3000) },
		"fills and halves": func(i int) []byte {
			if i%21 < 14 {
				return benchKey(nil, uint64(i))
			}
			return benchKey(nil, uint64(i-i%21+i%7))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemtable(t, capacity)
			for i := 0; ; i++ {
				key := makeKey(i)
				if !m.Fits(len(key), i%3) {
					break
				}
				if err := m.Add(key, base.Seq(i+1), base.OpPut, key[:min(len(key), i%3)]); err != nil {
					t.Fatal(err)
				}
				if i < 1000 && i%10 == 0 || i%50_000 == 0 {
					checkTree(t, m)
				}
			}
			checkTree(t, m)
			it, n := m.NewAllIter(), 0
			for it.First(); it.Valid(); it.Next() {
				n++
			}
			if n != m.Len() {
				t.Fatalf("%d entries of %d", n, m.Len())
			}
		})
	}
}

func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 10))
	for range 1000 {
		order := uint64(orderEmpty)
		var want []uint64
		for len(want) < slots {
			rank, slot := r.IntN(len(want)+1), orderSlot(order, len(want))
			order = orderInsert(order, rank)
			want = append(want[:rank], append([]uint64{slot}, want[rank:]...)...)
			if r.IntN(10) == 0 {
				want = want[:r.IntN(len(want)+1)]
				order = orderTruncate(order, len(want))
			}
			for i, s := range want {
				if orderSlot(order, i) != s || orderCount(order) != len(want) {
					t.Fatalf("order %x, want %v", order, want)
				}
			}
		}
	}
}
