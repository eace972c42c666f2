package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/compact"
)

// Compaction in the background. Package compact picks the jobs; compactLoop starts them, as many at a time as the
// options allow, whenever a commit has changed the files. A compaction replaces files by others with the same live
// rows, so it is right whatever else is going on; see compactJob.

// compactions is what the core knows about the jobs under way.
type compactions struct {
	work    chan struct{} // wakes the loop
	manual  chan struct{} // holds a token while a manual compaction is under way
	limiter *rate.Limiter // nil: no bound
	// ctx ends what waits for the limiter; cancel is called when the core stops.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	running map[*compactJob]struct{}
	starved bool // there may be jobs, but those of other tables are as many as may run at a time
	// planning says that a manual compaction waits for the jobs to end: no new one starts.
	planning bool
	users    int // manual compactions, waiting ones included
	closed   bool
	changed  chan struct{} // is closed and replaced when a job or a manual compaction ends
	// avoid has the files that jobs failed on, and until when they are left alone; retryAt is when the loop goes on after
	// a failure, and failures how many there were in a row.
	avoid    map[*dataFile]time.Time
	retryAt  time.Time
	failures int
	// retryEvery is the pause after the first failure.
	retryEvery time.Duration
	lastErr    atomic.Pointer[error] // how the last job that failed did

	counters compactCounters
}

// compactRetryEvery is the pause of new cores; tests shorten it.
var compactRetryEvery = time.Second

func newCompactions(limiter *rate.Limiter) *compactions {
	m := &compactions{
		work: make(chan struct{}, 1), manual: make(chan struct{}, 1), changed: make(chan struct{}),
		running: map[*compactJob]struct{}{}, avoid: map[*dataFile]time.Time{}, retryEvery: compactRetryEvery,
		limiter: limiter,
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// newLimiter returns what bounds the bytes that the compactions of a database write, nil for no bound.
func newLimiter(o *Options) *rate.Limiter {
	if o.CompactionRate <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(o.CompactionRate), int(min(max(o.CompactionRate/4, 1<<10), 1<<30)))
}

// kickCompaction has the files looked at: call it after every commit that changes them.
func (c *core) kickCompaction() {
	select {
	case c.compactions.work <- struct{}{}:
	default:
	}
}

// compactLoop starts jobs until the core is released.
func (c *core) compactLoop() {
	defer c.workers.Done()
	for {
		var retry <-chan time.Time
		if wait := c.startJobs(); wait > 0 {
			retry = time.After(wait)
		}
		select {
		case <-c.stop:
			return
		case <-c.compactions.work:
		case <-retry:
		}
	}
}

// startJobs starts what is to be done, and returns when to look again without being woken; 0: never.
func (c *core) startJobs() time.Duration {
	m := c.compactions
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if wait := m.retryAt.Sub(now); wait > 0 {
		return wait
	}
	for !m.planning && !m.closed {
		if m.starved = !c.takeCompactSlot(); m.starved {
			break
		}
		j := c.pickJob(now)
		if j == nil {
			c.freeCompactSlot()
			break
		}
		m.register(j)
		c.workers.Add(1)
		go func() {
			defer c.workers.Done()
			c.finishJob(j, j.run(), true)
			c.freeCompactSlot()
			c.kickStarved()
		}()
	}
	if len(m.avoid) > 0 {
		return m.retryEvery
	}
	return 0
}

// takeCompactSlot and freeCompactSlot count the compactions in the background of all tables.
func (d *database) takeCompactSlot() bool {
	select {
	case d.compactSlots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *database) freeCompactSlot() { <-d.compactSlots }

// kickStarved wakes the loops that found no slot free.
func (d *database) kickStarved() {
	for _, c := range d.allNow() {
		c.compactions.mu.Lock()
		starved := c.compactions.starved
		c.compactions.mu.Unlock()
		if starved {
			c.kickCompaction()
		}
	}
}

// register lists a job as running. It runs under mu.
func (m *compactions) register(j *compactJob) {
	m.running[j] = struct{}{}
	m.counters.running.Store(int64(len(m.running)))
}

// pickJob returns the next job, nil where there is none. It runs under compactions.mu.
func (c *core) pickJob(now time.Time) *compactJob {
	if c.writable() != nil {
		return nil
	}
	s := c.current()
	defer s.unref()
	if s.table == nil {
		return nil
	}
	files, running := c.compactions.describe(s, now)
	picked := compact.Pick(files, running, c.opts.compactOptions())
	if picked == nil {
		return nil
	}
	return c.newCompactJob(s, picked, nil)
}

// describe tells package compact about the files of a state and the jobs under way. It runs under mu.
func (m *compactions) describe(s *readState, now time.Time) ([]compact.File, []compact.Span) {
	busy := map[*dataFile]bool{}
	var spans []compact.Span
	for j := range m.running {
		for _, f := range j.pin.files {
			busy[f.dataFile] = true
		}
		spans = append(spans, j.span)
	}
	for f, until := range m.avoid {
		if now.Before(until) {
			busy[f] = true
		} else {
			delete(m.avoid, f)
		}
	}
	return describeFiles(s, busy), spans
}

func describeFiles(s *readState, busy map[*dataFile]bool) []compact.File {
	files := make([]compact.File, len(s.files))
	for i, f := range s.files {
		files[i] = compact.File{
			Level: f.meta.Level, Size: f.meta.Size, Rows: f.meta.Rows, Deleted: f.meta.Deleted,
			Min: f.meta.KeyMin, Max: f.meta.KeyMax,
			Busy: busy[f.dataFile], Loose: strings.HasPrefix(f.meta.Path, "data/L0/"),
		}
	}
	return files
}

func (o *Options) compactOptions() compact.Options {
	return compact.Options{
		L0Files: o.L0Files, TargetFileBytes: o.TargetFileBytes, BaseLevelBytes: o.BaseLevelBytes,
		LevelMultiplier: o.LevelMultiplier, MaxDeletedPercent: o.MaxDeletedPercent,
	}
}

// placeLevel returns the level for a sorted run of new files that the next commit adds to s; see [compact.PlaceLevel].
func (c *core) placeLevel(s *readState, lo, hi []byte, size int64) int {
	m := c.compactions
	m.mu.Lock()
	defer m.mu.Unlock()
	files, running := m.describe(s, time.Now())
	return compact.PlaceLevel(files, running, lo, hi, size, c.opts.compactOptions())
}

// finishJob takes a job off the list. After a failure the loop waits, the longer the more there were in a row, and the
// files of the job are left alone for some time, lest one damaged file keeps all others from being compacted.
func (c *core) finishJob(j *compactJob, err error, auto bool) {
	m := c.compactions
	m.mu.Lock()
	delete(m.running, j)
	m.counters.running.Store(int64(len(m.running)))
	failed := err != nil && !c.stopping() && base.CodeOf(err) != base.CodeCancelled
	if failed && auto {
		m.fail(j, err)
	} else if auto {
		m.failures = 0
	}
	if failed {
		m.counters.errors.Add(1)
		c.logEvent(slog.LevelError, "write error", "a compaction failed: "+err.Error())
	}
	m.notify()
	m.mu.Unlock()
	j.pin.unref()
	c.kickCompaction()
	if err != nil {
		c.mu.Lock()
		c.flushDone.Broadcast() // a writer that stopped may have to fail
		c.mu.Unlock()
	}
}

// retryNow ends the pause after a failure, for a writer that waits at a hard limit. It returns how many jobs have
// failed.
func (m *compactions) retryNow() (failures int64) {
	m.mu.Lock()
	m.retryAt = time.Time{}
	clear(m.avoid)
	failures = m.counters.errors.Load()
	m.mu.Unlock()
	return failures
}

// failedSince returns how the last job failed, if more than so many have, and none is under way that could help.
func (m *compactions) failedSince(failures int64) error {
	if err := m.lastErr.Load(); err != nil && m.counters.errors.Load() > failures && m.counters.running.Load() == 0 {
		return *err
	}
	return nil
}

func (m *compactions) fail(j *compactJob, err error) {
	const longest = 64
	now := time.Now()
	m.lastErr.Store(&err)
	m.failures++
	pause := min(m.retryEvery<<min(m.failures-1, 10), longest*m.retryEvery)
	m.retryAt = now.Add(pause)
	if base.CodeOf(err) == base.CodeNoSpace {
		return // that is no fault of the files
	}
	m.retryAt = now.Add(m.retryEvery)
	for _, f := range j.pin.files {
		m.avoid[f.dataFile] = now.Add(pause)
	}
}

// notify wakes whoever waits for a change. It runs under mu.
func (m *compactions) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (c *core) stopping() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// closeCompactions waits for the manual compactions to end, once the core stops; those of the loop are workers.
func (c *core) closeCompactions() {
	m := c.compactions
	m.mu.Lock()
	m.closed = true
	for m.users > 0 {
		changed := m.changed
		m.mu.Unlock()
		<-changed
		m.mu.Lock()
	}
	m.mu.Unlock()
}

// throttle waits until n more bytes may be written, or check says why not.
func (m *compactions) throttle(n int64, check func() error) error {
	for m.limiter != nil && n > 0 {
		part := int(min(n, int64(m.limiter.Burst())))
		if err := m.limiter.WaitN(m.ctx, part); err != nil {
			break // the core stops, as check says
		}
		if err := check(); err != nil {
			return err
		}
		n -= int64(part)
	}
	return check()
}
