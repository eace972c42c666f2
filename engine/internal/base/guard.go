package base

import (
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Guard runs fn and makes of its panic, which a bad address is too, an error with the trace. Who works for a caller on a
// goroutine of its own needs it: a panic there is beyond the caller's reach and would end the process.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = PanicError(r)
		}
	}()
	return fn()
}

// PanicError makes the error about what recover returned, with the trace.
func PanicError(r any) error {
	return Errorf(CodeUnknown, "internal error: %v\n%s", r, debug.Stack())
}

// Each calls fn for 0 to n-1, at most limit at a time, waits for all of them, and returns what each returned. They are
// guarded.
func Each(n, limit int, fn func(i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = Guard(func() error { return fn(0) })
		return errs
	}
	var g errgroup.Group
	g.SetLimit(limit)
	for i := range n {
		g.Go(func() error {
			errs[i] = Guard(func() error { return fn(i) })
			return nil
		})
	}
	_ = g.Wait() // each has its own
	return errs
}
