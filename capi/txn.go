package main

/*
#include "capi.h"
*/
import "C"

import (
	"github.com/merutable/merutable/engine"
)

// txn is what MeruTxn stands for.
type txn struct{ t *engine.Txn }

//export merugo_txn_begin
func merugo_txn_begin(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "txn"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		t, err := db.Begin()
		if err != nil {
			return err
		}
		*out = handles.add(&txn{t: t})
		return nil
	})
}

//export merugo_txn_set_interrupt
func merugo_txn_set_interrupt(h C.uintptr_t, interrupt C.MeruInterruptFn, ctx C.uintptr_t) {
	quiet(func() {
		t, err := lookup[txn](h, "txn")
		if err != nil {
			return
		}
		if interrupt == nil {
			t.t.SetInterrupt(nil)
			return
		}
		t.t.SetInterrupt(func() bool { return C.capi_ask_interrupt(interrupt, ctx) != 0 })
	})
}

// onTable runs fn with a transaction and the name of a table, which may be NULL.
func onTable(h C.uintptr_t, ctable *C.char, fn func(t *engine.Txn, table string) error) error {
	t, err := lookup[txn](h, "txn")
	if err != nil {
		return err
	}
	name, err := tableName(ctable)
	if err != nil {
		return err
	}
	return fn(t.t, name)
}

// fromTable is onTable for a function that gives something out, which must not be NULL.
func fromTable(h C.uintptr_t, ctable *C.char, out *C.uintptr_t, argument string, fn func(t *engine.Txn, table string) error) error {
	if err := need(out, argument); err != nil {
		return err
	}
	return onTable(h, ctable, fn)
}

// tableName returns the name of a table, "" for NULL.
func tableName(ctable *C.char) (string, error) {
	if ctable == nil {
		return "", nil
	}
	return goText(ctable, "table", maxNameText)
}

//export merugo_txn_schema
func merugo_txn_schema(h C.uintptr_t, table *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return fromTable(h, table, out, "schema", func(t *engine.Txn, table string) error {
			s, err := t.SchemaOf(table)
			if err != nil {
				return err
			}
			return giveSchema(s, out)
		})
	})
}

//export merugo_txn_snapshot
func merugo_txn_snapshot(h C.uintptr_t, table *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return fromTable(h, table, out, "snapshot", func(t *engine.Txn, table string) error {
			s, err := t.SnapshotOf(table)
			if err != nil {
				return err
			}
			giveSnapshot(s, out)
			return nil
		})
	})
}

//export merugo_txn_write
func merugo_txn_write(h C.uintptr_t, table *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return fromTable(h, table, out, "write", func(t *engine.Txn, table string) error {
			w, err := t.NewWriteTo(table)
			if err != nil {
				return err
			}
			*out = handles.add(&write{w: w})
			return nil
		})
	})
}

//export merugo_txn_create_table
func merugo_txn_create_table(h, schema C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[txn](h, "txn")
		if err != nil {
			return err
		}
		s, err := lookup[tableSchema](schema, "schema")
		if err != nil {
			return err
		}
		return t.t.CreateTable(s.copyOf())
	})
}

//export merugo_txn_drop_table
func merugo_txn_drop_table(h C.uintptr_t, table *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return onTable(h, table, (*engine.Txn).DropTable)
	})
}

//export merugo_txn_alter_table
func merugo_txn_alter_table(h C.uintptr_t, table *C.char, alter C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return onTable(h, table, func(t *engine.Txn, table string) error {
			ops, err := alterationsOf(alter)
			if err != nil {
				return err
			}
			return t.AlterTable(table, ops...)
		})
	})
}

//export merugo_txn_write_table
func merugo_txn_write_table(h, schema C.uintptr_t, replace C.uint8_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return fromTable(h, nil, out, "write", func(t *engine.Txn, _ string) error {
			s, err := lookup[tableSchema](schema, "schema")
			if err != nil {
				return err
			}
			w, err := t.NewTableWrite(s.copyOf(), replace != 0)
			if err != nil {
				return err
			}
			*out = handles.add(&write{w: w})
			return nil
		})
	})
}

//export merugo_txn_commit
func merugo_txn_commit(h C.uintptr_t, seq *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		t, err := lookup[txn](h, "txn")
		if err != nil {
			return err
		}
		last, err := t.t.Commit()
		if err == nil && seq != nil {
			*seq = C.uint64_t(last)
		}
		return err
	})
}

//export merugo_txn_rollback
func merugo_txn_rollback(h C.uintptr_t) {
	quiet(func() {
		if t, err := lookup[txn](h, "txn"); err == nil {
			t.t.Rollback()
		}
	})
}

//export merugo_txn_free
func merugo_txn_free(h C.uintptr_t) {
	quiet(func() {
		if t, err := remove[txn](h, "txn"); err == nil {
			t.t.Rollback()
		}
	})
}
