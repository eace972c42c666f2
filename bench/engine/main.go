// Command engine measures the engine beside Pebble: the same rows, the same machine, the same run, taking turns. Only the
// ratios count; what a figure is for stands in the design.
//
//	./dev bench engine [-only REGEXP] [-rows N] [-load N] [-dir DIR] [-alone] [-cpu] [-cpuprofile FILE]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	rows     = flag.Int("rows", 1_000_000, "rows of the table")
	loadRows = flag.Int("load", 3_000_000, "rows of the bulk load")
	only     = flag.String("only", "", "measure what matches this regular expression")
	base     = flag.String("dir", "", "where the databases are made (default: the system's temporary directory)")
	cpu      = flag.Bool("cpu", false, "count processor time, of all threads, where the machine has other things to do")
	alone    = flag.Bool("alone", false, "without Pebble, for profiles")
	profile  = flag.String("cpuprofile", "", "write a CPU profile, from the first timed part on")
)

// figure is one line of the result.
type figure struct {
	name string
	unit string
	more bool // more is better
	run  func(open func(options) store) float64
}

func main() {
	flag.Parse()
	want, err := regexp.Compile(*only)
	check(err)
	root, err := os.MkdirTemp(*base, "merutable-bench-")
	check(err)
	defer os.RemoveAll(root)
	fmt.Printf("%-52s %12s %12s  %s\n", "", "merutable", "Pebble", "ratio (above 1: merutable is better)")
	for i, f := range figures() {
		if !want.MatchString(f.name) {
			continue
		}
		ours := measure(f, openMerutable, filepath.Join(root, fmt.Sprint(i, "-merutable")))
		line := fmt.Sprintf("%-52s %12s", f.name, format(ours, f.unit))
		if !*alone {
			theirs := measure(f, openPeer, filepath.Join(root, fmt.Sprint(i, "-pebble")))
			ratio := ours / theirs
			if !f.more {
				ratio = theirs / ours
			}
			line += fmt.Sprintf(" %12s  %.2f", format(theirs, f.unit), ratio)
		}
		fmt.Println(line)
	}
	fmt.Printf("peak memory of this process, both engines and the rows: %s\n", peakMemory())
	writeProfile()
}

func measure(f figure, open func(string, options) store, dir string) float64 {
	v := f.run(func(o options) store { return open(dir, o) })
	check(os.RemoveAll(dir))
	return v
}

func format(v float64, unit string) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M%s", v/1e6, unit)
	case v >= 1e3:
		return fmt.Sprintf("%.1f k%s", v/1e3, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

const defaultMemtable = 64 << 20

func figures() []figure {
	return []figure{
		{"durable rows, one writer", "rows/s", true, func(open func(options) store) float64 { return single(open, 1, 4000) }},
		{"durable rows, 16 writers", "rows/s", true, func(open func(options) store) float64 { return single(open, 16, 32_000) }},
		{"durable batches of 2,048, ascending keys", "rows/s", true, func(open func(options) store) float64 { return batched(open, false, false) }},
		{"durable batches of 2,048, random keys", "rows/s", true, func(open func(options) store) float64 { return batched(open, true, false) }},
		{"the same until flushed", "rows/s", true, func(open func(options) store) float64 { return batched(open, true, true) }},
		{"bulk load (Pebble: without sync, then flushed)", "rows/s", true, bulk},
		{"flush of 300 k random upserts", "ms", false, flush},
		{"point get, warm, hit: median", "us", false, func(open func(options) store) float64 { return gets(open, true) }},
		{"point get, warm, miss: median", "us", false, func(open func(options) store) float64 { return gets(open, false) }},
		{"point get, warm, hit, 30 files: median", "us", false, func(open func(options) store) float64 { return getsCompacted(open, cacheBytes) }},
		{"point get, hit, 30 files, no cache: median", "us", false, func(open func(options) store) float64 { return getsCompacted(open, -1) }},
		{"scan of a full memtable", "rows/s", true, scanMemory},
		{"scan of a compacted table (ours into Arrow batches)", "rows/s", true, scanAll},
		{"open with a log of 64 MB", "ms", false, reopen},
	}
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// single writes rows one by one from some goroutines.
func single(open func(options) store, writers, n int) float64 {
	s := open(options{memtable: defaultMemtable})
	defer s.kill()
	rng := newRand()
	r := makeRows(batches(n, n, true, rng)[0], rng)
	return perSecond(n, func() {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := w; i < n; i += writers {
					s.putOne(r, i)
				}
			}()
		}
		wg.Wait()
	})
}

func batched(open func(options) store, random, flushed bool) float64 {
	s := open(options{memtable: defaultMemtable})
	defer s.kill()
	rng := newRand()
	var spent time.Duration
	for _, ids := range batches(*rows, batchRows, random, rng) {
		r := makeRows(ids, rng)
		spent += timed(func() { s.put(r) })
	}
	if flushed {
		spent += timed(s.flush)
	}
	return float64(*rows) / spent.Seconds()
}

func bulk(open func(options) store) float64 {
	s := open(options{memtable: defaultMemtable})
	defer s.kill()
	return float64(*loadRows) / fill(s, *loadRows, 1).Seconds()
}

// fill loads n rows in key order, with keys that are step apart.
func fill(s store, n int, step int64) time.Duration {
	rng := newRand()
	var spent time.Duration
	for _, ids := range batches(n, batchRows, false, rng) {
		for i := range ids {
			ids[i] *= step
		}
		r := makeRows(ids, rng)
		spent += timed(func() { s.load(r) })
	}
	return spent + timed(s.finish)
}

func flush(open func(options) store) float64 {
	const upserts = 300_000
	s := open(options{memtable: 128 << 20})
	defer s.kill()
	fill(s, *rows, 1)
	rng := newRand()
	for range upserts / batchRows {
		ids := make([]int64, batchRows)
		for i := range ids {
			ids[i] = rng.Int64N(int64(*rows))
		}
		s.put(makeRows(ids, rng))
	}
	return milliseconds(timed(s.flush))
}

// gets returns the median in microseconds.
func gets(open func(options) store, hit bool) float64 {
	s := open(options{memtable: defaultMemtable})
	defer s.kill()
	fill(s, *rows, 2)
	return medianGet(s, hit, 300_000, 200_000)
}

// getsCompacted measures gets of a table of many files that do not overlap.
func getsCompacted(open func(options) store, cache int64) float64 {
	s := open(options{memtable: defaultMemtable, cache: cache, file: int64(*rows) * valueBytes / 30})
	defer s.kill()
	fill(s, *rows, 2)
	s.compact()
	if cache < 0 {
		return medianGet(s, true, 1000, 10_000)
	}
	return medianGet(s, true, 300_000, 200_000)
}

// medianGet measures n gets after some that are not counted.
func medianGet(s store, hit bool, warm, n int) float64 {
	rng := newRand()
	key := func() int64 {
		k := 2 * rng.Int64N(int64(*rows))
		if !hit {
			return k + 1
		}
		return k
	}
	for range warm {
		s.get(key())
	}
	took := make([]time.Duration, n)
	timed(func() {
		for i := range took {
			k := key()
			start := time.Now()
			if s.get(k) != hit {
				panic("a wrong answer")
			}
			took[i] = time.Since(start)
		}
	})
	slices.Sort(took)
	return float64(took[n/2].Nanoseconds()) / 1e3
}

func scanMemory(open func(options) store) float64 {
	const n = 300_000
	s := open(options{memtable: 128 << 20})
	defer s.kill()
	rng := newRand()
	for _, ids := range batches(n, batchRows, true, rng) {
		s.put(makeRows(ids, rng))
	}
	const times = 5
	total := 0
	spent := timed(func() {
		for range times {
			total += s.scanMemory()
		}
	})
	return float64(total) / spent.Seconds()
}

func scanAll(open func(options) store) float64 {
	s := open(options{memtable: defaultMemtable})
	defer s.kill()
	fill(s, *rows, 1)
	s.compact()
	s.scan()
	const times = 5
	total := 0
	spent := timed(func() {
		for range times {
			total += s.scan()
		}
	})
	if total != times**rows {
		panic(fmt.Sprintf("%d scans returned %d rows", times, total))
	}
	return float64(total) / spent.Seconds()
}

func reopen(open func(options) store) float64 {
	o := options{memtable: 128 << 20}
	s := open(o)
	rng := newRand()
	for range 64 << 20 / (batchRows * (valueBytes + 24)) {
		ids := make([]int64, batchRows)
		for i := range ids {
			ids[i] = rng.Int64N(int64(*rows))
		}
		s.put(makeRows(ids, rng))
	}
	s.kill()
	spent := timed(func() { s = open(o) })
	s.kill()
	return milliseconds(spent)
}

// peakMemory is what Linux says of this process.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}

func processorTime() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func perSecond(n int, fn func()) float64 { return float64(n) / timed(fn).Seconds() }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func timed(fn func()) time.Duration {
	startProfile()
	clock := func() time.Duration { return time.Duration(time.Now().UnixNano()) }
	if *cpu {
		clock = processorTime
	}
	start := clock()
	fn()
	return clock() - start
}

var profiling sync.Once

func startProfile() {
	if *profile == "" {
		return
	}
	profiling.Do(func() {
		f, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(f))
	})
}

func writeProfile() {
	if *profile != "" {
		pprof.StopCPUProfile()
	}
}
