package sst

import (
	"runtime"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// heap returns what the heap holds after a collection.
func heap() int64 {
	runtime.GC() // twice, to empty the pools
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFootprint opens many files and reads in all of them: beside what the cache holds, which is bounded, an open file
// takes little.
func TestFootprint(t *testing.T) {
	const rows, files = 60_000, 100
	fs := vfs.NewMem()
	info, err := Write(fs, "f", WriterOptions{Schema: benchSchema(), Level: 1, RowGroupRows: rows / 10}, newBenchSource(rows, 3))
	must(t, err)
	measure := func(name string, cacheBytes, limit int64) {
		cache := NewCache(cacheBytes)
		var rs []*Reader
		before := heap()
		for i := range files {
			r, err := Open(fs, "f", info.Size, benchSchema(), cache)
			must(t, err)
			rs = append(rs, r)
			for g := range r.groups {
				pos, found, err := r.Find(benchKey((i + g*rows/10) * 3))
				must(t, err)
				if !found {
					t.Fatal("not found")
				}
				_, err = r.ReadRow(pos, nil)
				must(t, err)
			}
			it := r.NewIter(IterOptions{Upper: benchKey(300)})
			for cols, _, err := it.Next(); cols != nil; cols, _, err = it.Next() {
				must(t, err)
			}
			it.Close()
		}
		used := heap() - before
		t.Logf("%s: %d bytes a file, %d of them cached; a library of %d", name, used/files, cache.Stats().Bytes/files, newestLibrary(t, rs[0]).memory())
		if used/files > limit {
			t.Errorf("%s: %d bytes a file", name, used/files)
		}
		for _, r := range rs {
			must(t, r.Close())
		}
	}
	measure("cached", 2<<20, 40<<10)
	measure("not cached", 0, 120<<10)
}

func newestLibrary(t *testing.T, r *Reader) *library {
	lib, err := r.library()
	must(t, err)
	return lib
}
