package main

/*
#include "capi.h"
*/
import "C"

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// alterations is what MeruAlter stands for.
type alterations struct {
	mu  sync.Mutex
	ops []engine.Alteration
}

// maxAlterations bounds one change of a schema.
const maxAlterations = 1 << 16

//export merugo_alter_new
func merugo_alter_new() (h C.uintptr_t) {
	quiet(func() { h = handles.add(new(alterations)) })
	return h
}

//export merugo_alter_free
func merugo_alter_free(h C.uintptr_t) {
	quiet(func() { _, _ = remove[alterations](h, "alter") }) // there is nothing else to free
}

// addAlteration adds what read makes.
func addAlteration(h C.uintptr_t, read func() (engine.Alteration, error)) error {
	a, err := lookup[alterations](h, "alter")
	if err != nil {
		return err
	}
	op, err := read()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ops) == maxAlterations {
		return invalid("argument alter has %d changes: that is the limit", maxAlterations)
	}
	a.ops = append(a.ops, op)
	return nil
}

//export merugo_alter_add_column
func merugo_alter_add_column(h C.uintptr_t, def *C.MeruColumnDef, ifNotExists C.uint8_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			if err := need(def, "column"); err != nil {
				return nil, err
			}
			c, err := goColumnDef(def)
			return engine.AddColumn{Column: c, IfNotExists: ifNotExists != 0}, err
		})
	})
}

//export merugo_alter_add_column_arrow
func merugo_alter_add_column_arrow(h C.uintptr_t, info *C.MeruColumnInfo, initial *C.struct_ArrowArray, schema *C.struct_ArrowSchema, ifNotExists C.uint8_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(initial)
		return addAlteration(h, func() (engine.Alteration, error) {
			if err := need(info, "info"); err != nil {
				return nil, err
			}
			c, err := goColumnInfo(info)
			if err == nil && initial != nil {
				c.InitialDefault, err = arrowDefault(initial, schema, c)
			}
			return engine.AddColumn{Column: c, IfNotExists: ifNotExists != 0}, err
		})
	})
}

// arrowDefault reads a default, the one row of an array of one column, into the form in which the engine keeps it.
func arrowDefault(row *C.struct_ArrowArray, schema *C.struct_ArrowSchema, c engine.Column) (storage []byte, err error) {
	c.Nullable = true
	want := &engine.Schema{TableName: "default", Columns: []engine.Column{c}}
	err = withRow(row, schema, "initial", want, func(cols *engine.Columns) error {
		if !cols.Cols[0].IsNull(0) {
			storage = append([]byte{}, cols.Cols[0].Storage(0)...) // the batch goes
		}
		return nil
	})
	return storage, err
}

//export merugo_alter_drop_column
func merugo_alter_drop_column(h C.uintptr_t, cname *C.char, ifExists C.uint8_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			name, err := goText(cname, "name", maxNameText)
			return engine.DropColumn{Name: name, IfExists: ifExists != 0}, err
		})
	})
}

//export merugo_alter_rename_column
func merugo_alter_rename_column(h C.uintptr_t, cname, cnew *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			name, err := goText(cname, "name", maxNameText)
			if err != nil {
				return nil, err
			}
			newName, err := goText(cnew, "new_name", maxNameText)
			return engine.RenameColumn{Name: name, NewName: newName}, err
		})
	})
}

//export merugo_alter_rename_table
func merugo_alter_rename_table(h C.uintptr_t, cnew *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			newName, err := goText(cnew, "new_name", maxNameText)
			return engine.RenameTable{NewName: newName}, err
		})
	})
}

//export merugo_alter_set_default
func merugo_alter_set_default(h C.uintptr_t, cname, csql *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			name, err := goText(cname, "name", maxNameText)
			if err != nil {
				return nil, err
			}
			sql := ""
			if csql != nil {
				sql, err = goText(csql, "default_sql", maxSQLText)
			}
			return engine.SetDefault{Name: name, SQL: sql}, err
		})
	})
}

//export merugo_alter_set_not_null
func merugo_alter_set_not_null(h C.uintptr_t, cname *C.char, notNull C.uint8_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			name, err := goText(cname, "name", maxNameText)
			return engine.SetNotNull{Name: name, NotNull: notNull != 0}, err
		})
	})
}

//export merugo_alter_set_type
func merugo_alter_set_type(h C.uintptr_t, info *C.MeruColumnInfo, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			if err := need(info, "info"); err != nil {
				return nil, err
			}
			c, err := goColumnInfo(info)
			return engine.SetType{Name: c.Name, Type: c.Type}, err
		})
	})
}

//export merugo_alter_set_checks
func merugo_alter_set_checks(h C.uintptr_t, csql **C.char, n C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (engine.Alteration, error) {
			texts, err := plainArray(csql, n, "sql")
			if err != nil {
				return nil, err
			}
			var c engine.SetChecks
			for _, t := range texts {
				check, err := goText(t, "sql", maxSQLText)
				if err != nil {
					return nil, err
				}
				c.Checks = append(c.Checks, check)
			}
			return c, nil
		})
	})
}

//export merugo_alter_set_comment
func merugo_alter_set_comment(h C.uintptr_t, ccolumn, ccomment *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return addAlteration(h, func() (op engine.Alteration, err error) {
			var c engine.SetComment
			if ccolumn != nil {
				if c.Column, err = goText(ccolumn, "column", maxNameText); err != nil {
					return nil, err
				}
				if c.Column == "" {
					return nil, invalid("argument column is empty")
				}
			}
			if ccomment != nil {
				c.Comment, err = goText(ccomment, "comment", maxSQLText)
			}
			return c, err
		})
	})
}

//export merugo_alter_table
func merugo_alter_table(h, alter C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		ops, err := alterationsOf(alter)
		if err != nil {
			return err
		}
		return db.Alter(ops...)
	})
}

// alterationsOf returns what was gathered so far.
func alterationsOf(h C.uintptr_t) ([]engine.Alteration, error) {
	a, err := lookup[alterations](h, "alter")
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.ops), nil
}

//export merugo_table_schema_initial_defaults
func merugo_table_schema_initial_defaults(h C.uintptr_t, found *C.int, out *C.struct_ArrowArray, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(found, "found"); err != nil {
			return err
		}
		if err := need(out, "out"); err != nil {
			return err
		}
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		s := t.copyOf()
		some := slices.ContainsFunc(s.Columns, func(c engine.Column) bool { return c.InitialDefault != nil })
		if *found = 0; !some {
			return nil
		}
		for i := range s.Columns {
			s.Columns[i].Nullable = true
		}
		if err := exportBatch(engine.InitialDefaults(s), s, nil, out); err != nil {
			return err
		}
		*found = 1
		return nil
	})
}

//export merugo_table_schema_comment
func merugo_table_schema_comment(h, column C.uintptr_t) (comment C.uintptr_t) {
	readSchema(h, func(t *tableSchema) {
		if text := t.comment(uint64(column)); text != nil {
			comment = C.uintptr_t(uintptr(unsafe.Pointer(text)))
		}
	})
	return comment
}

//export merugo_table_schema_set_comment
func merugo_table_schema_set_comment(h, column C.uintptr_t, ccomment *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[tableSchema](h, "schema")
		if err != nil {
			return err
		}
		comment := ""
		if ccomment != nil {
			if comment, err = goText(ccomment, "comment", maxSQLText); err != nil {
				return err
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if column == ^C.uintptr_t(0) {
			t.s.Comment = comment
		} else if uint64(column) < uint64(len(t.s.Columns)) {
			t.s.Columns[column].Comment = comment
		} else {
			return invalid("argument column_index is %d: the schema has %d columns", uint64(column), len(t.s.Columns))
		}
		return t.keepComment(uint64(column), comment)
	})
}

// comment returns the comment of a column, or of the table for the largest number; nil for none.
func (t *tableSchema) comment(column uint64) *C.char { return t.comments[column] }

// keepComment copies a comment to C memory.
func (t *tableSchema) keepComment(column uint64, comment string) (err error) {
	delete(t.comments, column)
	if comment == "" {
		return nil
	}
	t.comments[column], err = t.texts.text(comment)
	return err
}
