package engine

import (
	"bytes"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst"
)

// A write that was made from what a snapshot showed must not undo what came after it. The check runs under writeMu,
// when nothing can come any more: a key was changed exactly if memory or a file has a version of it that is newer than
// the snapshot, a deletion included. Files whose rows are all older are not looked at. A compaction drops deletions;
// then a key that was deleted is one that is live in the snapshot and not any more.

// SetSnapshot makes Commit fail with CodeConflict, nothing written, where a key that the write puts or deletes was
// changed after the snapshot. Without it the last writer wins.
func (w *Write) SetSnapshot(s *Snapshot) error {
	if err := w.usable(); err != nil {
		return err
	}
	if s.state.core != w.c {
		return w.keepErr(base.Errorf(base.CodeInvalidArgument, "the snapshot is not of the database in %s", w.c.dir))
	}
	if w.txn != nil {
		return w.keepErr(w.txn.owns(s)) // the transaction checks all that it wrote when it commits
	}
	if s.state.bounds != nil {
		return w.keepErr(base.Errorf(base.CodeInvalidArgument, "the snapshot is a transaction's, the write is not"))
	}
	if err := s.pin(); err != nil {
		return w.keepErr(err)
	}
	w.dropSnapshot()
	w.base = &Snapshot{state: s.state, seq: s.seq, visible: s.visible}
	w.batch.checked, w.batch.since, w.batch.base = true, s.seq, w.base
	return nil
}

// dropSnapshot gives up what SetSnapshot pinned.
func (w *Write) dropSnapshot() {
	if w.base != nil {
		w.base.state.unref()
		w.base = nil
	}
}

func conflict(t *table) error {
	return base.Errorf(base.CodeConflict, "a row of table %q was changed by another transaction meanwhile", t.schema.TableName)
}

// checkUnchanged is the check for a batch. newest is the last sequence number that there is; pending, which may be nil, has
// rows that nobody sees yet and that come before the batch. It runs under writeMu.
func (c *core) checkUnchanged(b *batch, pending *memEntry, newest base.Seq) error {
	if !b.checked || newest <= b.since {
		return nil
	}
	now, err := c.acquire()
	if err != nil {
		return err
	}
	defer now.Close()
	s := now.state
	mems := s.mems
	if pending != nil {
		mems = append([]*memEntry{pending}, mems...)
	}
	keys := make([][]byte, 0, b.n)
	records := batchReader{rest: b.data[batchHeader:], n: b.n}
	for range b.n {
		_, key, _, err := records.next()
		if err != nil {
			return err
		}
		for _, e := range mems { // newest first: the first version found is the newest
			if _, _, seq, found := e.mt.Get(key, base.MaxSeq); found {
				if seq > b.since {
					return conflict(b.table)
				}
				break
			}
		}
		keys = append(keys, key)
	}
	newFiles := func(f *liveFile) bool { return f.meta.SeqMax > b.since }
	if s.droppedSeq <= b.since && !slices.ContainsFunc(s.files, newFiles) {
		return nil
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	for _, f := range s.files {
		if newFiles(f) {
			if err := c.checkFile(b, f, keys); err != nil {
				return err
			}
		}
	}
	if s.droppedSeq <= b.since {
		return nil
	}
	return checkDeleted(b, now, keys)
}

// checkDeleted is for keys of which there is no newer version than the snapshot of the change. Then whatever is live
// now was live there, so it takes no more than to count.
func checkDeleted(b *batch, now *Snapshot, keys [][]byte) error {
	was, err := b.base.countLive(keys)
	if err != nil {
		return err
	}
	is, err := now.countLive(keys)
	if err == nil && is != was {
		err = conflict(b.table)
	}
	return err
}

// countLive returns how many of the keys, which ascend, are live in the snapshot.
func (s *Snapshot) countLive(keys [][]byte) (n int, err error) {
	rest := make([][]byte, 0, len(keys))
	for _, k := range keys {
		found := false
		for i, e := range s.state.mems {
			var op base.Op
			if _, op, _, found = e.mt.Get(k, s.state.bound(i, s.seq)); found {
				if op == base.OpPut {
					n++
				}
				break
			}
		}
		if !found {
			rest = append(rest, k)
		}
	}
	for _, f := range s.state.files {
		dead, err := f.deleted(s.state.core.dir)
		if err != nil {
			return 0, err
		}
		err = f.findKeys(s.state.table, rest, func(_ int, pos int64) error {
			if !dead.Contains(uint32(pos)) {
				n++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// findKeys calls hit for each of the keys, which ascend, that the file has.
func (f *liveFile) findKeys(t *table, keys [][]byte, hit func(i int, pos int64) error) error {
	if len(keys) == 0 || bytes.Compare(keys[0], f.meta.KeyMax) > 0 || bytes.Compare(keys[len(keys)-1], f.meta.KeyMin) < 0 {
		return nil
	}
	reader, err := f.open(t.schema)
	if err != nil {
		return err
	}
	next := 0
	return reader.FindMany(func() ([]byte, bool) {
		if next == len(keys) {
			return nil, false
		}
		next++
		return keys[next-1], true
	}, hit)
}

func (c *core) checkFile(b *batch, f *liveFile, keys [][]byte) error {
	reader, err := f.open(b.table.schema)
	if err != nil {
		return err
	}
	var changed error
	err = f.findKeys(b.table, keys, func(_ int, pos int64) error {
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
	if s.droppedSeq <= b.since {
		return nil
	}
	return l.checkDeleted(s, marks)
}

// checkDeleted is the function of that name for a bulk load.
func (l *load) checkDeleted(s *readState, marks map[*dataFile]*roaring.Bitmap) error {
	was, err := l.countMemory(l.w.base)
	if err != nil {
		return err
	}
	for i, f := range l.w.base.state.files {
		hidden, err := l.w.base.findHidden(i)
		if err != nil {
			return err
		}
		rows, err := l.supersededBy(f, l.all())
		if err != nil {
			return err
		}
		was += rows.GetCardinality() - rows.AndCardinality(hidden)
	}
	is := uint64(0)
	for _, f := range s.files {
		dead, err := f.deleted(l.c.dir)
		if err != nil {
			return err
		}
		is += marks[f.dataFile].GetCardinality() - marks[f.dataFile].AndCardinality(dead)
	}
	if is != was {
		return conflict(l.w.table)
	}
	return nil
}

// countMemory returns how many live rows in a snapshot's memory the load has keys of.
func (l *load) countMemory(s *Snapshot) (uint64, error) {
	found := roaring.New()
	for _, r := range l.all() {
		reader, err := r.file.open(l.w.table.schema)
		if err != nil {
			return 0, err
		}
		it, started := s.memIter(), false
		err = reader.FindMany(func() ([]byte, bool) {
			if started {
				it.Next()
			} else {
				it.First()
				started = true
			}
			for it.Valid() && it.Op() == base.OpDelete {
				it.Next()
			}
			if !it.Valid() {
				return nil, false
			}
			return it.Key(), true
		}, func(i int, _ int64) error {
			found.Add(uint32(i))
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return found.GetCardinality(), nil
}
