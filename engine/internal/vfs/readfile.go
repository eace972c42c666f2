package vfs

import (
	"io"

	"github.com/merutable/merutable/engine/internal/base"
)

// ReadFile returns what is in a file that nobody writes to. One of more than limit bytes is CodeCorruption, and not read.
func ReadFile(fs FS, name string, limit int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, base.Errorf(base.CodeCorruption, "%s has %d bytes: the limit is %d", name, size, limit)
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	switch {
	case n == len(data):
		return data, nil
	case err == nil || err == io.EOF:
		return nil, base.Errorf(base.CodeIO, "%s had %d bytes, now %d", name, size, n)
	}
	return nil, err
}
