package engine

import (
	"errors"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/spill"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// rowSorter sorts byte strings with a value each, however many: what does not fit into its buffer goes to sorted runs in
// temporary files. Of equal keys the one that was added last counts. It is one goroutine's.
type rowSorter struct {
	fs     vfs.FS
	dir    func() (string, error) // of the temporary files, made at the first one
	buffer *memtable.RowBuffer
	runs   []*spill.Run
}

const (
	// sorterBytes is the size of a sorter's buffer, outside the Go heap.
	sorterBytes = 32 << 20
	// maxSorterRuns is how many runs a sorter has at a time; more are merged into one.
	maxSorterRuns = 32
)

func newRowSorter(fs vfs.FS, dir func() (string, error)) (*rowSorter, error) {
	buffer, err := memtable.NewRowBuffer(sorterBytes)
	if err != nil {
		return nil, err
	}
	return &rowSorter{fs: fs, dir: dir, buffer: buffer}, nil
}

// add copies a row.
func (s *rowSorter) add(key, value []byte) error {
	err := s.buffer.Add(key, base.OpPut, value)
	if !errors.Is(err, memtable.ErrFull) {
		return err
	}
	s.buffer.Sort()
	if err := s.write(s.buffer.NewIter()); err != nil {
		return err
	}
	s.buffer.Reset()
	if len(s.runs) == maxSorterRuns {
		if err := s.collapse(); err != nil {
			return err
		}
	}
	return s.buffer.Add(key, base.OpPut, value)
}

// write makes a run of what a source yields.
func (s *rowSorter) write(from spill.Source) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	w, err := spill.Create(s.fs, s.fs.Join(dir, newUUID()+".run"))
	if err != nil {
		return err
	}
	for from.First(); from.Valid(); from.Next() {
		if err := w.Add(from.Key(), from.Op(), from.Value()); err != nil {
			w.Abort()
			return err
		}
	}
	if err := from.Err(); err != nil {
		w.Abort()
		return err
	}
	run, err := w.Finish()
	if err == nil {
		s.runs = append(s.runs, run)
	}
	return err
}

// collapse merges all runs into one.
func (s *rowSorter) collapse() error {
	old := s.runs
	s.runs = nil
	err := s.write(mergeOf(old))
	if err != nil {
		s.runs = append(old, s.runs...)
		return err
	}
	for _, r := range old {
		if e := r.Remove(); err == nil {
			err = e
		}
	}
	return err
}

func mergeOf(runs []*spill.Run, last ...spill.Source) spill.Source {
	sources := make([]spill.Source, 0, len(runs)+len(last))
	for _, r := range runs {
		sources = append(sources, r.NewIter())
	}
	return spill.NewMerge(append(sources, last...)...)
}

// sorted returns a walk over all rows; nothing may be added any more.
func (s *rowSorter) sorted() spill.Source {
	s.buffer.Sort()
	return mergeOf(s.runs, s.buffer.NewIter())
}

// close frees memory and files.
func (s *rowSorter) close() {
	s.buffer.Close()
	for _, r := range s.runs {
		_ = r.Remove() // the directory goes as well
	}
	s.runs = nil
}
