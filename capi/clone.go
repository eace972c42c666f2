package main

/*
#include "capi.h"
*/
import "C"

import (
	"github.com/merutable/merutable/engine"
)

//export merugo_clone
func merugo_clone(csource, cdir *C.char, options C.uintptr_t, version C.int64_t, cwatch *C.MeruWatch, out *C.MeruCloneReport, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		source, err := goText(csource, "source", maxPathText)
		if err != nil {
			return err
		}
		dir, err := goText(cdir, "dir", maxPathText)
		if err != nil {
			return err
		}
		o, err := givenOptions(options)
		if err != nil {
			return err
		}
		w := readWatch(cwatch)
		report, err := engine.Clone(source, dir, engine.CloneOptions{
			Version: int64(version), S3: o.S3, Parallelism: o.MirrorParallelism, Interrupt: w.interrupt, Progress: w.progress,
		})
		if err != nil {
			return err
		}
		if out != nil {
			store(out, C.MeruCloneReport{
				version: C.int64_t(report.Version), tables: C.uint64_t(report.Tables), files: C.uint64_t(report.Files),
				bytes: C.uint64_t(report.Bytes), rows: C.uint64_t(report.Rows),
				rows_from_memory: C.uint64_t(report.RowsFromMemory),
			})
		}
		return nil
	})
}
