package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/dv"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// A commit replaces the list of files by another one, in one manifest: flushes add files and mark the rows that those
// supersede; compactions put files in the place of others. All deletion vectors of a commit stand in one Puffin file, so
// a commit costs one sync for them however many files it touches.

// newFile is a data file that was written and is not committed yet.
type newFile struct {
	meta *manifest.File
	dead *roaring.Bitmap // positions that are dead from the start, such as tombstones; nil: none
}

// change is what one commit does to the data files of the current state.
type change struct {
	added   []*newFile // newest first
	removed map[*dataFile]bool
	levels  map[*dataFile]int             // files that only go to another level
	dead    map[*dataFile]*roaring.Bitmap // rows to mark, besides those that are marked; of removed files it is ignored
}

// commitFiles applies a change to next, which is a copy of the manifest of s, and commits it; s must be the current
// state. It runs under commitMu. Nothing is visible before [core.installFiles]; after an error nothing was changed, or
// the core has failed.
func (c *core) commitFiles(s *readState, next *manifest.Manifest, ch change) error {
	w := &dvWriter{core: c, version: next.Version}
	defer w.close()
	if err := c.listFiles(s, next, ch, w); err != nil {
		return err
	}
	if err := c.commit(s.manifest, next); err != nil {
		return err
	}
	w.committed = true
	return nil
}

// listFiles makes the list of files of next, with the deletion vectors that a change writes.
func (c *core) listFiles(s *readState, next *manifest.Manifest, ch change, w *dvWriter) error {
	files := make([]*manifest.File, 0, len(ch.added)+len(s.files))
	for _, n := range ch.added {
		meta := *n.meta
		if n.dead != nil && !n.dead.IsEmpty() {
			if err := w.write(&meta, n.dead); err != nil {
				return err
			}
		}
		files = append(files, &meta)
	}
	for _, f := range s.files {
		if ch.removed[f.dataFile] {
			continue
		}
		meta, err := c.changed(f, ch, w)
		if err != nil {
			return err
		}
		files = append(files, meta)
	}
	if err := w.finish(); err != nil {
		return err
	}
	sortFiles(files)
	next.Files = files
	if s.manifest != nil && s.manifest.TableUUID == next.TableUUID && ch.dropsRows(s) {
		next.DroppedSeq = next.FlushedSeq
	}
	return nil
}

// dropsRows reports whether rows of the files that go, dead ones included, are in none of those that come.
func (ch *change) dropsRows(s *readState) bool {
	if len(ch.removed) == 0 {
		return false
	}
	rows := int64(0)
	for _, f := range s.files {
		if ch.removed[f.dataFile] {
			rows += f.meta.Rows
		}
	}
	for _, n := range ch.added {
		rows -= n.meta.Rows
	}
	return rows != 0
}

// changed returns what the manifest says of a file that stays.
func (c *core) changed(f *liveFile, ch change, w *dvWriter) (*manifest.File, error) {
	meta := f.meta
	if level, ok := ch.levels[f.dataFile]; ok {
		m := *meta
		m.Level = level
		meta = &m
	}
	hits := ch.dead[f.dataFile]
	if hits == nil || hits.IsEmpty() {
		return meta, nil
	}
	old, err := f.deleted(c.dir)
	if err != nil || hits.AndCardinality(old) == hits.GetCardinality() {
		return meta, err
	}
	m := *meta
	return &m, w.write(&m, roaring.Or(old, hits))
}

// sortFiles gives the list the order of the manifest: levels ascending, level 0 newest first, the others by key. It
// keeps the order of level 0.
func sortFiles(files []*manifest.File) {
	slices.SortStableFunc(files, func(a, b *manifest.File) int {
		if a.Level != b.Level || a.Level == 0 {
			return cmp.Compare(a.Level, b.Level)
		}
		return bytes.Compare(a.KeyMin, b.KeyMin)
	})
}

// commit makes next, which follows prev, the newest manifest. It runs under commitMu. Where nobody knows whether it
// happened the core takes no more writes.
func (c *core) commit(prev, next *manifest.Manifest) error {
	c.stamp(prev, next)
	if err := c.store.Commit(next); err != nil {
		if manifest.NotCommitted(err) {
			return err
		}
		return c.fail(err)
	}
	c.committed(prev, next)
	return nil
}

// stamp gives next, which follows prev, its time.
func (c *core) stamp(prev, next *manifest.Manifest) {
	next.UpdatedMS = c.now().UnixMilli()
	if prev != nil {
		// Versions are found by their time, whatever the clock does.
		next.UpdatedMS = max(next.UpdatedMS, prev.UpdatedMS)
	}
}

// committed takes note of a commit. It runs under commitMu.
func (c *core) committed(prev, next *manifest.Manifest) {
	c.gc.history.committed(prev, next, c.now())
	c.gc.own.Store(next.Version)
	c.stats.commits.Add(1)
	c.checkCommit(prev, next)
}

// installFiles makes a manifest that was just committed what readers start from. The memtables are those of this moment,
// for a writer may have started another one meanwhile, without flushed, if not nil. with, if not nil, is given the state
// before anyone sees it. It runs under commitMu.
func (c *core) installFiles(next *manifest.Manifest, flushed *memEntry, with func(s *readState)) {
	c.mu.Lock()
	old := c.state
	mems := make([]*memEntry, 0, len(old.mems))
	for _, m := range old.mems {
		if m != flushed {
			mems = append(mems, m)
		}
	}
	s := c.newState(old, next, old.table, mems)
	if with != nil {
		with(s)
	}
	c.state = s
	c.stateVersion.Add(1)
	c.mirror.changed()
	c.flushDone.Broadcast()
	c.mu.Unlock()
	old.unref()
	for _, m := range mems {
		m.resolutions.keepOnly(s.files)
	}
	c.kickCompaction()
}

// discard removes files that were not committed. After a commit of unknown outcome they stay: the manifest may name
// them. What cannot be removed is an orphan, and swept at the next open.
func (c *core) discard(files ...*newFile) {
	for _, f := range files {
		c.discardPaths(f.meta.Path)
	}
}

// discardPaths is discard for paths inside the database directory.
func (c *core) discardPaths(rel ...string) {
	c.mu.Lock()
	failed := c.failure != nil
	c.mu.Unlock()
	if failed {
		return
	}
	for _, r := range rel {
		_ = c.fs.Remove(c.fs.Join(c.dir, r))
	}
}

// dvWriter writes the deletion vectors of one commit into one file, which is made with the first of them.
type dvWriter struct {
	core      *core
	version   int64
	rel       string // the file's path, "" where there is none
	w         *dv.Writer
	committed bool
}

// write adds the vector of a file and points its description there.
func (w *dvWriter) write(meta *manifest.File, positions *roaring.Bitmap) error {
	c := w.core
	if w.w == nil {
		stem := strings.TrimSuffix(meta.Path, ".parquet")
		if c.remote() { // another writer may be about to commit the same version
			stem = stem[:strings.LastIndexByte(stem, '/')+1] + newUUID()
		}
		w.rel = fmt.Sprintf("%s.dv-%d.puffin", stem, w.version)
		c.pending.add(w.rel)
		var err error
		if w.w, err = dv.NewWriter(c.fs, c.fs.Join(c.dir, w.rel)); err != nil {
			return err
		}
	}
	ref, err := w.w.Add(dv.Blob{
		Bitmap: positions, ReferencedDataFile: meta.Path, SnapshotID: w.version, Sequence: w.version,
	})
	if err != nil {
		return err
	}
	meta.DVPath, meta.DVOffset, meta.DVLength = w.rel, ref.Offset, ref.Length
	meta.Deleted = int64(positions.GetCardinality())
	return nil
}

// finish makes the file durable.
func (w *dvWriter) finish() error {
	if w.w == nil {
		return nil
	}
	if err := w.w.Finish(); err != nil {
		return err
	}
	return w.core.fs.SyncDir(w.core.fs.Join(w.core.dir, w.rel[:strings.LastIndexByte(w.rel, '/')]))
}

// close removes the file unless the commit happened, or may have.
func (w *dvWriter) close() {
	if w.rel == "" {
		return
	}
	if w.w != nil {
		_ = w.w.Close() // after an error, which counts
	}
	if !w.committed {
		w.core.discardPaths(w.rel)
	}
	w.core.pending.remove(w.rel)
}
