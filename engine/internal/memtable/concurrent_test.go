package memtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// history is a sequence of writes of which a reader knows at every sequence number what it must see.
type history struct {
	keys [][]byte // by sequence number, from 1
	// next is the sequence number of the next write of the same key, MaxSeq where there is none.
	next []base.Seq
	// distinct is how many keys there are up to a sequence number.
	distinct []int
}

func newHistory(n int, makeKey func(i int) []byte) *history {
	h := &history{keys: make([][]byte, n+1), next: make([]base.Seq, n+1), distinct: make([]int, n+1)}
	last := map[string]int{}
	for s := 1; s <= n; s++ {
		h.keys[s] = makeKey(s)
		h.next[s] = base.MaxSeq
		if p, ok := last[string(h.keys[s])]; ok {
			h.next[p] = base.Seq(s)
		}
		last[string(h.keys[s])] = s
		h.distinct[s] = len(last)
	}
	return h
}

func historyValue(seq base.Seq) []byte {
	return binary.BigEndian.AppendUint64(nil, seq*0x9e3779b97f4a7c15)
}

// check reports what is wrong with a version that was found for a key at a snapshot.
func (h *history) check(key []byte, seq, at base.Seq, value []byte) error {
	switch {
	case seq == 0 || seq > at || !bytes.Equal(h.keys[seq], key):
		return fmt.Errorf("key %q at %d: version %d", key, at, seq)
	case h.next[seq] <= at:
		return fmt.Errorf("key %q at %d: version %d, but %d is newer", key, at, seq, h.next[seq])
	case !bytes.Equal(value, historyValue(seq)):
		return fmt.Errorf("key %q, version %d: value %x", key, seq, value)
	}
	return nil
}

// checkScan walks all keys of a snapshot.
func (h *history) checkScan(it *Iter, at base.Seq) error {
	it.First()
	if err := h.checkWalk(it, it.Next, 1, at); err != nil {
		return err
	}
	it.Last()
	return h.checkWalk(it, it.Prev, -1, at)
}

// checkWalk walks on; order is how a key compares to the one before.
func (h *history) checkWalk(it *Iter, step func(), order int, at base.Seq) error {
	n := 0
	var last []byte
	for ; it.Valid(); step() {
		if n > 0 && bytes.Compare(it.Key(), last) != order {
			return fmt.Errorf("key %q after %q", it.Key(), last)
		}
		if err := h.check(it.Key(), it.Seq(), at, it.Value()); err != nil {
			return err
		}
		last = it.Key()
		n++
	}
	if n != h.distinct[at] {
		return fmt.Errorf("%d keys at %d, not %d", n, at, h.distinct[at])
	}
	return nil
}

func (h *history) checkSeek(it *Iter, key []byte, at base.Seq) error {
	it.SeekGE(key)
	if !it.Valid() || !bytes.Equal(it.Key(), key) {
		return fmt.Errorf("SeekGE(%q) at %d does not find it", key, at)
	}
	if err := h.check(key, it.Seq(), at, it.Value()); err != nil {
		return err
	}
	it.SeekLT(append(bytes.Clone(key), 0)) // the first key after it
	if !it.Valid() || !bytes.Equal(it.Key(), key) {
		return fmt.Errorf("SeekLT after %q at %d does not find it", key, at)
	}
	return h.check(key, it.Seq(), at, it.Value())
}

func (h *history) checkArrivals(m *Memtable, at base.Seq, r *rand.Rand) error {
	i := r.IntN(int(at))
	var err error
	m.Arrivals(i, int(at), func(key []byte, seq base.Seq, _ base.Op) {
		if i++; seq != base.Seq(i) || !bytes.Equal(key, h.keys[seq]) {
			err = fmt.Errorf("arrival %d is %q, version %d", i, key, seq)
		}
	})
	if err == nil && i != int(at) {
		err = fmt.Errorf("arrivals end at %d, not %d", i, at)
	}
	return err
}

// TestReadersBesideWriter checks that every snapshot is complete and stays as it was, whatever is added meanwhile.
func TestReadersBesideWriter(t *testing.T) {
	n := 60_000
	if raceEnabled || testing.Short() {
		n = 10_000
	}
	r := rand.New(rand.NewPCG(7, 7))
	for name, makeKey := range map[string]func(i int) []byte{
		"ascending":      func(i int) []byte { return benchKey(nil, uint64(i)) },
		"descending":     func(i int) []byte { return benchKey(nil, uint64(n-i)) },
		"random":         func(int) []byte { return benchKey(nil, r.Uint64N(uint64(n))) },
		"few keys":       func(int) []byte { return benchKey(nil, r.Uint64N(50)) },
		"text":           func(int) []byte { return fmt.Appendf(nil, "a shared beginning %d", r.IntN(n)) },
		"ascending text": func(i int) []byte { return fmt.Appendf(nil, "a shared beginning %09d", i) },
		"groups":         func(i int) []byte { return fmt.Appendf(nil, "group %d: %09d", r.IntN(20), i) },
	} {
		t.Run(name, func(t *testing.T) { runReaders(t, newHistory(n, makeKey)) })
	}
}

func runReaders(t *testing.T, h *history) {
	t.Helper()
	m := newMemtable(t, len(h.keys)*120)
	var visible atomic.Uint64
	var wg sync.WaitGroup
	for reader := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(reader, 8))
			for visible.Load() == 0 {
				runtime.Gosched()
			}
			for at := base.Seq(0); at < base.Seq(len(h.keys)-1) && !t.Failed(); {
				at = visible.Load()
				if err := readSnapshot(m, h, at, r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for s := base.Seq(1); s < base.Seq(len(h.keys)); s++ {
		if err := m.Add(h.keys[s], s, base.OpPut, historyValue(s)); err != nil {
			t.Error(err)
			break
		}
		if s%16 == 0 || s == base.Seq(len(h.keys)-1) {
			visible.Store(s)
		}
	}
	wg.Wait()
	checkTree(t, m)
}

func readSnapshot(m *Memtable, h *history, at base.Seq, r *rand.Rand) error {
	for range 300 {
		key := h.keys[1+r.Uint64N(at)]
		value, _, seq, ok := m.Get(key, at)
		if !ok {
			return fmt.Errorf("key %q at %d is not found", key, at)
		}
		if err := h.check(key, seq, at, value); err != nil {
			return err
		}
	}
	it := m.NewIter(at)
	for range 50 {
		if err := h.checkSeek(it, h.keys[1+r.Uint64N(at)], at); err != nil {
			return err
		}
	}
	if err := h.checkArrivals(m, at, r); err != nil {
		return err
	}
	return h.checkScan(it, at)
}
