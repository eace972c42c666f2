package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// load is a bulk load: rows are sorted into data files, and one manifest commit makes all of them visible. Nothing goes
// through the log. All rows of a load have one sequence number, given at the commit, so they are newer than whatever was
// written while the load was running; the files hold 0 and inherit it.
//
// As long as keys ascend, rows stream into files as they come. The first block that does not ascend ends that: it and all
// that follow are gathered in sorted runs (loadruns.go), which are merged into files at the end. What those files
// supersede in the streamed ones, and what all supersede in the table's, is looked up then (loadmarks.go).
type load struct {
	w *Write
	c *core

	stream  *loadStream // nil once keys did not ascend
	lastKey []byte      // of the rows that were streamed
	runs    *loadRuns
	dir     temporaryDirectory // of the runs that do not fit in memory

	streamed, merged []*loadFile // the merged ones are newer
	rows             uint64
	// marks are the superseded rows of the table's files; what is in the map was looked up for all of the load.
	marks map[*dataFile]*roaring.Bitmap
	// resolvedOwn says that what the merged files supersede in the streamed ones was looked up.
	resolvedOwn bool
	// stopped tells background work to give up.
	stopped atomic.Bool
}

// errStopped is how background work ends that was told to; the error that counts is another one.
var errStopped = errors.New("the load was given up")

// newLoad starts a load with the blocks at hand, which it takes.
func newLoad(w *Write, blocks []*Block) (*load, error) {
	l := &load{w: w, c: w.c, dir: temporaryDirectory{c: w.c}, marks: map[*dataFile]*roaring.Bitmap{}}
	l.runs = newLoadRuns(l)
	var last []byte
	for _, b := range blocks {
		if !l.follows(b, last) {
			w.disordered.Store(true)
			break
		}
		last = b.last
	}
	if !w.disordered.Load() {
		l.stream = newLoadStream(l)
	}
	for i, b := range blocks {
		if err := l.add(b); err != nil {
			for _, rest := range blocks[i:] {
				rest.Free()
			}
			return l, err
		}
	}
	return l, nil
}

// follows reports whether the keys of a block ascend and are above the key.
func (l *load) follows(b *Block, key []byte) bool {
	return b.ascending && (key == nil || bytes.Compare(key, b.first) < 0)
}

// add takes the rows of a block.
func (l *load) add(b *Block) error {
	l.rows += uint64(b.n)
	if l.stream != nil && !l.follows(b, l.lastKey) {
		l.w.disordered.Store(true)
		if err := l.stream.finish(); err != nil {
			return err
		}
		l.endStream()
	}
	if l.stream == nil {
		err := l.runs.add(b)
		b.Free()
		return err
	}
	l.lastKey = b.last
	return l.stream.add(b)
}

// endStream takes the files of the stream, which is finished.
func (l *load) endStream() {
	l.streamed = l.stream.out.files
	l.stream = nil
}

// uncommitted makes a file handle for a data file that no manifest names yet.
func (c *core) uncommitted(meta *manifest.File) *liveFile {
	return &liveFile{
		meta:     meta,
		dataFile: c.newDataFile(meta.Path, meta.Size),
	}
}

// together runs functions side by side and returns the first error. Meanwhile it asks for interrupts, on the caller's
// goroutine; an error or an interrupt stops the others.
func (l *load) together(fns ...func() error) error {
	err := l.w.interrupted()
	if err != nil {
		return err
	}
	done := make(chan error, len(fns))
	for _, fn := range fns {
		go func() { done <- fn() }()
	}
	const askEvery = 20 * time.Millisecond
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for n := len(fns); n > 0; {
		select {
		case e := <-done:
			n--
			if err == nil {
				err = e
			}
		case <-tick.C:
			if err == nil {
				err = l.w.interrupted()
			}
		}
		if err != nil {
			l.stopped.Store(true)
		}
	}
	return err
}

// commit writes what is left and makes the load visible. Memtables are flushed first: then everything in memory is newer
// than everything in files, as all readers take for granted. The bulk of that flush, and of the lookups in files, happens
// before writers are stopped.
func (l *load) commit() (base.Seq, error) {
	if err := l.prepare(); err != nil {
		return 0, err
	}
	seq, err := l.commitAlone()
	if err != nil {
		return 0, err
	}
	l.c.collectGarbage()
	return seq, nil
}

// prepare does what can be done of the commit without keeping other writers out.
func (l *load) prepare() error {
	if err := l.writeFiles(); err != nil {
		return err
	}
	if err := l.resolve(); err != nil {
		return err
	}
	if err := l.c.waitForRoom([]*core{l.c}, l.c.fileLimit, l.w.interrupted); err != nil {
		return err
	}
	if err := l.flushMost(); err != nil {
		return err
	}
	return l.w.interrupted()
}

// flushMost flushes what is in memory, until what others wrote meanwhile is little: that is flushed with them kept out.
func (l *load) flushMost() error {
	const tries, little = 4, 2 << 20
	for range tries {
		if err := l.c.flushAll(); err != nil {
			return err
		}
		if err := l.resolve(); err != nil {
			return err
		}
		if l.c.activeBytes() <= little {
			break
		}
	}
	return nil
}

// writeFiles brings all rows into data files.
func (l *load) writeFiles() error {
	if l.stream != nil {
		if err := l.together(l.stream.finish); err != nil {
			return err
		}
		l.endStream()
	}
	if err := l.together(l.runs.finish); err != nil {
		return err
	}
	if err := l.merge(); err != nil {
		return err
	}
	if len(l.streamed)+len(l.merged) == 0 {
		return nil
	}
	return l.c.fs.SyncDir(l.c.dataDirOf(outputLevel))
}

// commitAlone keeps all other writers out.
func (l *load) commitAlone() (base.Seq, error) {
	c := l.c
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.writable(); err != nil {
		return 0, err
	}
	if err := l.inPlace(); err != nil {
		return 0, err
	}
	if err := c.retireActive(); err != nil {
		return 0, err
	}
	if err := c.waitFlushed(nil); err != nil {
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
	seq := c.lastSeq + 1
	next, ch, err := l.change(s, seq)
	if err != nil {
		return 0, err
	}
	if err := c.commitFiles(s, next, ch); err != nil {
		return 0, err
	}
	fresh := c.tables[c.id] != c
	if fresh {
		if err := c.enlist(c); err != nil {
			return 0, err
		}
	}
	c.lastSeq = seq
	bytes := int64(0)
	for _, f := range l.all() {
		bytes += f.meta.Size
	}
	c.logEvent(slog.LevelInfo, "load", "rows were loaded into data files", slog.Uint64("rows", l.rows),
		slog.Int64("bytes", bytes), slog.Int("files", len(l.all())), slog.Int64("version", next.Version), slog.Uint64("seq", seq))
	c.install(c.newState(s, next, l.w.table, nil), func() {
		c.visible, c.table = seq, l.w.table
		if fresh {
			c.enlisted(c)
		}
	})
	if fresh {
		c.startWorkers()
	}
	l.published()
	return seq, nil
}

// change returns the manifest that makes the load visible with a sequence number, and what it does to the files of s, the
// current state. It runs under writeMu and commitMu, with nothing in memory.
func (l *load) change(s *readState, seq base.Seq) (*manifest.Manifest, change, error) {
	c := l.c
	ch, err := l.supersededNow(s)
	if err != nil {
		return nil, ch, err
	}
	l.place(s)
	for _, run := range [][]*loadFile{l.merged, l.streamed} { // newest first
		for _, f := range run {
			f.meta.SeqMin, f.meta.SeqMax = seq, seq
			ch.added = append(ch.added, &f.newFile)
		}
	}
	next := c.nextManifest("load")
	next.Properties[manifest.PropFirstSeq] = strconv.FormatUint(seq, 10)
	next.Properties[manifest.PropLastSeq] = strconv.FormatUint(seq, 10)
	next.FlushedSeq = seq
	if l.w.creates != nil {
		next.Schema, next.TableUUID, next.Dropped, next.MinLog = l.w.table.schema, newUUID(), false, c.nextLog
		next.DroppedSeq = 0
	}
	if l.w.alters != nil {
		next.Schema = l.w.table.schema
		if len(ch.added) == 0 {
			next.Properties[manifest.PropJob] = "alter"
		}
	}
	if len(l.merged) > 0 && len(l.streamed) > 0 {
		next.DroppedSeq = seq // of two rows of one key only the deletion vectors tell which one counts
	}
	return next, ch, nil
}

// published takes note that the files are the table's.
func (l *load) published() {
	c := l.c
	c.stats.rowsWritten.Add(int64(l.rows))
	c.stats.loads.Add(1)
	for _, f := range l.all() {
		c.pending.remove(f.meta.Path)
		f.file.unref()
	}
	l.streamed, l.merged = nil, nil
}

// place gives the files their levels. Files of the same kind do not overlap.
func (l *load) place(s *readState) {
	level := func(files []*loadFile) int {
		if len(files) == 0 {
			return 0
		}
		size := int64(0)
		for _, f := range files {
			size += f.meta.Size
		}
		return l.c.placeLevel(s, files[0].meta.KeyMin, files[len(files)-1].meta.KeyMax, size)
	}
	merged, streamed := level(l.merged), level(l.streamed)
	if merged == streamed && len(l.merged) > 0 {
		streamed = 0 // they may meet
	}
	for _, f := range l.merged {
		f.meta.Level = merged
	}
	for _, f := range l.streamed {
		f.meta.Level = streamed
	}
}

// all returns the files of the load.
func (l *load) all() []*loadFile {
	return append(l.merged[:len(l.merged):len(l.merged)], l.streamed...)
}

// close gives up what was not committed.
func (l *load) close() {
	l.stopped.Store(true)
	if l.stream != nil {
		_ = l.stream.finish() // an error that counts was returned before
		l.endStream()
	}
	l.runs.close()
	for _, f := range l.all() {
		f.file.unref()
		l.c.discard(&f.newFile)
		l.c.pending.remove(f.meta.Path)
	}
	l.streamed, l.merged = nil, nil
	l.dir.remove()
	if l.w.creates != nil {
		l.c.forsakeUnlisted()
	}
}
