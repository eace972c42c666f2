package main

/*
#include "capi.h"
*/
import "C"

import (
	"math"

	"github.com/merutable/merutable/engine"
)

// snapshotSet has the snapshots of all tables of a database, of one moment.
type snapshotSet struct{ s *engine.SnapshotSet }

//export merugo_tables
func merugo_tables(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "list"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		list, err := describeTables(db.Tables())
		if err != nil {
			return err
		}
		*out = list.handle()
		return nil
	})
}

func describeTables(tables []engine.TableInfo) (*object, error) {
	o, list, err := newObjectOf[C.MeruTableList](0)
	if err != nil {
		return nil, err
	}
	infos, err := allocSlice[C.MeruTableInfo](o, len(tables))
	for i := 0; i < len(tables) && err == nil; i++ {
		infos[i].id = C.uint64_t(tables[i].ID)
		if infos[i].name, err = o.text(tables[i].Name); err == nil {
			infos[i].directory, err = o.text(tables[i].Dir)
		}
	}
	if err != nil {
		o.discard()
		return nil, err
	}
	if len(infos) > 0 {
		list.tables = &infos[0]
	}
	list.count = C.uintptr_t(len(infos))
	return o, nil
}

//export merugo_open_table
func merugo_open_table(h C.uintptr_t, cname *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "table"); err != nil {
			return err
		}
		name, err := goText(cname, "name", maxNameText)
		if err != nil {
			return err
		}
		return openTable(h, out, func(db *engine.DB) (*engine.DB, error) { return db.OpenTable(name) })
	})
}

//export merugo_open_table_id
func merugo_open_table_id(h C.uintptr_t, id C.uint64_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "table"); err != nil {
			return err
		}
		n, err := tableID(id)
		if err != nil {
			return err
		}
		return openTable(h, out, func(db *engine.DB) (*engine.DB, error) { return db.OpenTableID(n) })
	})
}

func openTable(h C.uintptr_t, out *C.uintptr_t, open func(*engine.DB) (*engine.DB, error)) error {
	db, err := lookupDB(h)
	if err != nil {
		return err
	}
	table, err := open(db)
	if err == nil {
		*out = handles.add(&database{table})
	}
	return err
}

func tableID(id C.uint64_t) (uint32, error) {
	if uint64(id) > math.MaxUint32 {
		return 0, invalid("argument id is %d: no table has it", uint64(id))
	}
	return uint32(id), nil
}

//export merugo_rename_table
func merugo_rename_table(h C.uintptr_t, cname *C.char, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		name, err := goText(cname, "name", maxNameText)
		if err != nil {
			return err
		}
		return db.RenameTable(name)
	})
}

//export merugo_catalog_version
func merugo_catalog_version(h C.uintptr_t) (version C.uint64_t) {
	quiet(func() {
		if db, err := lookupDB(h); err == nil {
			version = C.uint64_t(db.CatalogVersion())
		}
	})
	return version
}

//export merugo_snapshot_all
func merugo_snapshot_all(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "set"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		s, err := db.SnapshotAll()
		if err == nil {
			*out = handles.add(&snapshotSet{s})
		}
		return err
	})
}

//export merugo_snapshot_of
func merugo_snapshot_of(h C.uintptr_t, id C.uint64_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "snapshot"); err != nil {
			return err
		}
		set, err := lookup[snapshotSet](h, "set")
		if err != nil {
			return err
		}
		n, err := tableID(id)
		if err != nil {
			return err
		}
		s, err := set.s.Of(n)
		if err == nil {
			giveSnapshot(s, out)
		}
		return err
	})
}

//export merugo_snapshot_set_free
func merugo_snapshot_set_free(h C.uintptr_t) {
	quiet(func() {
		if set, err := remove[snapshotSet](h, "set"); err == nil {
			set.s.Close()
		}
	})
}
