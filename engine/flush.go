package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/sst"
)

// Flush workers write immutable memtables to files, several at a time; the commits stay oldest first, for everything in a
// memtable must be newer than everything in files. Files are written, and superseded rows looked up, without any lock that
// others need; under commitMu stands only what nobody could know before.

// flushProgress is what flush workers share with those who wait for them. It is guarded by core.mu.
type flushProgress struct {
	begun uint64 // how many attempts there were
	// failed is the number of the newest attempt that failed, 0 for none, failures how many did, err how that one did.
	failed   uint64
	failures int
	err      error
	retryAt  time.Time // when the next attempt may be made that nobody asks for
}

// errNotInTurn ends an attempt whose turn does not come, as an older memtable's attempt failed.
var errNotInTurn = base.Errorf(base.CodeIO, "the flush of an older memtable failed")

// flushLoop is a flush worker, for all tables. An attempt that fails is made again after a while and at the next occasion:
// space may come back. Other tables do not wait for that.
func (d *database) flushLoop() {
	defer d.workers.Done()
	for {
		a, retry := d.beginFlush()
		if a.e != nil {
			_ = a.c.endFlush(a, a.c.flushEntry(a)) // it is kept for those who wait
			continue
		}
		var again <-chan time.Time
		if retry > 0 {
			again = time.After(retry)
		}
		select {
		case <-d.stop:
			return
		case <-d.flushWork:
		case <-again:
		}
	}
}

// flushRetry is after how long a flush that failed is tried again without being asked for.
const flushRetry = time.Second

// flushAttempt is one try to flush a memtable of a table.
type flushAttempt struct {
	c        *core
	e        *memEntry
	number   uint64
	failures int // as of its begin
}

// beginFlush takes the immutable memtable that began first of those that nobody flushes, of each table the oldest one; e
// is nil where there is none or the database failed. retry is after how long one that failed is to be tried again, 0
// where there is none.
func (d *database) beginFlush() (a flushAttempt, retry time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return a, 0
	}
	now := time.Now()
	for _, c := range d.tables {
		e := c.oldestUnflushed()
		if e == nil || a.e != nil && a.e.log <= e.log {
			continue
		}
		if pause := c.flush.retryAt.Sub(now); pause > 0 {
			if retry == 0 || pause < retry {
				retry = pause
			}
			continue
		}
		a.c, a.e = c, e
	}
	if a.e == nil {
		return a, retry
	}
	c, e := a.c, a.e
	e.flushing, e.flushBegan = true, now
	e.flushedRows.Store(0)
	e.mt.Ref() // the table may be dropped meanwhile
	c.flush.begun++
	a.number, a.failures = c.flush.begun, c.flush.failures
	return a, 0
}

// oldestUnflushed returns the oldest immutable memtable that nobody flushes, nil where there is none. It runs under mu.
func (c *core) oldestUnflushed() *memEntry {
	if c.state == nil {
		return nil
	}
	for _, e := range slices.Backward(c.state.mems) {
		if e != c.active && !e.flushing {
			return e
		}
	}
	return nil
}

// endFlush gives the memtable back and tells those who wait how an attempt ended.
func (c *core) endFlush(a flushAttempt, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.e.flushing = false
	a.e.mt.Unref()
	if err != nil && err != errNotInTurn { //nolint:errorlint // it is never wrapped
		c.stats.flushErrors.Add(1)
		c.logEvent(slog.LevelError, "write error", "a flush failed and will be tried again: "+err.Error())
		c.flush.failures++
		c.flush.failed, c.flush.err = max(c.flush.failed, a.number), err
	}
	if err != nil {
		c.flush.retryAt = time.Now().Add(flushRetry)
	}
	c.flushDone.Broadcast()
	return err
}

// nextFlush asks for a flush and returns the number of the first attempt that begins from now on: one that was under way
// may fail for a reason that is gone. It runs under mu.
func (c *core) nextFlush() uint64 {
	c.flush.retryAt = time.Time{}
	c.kickFlush()
	return c.flush.begun + 1
}

// flushStopped returns why nobody should wait any longer for the flush that was asked for, or nil. It runs under mu.
func (c *core) flushStopped(attempt uint64) error {
	if c.flush.failed >= attempt {
		return c.flush.err
	}
	return c.stopped()
}

// stopped returns why nothing is flushed any more, or nil. It runs under mu.
func (d *database) stopped() error {
	switch {
	case d.failure != nil:
		return d.failure
	case d.sealed:
		return base.Errorf(base.CodeClosed, "%s is closed", d.root)
	}
	return nil
}

// kickFlush wakes the flush workers.
func (d *database) kickFlush() {
	for range cap(d.flushWork) {
		select {
		case d.flushWork <- struct{}{}:
		default:
		}
	}
}

// flushAll makes all rows written to the table so far durable in files.
func (c *core) flushAll() error { return c.flushUnless(nil) }

// flushUnless is flushAll; interrupted, if not nil, is asked now and then, and its error ends the wait, not the flush.
func (c *core) flushUnless(interrupted func() error) error {
	c.writeMu.Lock()
	err := c.writable()
	if err == nil {
		err = c.retireActive()
	}
	c.writeMu.Unlock()
	if err != nil {
		return err
	}
	return c.waitFlushed(interrupted)
}

// flushTables is flushAll for all tables of the database.
func (d *database) flushTables() error { return d.flushTablesUnless(nil) }

// flushTablesUnless is flushUnless for all tables of the database.
func (d *database) flushTablesUnless(interrupted func() error) error {
	d.writeMu.Lock()
	err := d.writable()
	if err == nil {
		err = d.retireActives()
	}
	tables := d.live()
	d.writeMu.Unlock()
	if err != nil {
		return err
	}
	for _, c := range tables {
		if e := c.waitFlushed(interrupted); err == nil {
			err = e
		}
	}
	return err
}

// waitFlushed waits until the memtables that are immutable now were flushed.
func (c *core) waitFlushed(interrupted func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil { // the table was dropped, and its files are gone
		return nil
	}
	var newest *memEntry
	for _, e := range c.state.mems {
		if e != c.active {
			newest = e
			break
		}
	}
	if newest == nil {
		return nil
	}
	attempt := c.nextFlush()
	for c.holds(newest) {
		if err := c.flushStopped(attempt); err != nil {
			return err
		}
		if err := c.waitUnless(interrupted); err != nil {
			return err
		}
	}
	return nil
}

// waitUnless waits for flushDone, or a moment where somebody may interrupt: then it asks. It runs under mu, which it lets
// go of meanwhile.
func (d *database) waitUnless(interrupted func() error) error {
	if interrupted == nil {
		d.flushDone.Wait()
		return nil
	}
	const askEvery = 100 * time.Millisecond
	d.mu.Unlock() // it is the caller's code; what it misses meanwhile the alarm makes up for
	err := interrupted()
	d.mu.Lock()
	if err != nil {
		return err
	}
	alarm := time.AfterFunc(askEvery, func() {
		d.mu.Lock()
		d.flushDone.Broadcast()
		d.mu.Unlock()
	})
	defer alarm.Stop()
	d.flushDone.Wait()
	return nil
}

// holds runs under mu.
func (c *core) holds(e *memEntry) bool { return c.state != nil && slices.Contains(c.state.mems, e) }

// flushEntry writes a memtable to an L0 file and commits it together with the deletion vectors of the rows that it
// supersedes.
func (c *core) flushEntry(a flushAttempt) error {
	start := time.Now()
	s := c.current()
	t, held := s.table, slices.Contains(s.mems, a.e)
	s.unref()
	if !held {
		return nil // dropped meanwhile; a table made anew has another row format
	}
	var out *newFile
	if a.e.mt.Len() > 0 {
		var err error
		if out, err = c.writeMemtable(t, a.e); err != nil {
			return err
		}
		defer c.pending.remove(out.meta.Path)
	}
	done, err := c.commitInTurn(a, out)
	if !done && out != nil {
		c.discard(out)
	}
	if done {
		c.stats.flushes.Add(1)
		c.stats.flushNanos.Add(int64(time.Since(start)))
		c.pace.flushed(a.e.mt.Bytes(), start)
	}
	return err
}

// commitInTurn commits a flush when all older memtables are flushed. What the memtable supersedes is looked up before
// that, and in the files of the flushes that it waited for; what a compaction puts in place in the very last moment is
// looked up under commitMu. done is false where it was not committed.
func (c *core) commitInTurn(a flushAttempt, out *newFile) (done bool, err error) {
	if _, err := c.lookUp(a.e, out); err != nil {
		return false, err
	}
	if held, err := c.waitTurn(a); err != nil || !held {
		return false, err
	}
	if _, err := c.lookUp(a.e, out); err != nil {
		return false, err
	}
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	c.mu.Lock()
	held := c.holds(a.e)
	c.mu.Unlock()
	if !held { // the table was dropped, or dropped and made anew
		return false, nil
	}
	if err := c.commitFlush(a.e, out); err != nil {
		return false, err
	}
	c.collectGarbage()
	return true, nil
}

// waitTurn waits until e is the oldest memtable; held is false where the table was dropped meanwhile.
func (c *core) waitTurn(a flushAttempt) (held bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.holds(a.e) {
		switch {
		case c.state.mems[len(c.state.mems)-1] == a.e:
			return true, nil
		case c.flush.failures != a.failures, c.sealed, c.failure != nil:
			return true, errNotInTurn
		}
		c.flushDone.Wait()
	}
	return false, nil
}

// lookUp returns the rows of the current files that e supersedes, by file. Files whose keys e does not reach cost
// nothing; what was found before is remembered. out is e's own file, nil where e is empty.
func (c *core) lookUp(e *memEntry, out *newFile) (map[*dataFile]*roaring.Bitmap, error) {
	if out == nil {
		return nil, nil
	}
	s := c.current()
	defer s.unref()
	marks := map[*dataFile]*roaring.Bitmap{}
	for _, f := range s.files {
		if bytes.Compare(f.meta.KeyMin, out.meta.KeyMax) > 0 || bytes.Compare(f.meta.KeyMax, out.meta.KeyMin) < 0 {
			continue
		}
		hits, err := e.superseded(s, f, e.mt.Len())
		if err != nil {
			return nil, err
		}
		if !hits.IsEmpty() {
			marks[f.dataFile] = hits
		}
	}
	return marks, nil
}

// writeMemtable writes the newest version of every key.
func (c *core) writeMemtable(t *table, e *memEntry) (*newFile, error) {
	it := e.mt.NewIter(base.MaxSeq)
	return c.writeFile(t, &memtableSource{e: e, it: it})
}

// memtableSource yields a memtable's rows to the file writer, and tells how far it is.
type memtableSource struct {
	e       *memEntry
	it      *memtable.Iter
	n       int64
	started bool
}

func (s *memtableSource) Next() bool {
	if s.started {
		s.it.Next()
	} else {
		s.it.First()
		s.started = true
	}
	const tellEvery = 1024
	if s.n++; s.n%tellEvery == 0 {
		s.e.flushedRows.Store(s.n)
	}
	return s.it.Valid()
}

func (s *memtableSource) Key() []byte   { return s.it.Key() }
func (s *memtableSource) Seq() base.Seq { return s.it.Seq() }
func (s *memtableSource) Op() base.Op   { return s.it.Op() }
func (s *memtableSource) Value() []byte { return s.it.Value() }
func (s *memtableSource) Err() error    { return nil }

// writeFile writes rows to a new data file of level 0. The file stays marked as pending until the caller has committed it or given
// it up.
func (c *core) writeFile(t *table, src sst.RowSource) (*newFile, error) {
	p, err := c.nameDataFile(0)
	if err != nil {
		return nil, err
	}
	info, err := sst.Write(c.fs, p.path, sst.WriterOptions{Schema: t.schema}, src)
	if err == nil {
		err = c.fs.SyncDir(p.dir)
	}
	if err != nil {
		_ = c.fs.Remove(p.path) // best effort: what stays is an orphan
		c.pending.remove(p.rel)
		return nil, err
	}
	c.stats.bytesFlushed.Add(info.Size)
	return &newFile{meta: p.describe(t, info), dead: info.Tombstones}, nil
}

// flushChange returns the manifest that follows that of s, the current state, with the rows of a memtable that went to out, and
// what it does to the files. It runs under commitMu.
func (c *core) flushChange(s *readState, e *memEntry, out *newFile) (*manifest.Manifest, change, error) {
	next := s.manifest.Next()
	next.Properties[manifest.PropJob] = "flush"
	marks, err := c.lookUp(e, out)
	if err != nil {
		return nil, change{}, err
	}
	ch := change{dead: marks}
	if out != nil {
		next.Properties[manifest.PropFirstSeq] = strconv.FormatUint(out.meta.SeqMin, 10)
		next.Properties[manifest.PropLastSeq] = strconv.FormatUint(e.lastSeq, 10)
	}
	next.FlushedSeq = max(next.FlushedSeq, e.lastSeq)
	next.MinLog = e.lastLog + 1
	for _, m := range s.mems {
		if m != e {
			next.MinLog = min(next.MinLog, m.log)
		}
	}
	if out != nil {
		ch.added = append(ch.added, out)
	}
	return next, ch, nil
}

// commitFlush runs under commitMu.
func (c *core) commitFlush(e *memEntry, out *newFile) error {
	s := c.current()
	defer s.unref()
	next, ch, err := c.flushChange(s, e, out)
	if err != nil {
		return err
	}
	if err := c.commitFiles(s, next, ch); err != nil {
		return err
	}
	if out != nil {
		c.logEvent(slog.LevelInfo, "flush", "rows in memory were written to a data file",
			slog.Int64("rows", out.meta.Rows), slog.Int64("bytes", out.meta.Size), slog.Int64("version", next.Version),
			slog.Uint64("seq", next.FlushedSeq))
	}
	c.installFiles(next, e, nil)
	return nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
