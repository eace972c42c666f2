package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"github.com/merutable/merutable/engine"
)

//export merugo_multi_get
func merugo_multi_get(h C.uintptr_t, keys *C.MeruRow, n C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "result"); err != nil {
			return err
		}
		if keys == nil && n > 0 {
			return invalid("argument keys is NULL, n is %d", uint64(n))
		}
		if n > engine.MaxMultiGet {
			return invalid("argument n is %d keys: the limit is %d", uint64(n), engine.MaxMultiGet)
		}
		s, err := snapshotOf(h)
		if err != nil {
			return err
		}
		defer s.Close()
		asked := make([][]engine.Value, n)
		for i, k := range unsafe.Slice(keys, n) {
			if asked[i], err = keyValues(k.fields, k.field_count, s.Schema(), "keys", true); err != nil {
				return err
			}
		}
		rows, found, err := s.MultiGet(asked)
		if err != nil {
			return err
		}
		o, err := foundObject(rows, found, s.Schema())
		if err == nil {
			*out = o.handle()
		}
		return err
	})
}

//export merugo_snapshot_multi_get
func merugo_snapshot_multi_get(h C.uintptr_t, keys *C.struct_ArrowArray, schema *C.struct_ArrowSchema, found *C.uint8_t, out *C.struct_ArrowArray, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(keys)
		if err := need(found, "found"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		s := snap.s.Schema()
		return withBatch(keys, schema, "keys", engine.KeySchema(s), func(keys *engine.Columns) error {
			var present []bool
			if out == nil {
				present, err = snap.s.Contains(keys)
			} else {
				var rows *engine.Columns
				if rows, present, err = snap.s.MultiGetColumns(keys); err == nil {
					err = exportBatch(rows, s, nil, out)
				}
			}
			if err != nil {
				return err
			}
			storeFlags(found, present)
			return nil
		})
	})
}

// storeFlags writes a byte for each flag.
func storeFlags(to *C.uint8_t, flags []bool) {
	bytes := unsafe.Slice((*byte)(to), len(flags))
	for i, flag := range flags {
		bytes[i] = 0
		if flag {
			bytes[i] = 1
		}
	}
}

// foundObject makes a MeruScanResult that has an entry for each key: the next row where it was found.
func foundObject(rows *engine.Columns, found []bool, s *engine.Schema) (*object, error) {
	o, result, err := newObjectOf[C.MeruScanResult](0)
	if err != nil {
		return nil, err
	}
	entries, err := allocSlice[C.MeruRow](o, len(found))
	next := 0
	for i := 0; i < len(found) && err == nil; i++ {
		if found[i] {
			err = fillRow(o, &entries[i], rows, next, s)
			next++
		}
	}
	if err != nil {
		o.discard()
		return nil, err
	}
	result.entries, result.count = unsafe.SliceData(entries), C.uintptr_t(len(entries))
	return o, nil
}
