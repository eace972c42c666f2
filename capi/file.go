package main

/*
#include "capi.h"
*/
import "C"

import (
	"errors"
	"io"
	"math"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// file is what MeruFile stands for.
type file struct {
	f         *engine.File
	interrupt func() bool // nil: not to be asked
}

//export merugo_snapshot_file_open
func merugo_snapshot_file_open(h, index C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "file"); err != nil {
			return err
		}
		snap, err := lookupFile(h, index)
		if err != nil {
			return err
		}
		f, err := snap.s.OpenFile(snap.indices[index])
		if err != nil {
			return err
		}
		*out = handles.add(&file{f: f})
		return nil
	})
}

//export merugo_file_set_interrupt
func merugo_file_set_interrupt(h C.uintptr_t, interrupt C.MeruInterruptFn, ctx C.uintptr_t) {
	quiet(func() {
		if f, err := lookup[file](h, "file"); err == nil {
			f.interrupt = asking(interrupt, ctx)
		}
	})
}

//export merugo_file_size
func merugo_file_size(h C.uintptr_t) (size C.uint64_t) {
	quiet(func() {
		if f, err := lookup[file](h, "file"); err == nil {
			size = C.uint64_t(f.f.Size())
		}
	})
	return size
}

//export merugo_file_read
func merugo_file_read(h C.uintptr_t, offset C.uint64_t, buffer unsafe.Pointer, n C.uintptr_t, got, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(got, "got"); err != nil {
			return err
		}
		f, err := lookup[file](h, "file")
		if err != nil {
			return err
		}
		if n == 0 {
			*got = 0
			return nil
		}
		if buffer == nil {
			return invalid("argument buffer is NULL")
		}
		if offset > math.MaxInt64 || n > math.MaxInt {
			return invalid("arguments offset and n are %d and %d: no file is that large", uint64(offset), uint64(n))
		}
		read, err := f.f.ReadAtUnless(unsafe.Slice((*byte)(buffer), int(n)), int64(offset), f.interrupt)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		*got = C.uintptr_t(read)
		return nil
	})
}

//export merugo_file_free
func merugo_file_free(h C.uintptr_t) {
	quiet(func() {
		if f, err := remove[file](h, "file"); err == nil {
			_ = f.f.Close() // nothing was written
		}
	})
}
