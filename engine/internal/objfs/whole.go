package objfs

import (
	"bytes"

	"github.com/merutable/merutable/engine/internal/base"
)

// wholeFile is an object that was read whole when it was opened.
type wholeFile struct {
	name string
	data []byte
}

// ReadAt implements io.ReaderAt.
func (w *wholeFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(w.data).ReadAt(p, off)
}

// Size implements [vfs.File].
func (w *wholeFile) Size() (int64, error) { return int64(len(w.data)), nil }

// Name implements [vfs.File].
func (w *wholeFile) Name() string { return w.name }

// Close implements [vfs.File].
func (w *wholeFile) Close() error { return nil }

// Sync implements [vfs.File].
func (w *wholeFile) Sync() error { return nil }

// Write implements [vfs.File].
func (w *wholeFile) Write([]byte) (int, error) {
	return 0, base.Errorf(base.CodeReadOnly, "write %s: it is open for reading", w.name)
}
