package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestModel runs random histories against a map: puts, deletes, batches, loads, flushes, compactions, snapshots, re-opens.
func TestModel(t *testing.T) {
	for seed := range uint64(unlessShort(6, 3)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			fs := vfs.NewMem()
			o := Options{MemtableBytes: minMemtableBytes, Durability: Durability(seed % 3)}
			if seed%2 == 0 {
				o = smallLevels(o)
			}
			runModel(t, seed, 150, func() *DB { return openMem(t, fs, o) })
		})
	}
}

func runModel(t *testing.T, seed uint64, steps int, open func() *DB) {
	rng := rand.New(rand.NewPCG(seed, 1))
	db := open()
	defer func() { db.Free() }()
	m := model{}
	type held struct {
		s *Snapshot
		m model
	}
	var snaps []held
	keys := int64(400)
	for range steps {
		switch p := rng.IntN(100); {
		case p < 40:
			writeRandom(t, db, rng, m, keys, rng.IntN(40))
		case p < 45: // a load: more than a quarter of a memtable
			writeRandom(t, db, rng, m, keys, 6000)
		case p < 57:
			must(t, db.Flush())
		case p < 59:
			must(t, db.Compact())
		case p < 60:
			lo := rng.Int64N(keys)
			must(t, db.CompactRange(CompactOptions{Lower: []Value{Int(lo)}, Upper: []Value{Int(lo + 50)}}))
		case p < 70:
			s, err := db.Snapshot()
			must(t, err)
			snaps = append(snaps, held{s, maps.Clone(m)})
		case p < 80 && len(snaps) > 0:
			h := snaps[0]
			snaps = snaps[1:]
			checkSnapshot(t, h.s, h.m)
			h.s.Close()
		case p < 90:
			check(t, db, m)
		case p < 95:
			must(t, db.Close())
			db.Free()
			db = open()
		default: // no flush: the log brings the rows back
			db.Free()
			db = open()
		}
	}
	for _, h := range snaps {
		checkSnapshot(t, h.s, h.m)
		h.s.Close()
	}
	check(t, db, m)
}

// writeRandom commits n random puts and deletes as one change.
func writeRandom(t testing.TB, db *DB, rng *rand.Rand, m model, keys int64, n int) {
	t.Helper()
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	for range n {
		id := rng.Int64N(keys)
		if rng.IntN(4) == 0 {
			must(t, w.Delete(testKey(id)))
			delete(m, id)
			continue
		}
		payload := rng.Int64N(1 << 40)
		must(t, w.Put(testRow(id, payload)))
		m[id] = payload
	}
	_, err = w.Commit()
	must(t, err)
}
