package main

/*
#include "capi.h"
*/
import "C"

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/merutable/merutable/engine"
)

//export merugo_changes
func merugo_changes(h C.uintptr_t, since, until C.uint64_t, watch *C.MeruWatch, next *C.uint64_t, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "out"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		w := readWatch(watch)
		f, err := db.Changes(engine.ChangesOptions{Since: uint64(since), Until: uint64(until), Interrupt: w.interrupt, Progress: w.progress})
		if err != nil {
			return err
		}
		f.Detach()
		if next != nil {
			*next = C.uint64_t(f.Until())
		}
		return giveSource(newChangeSource(f), out)
	})
}

// changeSource gives the changes of a feed out: seq, op, the key columns, and all columns twice, before and after.
type changeSource struct {
	f            *engine.Changes
	keys, images *engine.Schema
	arrow        *arrow.Schema
}

func newChangeSource(f *engine.Changes) *changeSource {
	s := &changeSource{f: f, keys: engine.KeySchema(f.Schema()), images: engine.ImageSchema(f.Schema())}
	fields := []arrow.Field{
		{Name: "seq", Type: arrow.PrimitiveTypes.Uint64}, {Name: "op", Type: arrow.BinaryTypes.String},
	}
	fields = append(fields, engine.ArrowSchema(s.keys, nil).Fields()...)
	for _, image := range []string{"before.", "after."} {
		for _, field := range engine.ArrowSchema(s.images, nil).Fields() {
			field.Name = image + field.Name
			fields = append(fields, field)
		}
	}
	s.arrow = arrow.NewSchema(fields, nil)
	return s
}

func (s *changeSource) schema() *arrow.Schema { return s.arrow }

func (s *changeSource) batch(out *C.struct_ArrowArray) error {
	b, err := s.f.Next()
	if err != nil || b == nil {
		return err
	}
	seqs := array.NewUint64Builder(cBuffers)
	defer seqs.Release()
	seqs.AppendValues(b.Seqs, nil)
	ops := array.NewStringBuilder(cBuffers)
	defer ops.Release()
	for _, op := range b.Ops {
		ops.Append(op.String())
	}
	columns := []arrow.Array{seqs.NewArray(), ops.NewArray()}
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for _, part := range []struct {
		columns *engine.Columns
		schema  *engine.Schema
	}{{b.Keys, s.keys}, {b.Before, s.images}, {b.After, s.images}} {
		rec, err := engine.ToArrow(part.columns, part.schema, nil, cBuffers)
		if err != nil {
			return err
		}
		for _, c := range rec.Columns() {
			c.Retain()
			columns = append(columns, c)
		}
		rec.Release()
	}
	rec := array.NewRecordBatch(s.arrow, columns, int64(b.N))
	giveRecord(rec, out)
	return nil
}

func (s *changeSource) close() { s.f.Close() }
