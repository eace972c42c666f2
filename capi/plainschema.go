package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// The schemas of the first generation: plain structs, in (meru_open) and out (meru_manifest_info).

// maxPlainColumns bounds the arrays of a plain schema that are walked; the engine's limit is lower.
const maxPlainColumns = 1 << 16

// goSchema reads and validates a plain schema. Field ids are given out in column order.
func goSchema(s *C.MeruSchema) (*engine.Schema, error) {
	name, err := goText(s.table_name, "schema.table_name", maxNameText)
	if err != nil {
		return nil, err
	}
	out := &engine.Schema{TableName: name}
	columns, err := plainArray(s.columns, s.column_count, "schema.columns")
	if err != nil {
		return nil, err
	}
	for i := range columns {
		c, err := goColumnDef(&columns[i])
		if err != nil {
			return nil, err
		}
		out.Columns = append(out.Columns, c)
	}
	key, err := plainArray(s.primary_key, s.primary_key_len, "schema.primary_key")
	if err != nil {
		return nil, err
	}
	for _, k := range key {
		if uint64(k) >= uint64(len(out.Columns)) {
			return nil, invalid("argument schema.primary_key: there is no column %d, only %d columns", uint64(k), len(out.Columns))
		}
		out.PrimaryKey = append(out.PrimaryKey, int(k))
		out.Columns[k].Nullable = false
	}
	out.AssignFieldIDs()
	return out, out.Validate()
}

func plainArray[T any](p *T, n C.uintptr_t, argument string) ([]T, error) {
	switch {
	case n == 0:
		return nil, nil
	case p == nil:
		return nil, invalid("argument %s is NULL", argument)
	case n > maxPlainColumns:
		return nil, invalid("argument %s has %d entries: the limit is %d", argument, uint64(n), maxPlainColumns)
	}
	return unsafe.Slice(p, n), nil
}

func goColumnDef(d *C.MeruColumnDef) (c engine.Column, err error) {
	if c.Name, err = goText(d.name, "name of a column", maxNameText); err != nil {
		return c, err
	}
	kind, ok := columnKinds[d.col_type]
	if !ok {
		return c, invalid("column %q: there is no column type %d", c.Name, int(d.col_type))
	}
	c.Type.Kind = kind
	c.Nullable = d.nullable != 0
	switch kind {
	case engine.KindFixedBinary:
		c.Type.Width = int32(d.fixed_byte_len)
	case engine.KindDecimal:
		precision, scale := d.fixed_byte_len>>8, d.fixed_byte_len&0xff
		if precision < 0 || precision > 0xff {
			return c, invalid("column %q: fixed_byte_len %d is not a precision * 256 + scale", c.Name, int(d.fixed_byte_len))
		}
		c.Type.Precision, c.Type.Scale = uint8(precision), uint8(scale)
	case engine.KindEnum:
		return c, engine.Errorf(engine.CodeUnsupported, "column %q: a MeruColumnDef cannot carry the labels of an ENUM; use meru_create_table()", c.Name)
	case engine.KindStruct, engine.KindList, engine.KindArray, engine.KindMap:
		return c, engine.Errorf(engine.CodeUnsupported, "column %q: a MeruColumnDef cannot carry the fields of a %s; use meru_create_table()", c.Name, kind)
	}
	if err := c.Type.Validate(); err != nil {
		return c, invalid("column %q: %s", c.Name, err)
	}
	if c.InitialDefault, err = goDefault(d.initial_default, &c); err != nil {
		return c, err
	}
	c.WriteDefault, err = goDefault(d.write_default, &c)
	return c, err
}

// goDefault reads a default into the form in which the engine keeps it; nil for none.
func goDefault(v *C.MeruValue, c *engine.Column) ([]byte, error) {
	if v == nil || v.is_null != 0 {
		return nil, nil
	}
	val, err := goValue(v, c)
	if err != nil {
		return nil, err
	}
	b, err := engine.AppendStorage([]byte{}, c.Type, val)
	if err != nil {
		return nil, invalid("the default of column %q: %s", c.Name, err)
	}
	return b, nil
}

//export merugo_manifest_info
func merugo_manifest_info(cpath *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "info"); err != nil {
			return err
		}
		path, err := goText(cpath, "path", maxPathText)
		if err != nil {
			return err
		}
		m, err := engine.ReadManifest(path)
		if err != nil {
			return err
		}
		o, err := manifestObject(m)
		if err != nil {
			return err
		}
		*out = o.handle()
		return nil
	})
}

func manifestObject(m *engine.ManifestInfo) (*object, error) {
	o, info, err := newObjectOf[C.MeruManifestInfo](objectBlock)
	if err != nil {
		return nil, err
	}
	if err := fillManifest(o, info, m); err != nil {
		o.discard()
		return nil, err
	}
	return o, nil
}

func fillManifest(o *object, info *C.MeruManifestInfo, m *engine.ManifestInfo) (err error) {
	if info.table_name, err = o.text(m.Schema.TableName); err != nil {
		return err
	}
	columns, err := allocSlice[C.MeruColumnDef](o, len(m.Schema.Columns))
	if err != nil {
		return err
	}
	for i := range columns {
		if err := fillColumnDef(o, &columns[i], &m.Schema.Columns[i]); err != nil {
			return err
		}
	}
	key, err := allocSlice[C.uintptr_t](o, len(m.Schema.PrimaryKey))
	if err != nil {
		return err
	}
	for i, k := range m.Schema.PrimaryKey {
		key[i] = C.uintptr_t(k)
	}
	paths, err := allocSlice[*C.char](o, len(m.Files))
	if err != nil {
		return err
	}
	for i, f := range m.Files {
		if paths[i], err = o.text(f); err != nil {
			return err
		}
	}
	info.columns, info.column_count = unsafe.SliceData(columns), C.uintptr_t(len(columns))
	info.primary_key, info.pk_count = unsafe.SliceData(key), C.uintptr_t(len(key))
	info.parquet_paths, info.parquet_count = unsafe.SliceData(paths), C.uintptr_t(len(paths))
	return nil
}

func fillColumnDef(o *object, d *C.MeruColumnDef, c *engine.Column) (err error) {
	if d.name, err = o.text(c.Name); err != nil {
		return err
	}
	d.col_type = columnTypes[c.Type.Kind]
	switch c.Type.Kind {
	case engine.KindFixedBinary:
		d.fixed_byte_len = C.int32_t(c.Type.Width)
	case engine.KindDecimal:
		d.fixed_byte_len = C.int32_t(c.Type.Precision)<<8 | C.int32_t(c.Type.Scale)
	}
	if c.Nullable {
		d.nullable = 1
	}
	if d.initial_default, err = fillDefault(o, c.InitialDefault, c); err != nil {
		return err
	}
	d.write_default, err = fillDefault(o, c.WriteDefault, c)
	return err
}

func fillDefault(o *object, storage []byte, c *engine.Column) (*C.MeruValue, error) {
	if storage == nil || c.Type.Kind.IsNested() { // a MeruValue has no form for these
		return nil, nil
	}
	val, err := engine.StorageValue(c.Type, storage)
	if err != nil {
		return nil, err
	}
	v, err := allocSlice[C.MeruValue](o, 1)
	if err != nil {
		return nil, err
	}
	return &v[0], fillValue(&v[0], val, c.Type, o)
}
