package main

/*
#include "capi.h"
*/
import "C"

import "github.com/merutable/merutable/engine"

//export merugo_verify
func merugo_verify(cpath *C.char, options C.uintptr_t, cwatch *C.MeruWatch, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "out"); err != nil {
			return err
		}
		path, err := goText(cpath, "path", maxPathText)
		if err != nil {
			return err
		}
		given, err := givenOptions(options)
		if err != nil {
			return err
		}
		w := readWatch(cwatch)
		r := newReport(text("kind"), text("path"), text("what"), text("status"), text("detail"))
		err = engine.Verify(path, engine.VerifyOptions{S3: given.S3, Interrupt: w.interrupt, Progress: w.progress, Found: func(i engine.VerifyItem) {
			r.add(i.Kind, i.Path, i.What, i.Status, i.Detail)
		}})
		if err != nil {
			return err
		}
		return giveReport(r, out)
	})
}

//export merugo_flush_watched
func merugo_flush_watched(h C.uintptr_t, cwatch *C.MeruWatch, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		err = db.FlushUnless(readWatch(cwatch).interrupt)
		engine.DrainLog()
		return err
	})
}

//export merugo_compact_watched
func merugo_compact_watched(h C.uintptr_t, cwatch *C.MeruWatch, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		w := readWatch(cwatch)
		err = db.CompactRange(engine.CompactOptions{Interrupt: w.interrupt, Progress: w.progress})
		engine.DrainLog()
		return err
	})
}
