package vfs

import (
	"errors"
	"fmt"
)

// ErrorFS lets a test make any operation fail. What the injector returns decides:
//   - nil: the operation runs;
//   - a *[ShortWrite]: a write moves only the first bytes, then fails;
//   - a *[FailAfter]: the operation runs, and then fails nevertheless (the answer was lost);
//   - any other error: the operation fails without running.
//
// Errors of package syscall, such as ENOSPC and EIO, get the code and message that the real file system gives them;
// errors that have a base code are returned as they are.
type ErrorFS struct {
	wrapFS
}

// NewErrorFS returns inner with injected failures. The injector is called before each operation, from many goroutines;
// the path of a rename is the old name. Operations on files and locks that it opened are seen too. Closing a file or lock
// releases it even where the injector makes Close fail.
func NewErrorFS(inner FS, injector func(op Op, path string) error) *ErrorFS {
	return &ErrorFS{wrapFS{inner: inner, obs: injection(injector)}}
}

// ShortWrite, returned by an injector for OpWrite, lets N bytes through (or what there is, if less) before Err. For other
// operations it is just Err.
type ShortWrite struct {
	N   int
	Err error
}

// Error implements error.
func (s *ShortWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", s.N, s.Err) }

// FailAfter, returned by an injector, lets the operation run before Err. Where the operation fails by itself, that error
// counts.
type FailAfter struct {
	Err error
}

// Error implements error.
func (f *FailAfter) Error() string { return fmt.Sprintf("failure afterwards: %v", f.Err) }

type injection func(op Op, path string) error

func (i injection) around(op Op, path string, size int, do func(int) (int, error)) (int, error) {
	err := i(op, path)
	if err == nil {
		return do(size)
	}
	var short *ShortWrite
	var after *FailAfter
	switch {
	case errors.As(err, &after):
		n, doErr := do(size)
		if doErr != nil {
			return n, doErr
		}
		return n, wrapErr(op, path, after.Err)
	case errors.As(err, &short):
		err = short.Err
		if op == OpWrite {
			n, doErr := do(max(0, min(short.N, size)))
			if doErr != nil {
				return n, doErr
			}
			return n, wrapErr(op, path, err)
		}
	}
	if op == OpClose || op == OpUnlock {
		_, _ = do(size) // the injected error is the one that counts
	}
	return 0, wrapErr(op, path, err)
}
