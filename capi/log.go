package main

/*
#include "capi.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// logSink hands events to a function of the caller's.
type logSink struct {
	fn  C.MeruLogFn
	ctx C.uintptr_t
}

// logSubscriptions are the sinks by number, each with what ends it.
var logSubscriptions = struct {
	sync.Mutex
	last   uint64
	remove map[uint64]func()
}{remove: map[uint64]func(){}}

//export merugo_log_subscribe
func merugo_log_subscribe(fn C.MeruLogFn, ctx C.uintptr_t, out *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if fn == nil {
			return invalid("argument fn is NULL")
		}
		if err := need(out, "subscription"); err != nil {
			return err
		}
		remove := engine.AddLogHandler(&logSink{fn: fn, ctx: ctx})
		l := &logSubscriptions
		l.Lock()
		defer l.Unlock()
		l.last++
		l.remove[l.last] = remove
		*out = C.uint64_t(l.last)
		return nil
	})
}

//export merugo_log_unsubscribe
func merugo_log_unsubscribe(subscription C.uint64_t) {
	quiet(func() {
		l := &logSubscriptions
		l.Lock()
		remove := l.remove[uint64(subscription)]
		delete(l.remove, uint64(subscription))
		l.Unlock()
		if remove != nil {
			remove()
		}
	})
}

//export merugo_log_drain
func merugo_log_drain() {
	quiet(func() { engine.DrainLog() })
}

// Enabled implements [slog.Handler].
func (s *logSink) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements [slog.Handler]; the engine does not call it.
func (s *logSink) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements [slog.Handler]; the engine does not call it.
func (s *logSink) WithGroup(string) slog.Handler { return s }

// Handle implements [slog.Handler].
func (s *logSink) Handle(_ context.Context, r slog.Record) error {
	event, path := "", ""
	fields := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case engine.LogEvent:
			event = a.Value.String()
		case engine.LogPath:
			path = a.Value.String()
		default:
			fields[a.Key] = a.Value.Any()
		}
		return true
	})
	js, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	texts := []*C.char{logText(event), logText(path), logText(r.Message), logText(string(js))}
	defer func() {
		for _, t := range texts {
			C.free(unsafe.Pointer(t))
		}
	}()
	C.capi_tell_log(s.fn, s.ctx, C.int64_t(r.Time.UnixMicro()), logLevel(r.Level), texts[0], texts[1], texts[2], texts[3])
	return nil
}

func logText(s string) *C.char {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return C.CString(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "\\0"))
}

func logLevel(l slog.Level) C.int32_t {
	switch {
	case l >= slog.LevelError:
		return 3
	case l >= slog.LevelWarn:
		return 2
	case l >= slog.LevelInfo:
		return 1
	}
	return 0
}
