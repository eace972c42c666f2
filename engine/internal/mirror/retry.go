package mirror

import (
	"context"
	"math/rand/v2"
	"time"
)

// retry says when the store is asked again after failures. While it fails, one request at a time tries, at intervals that
// double up to a bound, with jitter, so that a store that is down costs little and many mirrors do not come back at once.
//
// As soon as the store answers anything, all go on, before the one that tries has ended: a whole file may take long. Where
// jobs failed all the same, one that tries is waited for the next time.
type retry struct {
	failures int // in a row
	until    time.Time
	// answers is how many there were from the store when the last job failed.
	answers int64
	// answering: there were more since. deceived: there were before, and then jobs failed.
	answering, deceived bool
}

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
)

// failed takes note of a failure of a job that began after so many of them. Jobs that fail side by side count as one.
// answers is how many there were from the store.
func (r *retry) failed(began int, answers int64) {
	r.answers = answers
	r.deceived = r.deceived || r.answering
	r.answering = false
	if began < r.failures && r.waiting(time.Now()) {
		return
	}
	r.failures++
	pause := longestPause
	if r.failures <= 9 {
		pause = min(pause, firstPause<<(r.failures-1))
	}
	r.until = time.Now().Add(pause/2 + rand.N(pause/2+1))
}

// answered takes note of how many answers there were from the store.
func (r *retry) answered(answers int64) {
	r.answering = r.failures > 0 && !r.deceived && answers != r.answers
}

func (r *retry) succeeded() { *r = retry{} }

// waiting reports whether it is too early to try again.
func (r *retry) waiting(now time.Time) bool { return r.failures > 0 && now.Before(r.until) }

// Bounds of one request: a store that neither answers nor fails must not hold everything up.
const (
	requestPatience = 30 * time.Second
	slowestRate     = 64 << 10 // bytes a second
)

// withPatience bounds a request that moves so many bytes.
func withPatience(ctx context.Context, bytes int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestPatience+time.Duration(bytes)*time.Second/slowestRate)
}
