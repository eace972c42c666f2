package main

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/merutable/merutable/engine"
)

// The Go runtime in this library is ours alone, so its limit follows the memory budgets of the open engines. A host that
// sets GOMEMLIMIT has decided for itself.
func init() {
	if os.Getenv("GOMEMLIMIT") == "" {
		engine.OnHeapBudget(limitHeap)
	}
}

// limitHeap sets what the collector keeps the heap within. The limit is soft: what is needed is allocated.
func limitHeap(bytes int64) {
	const ownBytes = 32 << 20 // of the runtime itself, and of calls for a moment
	if bytes == 0 {
		debug.SetMemoryLimit(math.MaxInt64)
		return
	}
	debug.SetMemoryLimit(bytes + ownBytes)
}
