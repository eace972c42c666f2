package engine

import (
	"os"
	"runtime"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// usage is what a process holds that may leak.
type usage struct {
	goroutines, descriptors int
	heap                    uint64
}

func measure(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers gave up
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil { // else there is no such thing on this system
		u.descriptors = len(entries)
	}
	return u
}

// checkFlat wants what was held after a while to be held at the end.
func checkFlat(t *testing.T, before, after usage) {
	t.Helper()
	const slack = 4 << 20 // bytes
	if after.goroutines > before.goroutines+2 || after.descriptors > before.descriptors+2 || after.heap > before.heap+slack {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// Many times open, look, close: memory, descriptors and goroutines stay as they are.
func TestOpenCloseStaysFlat(t *testing.T) {
	path := t.TempDir()
	o := Options{Durability: OS, MemtableBytes: 1 << 20}
	db, err := Open(path, o)
	must(t, err)
	must(t, db.CreateTable(testSchema()))
	must(t, db.Close())
	db.Free()
	round := func(i int) {
		o.ReadOnly = i%3 == 0
		db, err := Open(path, o)
		must(t, err)
		if i%10 == 1 && !o.ReadOnly {
			_, err := db.Put(testRow(int64(i%7), int64(i)))
			must(t, err)
		}
		if _, _, err := db.Get(testKey(1)); err != nil {
			t.Fatal(err)
		}
		if i%4 != 1 { // else what was written comes back from the log
			must(t, db.Close())
		}
		db.Free()
	}
	var before usage
	for i := range unlessShort(1000, 300) {
		if i == 100 {
			before = measure(t)
		}
		round(i)
	}
	checkFlat(t, before, measure(t))
}

// Rows that replace each other for ever take no more memory.
func TestWritesAndReadsStayFlat(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: 1 << 20, RetainVersions: 1, GCGrace: -1, CacheBytes: 1 << 20, RowCacheBytes: 1 << 20})
	defer db.Free()
	var before usage
	for i := range 20_000 {
		if i == 10_000 {
			must(t, db.Flush())
			before = measure(t)
		}
		_, err := db.Put(testRow(int64(i%100), int64(i)))
		must(t, err)
		if _, found, err := db.Get(testKey(int64(i % 100))); err != nil || !found {
			t.Fatal(found, err)
		}
	}
	must(t, db.Flush())
	checkFlat(t, before, measure(t))
}
