package objstore

import (
	"net/http"
	"sync/atomic"
	"time"
)

// S3Tuning are the sizes and patience of S3 stores. They suit real ones; tests scale them.
type S3Tuning struct {
	// WholeBytes is how large an object may be to go in one request; less than PartBytes stands for that.
	WholeBytes int64
	// PartBytes is the size of the parts of larger ones. At least 5 MiB, or a store refuses them.
	PartBytes int64
	// PartParallelism is how many parts of one object go at a time.
	PartParallelism int
	// Attempts is how often a request is sent before its failure is the call's.
	Attempts int
	// BackoffBase is about how long the first retry waits; each further one waits twice as long, up to BackoffMax.
	BackoffBase, BackoffMax time.Duration
	// RetriesPerSecond bounds the retries of all calls of a store together; calls wait for their turn.
	RetriesPerSecond float64
	// Stall is after how long without a byte in either direction a request has failed.
	Stall time.Duration
	// Transport carries the requests; nil: the one that all stores of the process share.
	Transport http.RoundTripper
}

// DefaultS3Tuning returns what stores use when nobody says otherwise. Ten attempts wait some 10 s together, so that a
// store that drops half of the requests is not noticed, and one that is down is reported soon.
func DefaultS3Tuning() S3Tuning {
	return S3Tuning{
		WholeBytes:       64 << 20,
		PartBytes:        16 << 20,
		PartParallelism:  4,
		Attempts:         10,
		BackoffBase:      100 * time.Millisecond,
		BackoffMax:       3 * time.Second,
		RetriesPerSecond: 20,
		Stall:            20 * time.Second,
	}
}

var tuningOverride atomic.Pointer[S3Tuning]

// SetS3Tuning replaces what stores that [Open] makes from now on use, and returns how to undo that. For tests.
func SetS3Tuning(t S3Tuning) (undo func()) {
	old := tuningOverride.Swap(&t)
	return func() { tuningOverride.Store(old) }
}

func currentTuning() S3Tuning {
	if t := tuningOverride.Load(); t != nil {
		return *t
	}
	return DefaultS3Tuning()
}
