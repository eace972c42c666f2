package engine

import (
	"bytes"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst"
)

// A write that was made from what a snapshot showed must not undo what came after it. The check runs under writeMu, when
// nothing can come any more: a key was changed exactly if memory or a file has a version of it that is newer than the
// snapshot, a deletion included. Files whose rows are all older are not looked at.

// SetSnapshot makes Commit fail with CodeConflict, nothing written, where a key that the write puts or deletes was
// changed after the snapshot. Without it the last writer wins.
func (w *Write) SetSnapshot(s *Snapshot) error {
	if err := w.usable(); err != nil {
		return err
	}
	if s.state.core != w.c {
		return w.keepErr(base.Errorf(base.CodeInvalidArgument, "the snapshot is not of the database in %s", w.c.dir))
	}
	w.batch.checked, w.batch.since = true, s.seq
	return nil
}

func conflict(t *table) error {
	return base.Errorf(base.CodeConflict, "a row of table %q was changed by another statement meanwhile", t.schema.TableName)
}

// checkUnchanged is the check for a batch. It runs under writeMu.
func (c *core) checkUnchanged(b *batch) error {
	if !b.checked || c.visibleSeq() <= b.since {
		return nil
	}
	s := c.current()
	defer s.unref()
	keys := make([][]byte, 0, b.n)
	records := batchReader{rest: b.data[batchHeader:], n: b.n}
	for range b.n {
		_, key, _, err := records.next()
		if err != nil {
			return err
		}
		for _, e := range s.mems { // newest first: the first version found is the newest
			if _, _, seq, found := e.mt.Get(key, base.MaxSeq); found {
				if seq > b.since {
					return conflict(b.table)
				}
				break
			}
		}
		keys = append(keys, key)
	}
	sorted := false
	for _, f := range s.files {
		if f.meta.SeqMax <= b.since {
			continue
		}
		if !sorted {
			slices.SortFunc(keys, bytes.Compare)
			keys = slices.CompactFunc(keys, bytes.Equal)
			sorted = true
		}
		if err := c.checkFile(b, f, keys); err != nil {
			return err
		}
	}
	return nil
}

func (c *core) checkFile(b *batch, f *liveFile, keys [][]byte) error {
	reader, err := f.open(b.table.schema)
	if err != nil {
		return err
	}
	var changed error
	next := 0
	err = reader.FindMany(func() ([]byte, bool) {
		if next == len(keys) {
			return nil, false
		}
		next++
		return keys[next-1], true
	}, func(_ int, pos int64) error {
		changed = newer(b.table, f, reader, pos, b.since)
		return changed
	})
	if changed != nil && errors.Is(err, changed) {
		return changed
	}
	return err
}

// newer returns a conflict if the row at pos is newer than since.
func newer(t *table, f *liveFile, r *sst.Reader, pos int64, since base.Seq) error {
	if f.meta.SeqMin > since {
		return conflict(t)
	}
	seq, _, err := r.ReadVersion(pos)
	if err == nil && seq > since {
		err = conflict(t)
	}
	return err
}

// checkMarks is the check for a bulk load, which knows the rows that it supersedes. It runs under writeMu, with nothing
// in memory.
func (l *load) checkMarks(s *readState, marks map[*dataFile]*roaring.Bitmap) error {
	b := &l.w.batch
	if !b.checked {
		return nil
	}
	for _, f := range s.files {
		dead := marks[f.dataFile]
		if f.meta.SeqMax <= b.since || dead.IsEmpty() {
			continue
		}
		reader, err := f.open(l.w.table.schema)
		if err != nil {
			return err
		}
		for it := dead.Iterator(); it.HasNext(); {
			if err := newer(l.w.table, f, reader, int64(it.Next()), b.since); err != nil {
				return err
			}
		}
	}
	return nil
}
