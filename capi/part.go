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
		o, err := arrowRange(whole.s.Schema(), lower, upper, lowerSchema, upperSchema, lowerExclusive, upperExclusive)
		if err != nil {
			return err
		}
		p, err := whole.s.Part(o)
		if err != nil {
			return err
		}
		*out = handles.add(partSnapshot(p))
		return nil
	})
}

// partSnapshot wraps a part with the files that it has.
func partSnapshot(p *engine.Part) *snapshot {
	all := p.Snapshot().Files()
	files := make([]engine.FileInfo, len(p.Files()))
	for i, at := range p.Files() {
		files[i] = all[at]
	}
	return newSnapshot(p.Snapshot(), p, files, p.Files())
}

//export merugo_snapshot_part_of_keys
func merugo_snapshot_part_of_keys(h C.uintptr_t, prefixes *C.struct_ArrowArray, schema *C.struct_ArrowSchema, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(prefixes)
		if err := need(out, "part"); err != nil {
			return err
		}
		if err := need(prefixes, "prefixes"); err != nil {
			return err
		}
		whole, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		s := whole.s.Schema()
		n, err := prefixLength(prefixes, "prefixes", s)
		if err != nil {
			return err
		}
		return withBatch(prefixes, schema, "prefixes", engine.KeyPrefixSchema(s, n), func(cols *engine.Columns) error {
			keys := make([][]engine.Value, cols.N)
			for i := range keys {
				keys[i] = make([]engine.Value, n)
				for c := range keys[i] {
					keys[i][c] = cols.Cols[c].Value(i)
				}
			}
			p, err := whole.s.PartOfKeys(keys)
			if err == nil {
				*out = handles.add(partSnapshot(p))
			}
			return err
		})
	})
}

//export merugo_part_leave_files
func merugo_part_leave_files(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		s, err := lookup[snapshot](h, "part")
		if err != nil {
			return err
		}
		if s.part == nil {
			return invalid("argument part is a whole snapshot")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.memory != nil {
			return invalid("argument part is in use already")
		}
		s.part.LeaveFiles()
		left := partSnapshot(s.part)
		s.files, s.indices, s.deletes = left.files, left.indices, left.deletes
		return nil
	})
}

//export merugo_snapshot_file_meets
func merugo_snapshot_file_meets(h, index C.uintptr_t, lower, upper *C.struct_ArrowArray, lowerSchema, upperSchema *C.struct_ArrowSchema, lowerExclusive, upperExclusive C.uint8_t, meets *C.int, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(lower)
		defer C.capi_array_release(upper)
		if err := need(meets, "meets"); err != nil {
			return err
		}
		snap, err := lookupFile(h, index)
		if err != nil {
			return err
		}
		o, err := arrowRange(snap.s.Schema(), lower, upper, lowerSchema, upperSchema, lowerExclusive, upperExclusive)
		if err != nil {
			return err
		}
		met, err := snap.s.FileMeets(snap.indices[index], o)
		if err != nil {
			return err
		}
		*meets = 0
		if met {
			*meets = 1
		}
		return nil
	})
}

// arrowRange reads both ends of a range of keys.
func arrowRange(s *engine.Schema, lower, upper *C.struct_ArrowArray, lowerSchema, upperSchema *C.struct_ArrowSchema, lowerExclusive, upperExclusive C.uint8_t) (o engine.ScanOptions, err error) {
	o = engine.ScanOptions{LowerExclusive: lowerExclusive != 0, UpperExclusive: upperExclusive != 0}
	if o.Lower, err = arrowBound(lower, lowerSchema, "lower", s); err != nil {
		return o, err
	}
	o.Upper, err = arrowBound(upper, upperSchema, "upper", s)
	return o, err
}

// prefixLength returns how many key columns an array of prefixes has.
func prefixLength(rows *C.struct_ArrowArray, argument string, s *engine.Schema) (int, error) {
	n := int(rows.n_children)
	if n < 1 || n > len(s.PrimaryKey) {
		return 0, invalid("argument %s has %d columns, the primary key of table %q %d", argument, n, s.TableName, len(s.PrimaryKey))
	}
	return n, nil
}

// arrowBound reads a prefix of a key, the one row of an array; NULL is an open bound.
func arrowBound(rows *C.struct_ArrowArray, schema *C.struct_ArrowSchema, argument string, s *engine.Schema) ([]engine.Value, error) {
	if rows == nil {
		return nil, nil
	}
	n, err := prefixLength(rows, argument, s)
	if err != nil {
		return nil, err
	}
	var vals []engine.Value
	err = withRow(rows, schema, argument, engine.KeyPrefixSchema(s, n), func(cols *engine.Columns) error {
		for i := range cols.Cols {
			v := cols.Cols[i].Value(0)
			v.Bytes = append([]byte(nil), v.Bytes...) // the batch goes
			vals = append(vals, v)
		}
		return nil
	})
	return vals, err
}
