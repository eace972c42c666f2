package engine

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/sst"
)

// load is a bulk load: rows gather in a buffer, each full buffer is sorted into a data file (a run), and one manifest
// commit makes all runs visible. Nothing goes through the log. All rows of a load have one sequence number, given at the
// commit, so they are newer than whatever was written while the load was running; the files hold 0 and inherit it.
//
// What a load supersedes is looked up while the keys of a run are at hand: in the earlier runs, and in the table's files
// of that moment. Files that come until the commit are looked up the other way round, their keys in the runs.
type load struct {
	w      *Write
	c      *core
	buffer *memtable.RowBuffer
	runs   []*loadRun
	rows   uint64
	// marks are the superseded rows of the table's files, by file; what is in the map was looked up for all runs.
	marks map[*dataFile]*roaring.Bitmap
	base  *readState // pins the files of marks
}

type loadRun struct {
	newFile           // dead: tombstones, and rows that later runs supersede
	file    *liveFile // to look keys up
}

func newLoad(w *Write) (*load, error) {
	buffer, err := memtable.NewRowBuffer(w.c.opts.MemtableBytes)
	if err != nil {
		return nil, err
	}
	return &load{w: w, c: w.c, buffer: buffer, base: w.c.current(), marks: map[*dataFile]*roaring.Bitmap{}}, nil
}

func (l *load) add(op base.Op, key, rec []byte) error {
	err := l.buffer.Add(key, op, rec)
	if errors.Is(err, memtable.ErrFull) {
		if err := l.writeRun(); err != nil {
			return err
		}
		err = l.buffer.Add(key, op, rec)
	}
	if err != nil {
		return err
	}
	l.rows++
	return nil
}

// writeRun sorts the buffer into a data file and looks up what it supersedes.
func (l *load) writeRun() error {
	if l.buffer.Len() == 0 {
		return nil
	}
	l.buffer.Sort()
	src := &bufferSource{it: l.buffer.NewIter(), w: l.w}
	out, err := l.c.writeFile(l.w.table, src, fileOptions{level: 0, inheritSeq: true})
	if err != nil {
		return err
	}
	run := &loadRun{newFile: *out}
	if run.dead == nil {
		run.dead = roaring.New()
	}
	run.file = l.c.uncommitted(out.meta)
	run.file.ref()
	earlier := l.runs
	l.runs = append(l.runs, run) // whatever fails from here on, close gives it up
	for _, r := range earlier {
		if err := l.markSuperseded(r.file, r.dead); err != nil {
			return err
		}
	}
	for _, f := range l.base.files {
		if l.marks[f.dataFile] == nil {
			l.marks[f.dataFile] = roaring.New()
		}
		if err := l.markSuperseded(f, l.marks[f.dataFile]); err != nil {
			return err
		}
	}
	l.buffer.Reset()
	return nil
}

// markSuperseded adds to dead the rows of f whose keys are in the buffer.
func (l *load) markSuperseded(f *liveFile, dead *roaring.Bitmap) error {
	it := l.buffer.NewIter()
	it.First()
	if !it.Valid() || bytes.Compare(l.buffer.MinKey(), f.meta.KeyMax) > 0 || bytes.Compare(l.buffer.MaxKey(), f.meta.KeyMin) < 0 {
		return nil
	}
	reader, err := f.open(l.w.table.schema)
	if err != nil {
		return err
	}
	started := false
	return reader.FindMany(func() ([]byte, bool) {
		if started {
			it.Next()
		}
		started = true
		if !it.Valid() {
			return nil, false
		}
		return it.Key(), true
	}, func(_ int, pos int64) error {
		dead.Add(uint32(pos))
		return nil
	})
}

// uncommitted makes a file handle for a data file that no manifest names yet.
func (c *core) uncommitted(meta *manifest.File) *liveFile {
	return &liveFile{
		meta:     meta,
		dataFile: c.newDataFile(meta.Path, meta.Size),
	}
}

// bufferSource yields a sorted buffer to the file writer, and asks for interrupts.
type bufferSource struct {
	it      *memtable.BufferIter
	w       *Write
	started bool
	n       int
	err     error
}

func (s *bufferSource) Next() bool {
	if s.started {
		s.it.Next()
	} else {
		s.it.First()
		s.started = true
	}
	const askEvery = 4096
	if s.n++; s.n%askEvery == 0 {
		if s.err = s.w.interrupted(); s.err != nil {
			return false
		}
	}
	return s.it.Valid()
}

func (s *bufferSource) Key() []byte   { return s.it.Key() }
func (s *bufferSource) Seq() base.Seq { return 0 }
func (s *bufferSource) Op() base.Op   { return s.it.Op() }
func (s *bufferSource) Value() []byte { return s.it.Value() }
func (s *bufferSource) Err() error    { return s.err }

// commit writes the last run and makes the load visible. Memtables are flushed first: then everything in memory is newer
// than everything in files, as all readers take for granted. The bulk of that flush happens before writers are stopped.
func (l *load) commit() (base.Seq, error) {
	if err := l.writeRun(); err != nil {
		return 0, err
	}
	if err := l.c.flushAll(); err != nil {
		return 0, err
	}
	if err := l.w.interrupted(); err != nil {
		return 0, err
	}
	seq, err := l.commitAlone()
	if err != nil {
		return 0, err
	}
	l.c.collectGarbage()
	return seq, nil
}

// commitAlone keeps all other writers out.
func (l *load) commitAlone() (base.Seq, error) {
	c := l.c
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.writable(); err != nil {
		return 0, err
	}
	if c.table != l.w.table {
		return 0, base.Errorf(base.CodeConflict, "the table in %s was dropped or replaced during the load", c.dir)
	}
	if err := c.retireActive(); err != nil {
		return 0, err
	}
	if err := c.waitFlushed(); err != nil {
		return 0, err
	}
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	return l.publish()
}

// publish runs under writeMu and commitMu, with nothing in memory.
func (l *load) publish() (base.Seq, error) {
	c := l.c
	s := c.current()
	defer s.unref()
	marks := map[*dataFile]*roaring.Bitmap{}
	for _, f := range s.files {
		dead, known := l.marks[f.dataFile]
		if !known {
			var err error
			if dead, err = l.supersededByRuns(f); err != nil {
				return 0, err
			}
		}
		marks[f.dataFile] = dead
	}
	if err := l.checkMarks(s, marks); err != nil {
		return 0, err
	}
	seq := c.lastSeq + 1
	added := make([]*newFile, 0, len(l.runs))
	for i := len(l.runs) - 1; i >= 0; i-- { // newest first
		r := l.runs[i]
		r.meta.SeqMin, r.meta.SeqMax = seq, seq
		added = append(added, &r.newFile)
	}
	next := s.manifest.Next()
	next.Properties[manifest.PropJob] = "load"
	next.Properties[manifest.PropFirstSeq] = strconv.FormatUint(seq, 10)
	next.Properties[manifest.PropLastSeq] = strconv.FormatUint(seq, 10)
	next.FlushedSeq = seq
	if err := c.commitFiles(s, next, change{added: added, dead: marks}); err != nil {
		return 0, err
	}
	c.lastSeq = seq
	c.install(c.newState(s, next, s.table, nil), func() { c.visible = seq })
	c.stats.rowsWritten.Add(int64(l.rows))
	c.stats.loads.Add(1)
	for _, r := range l.runs {
		c.pending.remove(r.meta.Path)
		r.file.unref()
	}
	l.runs = nil
	return seq, nil
}

// supersededByRuns returns the rows of f whose keys are in any run.
func (l *load) supersededByRuns(f *liveFile) (*roaring.Bitmap, error) {
	dead := roaring.New()
	reader, err := f.open(l.w.table.schema)
	if err != nil {
		return nil, err
	}
	for _, r := range l.runs {
		if bytes.Compare(r.meta.KeyMin, f.meta.KeyMax) > 0 || bytes.Compare(r.meta.KeyMax, f.meta.KeyMin) < 0 {
			continue
		}
		runReader, err := r.file.open(l.w.table.schema)
		if err != nil {
			return nil, err
		}
		keys := newKeyWalk(reader, l.w.table)
		err = runReader.FindMany(keys.next, func(i int, _ int64) error {
			dead.Add(uint32(i)) // the i-th key of f is its i-th row
			return nil
		})
		keys.close()
		if err == nil {
			err = keys.err
		}
		if err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// keyWalk yields all keys of a file in order.
type keyWalk struct {
	it      *sst.Iter
	keyCols []int
	cols    *Columns
	at      int
	key     []byte
	err     error
}

func newKeyWalk(r *sst.Reader, t *table) *keyWalk {
	return &keyWalk{it: r.NewIter(sst.IterOptions{Projection: t.schema.PrimaryKey}), keyCols: t.keySchema.PrimaryKey}
}

func (k *keyWalk) next() ([]byte, bool) {
	for k.err == nil && (k.cols == nil || k.at == k.cols.N) {
		k.at = 0
		if k.cols, _, k.err = k.it.Next(); k.cols == nil {
			return nil, false
		}
	}
	if k.err != nil {
		return nil, false
	}
	k.key = k.cols.AppendKey(k.key[:0], k.keyCols, k.at)
	k.at++
	return k.key, true
}

func (k *keyWalk) close() { k.it.Close() }

// close gives up what was not committed.
func (l *load) close() {
	l.buffer.Close()
	for _, r := range l.runs {
		r.file.unref()
		l.c.discard(&r.newFile)
		l.c.pending.remove(r.meta.Path)
	}
	l.runs = nil
	l.base.unref()
}
