package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// recorder keeps the events of a table.
type recorder struct {
	slog.Handler
	mu     sync.Mutex
	events map[string]int
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	event, path := "", ""
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case LogEvent:
			event = a.Value.String()
		case LogPath:
			path = a.Value.String()
		}
		return true
	})
	if path == "/db" && record.Message != "" {
		r.events[event+" "+record.Level.String()]++
	}
	return nil
}

func (r *recorder) count(event string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[event]
}

func TestLogEvents(t *testing.T) {
	r := &recorder{events: map[string]int{}}
	remove := AddLogHandler(r)
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	defer db.Free()
	for i := range int64(3) {
		_, err := db.Put(testRow(i, i))
		must(t, err)
		must(t, db.Flush())
	}
	must(t, db.CompactRange(CompactOptions{}))
	DrainLog()
	if f, c := r.count("flush INFO"), r.count("compaction INFO"); f != 3 || c != 1 {
		t.Fatalf("%d flushes and %d compactions, want 3 and 1: %v", f, c, r.events)
	}
	_ = db.c.fail(base.Errorf(base.CodeIO, "the disk is gone"))
	DrainLog()
	if r.count("write error ERROR") != 1 {
		t.Fatalf("a write error is not told: %v", r.events)
	}
	remove()
	before := len(r.events)
	db.c.logEvent(slog.LevelInfo, "late", "after the end")
	DrainLog()
	if len(r.events) != before || r.count("late INFO") != 0 {
		t.Fatal("an event came after the handler was removed")
	}
}

// TestRemovedHandlerIsNotCalled removes a handler while events come.
func TestRemovedHandlerIsNotCalled(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{})
	defer db.Free()
	for range 50 {
		var gone, late atomic.Bool
		h := handlerFunc(func() {
			if gone.Load() {
				late.Store(true)
			}
			time.Sleep(10 * time.Microsecond)
		})
		remove := AddLogHandler(h)
		var tell sync.WaitGroup
		tell.Go(func() {
			for range 200 {
				db.c.logEvent(slog.LevelInfo, "test", "x")
			}
		})
		remove()
		gone.Store(true)
		tell.Wait()
		DrainLog()
		if late.Load() {
			t.Fatal("a handler was called after it was removed")
		}
	}
}

type handlerFunc func()

func (h handlerFunc) Enabled(context.Context, slog.Level) bool { return true }
func (h handlerFunc) Handle(context.Context, slog.Record) error {
	h()
	return nil
}
func (h handlerFunc) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handlerFunc) WithGroup(string) slog.Handler      { return h }

// TestWaitingWritersAreInterrupted stops writers at the hard limit, with the flush blocked; leader and followers leave
// when they are interrupted, and write nothing.
func TestWaitingWritersAreInterrupted(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, MaxImmutables: 1, NoAutoCompaction: true})
	defer db.Free()
	db.c.commitMu.Lock() // no flush commits
	locked := true
	defer func() {
		if locked {
			db.c.commitMu.Unlock()
		}
	}()
	var id int64
	var stop atomic.Bool
	write := func(ids int64) error {
		w, err := db.NewWrite()
		if err != nil {
			return err
		}
		defer w.Close()
		w.SetInterrupt(stop.Load)
		for range 50 {
			row := testRow(ids, 1)
			row[2] = String(string(make([]byte, 2000)))
			if err := w.Put(row); err != nil {
				return err
			}
			ids++
		}
		_, err = w.Commit()
		return err
	}
	ended := make(chan error, 4)
	for n := range int64(4) {
		go func() {
			var err error
			for i := range int64(2000) {
				if err = write(n*1_000_000 + i*50); err != nil {
					break
				}
			}
			ended <- err
		}()
	}
	for db.Stats().StopsImmutables == 0 {
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	for range 4 {
		select {
		case err := <-ended:
			if CodeOf(err) != CodeCancelled {
				t.Errorf("a writer ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a writer does not end")
		}
	}
	db.c.commitMu.Unlock()
	locked = false
	stop.Store(false)
	must(t, db.Flush())
	must(t, write(9_000_000+id))
}
