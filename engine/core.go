package engine

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/wal"
)

// core is the engine of one table, with the directory that has its files. What the tables of a database have in common
// is the database's; the handles of a process on that database share all of it.
type core struct {
	*database
	dir   string // the table's, absolute, symlinks resolved: the database's own for the root table
	store manifest.Store

	// active is the memtable that takes writes, nil until the first one; it is guarded by writeMu. table changes under
	// writeMu and mu.
	active *memEntry
	table  *table
	// lastFlushed is the newest sequence number in files as of opening.
	lastFlushed base.Seq

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
	flushWork   chan struct{}
	stop        chan struct{}
	workers     sync.WaitGroup
	idle        idleness
}

func (c *core) visibleSeq() base.Seq {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.visible
}

// writable returns why a write cannot go on, or nil.
func (c *core) writable() error {
	if c.readOnly {
		return base.Errorf(base.CodeReadOnly, "%s is open read-only", c.dir)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return base.Errorf(base.CodeClosed, "%s is closed", c.dir)
	}
	if c.failure != nil {
		return base.Wrapf(base.CodeOf(c.failure), c.failure, "%s takes no writes until it is opened again", c.dir)
	}
	return nil
}

// fail makes the core refuse writes from now on and returns err.
func (c *core) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	c.flushDone.Broadcast()
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
	c.flushDone.Broadcast()
	c.mu.Unlock()
	if old != nil {
		old.unref()
	}
	c.kickCompaction()
}

// immutables returns how many memtables of the current state await their flush.
func (c *core) immutables() int {
	n := len(c.state.mems)
	if c.active != nil && n > 0 && c.state.mems[0] == c.active {
		n--
	}
	return n
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

// rotate makes the active memtable immutable and starts a new one with a log of its own. It runs under writeMu. Where
// that fails there is no active memtable, and the next write tries again. The old log is synced first at every
// durability level: a later log must never survive without an earlier one.
func (c *core) rotate(capacity int) error {
	if err := c.retireActive(); err != nil {
		return err
	}
	mt, err := memtable.New(capacity)
	if err != nil {
		return err
	}
	if err := c.prepareLogDir(); err != nil {
		mt.Unref()
		return err
	}
	w, err := wal.Create(c.fs, c.walDir, c.nextLog)
	if err != nil {
		mt.Unref()
		return err
	}
	c.log = w
	e := &memEntry{mt: mt, log: c.nextLog}
	c.nextLog++
	c.pushActive(e)
	mt.Unref() // the state holds it
	c.kickFlush()
	return nil
}

// pushActive makes e the newest memtable of the current state.
func (c *core) pushActive(e *memEntry) {
	c.mu.Lock()
	old := c.state
	c.active = e
	c.state = c.newState(old, old.manifest, old.table, append([]*memEntry{e}, old.mems...))
	c.stateVersion.Add(1)
	c.mu.Unlock()
	old.unref()
}

func (c *core) closeLog() error {
	if c.log == nil {
		return nil
	}
	if err := c.log.Sync(); err != nil {
		return c.fail(err)
	}
	err := c.log.Close()
	c.log = nil
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// retireActive makes the active memtable immutable without starting another one; the next write does. It runs under
// writeMu.
func (c *core) retireActive() error {
	if err := c.closeLog(); err != nil {
		return err
	}
	if c.active == nil {
		return nil
	}
	c.mu.Lock()
	c.active = nil
	c.mu.Unlock()
	c.kickFlush()
	return nil
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
