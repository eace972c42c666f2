//go:build unix

package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// benchSchema is rows of about 150 bytes.
func benchSchema() *Schema {
	return &Schema{
		TableName: "b",
		Columns: []Column{
			{Name: "id", Type: Type{Kind: KindBigInt}},
			{Name: "name", Type: Type{Kind: KindVarchar}, Nullable: true},
			{Name: "x", Type: Type{Kind: KindDouble}, Nullable: true},
			{Name: "payload", Type: Type{Kind: KindVarchar}, Nullable: true},
		},
		PrimaryKey: []int{0},
	}
}

// putBench writes rows of some ids as one change.
func putBench(b *testing.B, db *DB, rng *rand.Rand, n int, id func(i int) int64) {
	b.Helper()
	w, err := db.NewWrite()
	must(b, err)
	defer w.Close()
	var payload [100]byte
	for i := range n {
		for j := range payload {
			payload[j] = 'a' + byte(rng.IntN(16))
		}
		k := id(i)
		must(b, w.Put([]Value{Int(k), String(fmt.Sprintf("name-%011d", k)), Double(rng.Float64()), String(string(payload[:]))}))
	}
	_, err = w.Commit()
	must(b, err)
}

// BenchmarkCompaction merges 1 M rows: a sorted run under four files of random overwrites. It reports the
// processor time of a row written, and what the Go heap grows by at most.
func BenchmarkCompaction(b *testing.B) {
	const rows, upserts = 1_000_000, 75_000
	for b.Loop() {
		b.StopTimer()
		db, err := Open(b.TempDir(), Options{NoAutoCompaction: true, fs: vfs.OS})
		must(b, err)
		must(b, db.CreateTable(benchSchema()))
		rng := rand.New(rand.NewPCG(1, 1))
		putBench(b, db, rng, rows, func(i int) int64 { return 2 * int64(i) })
		for range 4 {
			putBench(b, db, rng, upserts, func(int) int64 { return rng.Int64N(2 * rows) })
			must(b, db.Flush())
		}
		before := db.Stats()
		runtime.GC()
		idle := heapBytes()
		peak := watchHeap()
		cpu := cpuTime()
		b.StartTimer()
		must(b, db.Compact())
		b.StopTimer()
		cpu = cpuTime() - cpu
		st := db.Stats()
		b.ReportMetric(float64(peak()-idle)/(1<<20), "MB-heap")
		b.ReportMetric(float64(cpu.Nanoseconds())/float64(st.FileRows), "cpu-ns/row")
		b.ReportMetric(float64(before.DataBytes)/(1<<20), "MB-in")
		b.ReportMetric(float64(st.DataBytes)/(1<<20), "MB-out")
		db.Free()
		b.StartTimer()
	}
}

// cpuTime returns what the process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapBytes returns the size of the objects in the heap, dead ones that were not collected yet included.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap samples the size of the heap until it is asked for the largest one.
func watchHeap() (peak func() uint64) {
	var stop atomic.Bool
	done := make(chan uint64)
	go func() {
		var largest uint64
		for !stop.Load() {
			largest = max(largest, heapBytes())
			time.Sleep(5 * time.Millisecond)
		}
		done <- largest
	}()
	return func() uint64 {
		stop.Store(true)
		return <-done
	}
}
