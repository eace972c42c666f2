package engine

import (
	"container/list"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The registry makes all handles of a process on one directory share one engine, so that they never disagree. It keeps
// idle read-only engines open in a small cache.
var registry = newRegistry()

type engines struct {
	mu sync.Mutex
	// writers and readers are keyed by the resolved path. Opening happens under the entry's own lock.
	writers map[engineKey]*shared
	readers map[engineKey]*shared
	// idle holds read-only engines without handles, the longest idle at the front.
	idle    *list.List
	maxIdle int
}

type engineKey struct {
	fs    vfs.FS
	dir   string
	store storeID // of an object store; zero for a directory
}

// shared is an engine with its handles counted.
type shared struct {
	key      engineKey
	readOnly bool

	open    sync.Mutex // held while the core is opened or closed
	c       *core
	retired bool // its last writer closed it: opening anew makes a new engine

	// guarded by registry.mu
	handles int // all handles
	writing int // handles that may write
	idle    *list.Element
}

func newRegistry() *engines {
	const defaultMaxIdle = 8
	return &engines{writers: map[engineKey]*shared{}, readers: map[engineKey]*shared{}, idle: list.New(), maxIdle: defaultMaxIdle}
}

// Open opens a database directory, with or without a table in it; a writing open creates it. The path may be a file://
// URI. The second process that opens a directory for writing gets CodeLocked at once.
func Open(path string, o Options) (*DB, error) {
	o = o.withFS()
	if _, err := o.effective(); err != nil { // before anything is made for it; what is stored comes later
		return nil, err
	}
	if objstore.IsURL(path) && !o.ReadOnly {
		if err := o.checkPrimary(path); err != nil {
			return nil, err
		}
	}
	if err := absoluteLogDir(&o); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		if o.Mirror != "" {
			return nil, base.Errorf(base.CodeInvalidArgument, "options mirror and read_only: who only reads has nothing to mirror")
		}
		return openReader(path, o)
	}
	if _, err := o.mirrorStore(""); err != nil {
		return nil, err
	}
	key, err := o.resolve(path, !o.NoCreate)
	if err != nil {
		return nil, err
	}
	return registry.acquire(key, o, false)
}

// OpenReader opens a database for reading: through the engine that this process has open for writing on the directory,
// else through a read-only one, which it refreshes. It never takes the writer's lock. CodeNotFound where there is no
// database. The path may be the URL of an object store, s3://bucket/prefix, which is reached as the environment says; Open
// takes options.
func OpenReader(path string) (*DB, error) {
	return openReader(path, Options{ReadOnly: true}.withFS())
}

func openReader(path string, o Options) (*DB, error) {
	key, err := o.resolve(path, false)
	if err != nil {
		return nil, err
	}
	db, err := registry.attach(key, o)
	if err != nil {
		return nil, err
	}
	if err := db.RefreshStale(); err != nil {
		db.Free()
		return nil, err
	}
	return db, nil
}

// SetReaderCache sets how many idle read-only engines the process keeps open, 0 to 1024; the default is 8.
func SetReaderCache(handles int) error {
	if handles < 0 || handles > 1024 {
		return base.Errorf(base.CodeInvalidArgument, "reader cache of %d handles: 0 to 1024 are allowed", handles)
	}
	registry.mu.Lock()
	registry.maxIdle = handles
	surplus := registry.trimIdle()
	registry.mu.Unlock()
	dropAll(surplus)
	return nil
}

// resolveDir returns the absolute path with symbolic links resolved, the name that one directory has for all.
func resolveDir(fs vfs.FS, path string, create bool) (string, error) {
	if rest, ok := strings.CutPrefix(path, "file://"); ok {
		unescaped, err := url.PathUnescape(rest)
		if err != nil || !strings.HasPrefix(unescaped, "/") {
			return "", base.Errorf(base.CodeInvalidArgument, "%q is not a file URI of this machine", path)
		}
		path = unescaped
	}
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return "", base.Errorf(base.CodeInvalidArgument, "the database path %q is empty or holds a zero byte", path)
	}
	if fs != vfs.OS {
		if create {
			return path, fs.MkdirAll(path)
		}
		return path, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", base.Wrapf(base.CodeIO, err, "path %q", path)
	}
	if create {
		if err := fs.MkdirAll(abs); err != nil {
			return "", err
		}
	}
	dir, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if os.IsNotExist(err) {
			return "", base.Errorf(base.CodeNotFound, "no database at %s: the directory does not exist", abs)
		}
		return "", base.Wrapf(base.CodeIO, err, "path %q", path)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", base.Errorf(base.CodeInvalidArgument, "%s is a file, not a database directory", dir)
	}
	return dir, nil
}

// attach returns a read-only handle on the writing engine of this process, else on a read-only one.
func (r *engines) attach(key engineKey, o Options) (*DB, error) {
	if db := r.joinWriter(key, o); db != nil {
		return db, nil
	}
	return r.acquire(key, o, true)
}

// joinWriter returns a read-only handle on this process's writing engine of the directory, nil where there is none.
func (r *engines) joinWriter(key engineKey, o Options) *DB {
	r.mu.Lock()
	s := r.writers[key]
	if s != nil {
		s.handles++
	}
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	s.open.Lock()
	c, retired := s.c, s.retired
	s.open.Unlock()
	if c == nil || retired { // its opening failed, or it was just closed
		s.release()
		return nil
	}
	return &DB{shared: s, c: c, dir: key.dir, readOnly: true, opts: o}
}

// acquire returns a handle on the engine of a directory, opening it if need be.
func (r *engines) acquire(key engineKey, o Options, readOnly bool) (*DB, error) {
	for {
		if db, err := r.tryAcquire(key, o, readOnly); db != nil || err != nil {
			return db, err
		}
	}
}

// tryAcquire returns neither handle nor error where the engine was closed by its last writer just now.
func (r *engines) tryAcquire(key engineKey, o Options, readOnly bool) (*DB, error) {
	table := r.writers
	if readOnly {
		table = r.readers
	}
	var left []*shared
	r.mu.Lock()
	s := table[key]
	if s == nil && !readOnly && r.rival(key) {
		r.mu.Unlock()
		return nil, base.Errorf(base.CodeLocked, "%s is open for writing in this process with other credentials or settings of the store: each writer would lose its place to the other one", key.dir)
	}
	if s != nil && s.idle != nil && s.c.otherCache(o) {
		r.idle.Remove(s.idle)
		s.idle = nil
		r.forget(s)
		left, s = []*shared{s}, nil
	}
	if s == nil {
		s = &shared{key: key, readOnly: readOnly}
		table[key] = s
	}
	s.handles++
	if !readOnly {
		s.writing++
	}
	if s.idle != nil {
		r.idle.Remove(s.idle)
		s.idle = nil
	}
	r.mu.Unlock()
	dropAll(left)

	s.open.Lock()
	defer s.open.Unlock()
	if s.retired {
		r.giveUp(s)
		return nil, nil
	}
	if s.c == nil {
		c, err := openCore(key.dir, o)
		if err != nil {
			r.giveUp(s)
			return nil, err
		}
		s.c = c
	}
	return &DB{shared: s, c: s.c, dir: key.dir, readOnly: readOnly, opts: o}, nil
}

// otherCache reports whether options ask for a cache on disk that an engine does not have.
func (c *core) otherCache(o Options) bool {
	has := c.database.opts
	return o.ObjectCacheDir != "" && c.remote() &&
		(o.ObjectCacheDir != has.ObjectCacheDir || o.ObjectCacheBytes != 0 && max(o.ObjectCacheBytes, 0) != has.ObjectCacheBytes)
}

// rival reports whether a database in an object store is open for writing through another configuration of the same store.
// It runs under r.mu.
func (r *engines) rival(key engineKey) bool {
	for other := range r.writers {
		if other != key && other.dir == key.dir && objstore.IsURL(key.dir) && other.store.given == nil && key.store.given == nil &&
			other.store.config.Endpoint == key.store.config.Endpoint {
			return true
		}
	}
	return false
}

// share counts one more handle on an engine that has one already.
func (s *shared) share(writing bool) {
	registry.mu.Lock()
	s.handles++
	if writing {
		s.writing++
	}
	registry.mu.Unlock()
}

// giveUp takes back the handle of an opening that failed, or that found an engine which its last writer had closed. It
// runs under s.open.
func (r *engines) giveUp(s *shared) {
	r.mu.Lock()
	s.handles--
	if !s.readOnly {
		s.writing--
	}
	last := s.handles == 0
	if last {
		r.forget(s)
	}
	r.mu.Unlock()
	if last {
		s.drop()
	}
}

// forget removes s from the tables; it runs under r.mu.
func (r *engines) forget(s *shared) {
	if r.writers[s.key] == s {
		delete(r.writers, s.key)
	}
	if r.readers[s.key] == s {
		delete(r.readers, s.key)
	}
}

// closeWriter takes one writing handle back. With flush its rows go to files; the last one seals the engine and releases
// the directory, and the next open makes a new engine.
func (s *shared) closeWriter(flush bool) error {
	registry.mu.Lock()
	s.writing--
	last := s.writing == 0
	registry.mu.Unlock()
	if !last {
		if !flush {
			return nil
		}
		err := s.c.flushTables()
		if base.CodeOf(err) == base.CodeClosed {
			return nil // the last handle was closed meanwhile: it flushed, or left the rows in the log
		}
		return err
	}
	s.open.Lock()
	defer s.open.Unlock()
	if s.retired {
		return nil // another handle was opened and closed between the two locks
	}
	registry.mu.Lock()
	reopened := s.writing > 0
	registry.mu.Unlock()
	if reopened {
		if flush {
			return s.c.flushTables()
		}
		return nil
	}
	// Whoever opens it from here on waits for the lock above, finds it retired and makes a new engine, which then
	// finds the directory free.
	s.retired = true
	var err error
	if flush {
		err = s.c.seal()
	} else {
		s.c.abandon()
	}
	registry.mu.Lock()
	registry.forget(s)
	registry.mu.Unlock()
	return err
}

// release takes one handle back.
func (s *shared) release() {
	registry.mu.Lock()
	s.handles--
	var surplus []*shared
	if s.handles == 0 {
		if s.readOnly && s.c != nil && registry.maxIdle > 0 && registry.readers[s.key] == s {
			s.idle = registry.idle.PushBack(s)
			s.c.rest()
			surplus = registry.trimIdle()
		} else {
			registry.forget(s)
			surplus = []*shared{s}
		}
	}
	registry.mu.Unlock()
	dropAll(surplus)
}

// trimIdle takes the surplus out of the idle cache; it runs under r.mu.
func (r *engines) trimIdle() []*shared {
	var out []*shared
	for r.idle.Len() > r.maxIdle {
		s := r.idle.Remove(r.idle.Front()).(*shared)
		s.idle = nil
		r.forget(s)
		out = append(out, s)
	}
	return out
}

func dropAll(list []*shared) {
	for _, s := range list {
		s.open.Lock()
		s.drop()
		s.open.Unlock()
	}
}

// drop ends an engine without handles; it runs under s.open.
func (s *shared) drop() {
	if s.c != nil {
		s.c.release()
		s.c.drop()
	}
}

// current reports whether a read-only handle on s sees what this process writes: s is the writing engine, or there is
// none.
func (r *engines) current(s *shared) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writers[s.key]
	return w == s || s.readOnly && w == nil
}
