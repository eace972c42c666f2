//go:build zz

package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func TestZZIngest(t *testing.T) {
	dir, _ := os.MkdirTemp("/tmp/compaction", "zz")
	defer os.RemoveAll(dir)
	o := Options{fs: vfs.OS, MemtableBytes: 16 << 20, TargetFileBytes: 16 << 20, BaseLevelBytes: 64 << 20, LevelMultiplier: 4, CompactionThreads: 1, GCGrace: -1, RetainVersions: 1, Durability: OS}
	db, err := Open(dir, o)
	must(t, err)
	must(t, db.CreateTable(benchSchema()))
	rng := rand.New(rand.NewPCG(1, 1))
	const keys = 3_000_000
	live := make([]bool, keys)
	var payload [100]byte
	n := 4_000_000
	cpu := cpuTime()
	start := time.Now()
	peak := watchHeap()
	for i := 0; i < n; i += 2048 {
		w, err := db.NewWrite()
		must(t, err)
		for range 2048 {
			for j := 0; j < 100; j += 8 {
				x := rng.Uint64()
				for k := j; k < min(100, j+8); k++ {
					payload[k] = 'a' + byte(x&15)
					x >>= 4
				}
			}
			k := rng.Int64N(keys)
			if rng.IntN(10) == 0 {
				must(t, w.Delete([]Value{Int(k)}))
				live[k] = false
			} else {
				must(t, w.Put([]Value{Int(k), String(fmt.Sprintf("name-%011d", k)), Double(1), String(string(payload[:]))}))
				live[k] = true
			}
		}
		_, err = w.Commit()
		must(t, err)
		if i%(2048*200) == 0 {
			st := db.Stats()
			fmt.Printf("%7d %6.1fs L %v pend %dM stalls %d comp %d moves %d drops %d rd %dM wr %dM flushed %dM\n", i, time.Since(start).Seconds(), levelsOf(st), st.CompactionPendingBytes>>20, st.WriteStalls, st.Compactions, st.CompactionMoves, st.CompactionDrops, st.CompactionBytesRead>>20, st.CompactionBytesWritten>>20, st.FlushedBytes>>20)
		}
	}
	must(t, db.Flush())
	fmt.Println("ingest", time.Since(start), cpuTime()-cpu)
	waitIdle(t, db)
	fmt.Println("idle", time.Since(start), cpuTime()-cpu, "heap", peak()>>20)
	st := db.Stats()
	fmt.Printf("%+v\n", st)
	want := 0
	for _, l := range live {
		if l {
			want++
		}
	}
	fmt.Println("live", want, st.FileRows-st.DeletedRows, levelsOf(st), st.DataBytes>>20)
	must(t, db.Compact())
	st = db.Stats()
	fmt.Println("compacted", st.FileRows, levelsOf(st), st.DataBytes>>20, cpuTime()-cpu)
	if int(st.FileRows) != want {
		t.Fatal(want, st.FileRows)
	}
	fmt.Println(db.Close())
	db.Free()
}

func levelsOf(st Stats) string {
	s := ""
	for _, l := range st.Levels {
		s += fmt.Sprintf("%d/%dM ", l.Files, l.Bytes>>20)
	}
	return s
}
