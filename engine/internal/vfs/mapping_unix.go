//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// MapTemporary implements [Mapper].
func (osFS) MapTemporary(dir string, size int) (*Mapping, error) {
	f, err := os.CreateTemp(dir, "mapping-*")
	if err != nil {
		return nil, wrapErr(OpCreate, dir, err)
	}
	defer f.Close() // the mapping keeps the file
	// Whoever sweeps the directory may have been faster.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, wrapErr(OpRemove, f.Name(), err)
	}
	if err := takeSpace(f, int64(size)); err != nil {
		return nil, wrapErr(OpPreallocate, f.Name(), err)
	}
	var mem []byte
	err = withDescriptor(f, func(fd int) (err error) {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, wrapErr(OpCreate, f.Name(), err)
	}
	return &Mapping{
		Mem:   mem,
		drop:  func() { _ = unix.Madvise(mem, unix.MADV_DONTNEED) }, // of a shared mapping the file keeps what was written
		close: func() { _ = unix.Munmap(mem) },                      // fails only for what is no mapping
	}, nil
}

// takeSpace gives the file its blocks: writing to a mapping where the disk has no space for it would end the process.
func takeSpace(f *os.File, size int64) error {
	err := preallocate(f, size)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

func withDescriptor(f *os.File, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := c.Control(func(fd uintptr) { callErr = call(int(fd)) }); err != nil {
		return err
	}
	return callErr
}
