package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"

	"github.com/merutable/merutable/engine"
)

// openOptions is what MeruOptions stands for.
type openOptions struct {
	mu        sync.Mutex
	o         engine.Options
	interrupt func() bool // of an open; nil: not to be asked
}

// givenOptions returns the options of a handle that may be NULL.
func givenOptions(h C.uintptr_t) (o engine.Options, err error) {
	o, _, err = givenOpen(h)
	return o, err
}

// givenOpen returns whom to ask as well.
func givenOpen(h C.uintptr_t) (o engine.Options, interrupt func() bool, err error) {
	if h == 0 {
		return o, nil, nil
	}
	given, err := lookup[openOptions](h, "options")
	if err != nil {
		return o, nil, err
	}
	given.mu.Lock()
	defer given.mu.Unlock()
	return given.o, given.interrupt, nil
}

//export merugo_options_new
func merugo_options_new() (h C.uintptr_t) {
	quiet(func() { h = handles.add(new(openOptions)) })
	return h
}

//export merugo_options_free
func merugo_options_free(h C.uintptr_t) {
	quiet(func() { _, _ = remove[openOptions](h, "options") })
}

//export merugo_options_set_interrupt
func merugo_options_set_interrupt(h C.uintptr_t, interrupt C.MeruInterruptFn, ctx C.uintptr_t) {
	quiet(func() {
		if o, err := lookup[openOptions](h, "options"); err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.interrupt = asking(interrupt, ctx)
		}
	})
}

//export merugo_options_set
func merugo_options_set(h C.uintptr_t, ckey, cvalue *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		o, err := lookup[openOptions](h, "options")
		if err != nil {
			return err
		}
		key, err := goText(ckey, "key", maxNameText)
		if err != nil {
			return err
		}
		value, err := goText(cvalue, "value", maxPathText)
		if err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		changed := o.o
		if err := changed.Set(key, value); err != nil {
			return err
		}
		o.o = changed
		return nil
	})
}
