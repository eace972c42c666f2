package main

/*
#include "capi.h"
*/
import "C"

import (
	"encoding/json"
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
		text, err := json.Marshal(struct {
			engine.Stats
			Handles map[string]int `json:"handles"` // open in this process, by kind
		}{db.Stats(), handles.count()})
		if err != nil {
			return err
		}
		p := cString(string(text))
		if p == 0 {
			return errNoMemory(len(text))
		}
		*out = p
		return nil
	})
}

// version is the text of meru_version(): made once, never freed.
var version = sync.OnceValue(func() C.uintptr_t { return cString(engine.Version()) })

//export merugo_version
func merugo_version() C.uintptr_t { return version() }
