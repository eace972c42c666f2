package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// The log of the process's engines, for people: flushes, compactions, loads, stops of writers and what fails. Events are
// structured: a message, and attributes of which "event" says what happened and "path" to which table. Without a handler
// an event costs a look at a flag.
//
// Whoever has an event to tell may hold locks, and a handler may take long, so events are handed over by a goroutine that
// lives as long as there are some. What comes faster than handlers take it is dropped.

// LogEvent and LogPath are the keys of the attributes that every event has.
const (
	LogEvent = "event"
	LogPath  = "path"
)

// maxLogQueue bounds the events that wait for handlers.
const maxLogQueue = 1024

var eventLog logHub

type logHub struct {
	on atomic.Bool

	mu       sync.Mutex
	handlers map[*logHandler]struct{}
	queue    []slog.Record
	running  bool // the goroutine
	idle     chan struct{}
	dropped  int

	// delivering is held while handlers are called.
	delivering sync.Mutex
}

type logHandler struct {
	slog.Handler
	removed atomic.Bool
}

// AddLogHandler makes a handler get the events of all engines of the process, one at a time. remove ends that: when it
// returns, the handler is not called any more. It must not be called by the handler.
func AddLogHandler(h slog.Handler) (remove func()) {
	entry := &logHandler{Handler: h}
	l := &eventLog
	l.mu.Lock()
	if l.handlers == nil {
		l.handlers = map[*logHandler]struct{}{}
	}
	l.handlers[entry] = struct{}{}
	l.on.Store(true)
	l.mu.Unlock()
	return func() {
		entry.removed.Store(true)
		l.mu.Lock()
		delete(l.handlers, entry)
		l.on.Store(len(l.handlers) > 0)
		l.mu.Unlock()
		l.delivering.Lock() // waits for a call under way
		defer l.delivering.Unlock()
	}
}

// DrainLog waits until the events so far were handled, but not for long.
func DrainLog() {
	l := &eventLog
	if !l.on.Load() {
		return
	}
	l.mu.Lock()
	idle, running := l.idle, l.running
	l.mu.Unlock()
	if !running {
		return
	}
	const patience = time.Second
	select {
	case <-idle:
	case <-time.After(patience):
	}
}

// logEvent tells the handlers what happened to the table.
func (c *core) logEvent(level slog.Level, event, message string, attrs ...slog.Attr) {
	logEventOf(c.dir, level, event, message, attrs...)
}

// logEventOf tells the handlers what happened to a table or database in a directory. It may be called with any lock held.
func logEventOf(dir string, level slog.Level, event, message string, attrs ...slog.Attr) {
	l := &eventLog
	if !l.on.Load() {
		return
	}
	r := slog.NewRecord(time.Now(), level, message, 0)
	r.AddAttrs(slog.String(LogEvent, event), slog.String(LogPath, dir))
	r.AddAttrs(attrs...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxLogQueue {
		l.dropped++
		return
	}
	l.queue = append(l.queue, r)
	if !l.running {
		l.running, l.idle = true, make(chan struct{})
		go l.deliver()
	}
}

// deliver hands events over until there are none.
func (l *logHub) deliver() {
	for {
		l.mu.Lock()
		records, dropped := l.queue, l.dropped
		l.queue, l.dropped = nil, 0
		if len(records) == 0 {
			l.running = false
			close(l.idle)
			l.mu.Unlock()
			return
		}
		handlers := make([]*logHandler, 0, len(l.handlers))
		for h := range l.handlers {
			handlers = append(handlers, h)
		}
		l.mu.Unlock()
		if dropped > 0 {
			r := slog.NewRecord(time.Now(), slog.LevelWarn, "events came faster than they were logged, and some were dropped", 0)
			r.AddAttrs(slog.String(LogEvent, "log"), slog.String(LogPath, ""), slog.Int("dropped", dropped))
			records = append(records, r)
		}
		l.delivering.Lock()
		for _, r := range records {
			for _, h := range handlers {
				if !h.removed.Load() && h.Enabled(context.Background(), r.Level) {
					_ = h.Handle(context.Background(), r.Clone()) // there is nobody to tell
				}
			}
		}
		l.delivering.Unlock()
	}
}
