package objfs

import "sync/atomic"

// Stats count what an FS has read since it was made.
type Stats struct {
	Requests, Bytes        int64 // range reads of blocks, and what came
	MemoryHits, MemoryMiss int64 // blocks
	MemoryBytes            int64 // in memory now
	DiskHits               int64 // blocks
}

type counters struct {
	requests, bytes, diskHits atomic.Int64
}

// Stats returns the counters.
func (b *blocks) Stats() Stats {
	m := b.memory.Stats()
	return Stats{
		Requests: b.stats.requests.Load(), Bytes: b.stats.bytes.Load(), MemoryHits: m.Hits, MemoryMiss: m.Misses,
		MemoryBytes: m.Bytes, DiskHits: b.stats.diskHits.Load(),
	}
}
