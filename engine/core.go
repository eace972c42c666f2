package engine

import (
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// core is the engine of one table, with the directory that has its files. What the tables of a database have in common
// is the database's; the handles of a process on that database share all of it.
type core struct {
	*database
	id    uint32 // 0 is the root table
	dir   string // the table's, absolute, symlinks resolved: the database's own for the root table
	store manifest.Store

	// active is the memtable that takes writes, nil until the first one; it is guarded by writeMu. table changes under
	// writeMu and mu.
	active *memEntry
	table  *table
	// minLog and lastFlushed are the manifest's when logs are replayed: rows of earlier logs, and up to that sequence
	// number, are in files.
	minLog      uint64
	lastFlushed base.Seq
	atVersion   int64 // of the manifest

	// commitMu is held across a manifest commit: from reading the current state to publishing the next one.
	commitMu sync.Mutex
	pending  pendingFiles

	// state is guarded by mu.
	state        *readState
	stateVersion atomic.Uint64
	flush        flushProgress // guarded by mu

	gc          collector
	pinned      pinSet
	compactions *compactions
	stop        chan struct{} // shadows the database's: a table may end before
	stopOnce    sync.Once
	workers     sync.WaitGroup
	idle        idleness
}

func (d *database) visibleSeq() base.Seq {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.visible
}

// writable returns why a write cannot go on, or nil.
func (d *database) writable() error {
	if d.readOnly {
		return base.Errorf(base.CodeReadOnly, "%s is open read-only", d.root)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed {
		return base.Errorf(base.CodeClosed, "%s is closed", d.root)
	}
	if d.failure != nil {
		return base.Wrapf(base.CodeOf(d.failure), d.failure, "%s takes no writes until it is opened again", d.root)
	}
	return nil
}

// fail makes the core refuse writes from now on and returns err.
func (d *database) fail(err error) error {
	logEventOf(d.root, slog.LevelError, "write error", "no writes until the database is opened again: "+err.Error())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure == nil {
		d.failure = err
	}
	d.flushDone.Broadcast()
	return err
}

// current returns the current state with a reference for the caller.
func (c *core) current() *readState {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.ref()
	return c.state
}

// install makes s the current state; s brings its reference along. with, if not nil, runs in the same critical section,
// so that readers see both or neither.
func (c *core) install(s *readState, with func()) {
	c.mu.Lock()
	old := c.state
	c.state = s
	if with != nil {
		with()
	}
	c.stateVersion.Add(1)
	c.mirror.changed()
	c.flushDone.Broadcast()
	c.mu.Unlock()
	if old != nil {
		old.unref()
	}
	c.kickCompaction()
}

// activeBytes returns how much is in the active memtable.
func (c *core) activeBytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == nil {
		return 0
	}
	return c.active.mt.Bytes()
}

// startMemtable starts a memtable for the rows that go to the log from now on. It runs under writeMu.
func (c *core) startMemtable(capacity int) error {
	mt, err := memtable.New(capacity)
	if err != nil {
		return err
	}
	c.pushActive(&memEntry{mt: mt, log: c.nextLog - 1})
	mt.Unref() // the state holds it
	return nil
}

// pushActive makes e the newest memtable of the current state.
func (c *core) pushActive(e *memEntry) {
	c.actives[c] = struct{}{}
	c.mu.Lock()
	old := c.state
	c.active = e
	c.state = c.newState(old, old.manifest, old.table, append([]*memEntry{e}, old.mems...))
	c.stateVersion.Add(1)
	c.mu.Unlock()
	old.unref()
}

// retireActive makes the active memtable immutable without starting another one; the next write does. The log ends with
// it, so that no later row of the table is in a log that has earlier ones. It runs under writeMu.
func (c *core) retireActive() error {
	if err := c.closeLog(); err != nil {
		return err
	}
	c.retired()
	c.kickFlush()
	return nil
}

// retired runs under writeMu, with the log closed.
func (c *core) retired() {
	if c.active == nil {
		return
	}
	delete(c.actives, c)
	c.mu.Lock()
	c.active.lastLog = c.nextLog - 1
	c.active = nil
	c.mu.Unlock()
}

// holder describes this process in the lock file.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return "process " + strconv.Itoa(os.Getpid()) + " on " + host
}

// pendingFiles are data files, and directories of bulk loads, being written, which no manifest names yet: the garbage collector leaves them alone.
type pendingFiles struct {
	mu  sync.Mutex
	set map[string]struct{}
}

func (p *pendingFiles) add(rel string) {
	p.mu.Lock()
	if p.set == nil {
		p.set = map[string]struct{}{}
	}
	p.set[rel] = struct{}{}
	p.mu.Unlock()
}

func (p *pendingFiles) remove(rel ...string) {
	p.mu.Lock()
	for _, r := range rel {
		delete(p.set, r)
	}
	p.mu.Unlock()
}

// unlessWritten calls fn unless the file is being written, and keeps anyone from beginning to meanwhile.
func (p *pendingFiles) unlessWritten(rel string, fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.set[rel]; !ok {
		fn()
	}
}

func (p *pendingFiles) has(rel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.set[rel]
	return ok
}
