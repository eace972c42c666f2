package main

/*
#include "capi.h"
*/
import "C"

// watch is what a caller wants to be asked and told during a long call.
type watch struct {
	interrupt func() bool        // nil: not to be asked
	progress  func(done float64) // nil: not to be told
}

// readWatch reads a MeruWatch, which may be NULL.
func readWatch(c *C.MeruWatch) (w watch) {
	if c == nil {
		return w
	}
	interrupt, progress, ctx := c.interrupt, c.progress, C.uintptr_t(uintptr(c.ctx))
	if interrupt != nil {
		w.interrupt = func() bool { return C.capi_ask_interrupt(interrupt, ctx) != 0 }
	}
	if progress != nil {
		w.progress = func(done float64) { C.capi_tell_progress(progress, ctx, C.double(done)) }
	}
	return w
}
