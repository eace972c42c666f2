package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestWaitForMirror: it waits for rows and for commits without rows, not for what is in memory, and ends when told to.
func TestWaitForMirror(t *testing.T) {
	const long = time.Minute
	mem := objstore.NewMem()
	var down atomic.Bool
	store := objstore.NewFaulty(mem, func(objstore.Op, string) error {
		if down.Load() {
			return errUnavailable
		}
		return nil
	})
	wait := func(db *DB, timeout time.Duration, want bool) {
		t.Helper()
		reached, err := db.WaitForMirror(timeout, nil)
		must(t, err)
		if reached != want {
			t.Fatalf("reached: %v; %+v", reached, db.MirrorStatus())
		}
	}
	plain := openMem(t, vfs.NewMem(), Options{})
	wait(plain, long, false) // no mirror: at once
	plain.Free()

	db := openMirrored(t, vfs.NewMem(), store, Options{MirrorFlush: -1})
	defer db.Free()
	want := model{}
	putRows(t, db, want, 0, 10)
	must(t, db.Flush())
	wait(db, long, true)
	checkMirror(t, mem, want)

	// what is in memory only is not waited for
	memory := model{}
	putRows(t, db, memory, 10, 20)
	wait(db, long, true)
	checkMirror(t, mem, want)

	down.Store(true)
	must(t, db.Flush())
	wait(db, 30*time.Millisecond, false)
	asked := 0
	_, err := db.WaitForMirror(long, func() bool { asked++; return asked > 3 })
	wantCode(t, err, base.CodeCancelled)

	// it waits through an outage, and for a commit that brings no rows
	must(t, db.CreateTable(namedSchema("other")))
	time.AfterFunc(50*time.Millisecond, func() { down.Store(false) })
	wait(db, long, true)
	r, err := Open(copyStore(t, mem), Options{ReadOnly: true})
	must(t, err)
	defer r.Free()
	for k, v := range memory {
		want[k] = v
	}
	check(t, r, want)
	if n := len(r.Tables()); n != 2 {
		t.Errorf("the mirror has %d tables", n)
	}
}

// TestWaitForMirrorEnds: who waits for a mirror is told when the database is closed.
func TestWaitForMirrorEnds(t *testing.T) {
	var down atomic.Bool
	store := objstore.NewFaulty(objstore.NewMem(), func(objstore.Op, string) error {
		if down.Load() {
			return errUnavailable
		}
		return nil
	})
	db := openMirrored(t, vfs.NewMem(), store, Options{MirrorFlush: -1})
	defer db.Free()
	down.Store(true)
	putRows(t, db, model{}, 0, 10)
	must(t, db.Flush())
	var asked atomic.Int64
	ended := make(chan error, 1)
	go func() {
		reached, err := db.WaitForMirror(24*time.Hour, func() bool { asked.Add(1); return false })
		if reached {
			t.Error("a store that is down has everything")
		}
		ended <- err
	}()
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	must(t, db.Close())
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it waits though the database is closed")
	}
}
