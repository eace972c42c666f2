package vfs

import (
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"
)

// memContent is what a file holds, and what of it is durable. Its owner guards it.
type memContent struct {
	data []byte // ends where the last written byte is; up to size the file reads as zeros
	size int64
	// synced is how many bytes from the start are durable, syncedSize the durable length (larger in a preallocated file).
	synced, syncedSize int64
	// bounds are the positions, ascending, where unsynced writes began: a page may have gone to disk between two writes.
	bounds []int64
	// replaced is the durable content from before the file was emptied, until the next sync. The power cut decides
	// which one is there.
	replaced    []byte
	hasReplaced bool
}

// empty is what creating a file over an existing one does.
func (c *memContent) empty() {
	if !c.hasReplaced && c.syncedSize > 0 {
		c.replaced = make([]byte, c.syncedSize)
		copy(c.replaced, c.data[:min(c.synced, int64(len(c.data)))])
		c.hasReplaced = true
	}
	c.data, c.size, c.synced, c.syncedSize, c.bounds = nil, 0, 0, 0, nil
}

func (c *memContent) write(p []byte, at int64) {
	end := at + int64(len(p))
	if at > int64(len(c.data)) {
		c.data = append(c.data, make([]byte, at-int64(len(c.data)))...)
	}
	n := copy(c.data[at:], p)
	c.data = append(c.data, p[n:]...)
	c.size = max(c.size, end)
	c.synced = min(c.synced, at)
	c.bounds = append(c.bounds, at)
}

func (c *memContent) resize(size int64) {
	if size < int64(len(c.data)) {
		// A copy: readers may hold nothing of it, but growing again must find zeros.
		c.data = append([]byte(nil), c.data[:size]...)
	}
	c.size = size
}

func (c *memContent) sync() {
	c.synced, c.syncedSize = int64(len(c.data)), c.size
	c.bounds = c.bounds[:0]
	c.replaced, c.hasReplaced = nil, false
}

// memFile is an open file of a MemFS. It goes on working when the file is removed or renamed.
type memFile struct {
	node     *memNode
	name     string
	writable bool

	mu     sync.Mutex
	pos    int64
	closed bool
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	err := f.check()
	if err == nil && off < 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return 0, wrapErr(OpRead, f.name, err)
	}
	n := f.node
	n.mu.RLock()
	defer n.mu.RUnlock()
	c := &n.content
	if off >= c.size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	total := int(min(int64(len(p)), c.size-off))
	copied := 0
	if off < int64(len(c.data)) {
		copied = copy(p[:total], c.data[off:])
	}
	clear(p[copied:total])
	if total < len(p) {
		return total, io.EOF
	}
	return total, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.writableLocked(); err != nil {
		return 0, wrapErr(OpWrite, f.name, err)
	}
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	if len(p) > 0 {
		f.node.content.write(p, f.pos)
		f.node.modTime = time.Now()
		f.pos += int64(len(p))
	}
	return len(p), nil
}

func (f *memFile) writableLocked() error {
	if f.closed {
		return fs.ErrClosed
	}
	if !f.writable {
		return syscall.EBADF
	}
	return nil
}

func (f *memFile) Sync() error {
	if err := f.check(); err != nil {
		return wrapErr(OpSync, f.name, err)
	}
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.node.content.sync()
	return nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check(); err != nil {
		return 0, wrapErr(OpSize, f.name, err)
	}
	f.node.mu.RLock()
	defer f.node.mu.RUnlock()
	return f.node.content.size, nil
}

func (f *memFile) Preallocate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.writableLocked(); err != nil {
		return wrapErr(OpPreallocate, f.name, err)
	}
	f.node.mu.Lock()
	defer f.node.mu.Unlock()
	f.node.content.size = max(f.node.content.size, size)
	return nil
}

func (f *memFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return wrapErr(OpClose, f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}
