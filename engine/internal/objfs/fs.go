// Package objfs is a vfs.FS over an object store: what reads a database directory reads an object store through it.
//
// Names are the URL of the database and, behind a slash, the object's key. Data files and deletion vectors, which are
// never changed once they are there, are read in blocks that a cache in memory and one on disk keep; other objects, which
// are small, are read whole, anew each time. There are no directories: one is there as long as an object is in it.
package objfs

import (
	"context"
	"io"
	"path"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Options configure an FS.
type Options struct {
	// Root is the URL that names begin with, without a slash at the end. The store's keys are below it.
	Root string
	// MemoryBytes bounds the blocks that are kept in memory. There is a least, of some blocks.
	MemoryBytes int64
	// Disk keeps blocks for longer than the process; nil: nothing does.
	Disk *DiskCache
	// Identity tells the store from others of the same URL in a disk cache: its endpoint.
	Identity string
}

// FS is a file system over an object store. Use [New]. Its methods may be called from any goroutine.
type FS struct {
	store objstore.Store
	root  string
	*blocks
	unsent unsent
}

var _ vfs.FS = (*FS)(nil)

// New returns the file system of a store. It asks nothing of it.
func New(store objstore.Store, o Options) *FS {
	return &FS{store: store, root: o.Root, blocks: newBlocks(store, o)}
}

// Store returns the store below.
func (f *FS) Store() objstore.Store { return f.store }

// Key returns the key of the object that a name stands for; of the root it is "".
func (f *FS) Key(name string) (string, error) {
	if name == f.root {
		return "", nil
	}
	key, found := strings.CutPrefix(name, f.root+"/")
	if !found {
		return "", base.Errorf(base.CodeInvalidArgument, "%s is not below %s", name, f.root)
	}
	return key, nil
}

// Prefix returns what the keys of a directory, which is below the root or the root, begin with.
func (f *FS) Prefix(dir string) string {
	key := strings.TrimPrefix(strings.TrimPrefix(dir, f.root), "/")
	if key == "" {
		return ""
	}
	return key + "/"
}

// immutable reports whether the object of a key is never replaced by another one.
func immutable(key string) bool {
	ext := path.Ext(key)
	return ext == ".parquet" || ext == ".puffin"
}

// Open implements [vfs.FS]. Of data files and deletion vectors it does not ask whether they are there: the first read
// tells.
func (f *FS) Open(name string) (vfs.File, error) { return f.OpenSized(name, unknownSize) }

// OpenSized implements [vfs.SizedOpener].
func (f *FS) OpenSized(name string, size int64) (vfs.File, error) {
	key, err := f.Key(name)
	if err != nil {
		return nil, err
	}
	if immutable(key) {
		return f.openBlocks(name, key, size), nil
	}
	data, err := objstore.ReadSmall(context.Background(), f.store, key, maxWholeBytes)
	if err != nil {
		return nil, named(err, name)
	}
	return &wholeFile{name: name, data: data}, nil
}

// maxWholeBytes bounds an object that is read whole.
const maxWholeBytes = base.MaxManifestBytes + 1<<10

// named puts the name before an error of the store, whose code stays.
func named(err error, name string) error {
	if err == nil || err == io.EOF {
		return err
	}
	return base.Wrapf(base.CodeOf(err), err, "%s", name)
}

// Stat implements [vfs.FS].
func (f *FS) Stat(name string) (vfs.Info, error) {
	key, err := f.Key(name)
	if err != nil {
		return vfs.Info{}, err
	}
	ctx := context.Background()
	if key != "" {
		info, err := f.store.Head(ctx, key)
		if err == nil {
			return vfs.Info{Size: info.Size, ModTime: info.ModTime}, nil
		}
		if base.CodeOf(err) != base.CodeNotFound {
			return vfs.Info{}, named(err, name)
		}
		key += "/"
	}
	inside, err := f.store.List(ctx, key, "", 1)
	if err != nil {
		return vfs.Info{}, named(err, name)
	}
	if len(inside) == 0 {
		return vfs.Info{}, base.Errorf(base.CodeNotFound, "%s: there is no such object", name)
	}
	return vfs.Info{IsDir: true, ModTime: time.Time{}}, nil
}

// List implements [vfs.FS]: the objects directly in a directory, and the directories in it. It costs a request for each
// thousand objects and for each directory.
func (f *FS) List(dir string) ([]string, error) {
	prefix, err := f.Key(dir)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	var names []string
	for after := ""; ; {
		page, err := f.store.List(context.Background(), prefix, after, objstore.MaxList)
		if err != nil {
			return nil, named(err, dir)
		}
		for _, info := range page {
			after = info.Key
			name, _, isDir := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
			if isDir && len(page) == objstore.MaxList {
				after = prefix + name + "/" + lastName // the rest of the directory is of no interest
				break
			}
		}
		if len(page) < objstore.MaxList {
			break
		}
	}
	if len(names) == 0 {
		return nil, base.Errorf(base.CodeNotFound, "%s: there is no such object", dir)
	}
	return names, nil
}

// lastName sorts behind every name that is given to an object.
const lastName = "\U0010FFFF"

// Join implements [vfs.FS].
func (f *FS) Join(elem ...string) string {
	var b strings.Builder
	for _, e := range elem {
		if b.Len() > 0 && e != "" {
			b.WriteByte('/')
		}
		b.WriteString(strings.TrimSuffix(e, "/"))
	}
	return b.String()
}

// LockShared implements [vfs.FS]: there are no locks.
func (f *FS) LockShared(name string) (io.Closer, error) { return nil, noLocks(name) }

// TryLockExclusive implements [vfs.FS]: there are no locks.
func (f *FS) TryLockExclusive(name string) (io.Closer, error) { return nil, noLocks(name) }

func noLocks(name string) error {
	return base.Errorf(base.CodeUnsupported, "lock %s: an object store has no locks", name)
}
