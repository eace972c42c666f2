package sst

import (
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// maxOpenFiles is how many data files of one engine are open at a time: a database may have more of them than a process
// may have descriptors.
const maxOpenFiles = 500

// fileTable keeps the files read last open. It is part of the cache, which all readers of an engine share.
type fileTable struct {
	mu   sync.Mutex
	max  int
	open int
	root handle // of the ring of handles that are open: root.next is the one used last
}

func newFileTable(max int) *fileTable {
	t := &fileTable{max: max}
	t.root.next, t.root.prev = &t.root, &t.root
	return t
}

// handle reads a file of the table, which is opened when it is read and closed when it has not been read for the
// longest time of all. Opening it again by its path is safe: the files are immutable, and whoever reads one has pinned
// it. Its methods may be called from any goroutine, but Close only behind all others.
type handle struct {
	fs    vfs.FS
	path  string
	size  int64
	table *fileTable
	// The rest is guarded by table.mu.
	file       vfs.File // nil: closed
	users      int
	prev, next *handle
}

func (t *fileTable) handle(fs vfs.FS, path string, size int64) *handle {
	return &handle{fs: fs, path: path, size: size, table: t}
}

// ReadAt implements io.ReaderAt.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	f, err := h.acquire()
	if base.CodeOf(err) == base.CodeNotFound {
		err = base.Wrapf(base.CodeIO, err, "the file was removed while it was in use")
	}
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(p, off)
	h.release()
	return n, err
}

// open opens the file, as a first ReadAt would.
func (h *handle) open() error {
	_, err := h.acquire()
	if err == nil {
		h.release()
	}
	return err
}

// acquire returns the open file and keeps it open until release.
func (h *handle) acquire() (vfs.File, error) {
	t := h.table
	t.mu.Lock()
	if h.file != nil {
		h.users++
		h.unlink()
		h.linkBehind(&t.root)
		t.mu.Unlock()
		return h.file, nil
	}
	t.mu.Unlock()
	f, err := vfs.OpenSized(h.fs, h.path, h.size)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	var idle []vfs.File
	if h.file == nil {
		h.file = f
		h.linkBehind(&t.root)
		t.open++
	} else {
		idle = append(idle, f) // another goroutine was faster
	}
	h.users++
	f = h.file
	idle = append(idle, t.surplus()...)
	t.mu.Unlock()
	closeAll(idle)
	return f, nil
}

func (h *handle) release() {
	h.table.mu.Lock()
	h.users--
	h.table.mu.Unlock()
}

// Close closes the file.
func (h *handle) Close() error {
	t := h.table
	t.mu.Lock()
	f := h.file
	if f != nil {
		t.drop(h)
	}
	t.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Close()
}

// surplus takes files that nobody reads at the moment out of the table, those read last longest ago first, until it is
// no larger than it may be. It runs under mu.
func (t *fileTable) surplus() []vfs.File {
	var out []vfs.File
	for h := t.root.prev; h != &t.root && t.open > t.max; {
		prev := h.prev
		if h.users == 0 {
			out = append(out, h.file)
			t.drop(h)
		}
		h = prev
	}
	return out
}

func (t *fileTable) drop(h *handle) {
	h.unlink()
	h.file = nil
	t.open--
}

func closeAll(files []vfs.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written through it
	}
}

func (h *handle) unlink() { h.prev.next, h.next.prev = h.next, h.prev }

func (h *handle) linkBehind(at *handle) {
	h.prev, h.next = at, at.next
	at.next.prev = h
	at.next = h
}
