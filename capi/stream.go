package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"

	"github.com/merutable/merutable/engine"
)

// stream is behind an ArrowArrayStream (its C half is in arrow.c).
type stream struct {
	mu         sync.Mutex
	it         *engine.RowIter
	schema     *engine.Schema
	projection []int
}

// giveStream puts a stream over an iterator into *out, which takes the iterator; on an error it is closed.
func giveStream(it *engine.RowIter, s *engine.Schema, projection []int, out *C.struct_ArrowArrayStream) error {
	h := handles.add(&stream{it: it, schema: s, projection: projection})
	var made C.struct_ArrowArrayStream
	if C.capi_stream_new(h, &made) != 0 {
		closeStream(h)
		return errNoMemory(int(C.sizeof_struct_ArrowArrayStream))
	}
	store(out, made)
	return nil
}

func closeStream(h C.uintptr_t) {
	if s, err := remove[stream](h, "stream"); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.it.Close()
	}
}

//export merugo_stream_schema
func merugo_stream_schema(h C.uintptr_t, out *C.struct_ArrowSchema, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		s, err := lookup[stream](h, "stream")
		if err != nil {
			return err
		}
		exportSchema(engine.ArrowSchema(s.schema, s.projection), out)
		return nil
	})
}

//export merugo_stream_next
func merugo_stream_next(h C.uintptr_t, out *C.struct_ArrowArray, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		s, err := lookup[stream](h, "stream")
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		cols, err := s.it.Next()
		if err != nil || cols == nil { // at the end *out stays zero, which is a released array
			return err
		}
		return exportBatch(cols, s.schema, s.projection, out)
	})
}

//export merugo_stream_free
func merugo_stream_free(h C.uintptr_t) {
	quiet(func() { closeStream(h) })
}
