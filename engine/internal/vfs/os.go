package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
)

// OS is the operating system's file system. Durability calls reach the disk: Sync is fdatasync on Linux (which also
// makes a changed size durable), fsync or stronger elsewhere.
var OS FS = osFS{}

type osFS struct{}

// osFile is a file of the operating system. It writes at a position of its own, not in append mode, because a
// preallocated file ends behind what was written.
type osFile struct {
	f    *os.File
	name string
	pos  atomic.Int64
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, wrapErr(OpCreate, name, err)
	}
	return &osFile{f: f, name: name}, nil
}

func (osFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, wrapErr(OpOpen, name, err)
	}
	return &osFile{f: f, name: name}, nil
}

func (osFS) OpenAppend(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, wrapErr(OpOpenAppend, name, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, wrapErr(OpOpenAppend, name, err)
	}
	file := &osFile{f: f, name: name}
	file.pos.Store(info.Size())
	return file, nil
}

func (osFS) Truncate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return wrapErr(OpTruncate, name, err)
	}
	err = f.Truncate(size)
	if err == nil {
		err = dataSync(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return wrapErr(OpTruncate, name, err)
}

func (osFS) Remove(name string) error { return wrapErr(OpRemove, name, os.Remove(name)) }

func (osFS) Rename(from, to string) error {
	return wrapErr(OpRename, from+" to "+to, os.Rename(from, to))
}

func (osFS) RenameExclusive(from, to string) error {
	return wrapErr(OpRenameExclusive, from+" to "+to, renameExclusive(from, to))
}

// linkAndRemove is RenameExclusive in two steps, each atomic: link fails where the name is taken. A crash between them
// leaves the old name as well.
func linkAndRemove(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

func (osFS) MkdirAll(dir string) error { return wrapErr(OpMkdirAll, dir, os.MkdirAll(dir, 0o777)) }

func (osFS) RemoveAll(dir string) error { return wrapErr(OpRemoveAll, dir, os.RemoveAll(dir)) }

func (osFS) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, wrapErr(OpList, dir, err)
	}
	names, err := d.Readdirnames(-1)
	if e := d.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, wrapErr(OpList, dir, err)
	}
	slices.Sort(names)
	return names, nil
}

func (osFS) Stat(name string) (Info, error) {
	i, err := os.Stat(name)
	if err != nil {
		return Info{}, wrapErr(OpStat, name, err)
	}
	return Info{Size: i.Size(), ModTime: i.ModTime(), IsDir: i.IsDir()}, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return wrapErr(OpSyncDir, dir, err)
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // some network file systems cannot sync directories: their server orders the changes
	}
	if e := d.Close(); err == nil {
		err = e
	}
	return wrapErr(OpSyncDir, dir, err)
}

func (osFS) Join(elem ...string) string { return filepath.Join(elem...) }

func (f *osFile) Name() string { return f.name }

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, wrapErr(OpRead, f.name, err)
}

func (f *osFile) Write(p []byte) (int, error) {
	n, err := f.f.WriteAt(p, f.pos.Load())
	f.pos.Add(int64(n))
	return n, wrapErr(OpWrite, f.name, err)
}

func (f *osFile) Sync() error { return wrapErr(OpSync, f.name, dataSync(f.f)) }

func (f *osFile) Size() (int64, error) {
	i, err := f.f.Stat()
	if err != nil {
		return 0, wrapErr(OpSize, f.name, err)
	}
	return i.Size(), nil
}

func (f *osFile) Preallocate(size int64) error {
	return wrapErr(OpPreallocate, f.name, preallocate(f.f, size))
}

func (f *osFile) Close() error { return wrapErr(OpClose, f.name, f.f.Close()) }
