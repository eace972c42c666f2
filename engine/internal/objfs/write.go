package objfs

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The writing half. A file is gathered here, in memory or, once it is large, in a local temporary file without a name, and
// becomes an object at its first Sync; one that is closed before never does. So an object appears whole or not at all.
// Names are given once: an object that is there already under a name that was just made up came with an attempt whose
// answer was lost. Directories need no making and no syncing. There are no locks and no renames; a small file is replaced
// by Replace.

// Create implements [vfs.FS].
func (f *FS) Create(name string) (vfs.File, error) {
	key, err := f.Key(name)
	if err == nil {
		err = objstore.CheckKey(key)
	}
	if err != nil {
		return nil, err
	}
	f.unsent.add(key)
	return &upload{fs: f, name: name, key: key}, nil
}

// Replace makes a small file hold data, whatever it held before, atomically and durably.
func (f *FS) Replace(name string, data []byte) error {
	key, err := f.Key(name)
	if err != nil {
		return err
	}
	ctx, cancel := sendContext(int64(len(data)))
	defer cancel()
	_, err = f.store.Put(ctx, key, objstore.Bytes(data))
	return named(err, name)
}

// Remove implements [vfs.FS]. A file that was given up before it was an object costs no request.
func (f *FS) Remove(name string) error {
	key, err := f.Key(name)
	if err != nil {
		return err
	}
	if f.unsent.take(key) {
		return nil
	}
	ctx, cancel := sendContext(0)
	defer cancel()
	return named(f.store.Delete(ctx, key), name)
}

// maxDeletes is how many objects RemoveAll deletes at a time.
const maxDeletes = 8

// RemoveAll implements [vfs.FS].
func (f *FS) RemoveAll(dir string) error {
	var names []string
	err := objstore.ListAll(context.Background(), f.store, f.Prefix(dir), func(i objstore.Info) error {
		names = append(names, f.root+"/"+i.Key)
		return nil
	})
	if err != nil {
		return named(err, dir)
	}
	return f.RemoveEach(names)
}

// RemoveEach removes files, several at a time, and returns the first error; the others are removed all the same.
func (f *FS) RemoveEach(names []string) error {
	return cmp.Or(base.Each(len(names), maxDeletes, func(i int) error { return f.Remove(names[i]) })...)
}

// MkdirAll implements [vfs.FS]: there are no directories.
func (f *FS) MkdirAll(string) error { return nil }

// SyncDir implements [vfs.FS]: an object that is there is durable.
func (f *FS) SyncDir(string) error { return nil }

func unsupported(what, name string) error {
	return base.Errorf(base.CodeUnsupported, "%s %s: an object store cannot", what, name)
}

// OpenAppend implements [vfs.FS].
func (f *FS) OpenAppend(name string) (vfs.File, error) { return nil, unsupported("append to", name) }

// Truncate implements [vfs.FS].
func (f *FS) Truncate(name string, _ int64) error { return unsupported("truncate", name) }

// Rename implements [vfs.FS].
func (f *FS) Rename(from, _ string) error { return unsupported("rename", from) }

// RenameExclusive implements [vfs.FS].
func (f *FS) RenameExclusive(from, _ string) error { return unsupported("rename", from) }

// Lock implements [vfs.FS].
func (f *FS) Lock(name, _ string) (io.Closer, error) { return nil, noLocks(name) }

// sendContext bounds a request that sends so many bytes: a rate that is of no use to anybody, and a minute.
func sendContext(bytes int64) (context.Context, context.CancelFunc) {
	const slowest = 64 << 10 // bytes a second
	return context.WithTimeout(context.Background(), time.Minute+time.Duration(bytes/slowest)*time.Second)
}

// unsent are the keys of files that were created and never sent.
type unsent struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

func (u *unsent) add(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		u.keys = map[string]struct{}{}
	}
	u.keys[key] = struct{}{}
}

// take takes a key out, and reports whether it was there.
func (u *unsent) take(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.keys[key]
	delete(u.keys, key)
	return ok
}
