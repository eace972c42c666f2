package base

import "runtime/debug"

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
