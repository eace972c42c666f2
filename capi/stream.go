package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/merutable/merutable/engine"
)

// stream is behind an ArrowArrayStream (its C half is in arrow.c).
type stream struct {
	mu     sync.Mutex
	source batchSource
}

// batchSource is what a stream gives out. One call at a time.
type batchSource interface {
	schema() *arrow.Schema
	// batch puts the next array into *out, and leaves it zero, which is a released array, at the end.
	batch(out *C.struct_ArrowArray) error
	close()
}

// rowSource gives out the rows of an iterator.
type rowSource struct {
	it         *engine.RowIter
	table      *engine.Schema
	projection []int
}

func (s *rowSource) schema() *arrow.Schema { return engine.ArrowSchema(s.table, s.projection) }

func (s *rowSource) batch(out *C.struct_ArrowArray) error {
	cols, err := s.it.Next()
	if err != nil || cols == nil {
		return err
	}
	return exportBatch(cols, s.table, s.projection, out)
}

func (s *rowSource) close() { s.it.Close() }

// giveStream puts a stream over an iterator into *out, which takes the iterator; on an error it is closed.
func giveStream(it *engine.RowIter, s *engine.Schema, projection []int, out *C.struct_ArrowArrayStream) error {
	return giveSource(&rowSource{it: it, table: s, projection: projection}, out)
}

// giveSource puts a stream over a source into *out, which takes the source; on an error it is closed.
func giveSource(source batchSource, out *C.struct_ArrowArrayStream) error {
	h := handles.add(&stream{source: source})
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
		s.source.close()
	}
}

//export merugo_stream_schema
func merugo_stream_schema(h C.uintptr_t, out *C.struct_ArrowSchema, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		s, err := lookup[stream](h, "stream")
		if err != nil {
			return err
		}
		exportSchema(s.source.schema(), out)
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
		return s.source.batch(out)
	})
}

//export merugo_stream_free
func merugo_stream_free(h C.uintptr_t) {
	quiet(func() { closeStream(h) })
}
