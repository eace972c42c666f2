package mirror

import (
	"context"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// The loop is one goroutine that decides everything. What takes time is done by others, which report by results: uploads,
// as many as the parallelism allows, and the control job, one at a time: to find out what is there, to put the manifests
// of a cut, or to remove what is superseded.

// loop is the state of the goroutine.
type loop struct {
	attached bool // what the store has is known
	// cur is the cut that is sent, next the one that follows; nil where there is none.
	cur, next *target
	inflight  map[string]*object
	// control says what the control job is doing.
	control controlJob
	results chan result
	retry   retry
	// retainAt is when there may be something to remove; zero: never.
	retainAt time.Time
	stopped  bool
}

type controlJob int

const (
	controlNone controlJob = iota
	controlAttach
	controlPublish
	controlRetain
)

// result is how a job ended.
type result struct {
	control controlJob
	object  *object // of an upload
	target  *target // of a publication
	bytes   int64   // that were sent
	began   int     // the number of failures before
	// answered: the store did something that it was asked for meanwhile.
	answered bool
	next     time.Time
	err      error
}

func (m *Mirror) run(ctx context.Context) {
	l := &m.loop
	l.inflight = map[string]*object{}
	for ctx.Err() == nil {
		now := time.Now() // one for both: what is too early to be started has an alarm
		l.retry.answered(m.answers.Load())
		if !l.stopped {
			m.advance(ctx, now)
		}
		timer, stop := m.alarm(now)
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer:
		case r := <-l.results:
			m.jobEnded(r)
		}
		stop()
	}
	for len(l.inflight) > 0 || l.control != controlNone {
		r := <-l.results
		delete(l.inflight, r.key())
		if r.object == nil {
			l.control = controlNone
		}
	}
	l.release()
	close(m.ended)
}

func (r *result) key() string {
	if r.object == nil {
		return ""
	}
	return r.object.key
}

// release closes the cuts.
func (l *loop) release() {
	for _, t := range []*target{l.cur, l.next} {
		if t != nil {
			t.cut.Close()
		}
	}
	l.cur, l.next = nil, nil
}

// alarm returns a channel for the next moment at which there is something to do without an event.
func (m *Mirror) alarm(now time.Time) (<-chan time.Time, func()) {
	l := &m.loop
	var at time.Time
	switch {
	case l.stopped:
	case l.retry.waiting(now):
		at = l.retry.until
	case l.attached && l.control == controlNone && m.mayStart(): // else an event comes first
		at = l.retainAt
	}
	if at.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(at))
	return t.C, func() { t.Stop() }
}

// advance starts what can be started.
func (m *Mirror) advance(ctx context.Context, now time.Time) {
	l := &m.loop
	if l.retry.waiting(now) {
		return
	}
	if err := m.takeCuts(); err != nil {
		m.failed(err, l.retry.failures)
		return
	}
	if !l.attached {
		if l.control == controlNone && l.cur != nil && m.mayStart() {
			m.startControl(ctx, controlAttach, l.cur)
		}
		return
	}
	if l.control == controlNone && m.mayStart() {
		if t := m.complete(); t != nil {
			m.startControl(ctx, controlPublish, t)
		} else if !l.retainAt.IsZero() && !time.Now().Before(l.retainAt) {
			m.startControl(ctx, controlRetain, nil)
		}
	}
	for len(l.inflight) < m.opt.Parallelism && m.mayStart() {
		o := m.pick()
		if o == nil {
			break
		}
		m.startUpload(ctx, o)
	}
	m.showState()
}

// mayStart reports whether another request may be on its way: while the last ones failed, one at a time tries, until the
// store answers.
func (m *Mirror) mayStart() bool {
	l := &m.loop
	if l.retry.failures == 0 || l.retry.answering {
		return true
	}
	return len(l.inflight) == 0 && l.control == controlNone
}

// takeCuts takes the newest cut where there is none, and the one to follow when everything of the first one is on its way.
func (m *Mirror) takeCuts() error {
	l := &m.loop
	if l.cur == nil {
		l.cur, l.next = l.next, nil
	}
	for _, slot := range []**target{&l.cur, &l.next} {
		if *slot != nil {
			continue
		}
		if slot == &l.next && (!l.attached || len(l.inflight) >= m.opt.Parallelism || l.cur.waits(l.inflight)) {
			return nil
		}
		if !m.dirty.Swap(false) {
			return nil
		}
		cut, err := m.src.Cut()
		if err != nil {
			m.dirty.Store(true)
			return err
		}
		if *slot, err = m.newTarget(cut); err != nil {
			cut.Close()
			m.dirty.Store(true)
			return err
		}
	}
	return nil
}

// complete returns a cut of which the store has all files; the newer one makes the older one pointless.
func (m *Mirror) complete() *target {
	l := &m.loop
	if l.next != nil && len(l.next.need) == 0 {
		l.cur.cut.Close()
		l.cur, l.next = l.next, nil
		l.retainBy(time.Now().Add(m.passEvery())) // what was sent of it may be garbage
	}
	if l.cur != nil && len(l.cur.need) == 0 {
		return l.cur
	}
	return nil
}

// pick returns an object to send, nil where there is none.
func (m *Mirror) pick() *object {
	for _, t := range []*target{m.loop.cur, m.loop.next} {
		if t == nil {
			continue
		}
		if o := t.pick(m.loop.inflight); o != nil {
			return o
		}
	}
	return nil
}

func (m *Mirror) startUpload(ctx context.Context, o *object) {
	l := &m.loop
	l.inflight[o.key] = o
	began, answers := l.retry.failures, m.answers.Load()
	ask := began > 0 && !l.retry.answering
	go func() {
		n, err := m.upload(ctx, o, ask)
		l.results <- result{object: o, bytes: n, began: began, err: err, answered: m.answers.Load() != answers}
	}()
}

func (m *Mirror) startControl(ctx context.Context, job controlJob, t *target) {
	l := &m.loop
	l.control = job
	began, answers := l.retry.failures, m.answers.Load()
	var pass *retention
	if job == controlRetain {
		pass = &retention{m: m, protected: l.protects(), inUse: l.uses(), there: m.thereNow()}
		l.retainAt = time.Time{}
	}
	go func() {
		r := result{control: job, target: t, began: began}
		switch job {
		case controlAttach:
			r.err = m.attach(ctx, t.cut)
		case controlPublish:
			r.next, r.err = m.publish(ctx, t.cut)
		case controlRetain:
			r.next, r.err = m.retain(ctx, pass)
		}
		r.answered = m.answers.Load() != answers
		l.results <- r
	}()
}

// protects returns the files that the open cuts name.
func (l *loop) protects() func(id uint32, rel string) bool {
	cur, next := l.cur, l.next
	return func(id uint32, rel string) bool {
		return cur != nil && cur.names(id, rel) || next != nil && next.names(id, rel)
	}
}

// uses returns the tables that the open cuts have.
func (l *loop) uses() func(id uint32) bool {
	ids := map[uint32]bool{}
	for _, t := range []*target{l.cur, l.next} {
		if t == nil {
			continue
		}
		for _, table := range t.cut.Tables {
			ids[table.ID] = true
		}
	}
	return func(id uint32) bool { return ids[id] }
}

// jobEnded takes note of how a job ended.
func (m *Mirror) jobEnded(r result) {
	l := &m.loop
	if r.object != nil {
		delete(l.inflight, r.object.key)
	} else {
		l.control = controlNone
	}
	if l.stopped {
		return // the cuts are closed
	}
	if r.err != nil {
		m.jobFailed(r)
		return
	}
	if r.answered {
		l.retry.succeeded()
		m.failing.Store(false)
	}
	switch {
	case r.object != nil:
		m.uploaded(r.object, r.bytes)
	case r.control == controlAttach:
		l.attached = true
		m.attached()
	case r.control == controlPublish:
		m.published(r.target)
	}
	l.retainBy(r.next)
	m.showState()
}

func (m *Mirror) jobFailed(r result) {
	l := &m.loop
	if r.control == controlRetain {
		l.retainBy(time.Now())
	}
	if r.object != nil {
		m.mu.Lock()
		m.suspect[r.object.key] = 0
		m.mu.Unlock()
		if !l.needs(r.object.key) && base.CodeOf(r.err) != base.CodeConflict {
			l.retainBy(time.Now().Add(m.passEvery()))
			return // its cut was given up, and the file may be gone
		}
		r.object.tries++
	}
	m.failed(r.err, r.began)
	m.giveUp(r.object)
}

// needs reports whether a cut that is open waits for an object.
func (l *loop) needs(key string) bool {
	return l.cur != nil && l.cur.need[key] != nil || l.next != nil && l.next.need[key] != nil
}

// retainBy has a retention pass not later than a moment; zero is never.
func (l *loop) retainBy(t time.Time) {
	if !t.IsZero() && (l.retainAt.IsZero() || t.Before(l.retainAt)) {
		l.retainAt = t
	}
}

func (m *Mirror) uploaded(o *object, bytes int64) {
	l := &m.loop
	if !l.needs(o.key) {
		l.retainBy(time.Now().Add(m.passEvery())) // its cut was given up: it is garbage
	}
	for _, t := range []*target{l.cur, l.next} {
		if t != nil {
			delete(t.need, o.key)
		}
	}
	m.update(func(s *Status) {
		m.confirmed[o.key] = o.size
		delete(m.suspect, o.key)
		if bytes > 0 {
			s.BytesUploaded += bytes
			s.FilesUploaded++
		}
		s.LastSuccess = m.opt.Now()
	})
}

// attached compares what the cut needs with what the store turned out to have.
func (m *Mirror) attached() {
	l := &m.loop
	t, err := m.newTarget(l.cur.cut)
	if err != nil {
		m.failed(err, l.retry.failures)
		l.release()
		m.dirty.Store(true)
		return
	}
	l.cur = t
}

func (m *Mirror) published(t *target) {
	l := &m.loop
	t.cut.Close()
	switch t {
	case l.cur:
		l.cur = nil
	case l.next:
		l.next = nil
	}
	m.update(func(s *Status) {
		s.Seq, s.Commit = max(s.Seq, t.cut.Seq), max(s.Commit, t.cut.Commit)
		s.LastSuccess = m.opt.Now()
	})
	if m.opt.Published != nil {
		m.opt.Published(t.cut.Seq, t.cut.Commit)
	}
}

// failed takes note of an error.
func (m *Mirror) failed(err error, began int) {
	l := &m.loop
	if base.CodeOf(err) == base.CodeConflict {
		l.stopped = true
		l.release()
		m.update(func(s *Status) {
			s.State, s.LastError, s.LastErrorAt = Stopped, err.Error(), m.opt.Now()
		})
		if m.opt.Stopped != nil {
			m.opt.Stopped(err)
		}
		return
	}
	l.retry.failed(began, m.answers.Load())
	m.failing.Store(true)
	m.update(func(s *Status) {
		s.State, s.LastError, s.LastErrorAt = Retrying, err.Error(), m.opt.Now()
		s.Retries++
	})
	if m.opt.Failed != nil {
		m.opt.Failed(err)
	}
}

// giveUp lets the cuts go where the store does not answer at all, or one file fails again and again: the newest cut, which
// is taken when it is tried again, may not need it.
func (m *Mirror) giveUp(o *object) {
	const patience = 5
	l := &m.loop
	if l.stopped || l.retry.failures < patience && (o == nil || o.tries < patience) {
		return
	}
	if len(l.inflight) > 0 || l.control != controlNone {
		return // they read what the cuts keep; the last one to fail comes here again
	}
	l.release()
	l.retainBy(time.Now().Add(m.passEvery())) // what was sent of them may be garbage
	m.dirty.Store(true)
}

// showState tells what there is to do.
func (m *Mirror) showState() {
	l := &m.loop
	state := Idle
	switch {
	case l.stopped:
		state = Stopped
	case l.retry.failures > 0:
		state = Retrying
	case !l.attached || l.cur != nil || m.dirty.Load():
		state = Uploading
	}
	m.mu.Lock()
	same := m.status.State == state
	m.mu.Unlock()
	if !same {
		m.update(func(s *Status) { s.State = state })
	}
}
