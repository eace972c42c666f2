package objstore

import (
	"context"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// Stats count what a store has done since it was made.
type Stats struct {
	// Requests is how many were sent, retries included, and Retries how many of them repeated a failed one.
	Requests, Retries int64
	// BytesSent and BytesReceived are those of bodies, also of requests that failed.
	BytesSent, BytesReceived int64
}

// StatsOf returns the counts of a store that has some, else zeros.
func StatsOf(s Store) Stats {
	if c, ok := s.(interface{ Stats() Stats }); ok {
		return c.Stats()
	}
	return Stats{}
}

type s3Counters struct {
	requests, retries, sent, received atomic.Int64
}

// Stats returns the counts.
func (s *S3) Stats() Stats {
	return Stats{
		Requests: s.counters.requests.Load(), Retries: s.counters.retries.Load(),
		BytesSent: s.counters.sent.Load(), BytesReceived: s.counters.received.Load(),
	}
}

// call is one call to the store as its errors describe it.
type call struct {
	what, key string
	// bytes is how many go or come; patience is how many stalls long the answer may take, 0 is 1.
	bytes    int64
	patience int
}

const putIfAbsent = "put if absent"

func (c call) puts() bool { return c.what == "put" || c.what == putIfAbsent }

// attempt sends one request. The context ends with it; progress is to be called whenever bytes moved.
type attempt func(ctx context.Context, progress func(sent, received int)) error

// slowest is the rate, in bytes a second, below which a request has failed though bytes move.
const slowest = 16 << 10

// retry makes a call of attempts. Their errors come back classified, see s3errors.go.
func (s *S3) retry(ctx context.Context, c call, send attempt) error {
	began, doubt := time.Now(), false
	for n := 1; ; n++ {
		if err := ContextError(ctx, s, c.what, c.key); err != nil {
			return err
		}
		s.counters.requests.Add(1)
		err := s.once(ctx, c, send)
		if err == nil {
			return nil
		}
		if e := ContextError(ctx, s, c.what, c.key); e != nil {
			return e
		}
		f := s.classify(err)
		if !f.retry && (!f.once || n > 1) {
			return f.of(s, c, doubt)
		}
		if n >= s.tuning.Attempts {
			f.text = "gave up after " + plural(n, "attempt") + " in " + time.Since(began).Round(time.Millisecond).String() + ": " + f.text
			return f.of(s, c, doubt)
		}
		doubt = doubt || !f.refused
		s.counters.retries.Add(1)
		if err := s.backOff(ctx, c, n, f.after); err != nil {
			return err
		}
	}
}

// backOff waits before retry n, and for the turn of the whole store's retries.
func (s *S3) backOff(ctx context.Context, c call, n int, atLeast time.Duration) error {
	wait := min(s.tuning.BackoffMax, s.tuning.BackoffBase<<min(n-1, 20))
	wait = wait/2 + rand.N(wait/2+1)
	timer := time.NewTimer(max(wait, min(atLeast, 10*s.tuning.BackoffMax)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ContextError(ctx, s, c.what, c.key)
	case <-timer.C:
	}
	if err := s.retries.Wait(ctx); err != nil {
		if e := ContextError(ctx, s, c.what, c.key); e != nil {
			return e
		}
		// The limiter knows that the deadline comes before its turn.
		return base.Wrapf(base.CodeTimeout, context.DeadlineExceeded, "%s: %s %s: the next attempt would come too late", s, c.what, c.key)
	}
	return nil
}

// once sends one attempt, which ends when no byte has moved for a while, or all take unreasonably long: a connection
// whose other end is gone without a word would hold it for ever.
func (s *S3) once(ctx context.Context, c call, send attempt) error {
	stall := s.tuning.Stall * time.Duration(max(c.patience, 1))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stall, func() { cancel(&stallError{stall}) })
	defer stalled.Stop()
	whole := 4*stall + time.Duration(c.bytes/slowest)*time.Second
	late := time.AfterFunc(whole, func() { cancel(&stallError{whole}) })
	defer late.Stop()
	err := send(ctx, func(sent, received int) {
		stalled.Reset(stall)
		s.counters.sent.Add(int64(sent))
		s.counters.received.Add(int64(received))
	})
	if cause, ok := context.Cause(ctx).(*stallError); ok && err != nil {
		// The idle ones may be as dead as this one, and each would take as long to tell.
		if t, ok := s.tuning.Transport.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
		return cause
	}
	return err
}

type stallError struct {
	after time.Duration
}

func (e *stallError) Error() string { return "no answer within " + e.after.String() }

// progressReader tells of what is read from it.
type progressReader struct {
	io.Reader
	progress func(n int)
}

func (r progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.progress(n)
	return n, err
}
