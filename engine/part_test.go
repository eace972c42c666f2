package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestParts compares parts with scans of the same range, over rows in files, in several memtables, and in both.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, TargetFileBytes: 64 << 10})
	defer db.Free()
	m := model{}
	const keys = 12_000
	for step := range unlessShort(14, 6) {
		switch {
		case step%7 == 3:
			must(t, db.Compact())
		case step%3 == 1:
			must(t, db.Flush())
		}
		writeRandom(t, db, rng, m, keys, []int{7000, 300, 2}[step%3])
		s, err := db.Snapshot()
		must(t, err)
		for range 8 {
			checkPart(t, s, randomRange(rng, keys), m)
			checkPartOfKeys(t, s, rng, keys, m)
		}
		s.Close()
	}
}

// randomRange makes bounds of one key, of a narrow range, and of any range.
func randomRange(rng *rand.Rand, keys int64) ScanOptions {
	id := rng.Int64N(keys+20) - 10
	switch rng.IntN(4) {
	case 0:
		return ScanOptions{Lower: testKey(id), Upper: testKey(id)}
	case 1:
		return ScanOptions{Lower: []Value{Int(id)}, Upper: []Value{Int(id + rng.Int64N(200))}, LowerExclusive: rng.IntN(2) == 0}
	case 2:
		return ScanOptions{Upper: testKey(id), UpperExclusive: rng.IntN(2) == 0}
	}
	return ScanOptions{Lower: []Value{Int(id)}, Upper: []Value{Int(rng.Int64N(keys))}}
}

func checkPart(t *testing.T, s *Snapshot, o ScanOptions, m model) {
	t.Helper()
	it, err := s.Scan(o)
	must(t, err)
	want := map[int64]bool{}
	for _, row := range collect(t, it) {
		want[row[1].Int64()] = true
	}
	p, err := s.Part(o)
	must(t, err)
	defer p.Close()
	comparePart(t, p, want, m)
	p, err = s.Part(o)
	must(t, err)
	defer p.Close()
	p.LeaveFiles()
	comparePart(t, p, want, m)
}

// comparePart compares the rows of a part with those of the keys wanted.
func comparePart(t *testing.T, p *Part, want map[int64]bool, m model) {
	t.Helper()
	got := map[int64]bool{}
	overlay := collect(t, p.Overlay(nil))
	if len(overlay) > p.MemoryRows() || int64(len(want)) > p.LiveRows() {
		t.Fatalf("%d rows in the overlay of %d, %d rows of %d", len(overlay), p.MemoryRows(), len(want), p.LiveRows())
	}
	add := func(row []Value) {
		id := row[1].Int64()
		if !want[id] || got[id] || fmt.Sprint(row) != fmt.Sprint(testRow(id, m[id])) {
			t.Fatalf("row %v: wanted %v, seen %v, payload %d", row, want[id], got[id], m[id])
		}
		got[id] = true
	}
	for _, row := range overlay {
		add(row)
	}
	addRowsOfFiles(t, p, want, add)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

// checkPartOfKeys asks for some keys, whole or the first column alone, present ones and others, some twice.
func checkPartOfKeys(t *testing.T, s *Snapshot, rng *rand.Rand, keys int64, m model) {
	t.Helper()
	columns := 1 + rng.IntN(2)
	var prefixes [][]Value
	want := map[int64]bool{}
	for range []int{0, 1, 3, 40, 900}[rng.IntN(5)] {
		id := rng.Int64N(keys+20) - 10
		prefixes = append(prefixes, testKey(id)[:columns])
		if _, ok := m[id]; ok {
			want[id] = true
		}
	}
	p, err := s.PartOfKeys(prefixes)
	must(t, err)
	defer p.Close()
	comparePart(t, p, want, m)
	p, err = s.PartOfKeys(prefixes)
	must(t, err)
	defer p.Close()
	p.LeaveFiles()
	comparePart(t, p, want, m)
}

// addRowsOfFiles hands over the rows of a part's files that are in the range: a reader filters by itself.
func addRowsOfFiles(t *testing.T, p *Part, in map[int64]bool, add func([]Value)) {
	t.Helper()
	s := p.Snapshot()
	for _, i := range p.Files() {
		dead, err := s.Deletes(i)
		must(t, err)
		reader, err := s.state.files[i].open(s.Schema())
		must(t, err)
		it := reader.NewIter(sst.IterOptions{Skip: roaring.BitmapOf(dead...)})
		for {
			cols, _, err := it.Next()
			must(t, err)
			if cols == nil {
				break
			}
			for n := range cols.N {
				if in[cols.Cols[1].Value(n).Int64()] {
					add(rowOf(cols, n))
				}
			}
		}
		it.Close()
	}
}
