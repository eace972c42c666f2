package engine

import (
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/sst"
)

// readCounters are the running totals of reads.
type readCounters struct {
	gets, hits, memtableHits atomic.Int64 // keys asked for
	multiGets, scans         atomic.Int64
	files                    sst.Counters
}

func (r *readCounters) countGets(keys, found int64) {
	r.gets.Add(keys)
	if found > 0 {
		r.hits.Add(found)
	}
}

// ReadStats are the counters of reads since the engine was opened. A get that hit a memtable, or the row cache, looked no
// further.
type ReadStats struct {
	Gets         int64 `json:"gets"` // keys looked up, those of multi-gets included
	GetHits      int64 `json:"get_hits"`
	GetMisses    int64 `json:"get_misses"`
	MemtableHits int64 `json:"memtable_hits"` // keys whose row or deletion was in memory
	MultiGets    int64 `json:"multi_gets"`
	Scans        int64 `json:"scans"`

	RowCacheCapacity int64 `json:"row_cache_capacity"` // bytes
	RowCacheBytes    int64 `json:"row_cache_bytes"`
	RowCacheHits     int64 `json:"row_cache_hits"`
	RowCacheMisses   int64 `json:"row_cache_misses"`

	// The cache of decoded pages and bloom filters.
	CacheCapacity int64 `json:"cache_capacity"` // bytes
	CacheBytes    int64 `json:"cache_bytes"`
	CacheHits     int64 `json:"cache_hits"`
	CacheMisses   int64 `json:"cache_misses"`

	// Of data files, those that are gone included.
	BloomProbes         int64 `json:"bloom_probes"`
	BloomNegatives      int64 `json:"bloom_negatives"`
	BloomFalsePositives int64 `json:"bloom_false_positives"`
	PagesRead           int64 `json:"pages_read"` // data pages read and decoded for point reads
	BytesRead           int64 `json:"bytes_read"` // scans through the engine included
}

func (c *core) readStats() ReadStats {
	r := &c.reads
	st := ReadStats{
		Gets: r.gets.Load(), GetHits: r.hits.Load(), MemtableHits: r.memtableHits.Load(), MultiGets: r.multiGets.Load(),
		Scans: r.scans.Load(), BloomProbes: r.files.Probes.Load(), BloomNegatives: r.files.Negatives.Load(),
		BloomFalsePositives: r.files.FalsePositives.Load(), PagesRead: r.files.Pages.Load(), BytesRead: r.files.Bytes.Load(),
	}
	st.GetMisses = st.Gets - st.GetHits
	rows, pages := c.rows.Stats(), c.cache.Stats()
	st.RowCacheCapacity, st.RowCacheBytes, st.RowCacheHits, st.RowCacheMisses = rows.Capacity, rows.Bytes, rows.Hits, rows.Misses
	st.CacheCapacity, st.CacheBytes, st.CacheHits, st.CacheMisses = pages.Capacity, pages.Bytes, pages.Hits, pages.Misses
	return st
}
