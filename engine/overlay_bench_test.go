package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// BenchmarkOverlay reads one column of many rows in memory, and counts them.
func BenchmarkOverlay(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 5))
	db := openMem(b, vfs.NewMem(), Options{MemtableBytes: 128 << 20})
	defer db.Free()
	m := model{}
	for range 30 {
		writeRandom(b, db, rng, m, 1_000_000, 10_000)
	}
	s, err := db.Snapshot()
	must(b, err)
	defer s.Close()
	b.Run("one column", func(b *testing.B) {
		for b.Loop() {
			rows := 0
			for i := range s.OverlayPieces() {
				it, err := s.OverlayPiece(i, []int{3})
				must(b, err)
				for {
					cols, err := it.Next()
					must(b, err)
					if cols == nil {
						break
					}
					rows += cols.N
				}
				it.Close()
			}
			if rows != s.liveInMemory() {
				b.Fatalf("%d rows of %d", rows, s.liveInMemory())
			}
		}
	})
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			s.walkLive(0)
		}
	})
	b.Run("cut", func(b *testing.B) {
		for b.Loop() {
			s.cuts()
		}
	})
}
