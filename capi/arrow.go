package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine"
)

// bufferAllocator puts the buffers of exported arrays in C memory (object.c), where Go's collector has no say.
type bufferAllocator struct{}

var cBuffers memory.Allocator = bufferAllocator{}

// Allocate returns memory of any content: to clear it costs a large scan a tenth of its time, and whoever fills a buffer
// fills all of it. It panics when memory runs out, as the interface has no error; the callers here run
// under [protect].
func (bufferAllocator) Allocate(size int) []byte {
	p := C.capi_buffer_new(C.size_t(size))
	if p == nil {
		panic(errNoMemory(size))
	}
	// A capacity of at least one byte, so that an empty buffer has an address to be freed by.
	return unsafe.Slice((*byte)(p), max(size, 1))[:size]
}

// Reallocate moves a buffer to one of another size.
func (a bufferAllocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	moved := a.Allocate(size)
	copy(moved, b)
	a.Free(b)
	return moved
}

// Free takes a buffer of Allocate or Reallocate.
func (bufferAllocator) Free(b []byte) {
	if cap(b) > 0 {
		C.capi_buffer_free(unsafe.Pointer(unsafe.SliceData(b)))
	}
}

// withBatch reads an array of rows of the given schema and hands them to use; they are valid during the call. The array
// is given up in every case but where it had no release callback; the caller's schema is only read.
func withBatch(rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string, want *engine.Schema, use func(*engine.Columns) error) error {
	rec, err := importBatch(rows, schema, argument)
	if err != nil {
		return err
	}
	defer rec.Release()
	cols, err := engine.FromArrow(want, rec)
	if err != nil {
		return err
	}
	return use(cols)
}

// withRow is withBatch for an array that must have one row.
func withRow(row *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string, want *engine.Schema, use func(*engine.Columns) error) error {
	return withBatch(row, schema, argument, want, func(cols *engine.Columns) error {
		if cols.N != 1 {
			return invalid("argument %s has %d rows: 1 is asked for", argument, cols.N)
		}
		return use(cols)
	})
}

func importBatch(rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string) (arrow.RecordBatch, error) {
	if err := need(rows, argument); err != nil {
		return nil, err
	}
	if err := need(schema, "schema"); err != nil {
		return nil, err
	}
	if rows.release == nil {
		return nil, invalid("argument %s was released", argument)
	}
	types, err := importSchema(schema)
	if err != nil {
		return nil, err
	}
	if err := checkStruct(rows, types, argument); err != nil {
		return nil, err
	}
	if rows.length == 0 {
		// Producers leave the buffers of an empty array out, which the importer does not take.
		b := array.NewRecordBuilder(memory.DefaultAllocator, types)
		defer b.Release()
		return b.NewRecordBatch(), nil
	}
	return importRecord(rows, types, argument)
}

// importRecord gives the array to the library, which answers some invalid nested ones with a panic.
func importRecord(rows *C.struct_ArrowArray, types *arrow.Schema, argument string) (rec arrow.RecordBatch, err error) {
	defer func() {
		if r := recover(); r != nil {
			rec, err = nil, invalid("argument %s: %v", argument, r)
		}
	}()
	rec, err = cdata.ImportCRecordBatchWithSchema((*cdata.CArrowArray)(unsafe.Pointer(rows)), types)
	if err != nil {
		return nil, invalid("argument %s: %s", argument, err)
	}
	return rec, nil
}

// importSchema reads a borrowed schema. The importer releases what it reads, so it gets a copy of the structs.
func importSchema(schema *C.struct_ArrowSchema) (*arrow.Schema, error) {
	copied := (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	defer C.free(unsafe.Pointer(copied))
	if wrong := C.capi_schema_copy(schema, copied); wrong != nil {
		return nil, invalid("argument schema: %s", C.GoString(wrong))
	}
	defer C.capi_schema_copy_free(copied)
	types, err := cdata.ImportCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(copied)))
	if err != nil {
		return nil, invalid("argument schema: %s", err)
	}
	return types, nil
}

// checkStruct checks what the importer takes on trust, or answers with a panic: rows that are NULL as a whole, and
// children that do not match.
func checkStruct(rows *C.struct_ArrowArray, types *arrow.Schema, argument string) error {
	n, offset := int64(rows.length), int64(rows.offset)
	if n < 0 || offset < 0 || n+offset < 0 {
		return invalid("argument %s: length %d, offset %d", argument, n, offset)
	}
	if int64(rows.n_children) != int64(types.NumFields()) || rows.n_children > 0 && rows.children == nil {
		return invalid("argument %s has %d children, its schema %d", argument, int64(rows.n_children), types.NumFields())
	}
	for i, c := range unsafe.Slice(rows.children, int(rows.n_children)) {
		if c == nil || int64(c.length) < n+offset {
			return invalid("argument %s: child %d has fewer than %d rows", argument, i, n+offset)
		}
	}
	if rows.n_buffers != 1 {
		return invalid("argument %s has %d buffers: a struct array has 1", argument, int64(rows.n_buffers))
	}
	if rows.null_count == 0 || rows.buffers == nil || *rows.buffers == nil {
		return nil
	}
	valid := unsafe.Slice((*byte)(*rows.buffers), (n+offset+7)/8)
	for i := offset; i < offset+n; i++ {
		if valid[i/8]>>(i%8)&1 == 0 {
			return invalid("argument %s: row %d is NULL as a whole", argument, i-offset)
		}
	}
	return nil
}

// exportBatch makes an Arrow array of a batch. On success *out is the caller's to release.
func exportBatch(cols *engine.Columns, s *engine.Schema, projection []int, out *C.struct_ArrowArray) error {
	rec, err := engine.ToArrow(cols, s, projection, cBuffers)
	if err != nil {
		return err
	}
	giveRecord(rec, out)
	return nil
}

// exportSchema writes the Arrow schema of a table's rows to *out.
func exportSchema(types *arrow.Schema, out *C.struct_ArrowSchema) {
	var exported C.struct_ArrowSchema
	cdata.ExportArrowSchema(types, (*cdata.CArrowSchema)(unsafe.Pointer(&exported)))
	C.capi_schema_guard(&exported)
	store(out, exported)
}

//export merugo_arrow_schema
func merugo_arrow_schema(h C.uintptr_t, out *C.struct_ArrowSchema, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "out"); err != nil {
			return err
		}
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		exportSchema(engine.ArrowSchema(t.copyOf(), nil), out)
		return nil
	})
}

// giveRecord makes an Arrow array of a record batch, which it takes. *out is the caller's to release.
func giveRecord(rec arrow.RecordBatch, out *C.struct_ArrowArray) {
	defer rec.Release() // the array holds a reference of its own
	var exported C.struct_ArrowArray
	cdata.ExportArrowRecordBatch(rec, (*cdata.CArrowArray)(unsafe.Pointer(&exported)), nil)
	C.capi_array_guard(&exported)
	store(out, exported)
}
