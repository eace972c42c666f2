package engine

import (
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
)

// The memory budget. MemoryLimit is split like this, sizes that are set taken off first:
//
//	memtables (the active one and those that wait for their flush)   12/32, at most 64 MiB each
//	decoded pages for point reads                                     4/32
//	rows that gets have read                                          1/32
//	flushes, compactions, bulk loads, and what readers decode        15/32 and what is left, at least 24 MiB
//	                                                                 (of it 2/32 for blocks of an object store, at least 8 MiB)
//
// The last share also says how many flushes and compactions run at a time, with jobBytes reckoned for each; half of it is
// what the row buffers of a bulk load have. Memtables and those buffers lie outside the Go heap, so the rest of the budget
// is what the Go heap may have: OnHeapBudget adds it up over the process's engines, for whoever owns the Go runtime.
const (
	budgetShares   = 32
	memtableShares = 12
	pageShares     = 4
	rowShares      = 1
	jobShares      = budgetShares - memtableShares - pageShares - rowShares

	minJobsBytes = 24 << 20
	jobBytes     = 48 << 20
	memtableStep = 64 << 10
)

// withinBudget sets the sizes that are not set to their shares of the budget, if there is one.
func (o Options) withinBudget() (Options, error) {
	limit := o.MemoryLimit
	if limit == 0 {
		limit = o.DefaultMemoryLimit
	}
	if limit == 0 {
		return o, nil
	}
	taken := max(o.CacheBytes, 0) + max(o.RowCacheBytes, 0)
	memtables := max(int64(o.MemtableBytes), minMemtableBytes) * int64(max(o.MaxImmutables, 1)+1)
	if need := taken + memtables + minJobsBytes; need > limit {
		if o.MemoryLimit != 0 {
			return o, base.Errorf(base.CodeInvalidArgument,
				"option memory_limit = %d is too small: %d bytes are needed (memtables %d, caches %d, jobs %d)",
				limit, need, memtables, taken, minJobsBytes)
		}
		limit = need
	}
	pool := limit - taken
	if o.MemtableBytes != 0 && o.MaxImmutables != 0 {
		pool -= memtables
	}
	// What is split over the parts that are not set.
	split := pool - max(minJobsBytes, pool/budgetShares*jobShares)
	const shares = budgetShares - jobShares
	o.splitMemtables(split / shares * memtableShares)
	if o.CacheBytes == 0 {
		o.CacheBytes = max(split/shares*pageShares, 1)
	}
	if o.RowCacheBytes == 0 {
		o.RowCacheBytes = max(split/shares*rowShares, 1)
	}
	jobs := limit - max(o.CacheBytes, 0) - max(o.RowCacheBytes, 0) - o.memtablesBytes()
	each := int(max(1, jobs/2/jobBytes))
	setDefault(&o.FlushThreads, min(each, defaultFlushThreads))
	setDefault(&o.CompactionThreads, min(each, defaultCompactionThreads()))
	setDefault(&o.loadBufferBytes, int(min(max(jobs/2/loadBuffers, minMemtableBytes), int64(o.MemtableBytes), maxLoadBuffer)))
	o.MemoryLimit = limit
	return o, nil
}

// splitMemtables sizes the memtables, as far as they are not set, so that all together have share bytes: few rather than
// small ones.
func (o *Options) splitMemtables(share int64) {
	const small = 16 << 20
	if o.MaxImmutables == 0 {
		each := int64(o.MemtableBytes)
		if each == 0 {
			each = small
		}
		o.MaxImmutables = int(min(max(share/each-1, 1), defaultMaxImmutables))
		if o.MemtableBytes == 0 {
			o.MaxImmutables = max(o.MaxImmutables, 2)
		}
	}
	if o.MemtableBytes == 0 {
		each := share / int64(o.MaxImmutables+1) / memtableStep * memtableStep
		if each < minMemtableBytes { // two of them there is room for
			o.MaxImmutables = int(min(max(share/minMemtableBytes-1, 1), int64(o.MaxImmutables)))
		}
		o.MemtableBytes = int(min(max(each, minMemtableBytes), defaultMemtableBytes))
	}
}

// memtablesBytes is what the memtables take when all are full.
func (o *Options) memtablesBytes() int64 { return int64(o.MemtableBytes) * int64(o.MaxImmutables+1) }

// heapBudget is what the Go heap may have for one engine, 0 where it has no budget.
func (o *Options) heapBudget() int64 {
	if o.MemoryLimit == 0 {
		return 0
	}
	return max(o.MemoryLimit-o.memtablesBytes()-int64(loadBuffers*o.loadBufferSize()), minJobsBytes)
}

// MemoryStats are gauges of what an engine holds in memory, besides its caches.
type MemoryStats struct {
	MemoryLimit    int64 `json:"memory_limit_bytes"` // the budget; 0: none
	MemtablesBytes int64 `json:"memtables_bytes"`    // in the active memtable and those that wait for their flush
}

// heap adds up the heap budgets of the process's open engines.
var heap = new(heapBudgets)

type heapBudgets struct {
	mu        sync.Mutex
	engines   int
	unlimited int // engines without a budget
	bytes     int64
	changed   func(bytes int64)
}

// OnHeapBudget has f called, now and whenever an engine is opened or closed, with what the Go heap may have for all
// engines of the process, in bytes: 0 where no engine is open or one of them has no budget. One call at a time. It is for
// a host that owns the Go runtime and lives as long as the process; the engine itself never sets its limits.
func OnHeapBudget(f func(bytes int64)) {
	heap.mu.Lock()
	defer heap.mu.Unlock()
	heap.changed = f
	heap.tell()
}

// add counts an engine in, or out with a sign of -1.
func (h *heapBudgets) add(o *Options, sign int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engines += sign
	budget := o.heapBudget()
	if budget == 0 {
		h.unlimited += sign
	}
	h.bytes += int64(sign) * budget
	h.tell()
}

func (h *heapBudgets) tell() {
	if h.changed == nil {
		return
	}
	if h.unlimited > 0 || h.engines == 0 {
		h.changed(0)
		return
	}
	h.changed(h.bytes)
}
