package main

/*
#include "capi.h"
*/
import "C"

import (
	"time"

	"github.com/merutable/merutable/engine"
)

//export merugo_mirror_wait
func merugo_mirror_wait(h C.uintptr_t, milliseconds C.uint64_t, cwatch *C.MeruWatch, reached *C.int, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(reached, "reached"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		const longest = 1 << 40 // milliseconds; beyond what a time.Duration holds with room to spare
		timeout := time.Duration(min(uint64(milliseconds), longest)) * time.Millisecond
		there, err := db.WaitForMirror(timeout, readWatch(cwatch).interrupt)
		if err != nil {
			return err
		}
		*reached = C.int(cBool(there))
		engine.DrainLog()
		return nil
	})
}

func mirrorReport(db *engine.DB) *report {
	r := newReport(text("destination"), text("state"), number("mirror_seq"), number("visible_seq"),
		decimal("mirror_lag_secs"), flag("alert"), number("bytes_pending"), number("files_pending"),
		number("bytes_uploaded"), number("files_uploaded"), number("manifests_uploaded"), number("retries"),
		text("last_error"), instant("last_error_at"), instant("last_success_at"))
	s := db.MirrorStatus()
	r.add(s.Destination, s.State, int64(s.Seq), int64(s.VisibleSeq), s.LagSecs, s.Alert, s.BytesPending,
		s.FilesPending, s.BytesUploaded, s.FilesUploaded, s.ManifestsUploaded, s.Retries, orNull(s.LastError),
		timeOrNull(s.LastErrorAt), timeOrNull(s.LastSuccessAt))
	return r
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func timeOrNull(s string) any {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t
	}
	return nil // there was none
}
