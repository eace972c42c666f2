package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
)

// TestFileHistory commits random lists of files, gives random manifests up and forgets everything now and then, as an
// open does. The files to remove must always be exactly those that no manifest left names.
func TestFileHistory(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := &manifest.Manifest{Version: 1}
		kept := map[int64]*manifest.Manifest{1: m} // what is on disk
		onDisk := map[string]bool{}                // the files there
		h := new(fileHistory)
		h.committed(nil, m, time.Time{})
		for range 200 {
			switch p := rng.IntN(10); {
			case p < 5:
				next := m.Next()
				mutate(rng, next)
				paths(next, func(rel string) { onDisk[rel] = true })
				h.committed(m, next, time.Time{})
				m = next
				kept[m.Version] = m
			case p < 9:
				gone := map[int64]bool{}
				for v := range kept {
					if v != m.Version && rng.IntN(3) == 0 {
						gone[v] = true
						delete(kept, v)
					}
				}
				h.forget(gone)
				checkUnneeded(t, seed, h, kept, onDisk)
			default:
				h = new(fileHistory)
				h.committed(nil, m, time.Time{})
				var older []*oldManifest
				for _, v := range slices.Sorted(maps.Keys(kept)) {
					if v != m.Version {
						older = append(older, &oldManifest{version: v})
					}
				}
				h.add(older)
				if len(older) > 0 && (h.complete() || len(h.unneeded(nil)) > 0) {
					t.Fatal("files are given up before all manifests are known")
				}
				for _, o := range older {
					h.learn(kept[o.version])
				}
			}
			n, oldest := h.kept(nil)
			if n != len(kept) || oldest != slices.Min(slices.Collect(maps.Keys(kept))) {
				t.Fatalf("seed %d: %d manifests from %d on, want %d", seed, n, oldest, len(kept))
			}
		}
	}
}

// mutate adds, removes and re-marks files, several of which may share a deletion vector.
func mutate(rng *rand.Rand, m *manifest.Manifest) {
	dv := fmt.Sprintf("dv-%d", m.Version)
	var files []*manifest.File
	for _, f := range m.Files {
		switch p := rng.IntN(10); {
		case p == 0: // goes
		case p < 3:
			marked := *f
			marked.DVPath = dv
			files = append(files, &marked)
		default:
			files = append(files, f)
		}
	}
	for i := range rng.IntN(3) {
		files = append(files, &manifest.File{Path: fmt.Sprintf("file-%d-%d", m.Version, i)})
	}
	m.Files = files
}

func checkUnneeded(t *testing.T, seed uint64, h *fileHistory, kept map[int64]*manifest.Manifest, onDisk map[string]bool) {
	t.Helper()
	want := maps.Clone(onDisk)
	for _, m := range kept {
		paths(m, func(rel string) { delete(want, rel) })
	}
	got := map[string]bool{}
	for _, rel := range h.unneeded(nil) {
		got[rel] = true
		delete(onDisk, rel)
		h.bury(rel)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("seed %d: to remove are %v, want %v", seed, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for rel := range onDisk {
		if !h.named(rel) {
			t.Fatalf("seed %d: %s is there and not known", seed, rel)
		}
	}
}

// TestDue: which manifests may go, and when the next one may.
func TestDue(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	h := new(fileHistory)
	for v := range int64(6) {
		h.old = append(h.old, &oldManifest{version: v + 1, superseded: now.Add(time.Duration(v-5) * time.Minute)})
	}
	var none map[int64]bool
	for _, c := range []struct {
		keep   time.Duration
		retain int
		inUse  map[int64]bool
		due    []int64
		wait   time.Duration
	}{
		{0, 1, none, []int64{1, 2, 3, 4, 5}, -1},
		{0, 6, none, nil, -1},
		{3 * time.Minute, 1, none, []int64{1, 2, 3}, time.Minute},
		{3 * time.Minute, 5, none, []int64{1}, -1},
		{0, 1, map[int64]bool{2: true, 4: true}, []int64{1, 3, 5}, -1},
		{time.Hour, 1, none, nil, 55 * time.Minute},
	} {
		due, wait := h.due(now, c.keep, c.retain, false, func() map[int64]bool { return c.inUse })
		var got []int64
		for _, o := range due {
			got = append(got, o.version)
		}
		if !slices.Equal(got, c.due) || wait != c.wait {
			t.Errorf("keep %s, retain %d: due %v, then in %s; want %v, %s", c.keep, c.retain, got, wait, c.due, c.wait)
		}
	}
}
