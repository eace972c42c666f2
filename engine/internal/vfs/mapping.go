package vfs

import (
	"github.com/merutable/merutable/engine/internal/base"
)

// Mapping is memory that a file without a name backs: the system may write its pages out and take them back, so it may
// be larger than the memory that there is. The space on the disk is taken when it is made.
type Mapping struct {
	// Mem is the memory, zeros at first. It is aligned to pages.
	Mem   []byte
	drop  func()
	close func()
}

// Drop gives the pages back that are in memory now; their contents stay, and come back as they are used. It may be called
// beside readers and writers of the memory.
func (m *Mapping) Drop() { m.drop() }

// Close frees memory and file. Nothing may use the memory any more.
func (m *Mapping) Close() { m.close() }

// Mapper is what an FS may implement besides. Use [MapTemporary].
type Mapper interface {
	// MapTemporary makes a mapping of size bytes, whose file lies in an existing directory. It has no name by the time
	// that the call returns, so that nothing stays of it when the process ends, however it ends.
	MapTemporary(dir string, size int) (*Mapping, error)
}

// MapTemporary calls the method of fs, or returns CodeUnsupported where there is none. CodeNoSpace says that the disk
// does not have the space: using the memory never fails for that.
func MapTemporary(fs FS, dir string, size int) (*Mapping, error) {
	if m, ok := fs.(Mapper); ok {
		return m.MapTemporary(dir, size)
	}
	return nil, base.Errorf(base.CodeUnsupported, "map a temporary file in %s: not supported by this file system", dir)
}

// MapTemporary implements [Mapper]. It counts as the creation of a file of the directory.
func (w *wrapFS) MapTemporary(dir string, size int) (m *Mapping, err error) {
	err = w.do(OpCreate, w.inner.Join(dir, "mapping"), func() (err error) {
		m, err = MapTemporary(w.inner, dir, size)
		return err
	})
	if err != nil && m != nil { // the failure was made up afterwards
		m.Close()
		m = nil
	}
	return m, err
}
