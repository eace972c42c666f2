package objfs

import (
	"io"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func readOnly(what, name string) error {
	return base.Errorf(base.CodeReadOnly, "%s %s: the object store is open for reading only", what, name)
}

// Create implements [vfs.FS].
func (f *FS) Create(name string) (vfs.File, error) { return nil, readOnly("create", name) }

// OpenAppend implements [vfs.FS].
func (f *FS) OpenAppend(name string) (vfs.File, error) { return nil, readOnly("append to", name) }

// Truncate implements [vfs.FS].
func (f *FS) Truncate(name string, _ int64) error { return readOnly("truncate", name) }

// Remove implements [vfs.FS].
func (f *FS) Remove(name string) error { return readOnly("remove", name) }

// Rename implements [vfs.FS].
func (f *FS) Rename(from, _ string) error { return readOnly("rename", from) }

// RenameExclusive implements [vfs.FS].
func (f *FS) RenameExclusive(from, _ string) error { return readOnly("rename", from) }

// MkdirAll implements [vfs.FS].
func (f *FS) MkdirAll(dir string) error { return readOnly("make directory", dir) }

// RemoveAll implements [vfs.FS].
func (f *FS) RemoveAll(dir string) error { return readOnly("remove", dir) }

// SyncDir implements [vfs.FS].
func (f *FS) SyncDir(dir string) error { return readOnly("sync directory", dir) }

// Lock implements [vfs.FS].
func (f *FS) Lock(name, _ string) (io.Closer, error) { return nil, readOnly("lock", name) }
