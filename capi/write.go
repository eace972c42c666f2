package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"

	"github.com/merutable/merutable/engine"
)

// write is what MeruWrite stands for.
type write struct {
	mu     sync.Mutex
	w      *engine.Write
	failed error // the first error: it may have left half of what the caller meant
}

// with runs fn on the write, which is for one thread at a time. A second one, or an interrupt callback that calls back
// into its own write, gets an error instead of a wait that might never end. After an error of fn there is only that.
func (w *write) with(fn func() error) error {
	if !w.mu.TryLock() {
		return invalid("argument write is in use by another call")
	}
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	w.failed = protect(fn)
	return w.failed
}

//export merugo_write_begin
func merugo_write_begin(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "write"); err != nil {
			return err
		}
		return beginWrite(h, out, (*engine.DB).NewWrite)
	})
}

// beginWrite puts a handle on a new write into *out.
func beginWrite(h C.uintptr_t, out *C.uintptr_t, begin func(*engine.DB) (*engine.Write, error)) error {
	db, err := lookupDB(h)
	if err != nil {
		return err
	}
	w, err := begin(db)
	if err != nil {
		return err
	}
	*out = handles.add(&write{w: w})
	return nil
}

//export merugo_write_begin_table
func merugo_write_begin_table(h, schema C.uintptr_t, replace C.uint8_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "write"); err != nil {
			return err
		}
		return beginWrite(h, out, func(db *engine.DB) (*engine.Write, error) {
			t, err := lookup[tableSchema](schema, "schema")
			if err != nil {
				return nil, err
			}
			return db.NewTableWrite(t.copyOf(), replace != 0)
		})
	})
}

//export merugo_write_set_interrupt
func merugo_write_set_interrupt(h C.uintptr_t, interrupt C.MeruInterruptFn, ctx C.uintptr_t) {
	quiet(func() {
		w, err := lookup[write](h, "write")
		if err != nil {
			return
		}
		_ = w.with(func() error { // there is nobody to tell that it is in use
			if interrupt == nil {
				w.w.SetInterrupt(nil)
				return nil
			}
			w.w.SetInterrupt(func() bool { return C.capi_ask_interrupt(interrupt, ctx) != 0 })
			return nil
		})
	})
}

//export merugo_write_set_snapshot
func merugo_write_set_snapshot(h, snapshotHandle C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		snap, err := lookup[snapshot](snapshotHandle, "snapshot")
		if err != nil {
			return err
		}
		return w.with(func() error { return w.w.SetSnapshot(snap.s) })
	})
}

//export merugo_write_put_arrow
func merugo_write_put_arrow(h C.uintptr_t, rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(rows)
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return w.with(func() error { return putArrow(w.w, rows, schema) })
	})
}

//export merugo_write_delete_arrow
func merugo_write_delete_arrow(h C.uintptr_t, keys *C.struct_ArrowArray, schema *C.struct_ArrowSchema, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(keys)
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return w.with(func() error {
			return withBatch(keys, schema, "keys", engine.KeySchema(w.w.Schema()), w.w.DeleteColumns)
		})
	})
}

func putArrow(w *engine.Write, rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema) error {
	return withBatch(rows, schema, "rows", w.Schema(), w.PutColumns)
}

// block is what MeruBlock stands for.
type block struct{ b *engine.Block }

// prepareArrow makes a block of an array. It may run beside other calls on the write, so it does without [write.with].
func prepareArrow(out *C.uintptr_t, rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string, want *engine.Schema,
	prepare func(*engine.Columns) (*engine.Block, error),
) error {
	if err := need(out, "block"); err != nil {
		return err
	}
	return withBatch(rows, schema, argument, want, func(c *engine.Columns) error {
		b, err := prepare(c)
		if err == nil {
			*out = handles.add(&block{b: b})
		}
		return err
	})
}

//export merugo_write_prepare_put_arrow
func merugo_write_prepare_put_arrow(h C.uintptr_t, rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(rows)
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return prepareArrow(out, rows, schema, "rows", w.w.Schema(), w.w.Prepare)
	})
}

//export merugo_write_prepare_delete_arrow
func merugo_write_prepare_delete_arrow(h C.uintptr_t, keys *C.struct_ArrowArray, schema *C.struct_ArrowSchema, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(keys)
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return prepareArrow(out, keys, schema, "keys", engine.KeySchema(w.w.Schema()), w.w.PrepareDelete)
	})
}

//export merugo_write_append
func merugo_write_append(h, blockHandle C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		b, err := remove[block](blockHandle, "block")
		if err != nil {
			return err
		}
		defer b.b.Free()
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return w.with(func() error { return w.w.Append(b.b) })
	})
}

//export merugo_block_bytes
func merugo_block_bytes(h C.uintptr_t) (bytes C.uint64_t) {
	quiet(func() {
		if b, err := lookup[block](h, "block"); err == nil {
			bytes = C.uint64_t(b.b.Bytes())
		}
	})
	return bytes
}

//export merugo_block_free
func merugo_block_free(h C.uintptr_t) {
	quiet(func() {
		if b, err := remove[block](h, "block"); err == nil {
			b.b.Free()
		}
	})
}

//export merugo_write_commit
func merugo_write_commit(h C.uintptr_t, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		w, err := lookup[write](h, "write")
		if err != nil {
			return err
		}
		return w.with(func() error {
			last, err := w.w.Commit()
			if err == nil && seq != nil {
				*seq = C.uint64_t(last)
			}
			return err
		})
	})
}

//export merugo_write_free
func merugo_write_free(h C.uintptr_t) {
	quiet(func() {
		if w, err := remove[write](h, "write"); err == nil {
			w.w.Close()
		}
	})
}

//export merugo_put_arrow
func merugo_put_arrow(h C.uintptr_t, rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(rows)
		return commitWith(h, seq, func(w *engine.Write) error { return putArrow(w, rows, schema) })
	})
}
