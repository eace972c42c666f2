package main

/*
#include "capi.h"
*/
import "C"

import (
	"math"
	"sync"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// tableSchema is what MeruTableSchema stands for: a schema, and its texts in C memory for those who read it.
type tableSchema struct {
	mu    sync.Mutex
	s     *engine.Schema // not shared with the engine
	texts *object
	name  *C.char
	// checks are the texts of the CHECK constraints.
	checks []*C.char
	infos  []C.MeruColumnInfo // without key_position and nullable, which change
	// comments are the texts of columns, and of the table under the largest number.
	comments map[uint64]*C.char
}

// newTableSchema makes the object of a schema that the caller gives away.
func newTableSchema(s *engine.Schema) (*tableSchema, error) {
	texts, err := newObject(1, 256)
	if err != nil {
		return nil, err
	}
	t := &tableSchema{s: s, texts: texts, comments: map[uint64]*C.char{}}
	t.name, err = texts.text(s.TableName)
	if err == nil {
		err = t.keepComment(math.MaxUint64, s.Comment)
	}
	for i := range s.Columns {
		if err == nil {
			err = t.addInfo(&s.Columns[i])
		}
		if err == nil {
			err = t.keepComment(uint64(i), s.Columns[i].Comment)
		}
	}
	for _, c := range s.Checks {
		if err == nil {
			err = t.addCheck(c)
		}
	}
	if err != nil {
		texts.discard()
		return nil, err
	}
	return t, nil
}

// addInfo copies a column's texts to C memory.
func (t *tableSchema) addInfo(c *engine.Column) (err error) {
	info, err := t.typeInfo(c.Name, &c.Type)
	if err != nil {
		return err
	}
	info.field_id = C.int32_t(c.FieldID)
	if c.DefaultSQL != "" {
		if info.default_sql, err = t.texts.text(c.DefaultSQL); err != nil {
			return err
		}
	}
	t.infos = append(t.infos, info)
	return nil
}

// typeInfo describes a type, with its fields in C memory.
func (t *tableSchema) typeInfo(name string, typ *engine.Type) (info C.MeruColumnInfo, err error) {
	info = C.MeruColumnInfo{
		_type: columnTypes[typ.Kind], precision: C.int32_t(typ.Precision), scale: C.int32_t(typ.Scale),
		fixed_byte_len: C.int32_t(typ.Width), array_length: C.int32_t(typ.Length), key_position: -1,
	}
	if info.name, err = t.texts.text(name); err != nil {
		return info, err
	}
	labels, err := allocSlice[*C.char](t.texts, len(typ.Labels))
	if err != nil {
		return info, err
	}
	for i, l := range typ.Labels {
		if labels[i], err = t.texts.text(l); err != nil {
			return info, err
		}
	}
	fields, err := allocSlice[C.MeruColumnInfo](t.texts, len(typ.Fields))
	if err != nil {
		return info, err
	}
	for i := range typ.Fields {
		f := &typ.Fields[i]
		if fields[i], err = t.typeInfo(f.Name, &f.Type); err != nil {
			return info, err
		}
		fields[i].field_id, fields[i].nullable = C.int32_t(f.FieldID), 1
		if typ.Kind == engine.KindMap && i == 0 {
			fields[i].nullable = 0
		}
	}
	info.labels, info.label_count = unsafe.SliceData(labels), C.uintptr_t(len(labels))
	info.fields, info.field_count = unsafe.SliceData(fields), C.uintptr_t(len(fields))
	return info, nil
}

// addCheck copies the text of a CHECK constraint to C memory.
func (t *tableSchema) addCheck(sql string) error {
	text, err := t.texts.text(sql)
	if err == nil {
		t.checks = append(t.checks, text)
	}
	return err
}

// copyOf returns a schema that the engine may keep.
func (t *tableSchema) copyOf() *engine.Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.s.Clone()
}

//export merugo_table_schema_new
func merugo_table_schema_new(cname *C.char) (h C.uintptr_t) {
	quiet(func() {
		name, err := goText(cname, "table_name", maxNameText)
		if err != nil {
			return
		}
		if t, err := newTableSchema(&engine.Schema{TableName: name}); err == nil {
			h = handles.add(t)
		}
	})
	return h
}

//export merugo_table_schema_free
func merugo_table_schema_free(h C.uintptr_t) {
	quiet(func() {
		if t, err := remove[tableSchema](h, "schema"); err == nil {
			t.texts.discard()
		}
	})
}

//export merugo_table_schema_add_column
func merugo_table_schema_add_column(h C.uintptr_t, info *C.MeruColumnInfo, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		if err := need(info, "info"); err != nil {
			return err
		}
		c, err := goColumnInfo(info)
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.s.Columns = append(t.s.Columns, c)
		t.s.AssignFieldIDs()
		return t.addInfo(&t.s.Columns[len(t.s.Columns)-1])
	})
}

func goColumnInfo(info *C.MeruColumnInfo) (c engine.Column, err error) {
	if c.Name, err = goText(info.name, "info.name", maxNameText); err != nil {
		return c, err
	}
	c.Nullable = info.nullable != 0
	if c.Type, err = goType(info, c.Name, 0); err != nil {
		return c, err
	}
	if info.default_sql != nil {
		if c.DefaultSQL, err = goText(info.default_sql, "info.default_sql", maxSQLText); err != nil {
			return c, err
		}
	}
	if err := c.Type.Validate(); err != nil {
		return c, invalid("column %q: %s", c.Name, err)
	}
	return c, nil
}

// goType reads a type that stands so deep in the type of a column.
func goType(info *C.MeruColumnInfo, column string, depth int) (t engine.Type, err error) {
	kind, ok := columnKinds[info._type]
	if !ok {
		return t, invalid("column %q: there is no column type %d", column, int(info._type))
	}
	t.Kind = kind
	switch kind {
	case engine.KindDecimal:
		if info.precision < 0 || info.precision > math.MaxUint8 || info.scale < 0 || info.scale > math.MaxUint8 {
			return t, invalid("column %q: precision %d, scale %d of a DECIMAL", column, int(info.precision), int(info.scale))
		}
		t.Precision, t.Scale = uint8(info.precision), uint8(info.scale)
	case engine.KindFixedBinary:
		t.Width = int32(info.fixed_byte_len)
	case engine.KindEnum:
		t.Labels, err = goLabels(info, column)
	case engine.KindStruct, engine.KindList, engine.KindArray, engine.KindMap:
		if kind == engine.KindArray {
			t.Length = int32(info.array_length)
		}
		t.Fields, err = goFields(info, kind, column, depth+1)
	}
	return t, err
}

// goFields reads what a nested type is made of.
func goFields(info *C.MeruColumnInfo, kind engine.Kind, column string, depth int) ([]engine.Field, error) {
	if depth > engine.MaxTypeDepth {
		return nil, invalid("column %q: types are nested more than %d deep", column, engine.MaxTypeDepth)
	}
	if n := uint64(info.field_count); n > engine.MaxNestedFields {
		return nil, invalid("column %q: a %s has %d fields: the limit is %d", column, kind, n, engine.MaxNestedFields)
	}
	infos, err := plainArray(info.fields, info.field_count, "info.fields")
	if err != nil {
		return nil, invalid("column %q: %s", column, err)
	}
	names := map[engine.Kind][]string{
		engine.KindList: {engine.ElementName}, engine.KindArray: {engine.ElementName},
		engine.KindMap: {engine.KeyName, engine.ValueName},
	}[kind]
	fields := make([]engine.Field, len(infos))
	for i := range infos {
		f := &fields[i]
		if i < len(names) {
			f.Name = names[i]
		} else if f.Name, err = goText(infos[i].name, "name of a field", maxNameText); err != nil {
			return nil, invalid("column %q: %s", column, err)
		}
		if f.Type, err = goType(&infos[i], column, depth); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func goLabels(info *C.MeruColumnInfo, column string) ([]string, error) {
	labels, err := plainArray(info.labels, info.label_count, "info.labels")
	if err != nil {
		return nil, invalid("column %q: %s", column, err)
	}
	out := make([]string, len(labels))
	for i, l := range labels {
		if out[i], err = goText(l, "info.labels", maxLabelText); err != nil {
			return nil, invalid("column %q: label %d: %s", column, i, err)
		}
	}
	return out, nil
}

//export merugo_table_schema_validate
func merugo_table_schema_validate(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		return engine.ValidateSchema(t.copyOf())
	})
}

//export merugo_table_schema_add_key
func merugo_table_schema_add_key(h C.uintptr_t, column C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if uint64(column) >= uint64(len(t.s.Columns)) {
			return invalid("argument column_index is %d: the schema has %d columns", uint64(column), len(t.s.Columns))
		}
		i := int(column)
		if t.s.IsKey(i) {
			return invalid("column %q stands in the primary key already", t.s.Columns[i].Name)
		}
		t.s.PrimaryKey = append(t.s.PrimaryKey, i)
		t.s.Columns[i].Nullable = false
		return nil
	})
}

//export merugo_table_schema_add_check
func merugo_table_schema_add_check(h C.uintptr_t, csql *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		sql, err := goText(csql, "sql", maxSQLText)
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := t.addCheck(sql); err != nil {
			return err
		}
		t.s.Checks = append(t.s.Checks, sql)
		return nil
	})
}

//export merugo_table_schema_check_count
func merugo_table_schema_check_count(h C.uintptr_t) (n C.uintptr_t) {
	readSchema(h, func(t *tableSchema) { n = C.uintptr_t(len(t.checks)) })
	return n
}

//export merugo_table_schema_check
func merugo_table_schema_check(h C.uintptr_t, i C.uintptr_t) (text C.uintptr_t) {
	readSchema(h, func(t *tableSchema) {
		if uint64(i) < uint64(len(t.checks)) {
			text = C.uintptr_t(uintptr(unsafe.Pointer(t.checks[i])))
		}
	})
	return text
}

// readSchema runs fn on a schema, and not at all for a handle that is none.
func readSchema(h C.uintptr_t, fn func(t *tableSchema)) {
	quiet(func() {
		if t, err := lookup[tableSchema](h, "schema"); err == nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			fn(t)
		}
	})
}

//export merugo_table_schema_name
func merugo_table_schema_name(h C.uintptr_t) (name C.uintptr_t) {
	readSchema(h, func(t *tableSchema) { name = C.uintptr_t(uintptr(unsafe.Pointer(t.name))) })
	return name
}

//export merugo_table_schema_column_count
func merugo_table_schema_column_count(h C.uintptr_t) (n C.uintptr_t) {
	readSchema(h, func(t *tableSchema) { n = C.uintptr_t(len(t.s.Columns)) })
	return n
}

//export merugo_table_schema_key_count
func merugo_table_schema_key_count(h C.uintptr_t) (n C.uintptr_t) {
	readSchema(h, func(t *tableSchema) { n = C.uintptr_t(len(t.s.PrimaryKey)) })
	return n
}

//export merugo_table_schema_key_column
func merugo_table_schema_key_column(h C.uintptr_t, position C.uintptr_t) (column C.uintptr_t) {
	column = ^C.uintptr_t(0)
	readSchema(h, func(t *tableSchema) {
		if uint64(position) < uint64(len(t.s.PrimaryKey)) {
			column = C.uintptr_t(t.s.PrimaryKey[position])
		}
	})
	return column
}

//export merugo_table_schema_column
func merugo_table_schema_column(h C.uintptr_t, column C.uintptr_t, out *C.MeruColumnInfo, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "info"); err != nil {
			return err
		}
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if uint64(column) >= uint64(len(t.infos)) {
			return invalid("argument column_index is %d: the schema has %d columns", uint64(column), len(t.infos))
		}
		info := t.infos[column]
		info.key_position = -1
		for position, k := range t.s.PrimaryKey {
			if k == int(column) {
				info.key_position = C.int32_t(position)
			}
		}
		if t.s.Columns[column].Nullable {
			info.nullable = 1
		}
		store(out, info)
		return nil
	})
}

//export merugo_create_table
func merugo_create_table(h, schema C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		t, err := lookup[tableSchema](schema, "schema")
		if err != nil {
			return err
		}
		return db.CreateTable(t.copyOf())
	})
}

//export merugo_drop_table
func merugo_drop_table(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		return db.DropTable()
	})
}

//export merugo_table_schema_get
func merugo_table_schema_get(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "schema"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		s, err := db.Schema()
		if err != nil {
			return err
		}
		return giveSchema(s, out)
	})
}

// giveSchema hands a copy of the engine's schema out.
func giveSchema(s *engine.Schema, out *C.uintptr_t) error {
	t, err := newTableSchema(s.Clone())
	if err != nil {
		return err
	}
	*out = handles.add(t)
	return nil
}
