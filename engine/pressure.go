package engine

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// Pressure keeps writers from outrunning flushes and compactions. In the slow zone of any of three limits (memtables that
// wait for their flush, files in level 0, bytes that wait for compaction) each group of writers pays for its bytes with a
// delay. Where memtables wait, writers may go as fast as fills what room is left until the oldest flush is expected to
// end. The other two are far from what a flush can change, so there writers have a share of the measured rate of flushes,
// the less the deeper in the zone: in the middle of it they are as fast as flushes. At the hard limit they stop until a
// commit takes them below it.
//
// Without automatic compaction the limits of files and pending bytes do not hold: nothing would ever take writers below
// them.

// stallReason is what slows writers down or stops them.
type stallReason int

const (
	stallNone stallReason = iota
	stallImmutables
	stallL0
	stallPending
	stallReasons
)

const (
	// maxDelay bounds one delay.
	maxDelay = 250 * time.Millisecond
	// minDelay is what is not worth a sleep; it is carried over to the next group.
	minDelay = time.Millisecond
	// firstRate is taken for the rate of flushes until there was one, in bytes a second; minRate bounds it from below.
	firstRate = 32 << 20
	minRate   = 1 << 20
	// leastShare bounds from below which share of the rate of flushes writers have.
	leastShare = 1.0 / 16
	// spareShare is the part of a memtable that is kept for flushes that take longer than expected.
	spareShare = 1.0 / 4
)

// pace is what delays are computed from.
type pace struct {
	mu sync.Mutex
	// bytes, secs and took are of the last flushes, older ones counting less: how much memtable, in how much time in all
	// (several at a time share it), and in how much time of each. last is when the newest one ended.
	bytes, secs, took float64
	last              time.Time
	// next is when what was written will have been paid for.
	next time.Time
}

// flushed takes note of a flush of so many bytes of memtable.
func (p *pace) flushed(bytes int, start time.Time) {
	const decay = 0.7
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.took = p.took*decay + now.Sub(start).Seconds()
	if p.last.After(start) {
		start = p.last // several at a time: each counts for the time since the one before
	}
	p.last = now
	p.bytes = p.bytes*decay + float64(bytes)
	p.secs = p.secs*decay + now.Sub(start).Seconds()
}

// rate returns how fast flushes are, in bytes a second.
func (p *pace) rate() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.secs <= 0 {
		return firstRate
	}
	return max(p.bytes/p.secs, minRate)
}

// expected returns how long the flush of so many bytes takes.
func (p *pace) expected(bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	perByte := 1.0 / firstRate
	if p.bytes > 0 {
		perByte = min(p.took/p.bytes, 1.0/minRate)
	}
	return time.Duration(float64(bytes) * perByte * float64(time.Second))
}

// owe adds the price of so many bytes, written since start, where rate bytes a second are allowed.
func (p *pace) owe(bytes int, rate float64, start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(start) {
		p.next = start
	}
	cost := min(float64(bytes)/rate, maxDelay.Seconds())
	p.next = p.next.Add(time.Duration(cost * float64(time.Second)))
	if latest := time.Now().Add(maxDelay); p.next.After(latest) {
		p.next = latest
	}
}

// debt returns how long to wait before the next group, 0 where it is not worth while.
func (p *pace) debt() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := time.Until(p.next); d >= minDelay {
		return min(d, maxDelay)
	}
	return 0
}

// depth says how deep in the slow zone a quantity is: 0 or less outside, 1 at the hard limit.
func depth(x, slow, stop float64) float64 {
	if stop <= slow {
		if x >= stop {
			return 1
		}
		return 0
	}
	return min((x-slow)/(stop-slow), 1)
}

func (r stallReason) text() string {
	switch r {
	case stallImmutables:
		return "memtables that wait for their flush"
	case stallL0:
		return "files in level 0"
	}
	return "bytes that wait for compaction"
}

// immutables returns how many memtables await their flush: those of the table that has most of them, or as many as all
// tables have bytes of, for memtables that many tables filled together are small. It runs under mu.
func (d *database) immutables() int {
	most, bytes := 0, 0
	for _, c := range d.tables {
		n := 0
		for _, e := range c.unflushed() {
			if e != c.active {
				n++
				bytes += e.mt.Bytes()
			}
		}
		most = max(most, n)
	}
	return max(most, bytes/d.opts.MemtableBytes)
}

// allowance returns how fast writers of some tables may go, in bytes a second, and which limit says so, stallNone outside
// of the slow zones. It runs under mu.
func (d *database) allowance(cores ...*core) (rate float64, why stallReason) {
	flushes := d.pace.rate()
	if d.immutables() > d.opts.MaxImmutables/2 {
		rate, why = max(d.roomRate(), flushes*leastShare), stallImmutables
	}
	if d.opts.NoAutoCompaction {
		return rate, why
	}
	in := func(depth float64, reason stallReason) {
		if r := flushes * max(2*(1-depth), leastShare); depth > 0 && (why == stallNone || r < rate) {
			rate, why = r, reason
		}
	}
	for _, c := range cores {
		l0, pending := c.compactionPressure()
		in(depth(float64(l0), float64(d.opts.L0SlowFiles-1), float64(d.opts.L0StopFiles)), stallL0)
		in(depth(float64(pending), float64(d.opts.PendingSlowBytes), float64(d.opts.PendingStopBytes)), stallPending)
	}
	return rate, why
}

// roomRate returns the rate at which writers fill the room that is left, but for a reserve, while the oldest memtables
// are flushed. It runs under mu.
func (d *database) roomRate() float64 {
	room := (d.opts.MaxImmutables - d.immutables()) * d.opts.MemtableBytes
	used := 0
	left := time.Millisecond
	for _, c := range d.tables {
		if c.active != nil {
			used += c.active.mt.Bytes()
		}
		if mems := c.unflushed(); len(mems) > 0 && mems[len(mems)-1] != c.active {
			left = max(left, d.flushEnds(mems[len(mems)-1]))
		}
	}
	if used > 0 {
		room += max(d.opts.MemtableBytes-used, 0)
	}
	return (float64(room) - spareShare*float64(d.opts.MemtableBytes)) / left.Seconds()
}

// flushEnds returns how long the flush of a memtable is expected to take from now on: as long as earlier ones, and as its
// own progress says. It runs under mu.
func (d *database) flushEnds(e *memEntry) time.Duration {
	left := d.pace.expected(e.mt.Bytes())
	shortest := max(left/16, time.Millisecond)
	if e.flushing {
		elapsed := time.Since(e.flushBegan)
		left -= elapsed
		if done := float64(e.flushedRows.Load()) / float64(max(e.mt.Len(), 1)); done > 0 {
			left = max(left, time.Duration(float64(elapsed)*(1-done)/done))
		}
	}
	return max(left, shortest)
}

// hardLimit returns which limit keeps a memtable of some tables from being started, stallNone if none does. It runs under
// mu.
func (d *database) hardLimit(cores []*core) stallReason {
	if d.immutables() >= d.opts.MaxImmutables {
		return stallImmutables
	}
	for _, c := range cores {
		if why := c.fileLimit(); why != stallNone {
			return why
		}
	}
	return stallNone
}

// fileLimit returns which limit keeps files from being added to level 0, stallNone if none does. It runs under mu.
func (c *core) fileLimit() stallReason {
	if c.opts.NoAutoCompaction {
		return stallNone
	}
	switch l0, pending := c.compactionPressure(); {
	case l0 >= c.opts.L0StopFiles:
		return stallL0
	case pending >= c.opts.PendingStopBytes:
		return stallPending
	}
	return stallNone
}

// slowDown makes the leader of the next group wait for what earlier groups owe. It holds no lock meanwhile; writers that
// come join the group.
func (d *database) slowDown() {
	wait := d.pace.debt()
	if wait == 0 {
		return
	}
	d.queueMu.Lock()
	cores := coresOfAll(d.queue)
	d.queueMu.Unlock()
	d.mu.Lock()
	_, why := d.allowance(cores...)
	d.mu.Unlock()
	if why == stallNone {
		return // the reason is gone, and the debt with it
	}
	start := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.stop:
	}
	d.stalls.slowed(why, time.Since(start))
}

// charge makes a group that was written since start owe for its bytes.
func (d *database) charge(group []*commitRequest, start time.Time) {
	cores := coresOfAll(group)
	d.mu.Lock()
	rate, why := d.allowance(cores...)
	d.mu.Unlock()
	if why == stallNone {
		return
	}
	bytes := 0
	for _, r := range group {
		bytes += r.memBytes()
	}
	d.pace.owe(bytes, rate, start)
}

// coresOfAll returns the tables that requests write to, each once.
func coresOfAll(group []*commitRequest) (cores []*core) {
	for _, r := range group {
		for _, b := range r.parts {
			if !slices.Contains(cores, b.core) {
				cores = append(cores, b.core)
			}
		}
	}
	return cores
}

func (d *database) mustStop(cores []*core) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hardLimit(cores) != stallNone
}

// anyMustStop reports whether memtables keep all writers from starting another one.
func (d *database) anyMustStop() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.immutables() >= d.opts.MaxImmutables
}

// waitForRoom stops a writer of some tables while a hard limit is reached, which is what limit returns under mu. Where
// what could take it below fails, it returns that error: waiting would not end before space comes back, and a write that
// fails can be made again. interrupted, if not nil, is asked now and then.
func (d *database) waitForRoom(cores []*core, limit func() stallReason, interrupted func() error) error {
	failures := map[*core]int64{}
	for _, c := range cores {
		failures[c] = c.compactions.retryNow()
		c.kickCompaction()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	why := limit()
	if why == stallNone {
		return nil
	}
	defer d.stalls.stopped(why)()
	logEventOf(d.root, slog.LevelWarn, "stall", "writers stop until there is room", slog.String("reason", why.text()),
		slog.Int("memtables", d.immutables()))
	began, reason := time.Now(), why.text()
	defer func() {
		logEventOf(d.root, slog.LevelInfo, "stall", "writers go on", slog.String("reason", reason),
			slog.Int64("milliseconds", time.Since(began).Milliseconds()))
	}()
	attempts := d.askFlushes()
	for ; why != stallNone; why = limit() {
		if err := d.roomStopped(attempts); err != nil {
			return err
		}
		if why != stallImmutables {
			for c, n := range failures {
				if err := c.compactions.failedSince(n); err != nil {
					return base.Wrapf(base.CodeOf(err), err, "writes wait for a compaction")
				}
			}
		}
		if err := d.waitUnless(interrupted); err != nil {
			return err
		}
	}
	return nil
}

// askFlushes asks for the flush of all memtables that wait for it, and returns the number of the first attempt of each
// table. It runs under mu.
func (d *database) askFlushes() map[*core]uint64 {
	attempts := map[*core]uint64{}
	for _, c := range d.tables {
		if mems := c.unflushed(); len(mems) > 0 && mems[len(mems)-1] != c.active {
			attempts[c] = c.nextFlush()
		}
	}
	return attempts
}

// roomStopped returns why nobody should wait any longer for flushes, or nil. It runs under mu.
func (d *database) roomStopped(attempts map[*core]uint64) error {
	err := d.stopped()
	for c, n := range attempts {
		if err == nil && len(c.unflushed()) > 0 {
			err = c.flushStopped(n)
		}
	}
	if err != nil {
		return base.Wrapf(base.CodeOf(err), err, "%d memtables wait for their flush", d.immutables())
	}
	return nil
}

// stallCounters are the running totals, by reason.
type stallCounters struct {
	slowdowns, slowNanos, stops, stopNanos [stallReasons]atomic.Int64
	longest                                atomic.Int64 // of all single waits, in nanoseconds
}

func (s *stallCounters) slowed(why stallReason, took time.Duration) {
	s.slowdowns[why].Add(1)
	s.slowNanos[why].Add(int64(took))
	s.note(took)
}

// stopped counts a stop that begins and returns what to call when it ends.
func (s *stallCounters) stopped(why stallReason) (end func()) {
	start := time.Now()
	s.stops[why].Add(1)
	return func() {
		took := time.Since(start)
		s.stopNanos[why].Add(int64(took))
		s.note(took)
	}
}

func (s *stallCounters) note(took time.Duration) {
	for {
		old := s.longest.Load()
		if int64(took) <= old || s.longest.CompareAndSwap(old, int64(took)) {
			return
		}
	}
}

// WriteStallStats says how often and for how long writers were slowed down or stopped, by reason: memtables that wait
// for their flush, files in level 0, bytes that wait for compaction. A group of writers counts once.
type WriteStallStats struct {
	SlowdownsImmutables     int64 `json:"slowdowns_immutables"`
	SlowdownsL0             int64 `json:"slowdowns_l0"`
	SlowdownsPending        int64 `json:"slowdowns_pending"`
	SlowdownNanosImmutables int64 `json:"slowdown_nanos_immutables"`
	SlowdownNanosL0         int64 `json:"slowdown_nanos_l0"`
	SlowdownNanosPending    int64 `json:"slowdown_nanos_pending"`
	StopsImmutables         int64 `json:"stops_immutables"`
	StopsL0                 int64 `json:"stops_l0"`
	StopsPending            int64 `json:"stops_pending"`
	StopNanosImmutables     int64 `json:"stop_nanos_immutables"`
	StopNanosL0             int64 `json:"stop_nanos_l0"`
	StopNanosPending        int64 `json:"stop_nanos_pending"`
	LongestStallNanos       int64 `json:"longest_stall_nanos"`
}

func (s *stallCounters) stats() WriteStallStats {
	return WriteStallStats{
		SlowdownsImmutables:     s.slowdowns[stallImmutables].Load(),
		SlowdownsL0:             s.slowdowns[stallL0].Load(),
		SlowdownsPending:        s.slowdowns[stallPending].Load(),
		SlowdownNanosImmutables: s.slowNanos[stallImmutables].Load(),
		SlowdownNanosL0:         s.slowNanos[stallL0].Load(),
		SlowdownNanosPending:    s.slowNanos[stallPending].Load(),
		StopsImmutables:         s.stops[stallImmutables].Load(),
		StopsL0:                 s.stops[stallL0].Load(),
		StopsPending:            s.stops[stallPending].Load(),
		StopNanosImmutables:     s.stopNanos[stallImmutables].Load(),
		StopNanosL0:             s.stopNanos[stallL0].Load(),
		StopNanosPending:        s.stopNanos[stallPending].Load(),
		LongestStallNanos:       s.longest.Load(),
	}
}
