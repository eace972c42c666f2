package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// maxRows bounds the rows of one meru_put_batch().
const maxRows = 1 << 32

//export merugo_put
func merugo_put(h C.uintptr_t, row *C.MeruRow, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(row, "row"); err != nil {
			return err
		}
		return putRows(h, unsafe.Slice(row, 1), seq)
	})
}

//export merugo_put_batch
func merugo_put_batch(h C.uintptr_t, rows *C.MeruRow, n C.uintptr_t, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		switch {
		case n == 0:
			return putRows(h, nil, seq)
		case rows == nil:
			return invalid("argument rows is NULL, n is %d", uint64(n))
		case n > maxRows:
			return invalid("argument n is %d rows: the limit is %d", uint64(n), uint64(maxRows))
		}
		return putRows(h, unsafe.Slice(rows, n), seq)
	})
}

func putRows(h C.uintptr_t, rows []C.MeruRow, seq *C.uint64_t) error {
	return commitWith(h, seq, func(w *engine.Write) error {
		s := w.Schema()
		vals := make([]engine.Value, len(s.Columns))
		for i := range rows {
			if err := rowValues(vals, &rows[i], s); err != nil {
				return err
			}
			if err := w.Put(vals); err != nil {
				return err
			}
		}
		return nil
	})
}

//export merugo_delete
func merugo_delete(h C.uintptr_t, pk *C.MeruValue, n C.uintptr_t, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return commitWith(h, seq, func(w *engine.Write) error {
			key, err := keyValues(pk, n, w.Schema(), "pk", true)
			if err != nil {
				return err
			}
			return w.Delete(key)
		})
	})
}

// commitWith fills a write and commits it.
func commitWith(h C.uintptr_t, seq *C.uint64_t, fill func(w *engine.Write) error) error {
	db, err := lookupDB(h)
	if err != nil {
		return err
	}
	w, err := db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := fill(w); err != nil {
		return err
	}
	last, err := w.Commit()
	if err == nil && seq != nil {
		*seq = C.uint64_t(last)
	}
	return err
}

//export merugo_get
func merugo_get(h C.uintptr_t, pk *C.MeruValue, n C.uintptr_t, found *C.int, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(found, "found"); err != nil {
			return err
		}
		if err := need(out, "row"); err != nil {
			return err
		}
		s, err := snapshotOf(h)
		if err != nil {
			return err
		}
		defer s.Close()
		key, err := keyValues(pk, n, s.Schema(), "pk", true)
		if err != nil {
			return err
		}
		cols, ok, err := s.Get(key)
		if err != nil {
			return err
		}
		if !ok {
			*found, *out = 0, 0
			return nil
		}
		o, err := rowObject(cols, s.Schema())
		if err != nil {
			return err
		}
		*found, *out = 1, o.handle()
		return nil
	})
}

// rowObject makes a MeruRow of the first row of a batch.
func rowObject(cols *engine.Columns, s *engine.Schema) (*object, error) {
	o, row, err := newObjectOf[C.MeruRow](rowSpace(cols, 0))
	if err != nil {
		return nil, err
	}
	if err := fillRow(o, row, cols, 0, s); err != nil {
		o.discard()
		return nil, err
	}
	return o, nil
}

// rowSpace returns how much of an object row i takes.
func rowSpace(cols *engine.Columns, i int) int {
	n := aligned(len(cols.Cols) * int(unsafe.Sizeof(C.MeruValue{})))
	for c := range cols.Cols {
		col := &cols.Cols[c]
		if usesBytes(col.Type.Kind) && !col.IsNull(i) {
			n += max(16, aligned(len(col.Storage(i))))
		}
	}
	return n
}

func usesBytes(k engine.Kind) bool {
	return k == engine.KindFixedBinary || engine.Type{Kind: k}.IsVariable()
}

func fillRow(o *object, row *C.MeruRow, cols *engine.Columns, i int, s *engine.Schema) error {
	fields, err := allocSlice[C.MeruValue](o, len(cols.Cols))
	if err != nil {
		return err
	}
	for c := range fields {
		if err := fillValue(&fields[c], cols.Cols[c].Value(i), s.Columns[c].Type, o); err != nil {
			return err
		}
	}
	row.fields, row.field_count = unsafe.SliceData(fields), C.uintptr_t(len(fields))
	return nil
}
