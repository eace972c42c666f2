package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// withFd runs a system call on the file's descriptor, again while a signal interrupts it. It keeps the descriptor open
// meanwhile.
func withFd(f *os.File, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	err = c.Control(func(fd uintptr) {
		for {
			if callErr = call(int(fd)); callErr != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return callErr
}

func dataSync(f *os.File) error { return withFd(f, unix.Fdatasync) }

func preallocate(f *os.File, size int64) error {
	i, err := f.Stat()
	if err != nil || i.Size() >= size {
		return err
	}
	return withFd(f, func(fd int) error { return unix.Fallocate(fd, 0, i.Size(), size-i.Size()) })
}

func renameExclusive(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return linkAndRemove(from, to) // a file system without the flag
	}
	return err
}
