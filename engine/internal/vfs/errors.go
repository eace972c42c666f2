package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/merutable/merutable/engine/internal/base"
)

// wrapErr turns an error of the operating system, or an injected one, into a base.Error that names operation and path.
// Errors that have a code keep it.
func wrapErr(op Op, name string, err error) error {
	if err == nil {
		return nil
	}
	if c := base.CodeOf(err); c != base.CodeUnknown {
		return err
	}
	return base.Wrapf(codeOf(op, err), cause(err), "%s %s", op, name)
}

func codeOf(op Op, err error) base.Code {
	switch {
	case errors.Is(err, fs.ErrNotExist) && op != OpMkdirAll: // which makes what is missing, unless the parent cannot have it
		return base.CodeNotFound
	case errors.Is(err, syscall.ENOTDIR) && (op == OpOpen || op == OpOpenAppend || op == OpStat):
		return base.CodeNotFound // below a file there is nothing
	case errors.Is(err, syscall.EEXIST):
		return base.CodeAlreadyExists
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return base.CodeNoSpace
	case errors.Is(err, syscall.EROFS):
		return base.CodeReadOnly
	case errors.Is(err, fs.ErrPermission) && (op.Mutates() || op == OpOpenAppend):
		return base.CodeReadOnly
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		if op == OpPreallocate || op == OpLockShared || op == OpTryLock {
			return base.CodeUnsupported
		}
	case errors.Is(err, syscall.ENOLCK) && (op == OpLockShared || op == OpTryLock):
		return base.CodeUnsupported
	case errors.Is(err, fs.ErrClosed):
		return base.CodeClosed
	}
	return base.CodeIO
}

// cause strips what package os puts around a system error: operation and path are in our message already.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &se):
		return se.Err
	}
	return err
}
