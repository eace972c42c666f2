package main

import (
	"database/sql"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// pauseMax is how long one collection of the host may take: it hangs for ever when the preemption signal is lost.
const pauseMax = 5 * time.Second

// stop is read without synchronisation on purpose: an atomic load would be no obstacle for the collector either, but the
// loop must stay one that only a signal can interrupt.
var stop bool

var sink atomic.Int64

// preempt collects garbage in the host again and again while one goroutine runs a loop without a call in it and another
// one works in the extension, whose runtime uses the same signal.
func preempt(db *sql.DB, path string) error {
	err := run(db,
		"ATTACH "+literal(path)+" AS m (TYPE merutable)",
		"CREATE TABLE m.t(id BIGINT PRIMARY KEY, s VARCHAR)")
	if err != nil {
		return err
	}
	go func() {
		x := 0
		for !stop {
			x++
		}
		sink.Add(int64(x))
	}()
	var done atomic.Bool
	worker := make(chan error, 1)
	go func() {
		for i := 0; !done.Load(); i++ {
			err := run(db, fmt.Sprintf("INSERT INTO m.t SELECT i, 's%d' FROM range(20000) r(i)", i))
			if err == nil {
				err = expect(db, 20000, "SELECT count(*) FROM m.t WHERE s = ?", fmt.Sprintf("s%d", i))
			}
			if err != nil {
				worker <- err
				return
			}
		}
		worker <- nil
	}()
	collected := make(chan time.Duration)
	collections := 0
	var longest time.Duration
	for started := time.Now(); time.Since(started) < 6*time.Second; {
		go func() {
			began := time.Now()
			runtime.GC()
			collected <- time.Since(began)
		}()
		select {
		case took := <-collected:
			longest = max(longest, took)
			collections++
		case <-time.After(pauseMax):
			return fmt.Errorf("a collection of the host takes more than %v: it lost its preemption signal", pauseMax)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop = true
	done.Store(true)
	if err := <-worker; err != nil {
		return err
	}
	fmt.Printf("go: %d collections, the longest %v\n", collections, longest)
	return nil
}
