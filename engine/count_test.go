package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestCountRows compares counts with the model over files, one and several memtables, at old and new snapshots.
func TestCountRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, TargetFileBytes: 64 << 10})
	defer db.Free()
	m := model{}
	type taken struct {
		s    *Snapshot
		rows int
	}
	var old []taken
	for step := range 40 {
		switch {
		case step%13 == 7:
			must(t, db.Compact())
		case step%9 == 4:
			must(t, db.Flush())
		}
		writeRandom(t, db, rng, m, 9_000, []int{5000, 300, 2, 1}[rng.IntN(4)])
		s, err := db.Snapshot()
		must(t, err)
		old = append(old, taken{s, len(m)})
		for range 3 { // the newest, and some older ones in any order
			checkCount(t, old[len(old)-1].s, old[len(old)-1].rows)
			at := rng.IntN(len(old))
			checkCount(t, old[at].s, old[at].rows)
		}
		if len(old) > 8 {
			old[0].s.Close()
			old = old[1:]
		}
	}
	for _, o := range old {
		o.s.Close()
	}
}

func checkCount(t *testing.T, s *Snapshot, want int) {
	t.Helper()
	n, err := s.CountRows()
	must(t, err)
	if n != int64(want) {
		t.Fatalf("%d rows, want %d", n, want)
	}
}

// TestOverlayPieces compares the pieces of an overlay, and of a part of it, with the whole.
func TestOverlayPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	db := openMem(t, vfs.NewMem(), Options{})
	defer db.Free()
	m := model{}
	for range 4 {
		writeRandom(t, db, rng, m, 200_000, 40_000)
	}
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	if n := s.OverlayPieces(); n < 4 {
		t.Fatalf("%d pieces", n)
	}
	checkPieces(t, collect(t, s.Overlay(nil)), s.OverlayPieces(), s.OverlayPiece)
	p, err := s.Part(ScanOptions{Lower: []Value{Int(1000)}, Upper: []Value{Int(150_000)}})
	must(t, err)
	defer p.Close()
	if n := p.OverlayPieces(); n < 3 {
		t.Fatalf("%d pieces of a part", n)
	}
	checkPieces(t, collect(t, p.Overlay(nil)), p.OverlayPieces(), p.OverlayPiece)
	if _, err := s.OverlayPiece(s.OverlayPieces(), nil); err == nil {
		t.Fatal("a piece that there is not")
	}
}

func checkPieces(t *testing.T, want [][]Value, n int, piece func(int, []int) (*RowIter, error)) {
	t.Helper()
	at := 0
	for i := range n {
		it, err := piece(i, nil)
		must(t, err)
		for _, row := range collect(t, it) {
			if at == len(want) || !equalRows(row, want[at]) {
				t.Fatalf("piece %d: row %d is %v", i, at, row)
			}
			at++
		}
	}
	if at != len(want) {
		t.Fatalf("%d rows in %d pieces, want %d", at, n, len(want))
	}
}
