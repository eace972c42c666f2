package main

/*
#include "capi.h"
*/
import "C"

import "github.com/merutable/merutable/engine"

//export merugo_open
func merugo_open(opts *C.MeruOpenOptions, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(opts, "opts"); err != nil {
			return err
		}
		if err := need(out, "db"); err != nil {
			return err
		}
		path, err := goText(opts.catalog_uri, "opts.catalog_uri", maxPathText)
		if err != nil {
			return err
		}
		schema, err := goSchema(&opts.schema)
		if err != nil {
			return err
		}
		o, err := goOpenOptions(opts)
		if err != nil {
			return err
		}
		db, err := engine.Open(path, o)
		if err != nil {
			return err
		}
		if err := ensureTable(db, schema); err != nil {
			db.Free()
			return err
		}
		*out = handles.add(&database{db})
		return nil
	})
}

func goOpenOptions(opts *C.MeruOpenOptions) (o engine.Options, err error) {
	o.ReadOnly = opts.read_only != 0
	if opts.wal_dir != nil {
		if o.WALDir, err = goText(opts.wal_dir, "opts.wal_dir", maxPathText); err != nil {
			return o, err
		}
	}
	const maxMegabytes = 1 << 12
	if opts.memtable_size_mb > maxMegabytes {
		return o, invalid("argument opts.memtable_size_mb is %d: 0 (for 64) to %d are allowed", uint64(opts.memtable_size_mb), maxMegabytes)
	}
	o.MemtableBytes = int(opts.memtable_size_mb) << 20
	return o, nil
}

// ensureTable makes sure that the database has the table: creates it, or compares it with the one there.
func ensureTable(db *engine.DB, schema *engine.Schema) error {
	if !db.ReadOnly() && !db.HasTable() {
		// Another thread may be first: then there is a table to compare with.
		if err := db.CreateTable(schema); err != nil && engine.CodeOf(err) != engine.CodeAlreadyExists {
			return err
		}
	}
	stored, err := db.Schema()
	if err != nil {
		return err
	}
	return stored.SameShape(schema)
}

//export merugo_open_existing
func merugo_open_existing(cpath *C.char, readOnly C.uint8_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "db"); err != nil {
			return err
		}
		path, err := goText(cpath, "path", maxPathText)
		if err != nil {
			return err
		}
		if readOnly == 0 {
			// A writing open would leave its traces in a directory that holds no table.
			if _, err := engine.ReadManifest(path); err != nil {
				return err
			}
		}
		db, err := engine.Open(path, engine.Options{ReadOnly: readOnly != 0, NoCreate: true})
		if err != nil {
			return err
		}
		if _, err := db.Schema(); err != nil {
			db.Free()
			return err
		}
		*out = handles.add(&database{db})
		return nil
	})
}

//export merugo_open_with
func merugo_open_with(cpath *C.char, options C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "db"); err != nil {
			return err
		}
		path, err := goText(cpath, "path", maxPathText)
		if err != nil {
			return err
		}
		o, interrupt, err := givenOpen(options)
		if err != nil {
			return err
		}
		db, err := interruptible(interrupt, func() (*engine.DB, error) { return engine.Open(path, o) }, (*engine.DB).Free)
		if err != nil {
			return err
		}
		*out = handles.add(&database{db})
		return nil
	})
}

//export merugo_open_reader
func merugo_open_reader(cpath *C.char, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "db"); err != nil {
			return err
		}
		path, err := goText(cpath, "path", maxPathText)
		if err != nil {
			return err
		}
		db, err := engine.OpenReader(path)
		if err != nil {
			return err
		}
		*out = handles.add(&database{db})
		return nil
	})
}

//export merugo_reader_cache_set
func merugo_reader_cache_set(n C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		const far = 1 << 30 // beyond what the engine takes, and an int everywhere
		return engine.SetReaderCache(int(min(n, far)))
	})
}

//export merugo_close
func merugo_close(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		return db.Close()
	})
}

//export merugo_free
func merugo_free(h C.uintptr_t) {
	quiet(func() {
		if d, err := remove[database](h, "db"); err == nil {
			d.db.Free()
		}
	})
}

//export merugo_close_free
func merugo_close_free(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		d, err := remove[database](h, "db")
		if err != nil {
			return err
		}
		defer d.db.Free()
		return d.db.Close()
	})
}

//export merugo_is_closed
func merugo_is_closed(h C.uintptr_t) (closed C.int) {
	closed = 1
	quiet(func() {
		if db, err := lookupDB(h); err == nil && !db.Closed() {
			closed = 0
		}
	})
	return closed
}

//export merugo_catalog_path
func merugo_catalog_path(h C.uintptr_t) (path C.uintptr_t) {
	quiet(func() {
		if db, err := lookupDB(h); err == nil {
			path = cString(db.Path())
		}
	})
	return path
}

//export merugo_flush
func merugo_flush(h C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		return db.Flush()
	})
}

//export merugo_refresh
func merugo_refresh(h C.uintptr_t, cwatch *C.MeruWatch, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		interrupt := readWatch(cwatch).interrupt
		if !db.ReadOnly() {
			interrupt = nil // it asks no store
		}
		_, err = interruptible(interrupt, func() (struct{}, error) { return struct{}{}, db.RefreshStale() },
			func(struct{}) {})
		return err
	})
}

//export merugo_state_version
func merugo_state_version(h C.uintptr_t) (version C.uint64_t) {
	quiet(func() {
		if db, err := lookupDB(h); err == nil {
			version = C.uint64_t(db.StateVersion())
		}
	})
	return version
}
