package engine

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// Snapshot is what a reader sees: data files minus deletion vectors, plus the rows that are only in memory. It stays
// the same, and its files stay on disk, until Close. It may be used from many goroutines.
type Snapshot struct {
	state *readState
	seq   base.Seq
	// visible has, for each memtable of the state, how many entries belong to the snapshot.
	visible []int

	mu      sync.Mutex
	closed  bool
	deletes []deletedRows // by file, filled at first use; nil before the first one

	cut    sync.Once
	pieces []keyRange // of the overlay
}

type deletedRows struct {
	mu     sync.Mutex
	bitmap *roaring.Bitmap
	list   sync.Once
	rows   []uint32
}

// FileInfo describes a data file of a snapshot.
type FileInfo struct {
	// Path is absolute.
	Path string
	// Size is in bytes.
	Size int64
	// Rows is what the file holds; Deleted is how many of them its deletion vector marks.
	Rows, Deleted  int64
	Level          int
	SeqMin, SeqMax uint64
	// KeyMin and KeyMax are encoded keys, both inclusive. They belong to the snapshot.
	KeyMin, KeyMax []byte
}

// acquire takes a snapshot of the core's current state.
func (c *core) acquire() (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awake(); err != nil {
		return nil, err
	}
	if !c.hasTable() {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	return c.snapshotLocked(), nil
}

// snapshotLocked takes a snapshot of a table. It runs under mu.
func (c *core) snapshotLocked() *Snapshot {
	s := c.state
	s.ref()
	snap := &Snapshot{state: s, seq: c.visible, visible: make([]int, len(s.mems))}
	for i, e := range s.mems {
		snap.visible[i] = e.visible
	}
	if c.apart && s.manifest != nil && len(s.mems) == 0 {
		// That another table is newer says nothing about this one.
		snap.seq = s.manifest.FlushedSeq
	}
	return snap
}

// awake makes sure that the current state is pinned, for a reader to start from. It runs under mu, which it may let go of
// meanwhile.
func (c *core) awake() error {
	for c.idle.resting {
		c.mu.Unlock()
		err := c.refresh()
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
	c.idle.uses++
	return nil
}

// Close releases the snapshot. A second call does nothing. Iterators made from it stay valid.
func (s *Snapshot) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		s.state.unref()
	}
}

// Schema returns the table's schema. Do not change it.
func (s *Snapshot) Schema() *Schema { return s.state.table.schema }

// Version returns the number of the manifest, 0 where the table is only in a transaction.
func (s *Snapshot) Version() int64 {
	if s.state.manifest == nil {
		return 0
	}
	return s.state.manifest.Version
}

// Seq returns the newest sequence number that the snapshot shows.
func (s *Snapshot) Seq() uint64 { return s.seq }

// MemoryRows bounds how many live rows are only in memory: versions of keys and deletions count too. 0 is exact.
func (s *Snapshot) MemoryRows() int {
	n := 0
	for _, v := range s.visible {
		n += v
	}
	return n
}

// LiveRows returns the number of rows of the snapshot: exact where MemoryRows is 0, else an estimate from above.
func (s *Snapshot) LiveRows() int64 {
	n := int64(s.MemoryRows())
	for _, f := range s.state.files {
		n += f.meta.Live()
	}
	return n
}

// Files lists the data files.
func (s *Snapshot) Files() []FileInfo {
	out := make([]FileInfo, len(s.state.files))
	for i, f := range s.state.files {
		out[i] = FileInfo{
			Path: f.path, Size: f.meta.Size, Rows: f.meta.Rows, Deleted: f.meta.Deleted, Level: f.meta.Level,
			SeqMin: f.meta.SeqMin, SeqMax: f.meta.SeqMax, KeyMin: f.meta.KeyMin, KeyMax: f.meta.KeyMax,
		}
	}
	return out
}

// Deletes returns the positions of the rows of file i that the snapshot does not show, ascending: those of its deletion
// vector and those that rows in memory supersede. The slice belongs to the snapshot.
func (s *Snapshot) Deletes(i int) ([]uint32, error) {
	if i < 0 || i >= len(s.state.files) {
		return nil, base.Errorf(base.CodeInvalidArgument, "file %d of %d", i, len(s.state.files))
	}
	d := s.deletesOf(i)
	bm, err := s.hidden(i, d)
	if err != nil {
		return nil, err
	}
	d.list.Do(func() { d.rows = bm.ToArray() })
	return d.rows, nil
}

func (s *Snapshot) deletesOf(i int) *deletedRows {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deletes == nil {
		s.deletes = make([]deletedRows, len(s.state.files))
	}
	return &s.deletes[i]
}

// hidden returns the bitmap behind [Snapshot.Deletes]; it is shared. An error is not kept: asking again tries again.
func (s *Snapshot) hidden(i int, d *deletedRows) (*roaring.Bitmap, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bitmap != nil {
		return d.bitmap, nil
	}
	if err := s.pin(); err != nil {
		return nil, err
	}
	defer s.state.unref()
	bm, err := s.findHidden(i)
	if err == nil {
		d.bitmap = bm
	}
	return bm, err
}

// pin takes a reference on the state, for a call that must not lose its memory to a Close beside it.
func (s *Snapshot) pin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return base.Errorf(base.CodeClosed, "the snapshot is closed")
	}
	s.state.ref()
	return nil
}

func (s *Snapshot) findHidden(i int) (*roaring.Bitmap, error) {
	f := s.state.files[i]
	all, err := f.deleted(s.state.core.dir)
	if err != nil {
		return nil, err
	}
	for m, e := range s.state.mems {
		if s.visible[m] == 0 {
			continue
		}
		hits, err := e.superseded(s.state, f, s.visible[m])
		if err != nil {
			return nil, err
		}
		if !hits.IsEmpty() {
			all = roaring.Or(all, hits)
		}
	}
	return all, nil
}

// memIter returns the newest visible version of every key in memory, tombstones included.
func (s *Snapshot) memIter() *memtable.MergeIter {
	iters := make([]*memtable.Iter, 0, len(s.state.mems))
	for i, e := range s.state.mems {
		iters = append(iters, e.mt.NewIter(s.state.bound(i, s.seq)))
	}
	return memtable.NewMergeIter(iters...)
}
