package engine

import (
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/compact"
)

// CompactOptions say what a manual compaction compacts.
type CompactOptions struct {
	// Lower and Upper are prefixes of the key's columns, both inclusive; empty is open. A prefix stands for all keys
	// that start with it.
	Lower, Upper []Value
	// Interrupt is asked now and then, on the caller's goroutine; true stops the compaction with CodeCancelled. What was
	// done until then stays.
	Interrupt func() bool
	// Progress, if not nil, is told now and then, on the goroutine of the call, how much is done, from 0 to 1.
	Progress func(done float64)
}

// Compact writes all rows in memory to files and makes one sorted run of all files, without deleted rows. Where the
// table is in that shape already it does nothing more. Writers and readers go on meanwhile; what is written after the
// call began may be left out. Compactions of several callers run one after the other. CodeReadOnly for a read-only
// handle, CodeClosed where the handle was closed before or is closed meanwhile.
func (db *DB) Compact() error { return db.CompactRange(CompactOptions{}) }

// CompactRange is [DB.Compact] for the files that hold keys of a range.
func (db *DB) CompactRange(o CompactOptions) error {
	if err := db.writable(); err != nil {
		return err
	}
	return db.c.compactRange(o)
}

// interruptEvery is how often a manual compaction that waits asks whether it shall stop.
const interruptEvery = 20 * time.Millisecond

func (c *core) compactRange(o CompactOptions) error {
	if err := c.enterManual(); err != nil {
		return err
	}
	defer c.leaveManual()
	m := c.compactions
	for acquired := false; !acquired; {
		select {
		case m.manual <- struct{}{}:
			acquired = true
		case <-time.After(interruptEvery):
			if err := c.interrupted(o.Interrupt); err != nil {
				return err
			}
		}
	}
	defer func() { <-m.manual }()
	if err := c.flushUnless(func() error { return c.interrupted(o.Interrupt) }); err != nil {
		return err
	}
	jobs, err := c.planManual(o)
	if err != nil {
		return err
	}
	total, did := 0.0, 0.0
	for _, j := range jobs {
		total += j.inputRows()
	}
	tell := func(rows float64) {
		if o.Progress != nil && total > 0 {
			o.Progress(min((did+rows)/total, 1))
		}
	}
	for i, j := range jobs {
		j.progress = tell
		if err = c.interrupted(o.Interrupt); err == nil {
			err = j.run()
		}
		if err != nil {
			for _, rest := range jobs[i+1:] {
				c.finishJob(rest, nil, false)
			}
			c.finishJob(j, err, false)
			return err
		}
		rows := j.inputRows() // before its pin goes
		c.finishJob(j, nil, false)
		did += rows
		tell(0)
	}
	return nil
}

// inputRows is how much work a job is.
func (j *compactJob) inputRows() float64 {
	rows := 0.0
	for _, f := range j.pin.files {
		rows += float64(f.meta.Live())
	}
	return rows
}

// enterManual makes the core's release wait for a manual compaction.
func (c *core) enterManual() error {
	m := c.compactions
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return c.interrupted(nil)
	}
	m.users++
	return nil
}

func (c *core) leaveManual() {
	m := c.compactions
	m.mu.Lock()
	m.users--
	m.notify()
	m.mu.Unlock()
}

// interrupted says why a compaction has to stop, if it has to.
func (c *core) interrupted(fn func() bool) error {
	if c.stopping() {
		return base.Errorf(base.CodeClosed, "%s is closed", c.dir)
	}
	if fn != nil && fn() {
		return base.Errorf(base.CodeCancelled, "interrupted")
	}
	return nil
}

// planManual makes the jobs of a manual compaction, all registered as running: those of the loop take other files
// meanwhile. To have all files it waits for the jobs that are under way, and no new ones start before it has them.
func (c *core) planManual(o CompactOptions) ([]*compactJob, error) {
	m := c.compactions
	m.mu.Lock()
	defer m.mu.Unlock()
	m.planning = true
	defer func() {
		m.planning = false
		c.kickCompaction()
	}()
	for len(m.running) > 0 {
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(interruptEvery):
		}
		err := c.interrupted(o.Interrupt)
		m.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	s := c.current()
	defer s.unref()
	if s.table == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	r, err := s.table.keyRange(ScanOptions{Lower: o.Lower, Upper: o.Upper})
	if err != nil || r.empty() {
		return nil, err
	}
	var jobs []*compactJob
	for _, p := range compact.PlanFull(describeFiles(s, nil), r.lower, r.upper, c.opts.compactOptions()) {
		j := c.newCompactJob(s, p, o.Interrupt)
		m.register(j)
		jobs = append(jobs, j)
	}
	return jobs, nil
}
