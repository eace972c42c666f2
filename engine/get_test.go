package engine

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestFileIndex compares the runs with the files themselves: on every level each file is in one run, runs do not overlap,
// and every key finds the same files as a walk over all of them.
func TestFileIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	key := func(n int) []byte { return []byte{byte(n >> 8), byte(n)} }
	for range 200 {
		var files []*liveFile
		add := func(level, lo, hi int) {
			files = append(files, &liveFile{
				dataFile: &dataFile{id: uint64(len(files) + 1)}, meta: &manifest.File{Level: level, KeyMin: key(lo), KeyMax: key(hi)},
			})
		}
		for range rng.IntN(8) {
			lo := rng.IntN(1000)
			add(0, lo, lo+rng.IntN(400))
		}
		for level := 1; level < 3; level++ {
			for at := rng.IntN(50); at < 1000; at += 1 + rng.IntN(100) {
				end := at + rng.IntN(60)
				add(level, at, end)
				at = end
			}
		}
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		x := newFileIndex(files)
		checkRuns(t, files, x)
		for n := range 1500 {
			k := key(n)
			var got, want []uint64
			for _, run := range x.runs {
				if f := holding(files, run, k); f != nil {
					got = append(got, f.id)
				}
			}
			for _, f := range files {
				if bytes.Compare(k, f.meta.KeyMin) >= 0 && bytes.Compare(k, f.meta.KeyMax) <= 0 {
					want = append(want, f.id)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("key %d: files %v, want %v", n, got, want)
			}
		}
	}
}

func checkRuns(t *testing.T, files []*liveFile, x *fileIndex) {
	t.Helper()
	seen, deep := 0, map[int]int{}
	for _, run := range x.runs {
		level := files[run[0]].meta.Level
		deep[level]++
		for n, i := range run {
			seen++
			if files[i].meta.Level != level || x.byID[files[i].id] != files[i] {
				t.Fatalf("a run of level %d has a file of level %d", level, files[i].meta.Level)
			}
			if n > 0 && bytes.Compare(files[run[n-1]].meta.KeyMax, files[i].meta.KeyMin) >= 0 {
				t.Fatal("the files of a run meet")
			}
		}
		for range 20 {
			lo, hi := []byte{byte(rand.IntN(5)), byte(rand.IntN(256))}, []byte{byte(rand.IntN(5)), byte(rand.IntN(256))}
			r := keyRange{lo, hi}
			var want []int
			for _, i := range run {
				if !r.empty() && r.overlaps(files[i].meta.KeyMin, files[i].meta.KeyMax) {
					want = append(want, i)
				}
			}
			if got := meeting(files, run, r); !r.empty() && !slices.Equal(got, want) {
				t.Fatalf("range %v: %v, want %v", r, got, want)
			}
		}
	}
	if seen != len(files) || deep[1] > 1 || deep[2] > 1 {
		t.Fatalf("%d of %d files are in runs; level 1 has %d, level 2 has %d", seen, len(files), deep[1], deep[2])
	}
}

// TestRowCacheIsExact gets rows whose versions move under the row cache: overwritten and deleted in memory and in files,
// with old snapshots that must go on to see what they saw.
func TestRowCacheIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, RowCacheBytes: 1 << 20})
	defer db.Free()
	m := model{}
	type held struct {
		s *Snapshot
		m model
	}
	var snaps []held
	for step := range 60 {
		writeRandom(t, db, rng, m, 200, 30)
		if step%3 == 0 {
			must(t, db.Flush())
		}
		if step%5 == 0 {
			s, err := db.Snapshot()
			must(t, err)
			snaps = append(snaps, held{s, maps.Clone(m)})
		}
		for range 100 {
			id := rng.Int64N(210)
			row, found, err := db.Get(testKey(id))
			must(t, err)
			wantRow(t, m, id, found, row)
			h := snaps[rng.IntN(len(snaps))]
			cols, found, err := h.s.Get(testKey(id))
			must(t, err)
			if found {
				row = rowOf(cols, 0)
			}
			wantRow(t, h.m, id, found, row)
		}
	}
	for _, h := range snaps {
		h.s.Close()
	}
	st := db.Stats()
	if st.RowCacheHits == 0 || st.RowCacheMisses == 0 || st.MemtableHits == 0 || st.GetHits == 0 || st.GetMisses == 0 ||
		st.GetHits+st.GetMisses != st.Gets || st.RowCacheBytes == 0 || st.RowCacheBytes > st.RowCacheCapacity {
		t.Fatalf("counters %+v", st.ReadStats)
	}
}

func wantRow(t *testing.T, m model, id int64, found bool, row []Value) {
	t.Helper()
	payload, ok := m[id]
	if found != ok || ok && fmt.Sprint(row) != fmt.Sprint(testRow(id, payload)) {
		t.Fatalf("key %d: found %v %v; the model has %v %d", id, found, row, ok, payload)
	}
}

// TestMultiGetRefuses: too many keys, and keys that are none, are errors; no keys are not.
func TestMultiGetRefuses(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	_, _, err := db.MultiGet(make([][]Value, MaxMultiGet+1))
	wantCode(t, err, CodeInvalidArgument)
	_, _, err = db.MultiGet([][]Value{testKey(1), {Int(1)}})
	wantCode(t, err, CodeInvalidArgument)
	if err != nil && !strings.Contains(err.Error(), "key 1") {
		t.Fatalf("the error does not name the key: %v", err)
	}
	rows, found, err := db.MultiGet(nil)
	must(t, err)
	if rows.N != 0 || len(found) != 0 {
		t.Fatalf("%d rows for no keys", rows.N)
	}
	s, err := db.Snapshot()
	must(t, err)
	s.Close()
	_, _, err = s.MultiGet([][]Value{testKey(1)})
	wantCode(t, err, CodeClosed)
	_, _, err = s.Get(testKey(1))
	wantCode(t, err, CodeClosed)
}

// TestMultiGetColumns asks for batches of keys, some absent and some twice, in a state with memory and files, and in an
// older one.
func TestMultiGetColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, RowCacheBytes: 1 << 20})
	defer db.Free()
	m := model{}
	type held struct {
		s *Snapshot
		m model
	}
	var snaps []held
	for step := range 12 {
		writeRandom(t, db, rng, m, 300, 60)
		if step%3 == 1 {
			must(t, db.Flush())
		}
		s, err := db.Snapshot()
		must(t, err)
		defer s.Close()
		snaps = append(snaps, held{s, maps.Clone(m)})
	}
	for range 30 {
		h := snaps[rng.IntN(len(snaps))]
		ids, keys := make([]int64, 50), make([][]Value, 50)
		for i := range ids {
			ids[i] = rng.Int64N(330)
			keys[i] = testKey(ids[i])
		}
		batch := columnsOf(t, KeySchema(h.s.Schema()), keys)
		rows, found, err := h.s.MultiGetColumns(batch)
		must(t, err)
		there, err := h.s.Contains(batch)
		must(t, err)
		if !slices.Equal(found, there) || len(found) != len(ids) {
			t.Fatalf("rows of %v, keys of %v", found, there)
		}
		next := 0
		for i, id := range ids {
			var row []Value
			if found[i] {
				row = rowOf(rows, next)
				next++
			}
			wantRow(t, h.m, id, found[i], row)
		}
		if next != rows.N {
			t.Fatalf("%d rows for %d keys", rows.N, next)
		}
	}
	_, err := snaps[0].s.Contains(columnsOf(t, snaps[0].s.Schema(), [][]Value{testRow(1, 1)}))
	wantCode(t, err, CodeSchemaMismatch)
}

// TestGetReadsLittle: with cold caches an absent key costs no data page beyond the bloom filters' errors, a present one a
// page a column, and one in the row cache nothing. The counters outlive the files.
func TestGetReadsLittle(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	const n = 2000
	put := func(id, payload int64) {
		_, err := db.Put([]Value{String("g"), Int(id), String("row"), Double(float64(payload))})
		must(t, err)
	}
	for i := range int64(n) {
		put(2*i, i)
	}
	must(t, db.Flush())
	get := func(id int64) bool {
		_, found, err := db.Get([]Value{Int(id), String("g")})
		must(t, err)
		return found
	}
	for i := range int64(n) {
		if get(2*i + 1) {
			t.Fatal("an absent key was found")
		}
	}
	st := db.Stats().ReadStats
	// Every group has the second key column's one value, so the first one's filter alone must do.
	if st.BloomProbes < n-1 || st.BloomNegatives < n*9/10 || st.BloomNegatives+st.BloomFalsePositives != st.BloomProbes {
		t.Fatalf("%+v", st)
	}
	if st.BloomFalsePositives == 0 && st.PagesRead != 0 || st.PagesRead > 2*st.BloomFalsePositives {
		t.Fatalf("absent keys read %d pages, the filters erred %d times", st.PagesRead, st.BloomFalsePositives)
	}
	if !get(100) {
		t.Fatal("key 100 is not there")
	}
	hit := db.Stats().ReadStats
	if pages := hit.PagesRead - st.PagesRead; pages > 4 {
		t.Fatalf("a get read %d pages of 4 columns", pages)
	}
	if !get(100) {
		t.Fatal("key 100 is not there")
	}
	again := db.Stats().ReadStats
	if again.PagesRead != hit.PagesRead || again.BytesRead != hit.BytesRead || again.RowCacheHits != hit.RowCacheHits+1 {
		t.Fatalf("a get of a cached row: %+v, before %+v", again, hit)
	}
	must(t, db.DropTable())
	must(t, db.CreateTable(testSchema()))
	if gone := db.Stats().ReadStats; gone.PagesRead != again.PagesRead || gone.BytesRead < again.BytesRead {
		t.Fatalf("the counters of files that are gone: %+v, before %+v", gone, again)
	}
}
