package wal

import (
	"io"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// readBytes is how much is read at once.
const readBytes = 1 << 20

// reader is a window that slides over a log file.
type reader struct {
	f    vfs.File
	path string
	num  uint64
	// size is that of the file when it was opened: what is appended later is not seen. It shrinks, and cut is set, when the
	// file turns out to be shorter meanwhile.
	size int64
	cut  bool

	// lastAt and last are as in Position, of the record that was replayed last.
	lastAt int64
	last   [FrameOverhead]byte

	buf   []byte // the bytes of the file from start on
	start int64
}

func openReader(fs vfs.FS, path string, num uint64) (*reader, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &reader{f: f, path: path, num: num, size: size}, nil
}

func (r *reader) close() { _ = r.f.Close() } // nothing was written

// discard forgets what was read, so that it is read again.
func (r *reader) discard() { r.buf = r.buf[:0] }

// window returns n bytes at offset, which lie inside the file. They are valid until the next call.
func (r *reader) window(offset int64, n int) ([]byte, error) {
	if offset < r.start || offset+int64(n) > r.start+int64(len(r.buf)) {
		if err := r.fill(offset, n); err != nil {
			return nil, err
		}
	}
	at := int(offset - r.start)
	return r.buf[at : at+n], nil
}

// ahead returns all bytes from offset on that are at hand, at least n.
func (r *reader) ahead(offset int64, n int) ([]byte, error) {
	if _, err := r.window(offset, n); err != nil {
		return nil, err
	}
	return r.buf[offset-r.start:], nil
}

// fill makes the window start at offset and have at least n bytes.
func (r *reader) fill(offset int64, n int) error {
	want := int(min(max(int64(n), readBytes), r.size-offset))
	if want < n {
		return base.Errorf(base.CodeIO, "%s: %d bytes at offset %d of a file of %d", r.path, n, offset, r.size)
	}
	kept := r.buf[:0]
	if end := r.start + int64(len(r.buf)); offset >= r.start && offset < end {
		kept = r.buf[offset-r.start:]
	}
	if cap(r.buf) < want {
		grown := make([]byte, want)
		copy(grown, kept)
		r.buf = grown
	} else {
		r.buf = r.buf[:want]
		copy(r.buf, kept)
	}
	have := min(len(kept), want)
	r.start = offset
	got, err := r.f.ReadAt(r.buf[have:], offset+int64(have))
	have += got
	if have == want {
		return nil
	}
	r.buf = r.buf[:have]
	if err != nil && err != io.EOF {
		return err
	}
	r.size, r.cut = offset+int64(have), true
	if have < n {
		return base.Errorf(base.CodeIO, "%s: cut back to %d bytes while it was read", r.path, r.size)
	}
	return nil
}
