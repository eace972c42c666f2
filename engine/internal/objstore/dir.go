package objstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	// tmpDir holds objects that are being written. Its name is no key, so no listing shows it.
	tmpDir = ".tmp"
	// tmpMaxAge is after how long a file in tmpDir belongs to nobody who is alive.
	tmpMaxAge = 24 * time.Hour
)

// Dir keeps objects as files of a directory, the key being the relative path. Several processes may use one directory.
// Use [NewDir].
type Dir struct {
	fs   vfs.FS
	root string
	// token and counter make names in tmpDir that no other store uses.
	token   string
	counter atomic.Uint64

	mu sync.Mutex
	// made are the directories, as keys, that are known to be durable.
	made map[string]struct{}
}

// NewDir returns the store in a directory, which is made by the first Put if it is missing.
func NewDir(fs vfs.FS, root string) *Dir {
	token := make([]byte, 12)
	_, _ = rand.Read(token) // never fails
	return &Dir{fs: fs, root: root, token: hex.EncodeToString(token), made: map[string]struct{}{}}
}

// String implements [Store].
func (d *Dir) String() string { return d.root }

func (d *Dir) path(key string) string { return d.fs.Join(d.root, key) }

// Put implements [Store].
func (d *Dir) Put(ctx context.Context, key string, body Body) (Info, error) {
	return d.put(ctx, "put", key, body, d.fs.Rename)
}

// PutIfAbsent implements [Store]. The object is written aside and then renamed, exclusively: there is no moment at which
// it is there but not whole.
func (d *Dir) PutIfAbsent(ctx context.Context, key string, body Body) (Info, error) {
	const what = "put if absent"
	if err := d.admit(ctx, what, key); err != nil {
		return Info{}, err
	}
	info, err := d.fs.Stat(d.path(key))
	switch {
	case err == nil && !info.IsDir:
		return Info{}, d.exists(key)
	case err == nil:
		return Info{}, d.clash(what, key)
	case base.CodeOf(err) != base.CodeNotFound:
		return Info{}, d.wrap(what, key, err)
	}
	made, err := d.put(ctx, what, key, body, d.fs.RenameExclusive)
	if base.CodeOf(err) != base.CodeAlreadyExists {
		return made, err
	}
	if info, e := d.fs.Stat(d.path(key)); e == nil && info.IsDir {
		return Info{}, d.clash(what, key)
	}
	return Info{}, d.exists(key)
}

// exists returns CodeAlreadyExists once the object that is there is durable: its writer may not have come that far.
func (d *Dir) exists(key string) error {
	if err := d.fs.SyncDir(d.fs.Join(d.root, path.Dir(key))); err != nil {
		return d.wrap("put if absent", key, err)
	}
	return base.Errorf(base.CodeAlreadyExists, "%s: %s is there already", d, key)
}

func (d *Dir) clash(what, key string) error {
	return base.Errorf(base.CodeObjectStore, "%s: %s %s: other keys begin with it", d, what, key)
}

// put writes a temporary file, syncs it, and renames it into place.
func (d *Dir) put(ctx context.Context, what, key string, body Body, rename func(from, to string) error) (Info, error) {
	if err := d.admit(ctx, what, key); err != nil {
		return Info{}, err
	}
	parent := path.Dir(key)
	if err := d.makeDir(parent); err != nil {
		return Info{}, d.wrap(what, key, err)
	}
	if err := d.makeDir(tmpDir); err != nil {
		return Info{}, d.wrap(what, key, err)
	}
	tmp := d.fs.Join(d.root, tmpDir, fmt.Sprintf("%s-%d", d.token, d.counter.Add(1)))
	if err := d.writeFile(ctx, what, key, tmp, body); err != nil {
		_ = d.fs.Remove(tmp) // else it goes with age
		return Info{}, err
	}
	info, err := d.fs.Stat(tmp)
	if err == nil {
		err = rename(tmp, d.path(key))
	}
	if err != nil {
		_ = d.fs.Remove(tmp)
		if base.CodeOf(err) == base.CodeAlreadyExists {
			return Info{}, err
		}
		return Info{}, d.wrap(what, key, err)
	}
	if err := d.fs.SyncDir(d.fs.Join(d.root, parent)); err != nil {
		return Info{}, d.wrap(what, key, err)
	}
	return describe(key, info), nil
}

func (d *Dir) writeFile(ctx context.Context, what, key, tmp string, body Body) error {
	f, err := d.fs.Create(tmp)
	if err != nil {
		return d.wrap(what, key, err)
	}
	err = copyBody(ctx, d, what, key, body, func(p []byte) error {
		_, err := f.Write(p)
		return d.wrap(what, key, err)
	})
	if err == nil {
		err = d.wrap(what, key, f.Sync())
	}
	if e := f.Close(); err == nil {
		err = d.wrap(what, key, e)
	}
	return err
}

// makeDir makes a directory, given as a key, and makes it durable up to and including the root's own name.
func (d *Dir) makeDir(dir string) error {
	d.mu.Lock()
	_, known := d.made[dir]
	d.mu.Unlock()
	if known {
		return nil
	}
	full := d.fs.Join(d.root, dir)
	if err := d.fs.MkdirAll(full); err != nil {
		return err
	}
	for up := dir; up != "."; up = path.Dir(up) {
		if err := d.fs.SyncDir(d.fs.Join(d.root, path.Dir(up))); err != nil {
			return err
		}
	}
	// The directory above the root may be closed to us. Then the root was not made by us either.
	_ = d.fs.SyncDir(d.fs.Join(d.root, ".."))
	if dir == tmpDir {
		d.sweep(full)
	}
	d.mu.Lock()
	d.made[dir] = struct{}{}
	d.mu.Unlock()
	return nil
}

// sweep removes what crashed writers left. It is no harm where it fails.
func (d *Dir) sweep(tmp string) {
	names, err := d.fs.List(tmp)
	if err != nil {
		return
	}
	for _, name := range names {
		file := d.fs.Join(tmp, name)
		if info, err := d.fs.Stat(file); err == nil && time.Since(info.ModTime) > tmpMaxAge {
			_ = d.fs.Remove(file)
		}
	}
}

// ReadAt implements [Store].
func (d *Dir) ReadAt(ctx context.Context, key string, p []byte, offset int64) (n int, err error) {
	const what = "read"
	if err := CheckRange(key, offset); err != nil {
		return 0, err
	}
	if err := d.admit(ctx, what, key); err != nil {
		return 0, err
	}
	n, err = d.readFile(d.path(key), p, offset)
	if err == nil || err == io.EOF {
		return n, err
	}
	if info, e := d.fs.Stat(d.path(key)); e == nil && info.IsDir {
		err = errDirectory // which may be opened, but not read
	}
	return n, d.wrapMissing(what, key, err)
}

func (d *Dir) readFile(name string, p []byte, offset int64) (int, error) {
	f, err := d.fs.Open(name)
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(p, offset)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == io.EOF && n == len(p) {
		err = nil
	}
	return n, err
}

// errDirectory says that a key is only the beginning of others.
var errDirectory = base.Errorf(base.CodeNotFound, "it is a directory")

// Head implements [Store].
func (d *Dir) Head(ctx context.Context, key string) (Info, error) {
	if err := d.admit(ctx, "head", key); err != nil {
		return Info{}, err
	}
	info, err := d.fs.Stat(d.path(key))
	if err == nil && info.IsDir {
		err = errDirectory
	}
	if err != nil {
		return Info{}, d.wrapMissing("head", key, err)
	}
	return describe(key, info), nil
}

// Delete implements [Store]. Directories stay, also empty ones.
func (d *Dir) Delete(ctx context.Context, key string) error {
	_, err := d.Head(ctx, key)
	if err == nil {
		err = d.wrapMissing("delete", key, d.fs.Remove(d.path(key)))
	}
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	return err
}

func (d *Dir) admit(ctx context.Context, what, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return ContextError(ctx, d, what, key)
}

func (d *Dir) wrap(what, key string, err error) error {
	code := base.CodeObjectStore
	if base.CodeOf(err) == base.CodeNoSpace {
		code = base.CodeNoSpace
	}
	return base.Wrapf(code, err, "%s: %s %s", d, what, key)
}

// wrapMissing is wrap where a missing file means a missing object.
func (d *Dir) wrapMissing(what, key string, err error) error {
	if base.CodeOf(err) == base.CodeNotFound {
		return base.Wrapf(base.CodeNotFound, err, "%s: %s %s: no such object", d, what, key)
	}
	return d.wrap(what, key, err)
}

func describe(key string, i vfs.Info) Info {
	return Info{Key: key, Size: i.Size, ModTime: i.ModTime, ETag: fmt.Sprintf("%x-%x", i.Size, i.ModTime.UnixNano())}
}
