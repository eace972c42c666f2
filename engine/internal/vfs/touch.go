package vfs

import (
	"os"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// Toucher is what an FS may implement besides. Use [Touch].
type Toucher interface {
	// Touch sets the modification time of an existing file.
	Touch(name string, t time.Time) error
}

// Touch calls the method of fs, or returns CodeUnsupported where there is none.
func Touch(fs FS, name string, t time.Time) error {
	if f, ok := fs.(Toucher); ok {
		return f.Touch(name, t)
	}
	return base.Errorf(base.CodeUnsupported, "touch %s: not supported by this file system", name)
}

// Touch implements [Toucher].
func (osFS) Touch(name string, t time.Time) error {
	return wrapErr(OpWrite, name, os.Chtimes(name, t, t))
}

// Touch implements [Toucher].
func (m *MemFS) Touch(name string, t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walkFile(name)
	if err != nil {
		return wrapErr(OpWrite, name, err)
	}
	n.mu.Lock()
	n.modTime = t
	n.mu.Unlock()
	return nil
}
