package main

/*
#include "capi.h"
*/
import "C"

import (
	"encoding/json"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/merutable/merutable/engine"
)

//export merugo_stats
func merugo_stats(h C.uintptr_t, out *C.MeruStats, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "stats"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		s := db.Stats()
		store(out, C.MeruStats{
			snapshot_id: C.int64_t(s.Version), current_seq: C.uint64_t(s.Seq),
			memtable: C.MeruMemtableStats{
				active_size_bytes: C.uintptr_t(s.MemtableBytes), active_entry_count: C.uint64_t(s.MemtableEntries),
				flush_threshold: C.uintptr_t(s.MemtableCapacity), immutable_count: C.uintptr_t(s.ImmutableCount),
			},
			cache: C.MeruCacheStats{
				capacity: C.uintptr_t(s.CacheCapacity), size: C.uintptr_t(s.CacheBytes),
				hit_count: C.uint64_t(s.CacheHits), miss_count: C.uint64_t(s.CacheMisses),
			},
		})
		return nil
	})
}

//export merugo_stats_json
func merugo_stats_json(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "json"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		text, err := statsJSON(db)
		if err != nil {
			return err
		}
		p := cString(text)
		if p == 0 {
			return errNoMemory(len(text))
		}
		*out = p
		return nil
	})
}

// statsJSON returns the engine's statistics, and those of the process: the handles that are open, by kind, and the Go
// runtime.
func statsJSON(db *engine.DB) (string, error) {
	text, err := json.Marshal(struct {
		engine.Stats
		Handles map[string]int `json:"handles"`
		Runtime runtimeStats   `json:"runtime"`
	}{db.Stats(), handles.count(), readRuntime()})
	return string(text), err
}

// runtimeStats are gauges of the Go runtime, which all databases of the process share.
type runtimeStats struct {
	Goroutines int64 `json:"goroutines"`
	HeapBytes  int64 `json:"heap_bytes"`       // live objects, and dead ones that were not collected yet
	Limit      int64 `json:"heap_limit_bytes"` // what the collector keeps the heap within; 0: nothing in particular
}

func readRuntime() runtimeStats {
	samples := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	limit := debug.SetMemoryLimit(-1) // reads it
	if limit == math.MaxInt64 {
		limit = 0
	}
	return runtimeStats{
		Goroutines: int64(samples[0].Value.Uint64()), HeapBytes: int64(samples[1].Value.Uint64()), Limit: limit,
	}
}

// version is the text of meru_version(): made once, never freed.
var version = sync.OnceValue(func() C.uintptr_t { return cString(engine.Version()) })

//export merugo_version
func merugo_version() C.uintptr_t { return version() }
