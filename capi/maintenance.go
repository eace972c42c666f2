package main

/*
#include "capi.h"
*/
import "C"

import "github.com/merutable/merutable/engine"

//export merugo_compact
func merugo_compact(h C.uintptr_t, lower *C.MeruValue, lowerCount C.uintptr_t, upper *C.MeruValue, upperCount C.uintptr_t, interrupt C.MeruInterruptFn, ctx C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		var o engine.CompactOptions
		if interrupt != nil {
			o.Interrupt = func() bool { return C.capi_ask_interrupt(interrupt, ctx) != 0 }
		}
		if lower != nil || upper != nil {
			s, err := db.Schema()
			if err != nil {
				return err
			}
			if o.Lower, err = bound(lower, lowerCount, s, "lower"); err != nil {
				return err
			}
			if o.Upper, err = bound(upper, upperCount, s, "upper"); err != nil {
				return err
			}
		}
		return db.CompactRange(o)
	})
}

//export merugo_collect_garbage
func merugo_collect_garbage(h C.uintptr_t, dryRun C.uint8_t, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		found, err := db.CollectGarbage(dryRun != 0)
		if err != nil || out == nil {
			return err
		}
		r := newReport(text("path"), number("bytes"), text("reason"), flag("removed"), text("error"))
		for _, item := range found.Items {
			removed := !found.DryRun && item.Err == nil && item.Reason != engine.GarbageUnknown
			var problem any
			if item.Err != nil {
				problem = item.Err.Error()
			}
			r.add(item.Path, item.Bytes, string(item.Reason), removed, problem)
		}
		return giveReport(r, out)
	})
}
