package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestKeySources: sorted keys and the walk over the memtable yield the same keys with the same first arrivals.
func TestKeySources(t *testing.T) {
	mt, err := memtable.New(1 << 20)
	must(t, err)
	defer mt.Unref()
	e := &memEntry{mt: mt}
	rng := rand.New(rand.NewPCG(4, 4))
	const n = 3000
	for i := range n {
		must(t, mt.Add(fmt.Appendf(nil, "%04d", rng.IntN(1000)), base.Seq(100+i), base.OpPut, nil))
	}
	for range 300 {
		from := rng.IntN(n)
		to := from + 1 + rng.IntN(n-from)
		lo, hi := fmt.Appendf(nil, "%04d", rng.IntN(1000)), fmt.Appendf(nil, "%04d", rng.IntN(1000))
		sorted, walked := keySource(e.window(from, to).between(lo, hi)), keySource(newMemtableKeys(e, from, to, lo, hi))
		for i := 0; ; i++ {
			a, more := sorted.next()
			b, also := walked.next()
			if more != also || more && (!bytes.Equal(a, b) || sorted.arrival() != walked.arrival()) {
				t.Fatalf("entries %d to %d from %s to %s, key %d: %s (%v), %s (%v)", from, to, lo, hi, i, a, more, b, also)
			}
			if !more {
				break
			}
		}
	}
}

// TestResolutionBounds: with next to nothing kept for older snapshots, all of them show what they did.
func TestResolutionBounds(t *testing.T) {
	defer func(s, h int) { maxSorted, maxHits = s, h }(maxSorted, maxHits)
	for _, bound := range []int{0, 3, 20} {
		maxSorted, maxHits = bound, bound
		rng := rand.New(rand.NewPCG(5, uint64(bound)))
		db := openMem(t, vfs.NewMem(), Options{NoAutoCompaction: true})
		m := model{}
		type held struct {
			s *Snapshot
			m model
		}
		var snapshots []held
		for round := range 40 {
			writeRandom(t, db, rng, m, 60, 1+rng.IntN(8))
			if round%13 == 12 {
				must(t, db.Flush())
			}
			s, err := db.Snapshot()
			must(t, err)
			at := model{}
			for k, v := range m {
				at[k] = v
			}
			snapshots = append(snapshots, held{s, at})
			check(t, db, m)
			h := snapshots[rng.IntN(len(snapshots))]
			checkSnapshot(t, h.s, h.m) // an older one, whose files may not have been asked about
		}
		for _, h := range snapshots {
			checkSnapshot(t, h.s, h.m)
			h.s.Close()
		}
		db.Free()
	}
}
