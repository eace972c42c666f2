package vfs

import "io"

// observer sees every operation of a wrapFS.
type observer interface {
	// around runs do, or fails instead. The path of a rename is the old name. size is what a read or write is asked to
	// move; do takes how much of it to move, and returns how much it did.
	around(op Op, path string, size int, do func(size int) (int, error)) (int, error)
}

// wrapFS passes every operation of a file system, and of what it opens, through an observer.
type wrapFS struct {
	inner FS
	obs   observer
}

func (w *wrapFS) do(op Op, path string, f func() error) error {
	_, err := w.obs.around(op, path, 0, func(int) (int, error) { return 0, f() })
	return err
}

func (w *wrapFS) open(op Op, name string, open func(string) (File, error)) (File, error) {
	var f File
	err := w.do(op, name, func() (err error) {
		f, err = open(name)
		return err
	})
	if err != nil {
		if f != nil {
			_ = f.Close() // the failure was made up afterwards
		}
		return nil, err
	}
	return &wrapFile{fs: w, inner: f}, nil
}

// Create implements [FS].
func (w *wrapFS) Create(name string) (File, error) { return w.open(OpCreate, name, w.inner.Create) }

// Open implements [FS].
func (w *wrapFS) Open(name string) (File, error) { return w.open(OpOpen, name, w.inner.Open) }

// OpenAppend implements [FS].
func (w *wrapFS) OpenAppend(name string) (File, error) {
	return w.open(OpOpenAppend, name, w.inner.OpenAppend)
}

// Truncate implements [FS].
func (w *wrapFS) Truncate(name string, size int64) error {
	return w.do(OpTruncate, name, func() error { return w.inner.Truncate(name, size) })
}

// Remove implements [FS].
func (w *wrapFS) Remove(name string) error {
	return w.do(OpRemove, name, func() error { return w.inner.Remove(name) })
}

// Rename implements [FS].
func (w *wrapFS) Rename(from, to string) error {
	return w.do(OpRename, from, func() error { return w.inner.Rename(from, to) })
}

// RenameExclusive implements [FS].
func (w *wrapFS) RenameExclusive(from, to string) error {
	return w.do(OpRenameExclusive, from, func() error { return w.inner.RenameExclusive(from, to) })
}

// MkdirAll implements [FS].
func (w *wrapFS) MkdirAll(dir string) error {
	return w.do(OpMkdirAll, dir, func() error { return w.inner.MkdirAll(dir) })
}

// RemoveAll implements [FS].
func (w *wrapFS) RemoveAll(dir string) error {
	return w.do(OpRemoveAll, dir, func() error { return w.inner.RemoveAll(dir) })
}

// List implements [FS].
func (w *wrapFS) List(dir string) (names []string, err error) {
	err = w.do(OpList, dir, func() (err error) {
		names, err = w.inner.List(dir)
		return err
	})
	return names, err
}

// Stat implements [FS].
func (w *wrapFS) Stat(name string) (info Info, err error) {
	err = w.do(OpStat, name, func() (err error) {
		info, err = w.inner.Stat(name)
		return err
	})
	return info, err
}

// SyncDir implements [FS].
func (w *wrapFS) SyncDir(dir string) error {
	return w.do(OpSyncDir, dir, func() error { return w.inner.SyncDir(dir) })
}

// Lock implements [FS].
func (w *wrapFS) Lock(name, holder string) (io.Closer, error) {
	return w.lock(OpLock, name, func() (io.Closer, error) { return w.inner.Lock(name, holder) })
}

// LockShared implements [FS].
func (w *wrapFS) LockShared(name string) (io.Closer, error) {
	return w.lock(OpLockShared, name, func() (io.Closer, error) { return w.inner.LockShared(name) })
}

// TryLockExclusive implements [FS].
func (w *wrapFS) TryLockExclusive(name string) (io.Closer, error) {
	return w.lock(OpTryLock, name, func() (io.Closer, error) { return w.inner.TryLockExclusive(name) })
}

func (w *wrapFS) lock(op Op, name string, lock func() (io.Closer, error)) (io.Closer, error) {
	var l io.Closer
	err := w.do(op, name, func() (err error) {
		l, err = lock()
		return err
	})
	if err != nil {
		if l != nil {
			_ = l.Close()
		}
		return nil, err
	}
	return &wrapLock{fs: w, inner: l, name: name}, nil
}

// Join implements [FS].
func (w *wrapFS) Join(elem ...string) string { return w.inner.Join(elem...) }

type wrapLock struct {
	fs    *wrapFS
	inner io.Closer
	name  string
}

func (l *wrapLock) Close() error { return l.fs.do(OpUnlock, l.name, l.inner.Close) }

type wrapFile struct {
	fs    *wrapFS
	inner File
}

func (f *wrapFile) Name() string { return f.inner.Name() }

func (f *wrapFile) ReadAt(p []byte, off int64) (int, error) {
	return f.fs.obs.around(OpRead, f.Name(), len(p), func(size int) (int, error) { return f.inner.ReadAt(p[:size], off) })
}

func (f *wrapFile) Write(p []byte) (int, error) {
	return f.fs.obs.around(OpWrite, f.Name(), len(p), func(size int) (int, error) { return f.inner.Write(p[:size]) })
}

func (f *wrapFile) Sync() error { return f.fs.do(OpSync, f.Name(), f.inner.Sync) }

func (f *wrapFile) Size() (size int64, err error) {
	err = f.fs.do(OpSize, f.Name(), func() (err error) {
		size, err = f.inner.Size()
		return err
	})
	return size, err
}

func (f *wrapFile) Preallocate(size int64) error {
	return f.fs.do(OpPreallocate, f.Name(), func() error { return Preallocate(f.inner, size) })
}

func (f *wrapFile) Close() error { return f.fs.do(OpClose, f.Name(), f.inner.Close) }
