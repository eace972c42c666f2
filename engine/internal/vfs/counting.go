package vfs

import (
	"sync"
	"sync/atomic"
)

// Count is how often something was done and how many bytes it moved (reads and writes only).
type Count struct {
	Ops   int64
	Bytes int64
}

// CountingFS counts operations, and can call a hook after each one, which is the place to cut the power: see
// [MemFS.CrashClone].
type CountingFS struct {
	wrapFS
	c *counter
}

type counter struct {
	hook  atomic.Pointer[func(op Op, path string)]
	mu    sync.Mutex
	total [numOps]Count
	paths map[string]*[numOps]Count
}

// NewCountingFS returns inner with counters at zero. It remembers each path that it saw until Reset.
func NewCountingFS(inner FS) *CountingFS {
	c := &counter{paths: map[string]*[numOps]Count{}}
	return &CountingFS{wrapFS: wrapFS{inner: inner, obs: c}, c: c}
}

// SetHook makes hook be called after each operation, failed ones included, on the goroutine that did it and before that
// goroutine goes on; nil stops it. The path of a rename is the old name. The hook may use the inner file system; an
// operation on the CountingFS itself would call it again.
func (f *CountingFS) SetHook(hook func(op Op, path string)) {
	if hook == nil {
		f.c.hook.Store(nil)
		return
	}
	f.c.hook.Store(&hook)
}

// Count returns the counter of an operation over all paths.
func (f *CountingFS) Count(op Op) Count {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.c.total[op]
}

// PathCount returns the counter of an operation on one path, as it was spelled when it was opened or used.
func (f *CountingFS) PathCount(op Op, path string) Count {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if p := f.c.paths[path]; p != nil {
		return p[op]
	}
	return Count{}
}

// Counts returns the counters of all operations that happened.
func (f *CountingFS) Counts() map[Op]Count {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	out := map[Op]Count{}
	for op, c := range f.c.total {
		if c.Ops > 0 {
			out[Op(op)] = c
		}
	}
	return out
}

// Reset sets all counters to zero.
func (f *CountingFS) Reset() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.total = [numOps]Count{}
	clear(f.c.paths)
}

func (c *counter) around(op Op, path string, size int, do func(int) (int, error)) (int, error) {
	n, err := do(size)
	c.mu.Lock()
	p := c.paths[path]
	if p == nil {
		p = new([numOps]Count)
		c.paths[path] = p
	}
	for _, counts := range []*[numOps]Count{&c.total, p} {
		counts[op].Ops++
		counts[op].Bytes += int64(n)
	}
	c.mu.Unlock()
	if hook := c.hook.Load(); hook != nil {
		(*hook)(op, path)
	}
	return n, err
}
