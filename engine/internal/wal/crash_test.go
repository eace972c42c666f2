package wal

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestCrash cuts the power after every operation of random histories of appends, groups and syncs. What was synced must
// be replayed, then a prefix of what was not, and never an error: in an undamaged log a tear is always told from damage.
func TestCrash(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 4
	}
	torn := 0
	for seed := range uint64(histories) {
		torn += crashHistory(t, seed)
	}
	if torn == 0 {
		t.Error("no cut ever tore the log: the test tests nothing")
	}
	t.Logf("%d of the cuts lost a record in the middle", torn)
}

func crashHistory(t *testing.T, seed uint64) (torn int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	mem := newDir(t)
	fs := vfs.NewCountingFS(mem)
	written, synced := 0, 0 // records
	created := false
	payload := func(i int) []byte {
		prng := rand.New(rand.NewPCG(seed, uint64(i)))
		n := prng.IntN(200)
		switch prng.IntN(6) {
		case 0:
			n = prng.IntN(5000)
		case 1:
			if seed%4 == 0 {
				n = bufferBytes - 100 + prng.IntN(3000)
			}
		}
		p := make([]byte, n, n+8)
		if prng.IntN(3) > 0 { // the others are all zeros
			for j := range p {
				p[j] = byte(prng.Uint32() >> 9)
			}
		}
		return binary.LittleEndian.AppendUint64(p, uint64(i))
	}
	fs.SetHook(func(op vfs.Op, _ string) {
		if !op.Mutates() {
			return
		}
		for range 3 {
			torn += checkCrash(t, mem.CrashClone(rng), created, written, synced, payload)
		}
	})
	w := create(t, fs)
	created = true
	for range 30 {
		switch rng.IntN(4) {
		case 0:
			n := written
			must(t, w.Sync())
			synced = n
		case 1:
			group := [][]byte{payload(written), payload(written + 1), payload(written + 2)}
			written += 3 // the hook runs before the call returns
			must(t, w.AppendGroup(group))
		default:
			written++
			must(t, w.Append(payload(written-1)))
		}
	}
	must(t, w.Sync())
	synced = written
	must(t, w.Close())
	return torn
}

// checkCrash replays a clone and returns 1 where whole records of the log stand behind a lost one.
func checkCrash(t *testing.T, fs *vfs.MemFS, created bool, written, synced int, payload func(int) []byte) int {
	t.Helper()
	got, offsets, valid, err := replayAll(fs, true)
	if base.CodeOf(err) == base.CodeNotFound && !created {
		return 0
	}
	must(t, err)
	if len(got) < synced || len(got) > written {
		t.Fatalf("%d records after a crash: %d were synced, %d written", len(got), synced, written)
	}
	for i, p := range got {
		if !bytes.Equal(p, payload(i)) {
			t.Fatalf("record %d of %d is wrong", i, len(got))
		}
	}
	r, err := openReader(fs, testPath, testNum)
	must(t, err)
	defer r.close()
	s := search{r: r, budget: 1 << 40}
	_, _, found, err := s.next(valid + 1)
	must(t, err)
	// Cut the tail and go on, as the engine does: the log is whole then, also as an older one.
	if valid > 0 {
		must(t, fs.Truncate(testPath, valid))
		again, _, _, err := replayAll(fs, false)
		must(t, err)
		if len(again) != len(offsets) {
			t.Fatalf("%d records after cutting the tail, %d before", len(again), len(offsets))
		}
	}
	if found {
		return 1
	}
	return 0
}
