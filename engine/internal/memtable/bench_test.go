package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/merutable/merutable/engine/internal/base"
)

// The benchmarks use rows like those of the project's targets: an 8-byte integer key and 142 bytes of value. One
// operation is one row, at a table of a million.

const (
	benchRows     = 1 << 20
	benchValue    = 142
	benchCapacity = benchRows * 220
)

func benchKey(dst []byte, i uint64) []byte { return binary.BigEndian.AppendUint64(dst, 1<<63|i) }

// benchOrder returns 0..benchRows-1, ascending or shuffled.
func benchOrder(random bool) []uint64 {
	order := make([]uint64, benchRows)
	for i := range order {
		order[i] = uint64(i)
	}
	if random {
		r := rand.New(rand.NewPCG(1, 1))
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// forOrders runs a benchmark for ascending and random keys, and for keys of text with a shared prefix.
func forOrders(b *testing.B, run func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte)) {
	b.Run("ascending", func(b *testing.B) { run(b, benchOrder(false), benchKey) })
	b.Run("random", func(b *testing.B) { run(b, benchOrder(true), benchKey) })
	text := func(dst []byte, i uint64) []byte {
		dst = append(dst, "customer "...)
		for d := uint64(100_000_000); d > 0; d /= 10 {
			dst = append(dst, byte('0'+i/d%10))
		}
		return dst
	}
	b.Run("ascending text", func(b *testing.B) { run(b, benchOrder(false), text) })
	b.Run("random text", func(b *testing.B) { run(b, benchOrder(true), text) })
}

func benchTable(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) *Memtable {
	b.Helper()
	m := newMemtable(b, benchCapacity)
	value := make([]byte, benchValue)
	var k []byte
	for i, n := range order {
		k = key(k[:0], n)
		if err := m.Add(k, base.Seq(i+1), base.OpPut, value); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

// rowClock measures rows per second of processor time: on a shared machine, time that passes says little.
type rowClock struct{ cpu time.Duration }

func startClock(b *testing.B) *rowClock {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	return &rowClock{cpu: -cpuTime(b)}
}

func (c *rowClock) stop(b *testing.B)  { c.cpu += cpuTime(b); b.StopTimer() }
func (c *rowClock) start(b *testing.B) { c.cpu -= cpuTime(b); b.StartTimer() }

func (c *rowClock) report(b *testing.B) {
	b.Helper()
	c.stop(b)
	b.ReportMetric(float64(c.cpu.Nanoseconds())/float64(b.N), "cpu-ns/row")
	b.ReportMetric(float64(b.N)/c.cpu.Seconds()/1e6, "Mrows/cpu-s")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkAdd(b *testing.B) {
	forOrders(b, func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) {
		value := make([]byte, benchValue)
		keys := make([]byte, 0, len(order)*18)
		ends := make([]int, 1, len(order)+1)
		for _, n := range order {
			keys = key(keys, n)
			ends = append(ends, len(keys))
		}
		var m *Memtable
		clock := startClock(b)
		for i := range b.N {
			at := i % len(order)
			if at == 0 {
				clock.stop(b)
				if m != nil {
					m.Unref()
				}
				m, _ = New(benchCapacity)
				clock.start(b)
			}
			if err := m.Add(keys[ends[at]:ends[at+1]], base.Seq(i+1), base.OpPut, value); err != nil {
				b.Fatal(err)
			}
		}
		clock.report(b)
		m.Unref()
	})
}

func BenchmarkGet(b *testing.B) {
	forOrders(b, func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) {
		m := benchTable(b, order, key)
		r := rand.New(rand.NewPCG(2, 2))
		var k []byte
		clock := startClock(b)
		for range b.N {
			k = key(k[:0], r.Uint64N(benchRows))
			if _, _, _, ok := m.Get(k, base.MaxSeq); !ok {
				b.Fatal("a key is missing")
			}
		}
		clock.report(b)
	})
}

func BenchmarkIter(b *testing.B) {
	forOrders(b, func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) {
		m := benchTable(b, order, key)
		it := m.NewIter(base.MaxSeq)
		var sum int
		clock := startClock(b)
		for range b.N {
			if !it.Valid() {
				it.First()
			}
			sum += int(it.Key()[7]) + int(it.Value()[100])
			it.Next()
		}
		clock.report(b)
	})
}

func BenchmarkMergeIter(b *testing.B) {
	for _, tables := range []int{2, 10} {
		b.Run(fmt.Sprint(tables), func(b *testing.B) {
			order := benchOrder(true)
			var iters []*Iter
			for i := range tables {
				m := benchTable(b, order[len(order)*i/tables:len(order)*(i+1)/tables], benchKey)
				iters = append(iters, m.NewIter(base.MaxSeq))
			}
			it := NewMergeIter(iters...)
			clock := startClock(b)
			for range b.N {
				if !it.Valid() {
					it.First()
				}
				it.Next()
			}
			clock.report(b)
		})
	}
}

func BenchmarkArrivals(b *testing.B) {
	m := benchTable(b, benchOrder(true), benchKey)
	clock := startClock(b)
	for left := b.N; left > 0; left -= benchRows {
		m.Arrivals(0, min(left, benchRows), func([]byte, base.Seq, base.Op) {})
	}
	clock.report(b)
}

// BenchmarkRowBuffer fills, sorts and reads a buffer; BenchmarkRowBufferSort only sorts.
func BenchmarkRowBuffer(b *testing.B) {
	forOrders(b, func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) {
		buf := newRowBuffer(b, benchRows*256)
		value := make([]byte, benchValue)
		var k []byte
		sum := 0
		clock := startClock(b)
		for left := b.N; left > 0; left -= benchRows {
			buf.Reset()
			for _, n := range order[:min(left, benchRows)] {
				k = key(k[:0], n)
				if err := buf.Add(k, base.OpPut, value); err != nil {
					b.Fatal(err)
				}
			}
			buf.Sort()
			it := buf.NewIter()
			for it.First(); it.Valid(); it.Next() {
				sum += int(it.Key()[7]) + int(it.Value()[100])
			}
		}
		clock.report(b)
	})
}

func BenchmarkRowBufferSort(b *testing.B) {
	forOrders(b, func(b *testing.B, order []uint64, key func(dst []byte, i uint64) []byte) {
		buf := newRowBuffer(b, benchRows*256)
		value := make([]byte, benchValue)
		for _, n := range order {
			if err := buf.Add(key(nil, n), base.OpPut, value); err != nil {
				b.Fatal(err)
			}
		}
		clock := startClock(b)
		for left := b.N; left > 0; left -= benchRows {
			buf.sorted = false
			buf.Sort()
		}
		clock.report(b)
	})
}
