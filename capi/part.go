package main

/*
#include "capi.h"
*/
import "C"

import "github.com/merutable/merutable/engine"

//export merugo_snapshot_part
func merugo_snapshot_part(h C.uintptr_t, lower, upper *C.struct_ArrowArray, lowerSchema, upperSchema *C.struct_ArrowSchema, lowerExclusive, upperExclusive C.uint8_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(lower)
		defer C.capi_array_release(upper)
		if err := need(out, "part"); err != nil {
			return err
		}
		whole, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		o := engine.ScanOptions{LowerExclusive: lowerExclusive != 0, UpperExclusive: upperExclusive != 0}
		s := whole.s.Schema()
		if o.Lower, err = arrowBound(lower, lowerSchema, "lower", s); err != nil {
			return err
		}
		if o.Upper, err = arrowBound(upper, upperSchema, "upper", s); err != nil {
			return err
		}
		p, err := whole.s.Part(o)
		if err != nil {
			return err
		}
		all := p.Snapshot().Files()
		files := make([]engine.FileInfo, len(p.Files()))
		for i, at := range p.Files() {
			files[i] = all[at]
		}
		*out = handles.add(newSnapshot(p.Snapshot(), p, files, p.Files()))
		return nil
	})
}

// arrowBound reads a prefix of a key, the one row of an array; NULL is an open bound.
func arrowBound(rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string, s *engine.Schema) ([]engine.Value, error) {
	if rows == nil {
		return nil, nil
	}
	n := int(rows.n_children)
	if n < 1 || n > len(s.PrimaryKey) {
		return nil, invalid("argument %s has %d columns, the primary key of table %q %d", argument, n, s.TableName, len(s.PrimaryKey))
	}
	var vals []engine.Value
	err := withBatch(rows, schema, argument, engine.KeyPrefixSchema(s, n), func(cols *engine.Columns) error {
		if cols.N != 1 {
			return invalid("argument %s has %d rows: 1 is asked for", argument, cols.N)
		}
		for i := range cols.Cols {
			v := cols.Cols[i].Value(0)
			v.Bytes = append([]byte(nil), v.Bytes...) // the batch goes
			vals = append(vals, v)
		}
		return nil
	})
	return vals, err
}
