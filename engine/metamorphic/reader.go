package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// reader works with read-only handles that share nothing with the writer but the disk. A reader shows the state of its
// last refresh, until the next one.
func (r *run) reader(kind Kind, rng *rand.Rand) error {
	const most = 3
	if kind == OpReaderOpen {
		if len(r.readers) == most {
			return nil
		}
		return r.openReader()
	}
	if len(r.readers) == 0 {
		return nil
	}
	i := rng.IntN(len(r.readers))
	rd := r.readers[i]
	switch kind {
	case OpReaderFree:
		rd.db.Free()
		r.readers = slices.Delete(r.readers, i, i+1)
		return nil
	case OpReaderRefresh:
		if err := rd.db.Refresh(); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		rd.state = r.current()
		r.saw("refreshes of readers", 1)
	}
	return r.checkReader(rd)
}

func (r *run) openReader() error {
	o := r.config.Options
	o.UseFS(r.disk.other())
	o.ReadOnly = true
	db, err := engine.Open(dir, o)
	if err != nil {
		return fmt.Errorf("open for reading: %w", err)
	}
	rd := &reader{db, r.current()}
	r.readers = append(r.readers, rd)
	return r.checkReader(rd)
}

func (r *run) checkReader(rd *reader) error {
	if r.maybe != nil {
		return nil // it may have read what the writer could not make durable
	}
	s, err := rd.db.Snapshot()
	if !rd.state.hasTable {
		if engine.CodeOf(err) != engine.CodeNotFound {
			return fmt.Errorf("a reader without a table: %w, not CodeNotFound", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if err := r.checkSnapshot(s, rd.state); err != nil {
		later := r.current().changes - rd.state.changes
		return fmt.Errorf("the reader of change %d, %d changes later: %w", rd.state.changes, later, err)
	}
	return nil
}
