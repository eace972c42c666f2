package objfs

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// blockFile reads an object by its blocks. Its methods may be called from any goroutine.
type blockFile struct {
	fs   *FS
	name string
	key  string
	size atomic.Int64 // unknownSize until it is known

	mu      sync.Mutex
	streams streams
}

func (f *FS) openBlocks(name, key string, size int64) *blockFile {
	b := &blockFile{fs: f, name: name, key: key}
	b.size.Store(size)
	return b
}

// Name implements [vfs.File].
func (f *blockFile) Name() string { return f.name }

// Size implements [vfs.File]. It asks the store where nobody has said it.
func (f *blockFile) Size() (int64, error) {
	if size := f.size.Load(); size != unknownSize {
		return size, nil
	}
	info, err := f.fs.Stat(f.name)
	if err != nil {
		return 0, err
	}
	f.size.Store(info.Size)
	return info.Size, nil
}

// Close implements [vfs.File].
func (f *blockFile) Close() error { return nil }

// Sync implements [vfs.File].
func (f *blockFile) Sync() error { return nil }

// Write implements [vfs.File].
func (f *blockFile) Write([]byte) (int, error) {
	return 0, base.Errorf(base.CodeReadOnly, "write %s: it is open for reading", f.name)
}

// ReadAt implements io.ReaderAt.
func (f *blockFile) ReadAt(p []byte, off int64) (n int, err error) {
	return f.ReadAtContext(context.Background(), p, off)
}

// ReadAtContext is ReadAt, which ends with CodeCancelled or CodeTimeout when the context does. The requests that it has sent
// go on, and what comes is kept.
func (f *blockFile) ReadAtContext(ctx context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, base.Errorf(base.CodeInvalidArgument, "read %s at offset %d", f.name, off)
	}
	if len(p) == 0 {
		return 0, nil
	}
	size := f.size.Load()
	if size != unknownSize {
		if off >= size {
			return 0, io.EOF
		}
		if int64(len(p)) > size-off {
			p, err = p[:size-off], io.EOF
		}
	}
	for n < len(p) {
		// A piece at a time, so that what is held in memory is bounded.
		piece := p[n:min(len(p), n+maxRequests*f.fs.run*blockBytes/2)]
		got, e := f.readPiece(ctx, piece, off+int64(n), size)
		if n += got; e != nil {
			return n, e
		}
	}
	return n, err
}

func (f *blockFile) readPiece(ctx context.Context, p []byte, off, size int64) (int, error) {
	first, last := off/blockBytes, (off+int64(len(p))-1)/blockBytes
	ahead := f.follow(first, last, size)
	from := blockID{key: f.key, size: size, index: first}
	n := int(last - first + 1)
	if end := lastBlock(size); size != unknownSize && last == end && n < tailRun && !f.fs.memoryHas(blockID{f.key, size, last}) {
		skip := min(int64(tailRun-n), first) // a file's end is read for its footer
		from.index -= skip
		n += int(skip)
	}
	c := f.fs.claimBlocks(from, n)
	switch {
	case len(c.mine) == 0:
	case ctx.Done() == nil:
		f.fs.fetch(f.name, from, c)
	default:
		// Who waits may leave; the request belongs to whoever else wants the blocks, too.
		own := *c
		own.data = make([][]byte, n)
		go f.fs.fetch(f.name, from, &own)
	}
	f.readAhead(ahead, size)
	got := 0
	for i := range n {
		index := from.index + int64(i)
		if index < first {
			continue
		}
		data := c.data[i]
		if data == nil {
			select {
			case <-c.flights[i].done:
			case <-ctx.Done():
				return got, objstore.ContextError(ctx, f.fs.store, "read", f.key)
			}
			if err := c.flights[i].err; err != nil {
				return got, err
			}
			data = c.flights[i].data
		}
		lo := max(off-index*blockBytes, 0)
		k := copy(p[got:], data[min(lo, int64(len(data))):])
		if got += k; got < len(p) && len(data) < blockBytes {
			return got, io.EOF // the object ends here
		}
	}
	return got, nil
}

func lastBlock(size int64) int64 { return max(size-1, 0) / blockBytes }

func (b *blocks) memoryHas(id blockID) bool {
	_, ok := b.memory.Use(id)
	return ok
}
