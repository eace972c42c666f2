package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// osLock holds an flock, which belongs to the open file description: two opens conflict even in one process, and a
// dying process gives it up.
type osLock struct {
	f    *os.File
	name string
}

func (osFS) Lock(name, holder string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, wrapErr(OpLock, name, err)
	}
	err = flock(f, syscall.LOCK_EX)
	switch {
	case err == syscall.EWOULDBLOCK:
		text, readErr := io.ReadAll(io.LimitReader(f, maxHolderBytes))
		_ = f.Close()
		if readErr != nil {
			text = nil // the lock is taken in any case
		}
		return nil, lockedError(name, strings.TrimSpace(string(text)))
	case err == nil:
		err = f.Truncate(0)
		if err == nil {
			_, err = f.WriteAt([]byte(clipHolder(holder)+"\n"), 0)
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			err = nil // a full disk must not keep the owner out: the description is only for others' messages
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, wrapErr(OpLock, name, err)
	}
	return &osLock{f: f, name: name}, nil
}

// Close releases the lock. A second call does nothing.
func (l *osLock) Close() error {
	err := l.f.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return wrapErr(OpUnlock, l.name, err)
}

func (osFS) LockShared(name string) (io.Closer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, wrapErr(OpLockShared, name, err)
	}
	return lockNamed(OpLockShared, f, name, syscall.LOCK_SH)
}

func (osFS) TryLockExclusive(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0) // network file systems want the right to write for an exclusive lock
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, wrapErr(OpTryLock, name, err)
	}
	return lockNamed(OpTryLock, f, name, syscall.LOCK_EX)
}

// lockNamed locks f and makes sure that it is still what its name stands for. It closes f where that fails.
func lockNamed(op Op, f *os.File, name string, how int) (io.Closer, error) {
	err := flock(f, how)
	switch {
	case err == syscall.EWOULDBLOCK:
		err = lockedError(name, "another process")
	case err == nil:
		err = stillNamed(f, name)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, wrapErr(op, name, err)
	}
	return &osLock{f: f, name: name}, nil
}

func stillNamed(f *os.File, name string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(name)
	if err == nil && !os.SameFile(opened, named) {
		err = syscall.ENOENT
	}
	return err
}

// flock takes a lock without waiting for it.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}
