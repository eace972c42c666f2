package main

/*
#include "capi.h"
*/
import "C"

import (
	"time"

	"github.com/merutable/merutable/engine"
)

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

// asking returns a question to the caller; nil for none.
func asking(interrupt C.MeruInterruptFn, ctx C.uintptr_t) func() bool {
	if interrupt == nil {
		return nil
	}
	return func() bool { return C.capi_ask_interrupt(interrupt, ctx) != 0 }
}

// interruptible runs fn, which may wait for an object store, on a goroutine of its own, and asks the caller meanwhile. After
// an interrupt it returns at once; what fn has to give later goes to late.
func interruptible[T any](interrupt func() bool, fn func() (T, error), late func(T)) (T, error) {
	if interrupt == nil {
		return fn()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = protect(func() (err error) {
			r.value, err = fn()
			return err
		})
		done <- r
	}()
	const often = 20 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-tick.C:
			if !interrupt() {
				continue
			}
			select {
			case r := <-done:
				return r.value, r.err
			default:
			}
			go func() {
				if r := <-done; r.err == nil {
					quiet(func() { late(r.value) })
				}
			}()
			var none T
			return none, engine.Errorf(engine.CodeCancelled, "interrupted")
		}
	}
}
