package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"github.com/merutable/merutable/engine"
)

//export merugo_scan
func merugo_scan(h C.uintptr_t, start *C.MeruValue, startCount C.uintptr_t, end *C.MeruValue, endCount C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "result"); err != nil {
			return err
		}
		s, err := snapshotOf(h)
		if err != nil {
			return err
		}
		defer s.Close()
		o := engine.ScanOptions{UpperExclusive: true}
		if o.Lower, err = bound(start, startCount, s.Schema(), "start"); err != nil {
			return err
		}
		if o.Upper, err = bound(end, endCount, s.Schema(), "end"); err != nil {
			return err
		}
		it, err := s.Scan(o)
		if err != nil {
			return err
		}
		defer it.Close()
		result, err := scanObject(it, s.Schema())
		if err != nil {
			return err
		}
		*out = result.handle()
		return nil
	})
}

// bound reads a key prefix; NULL and no values are an open bound.
func bound(p *C.MeruValue, n C.uintptr_t, s *engine.Schema, argument string) ([]engine.Value, error) {
	if p == nil {
		return nil, nil
	}
	return keyValues(p, n, s, argument, false)
}

// scanObject copies all rows of an iterator to C memory: the rows batch by batch, and at the end the array of them.
func scanObject(it *engine.RowIter, s *engine.Schema) (o *object, err error) {
	o, result, err := newObjectOf[C.MeruScanResult](0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.discard()
			o = nil
		}
	}()
	var rows []C.MeruRow // the fields are C memory already
	for {
		cols, err := it.Next()
		if err != nil {
			return o, err
		}
		if cols == nil {
			break
		}
		at := len(rows)
		rows = append(rows, make([]C.MeruRow, cols.N)...)
		for i := range cols.N {
			if err := fillRow(o, &rows[at+i], cols, i, s); err != nil {
				return o, err
			}
		}
	}
	entries, err := allocSlice[C.MeruRow](o, len(rows))
	if err != nil {
		return o, err
	}
	copy(entries, rows)
	result.entries, result.count = unsafe.SliceData(entries), C.uintptr_t(len(entries))
	return o, nil
}
