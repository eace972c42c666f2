package engine

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/sst"
)

// flushLoop writes immutable memtables to files, the oldest first. A flush that fails is tried again after a while and
// at the next occasion: space may come back.
func (c *core) flushLoop() {
	defer c.workers.Done()
	const retryEvery = time.Second
	for {
		var retry <-chan time.Time
		for {
			e := c.oldestImmutable()
			if e == nil {
				break
			}
			c.mu.Lock()
			c.flushBegun++
			c.mu.Unlock()
			err := c.flushEntry(e)
			c.mu.Lock()
			c.flushEnded++
			c.flushErr = err
			c.flushDone.Broadcast()
			c.mu.Unlock()
			if err != nil {
				c.stats.flushErrors.Add(1)
				retry = time.After(retryEvery)
				break
			}
		}
		select {
		case <-c.stop:
			return
		case <-c.flushWork:
		case <-retry:
		}
	}
}

// oldestImmutable returns the memtable to flush next, nil where there is none or the core failed.
func (c *core) oldestImmutable() *memEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil || c.state == nil || c.immutables() == 0 {
		return nil
	}
	return c.state.mems[len(c.state.mems)-1]
}

// flushAll makes all rows written so far durable in files.
func (c *core) flushAll() error {
	c.writeMu.Lock()
	err := c.writable()
	if err == nil {
		err = c.retireActive()
	}
	c.writeMu.Unlock()
	if err != nil {
		return err
	}
	return c.waitFlushed()
}

// waitFlushed waits until the memtables that are immutable now were flushed.
func (c *core) waitFlushed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
		switch {
		case c.flushEnded >= attempt && c.flushErr != nil:
			return c.flushErr
		case c.failure != nil:
			return c.failure
		case c.sealed:
			return base.Errorf(base.CodeClosed, "%s is closed", c.dir)
		}
		c.flushDone.Wait()
	}
	return nil
}

// holds runs under mu.
func (c *core) holds(e *memEntry) bool { return slices.Contains(c.state.mems, e) }

// flushEntry writes the oldest memtable to an L0 file and commits it together with the deletion vectors of the rows that
// it supersedes.
func (c *core) flushEntry(e *memEntry) error {
	start := time.Now()
	s := c.current()
	defer s.unref()
	if !slices.Contains(s.mems, e) {
		return nil // dropped meanwhile; a table made anew has another row format
	}
	var out *newFile
	if e.mt.Len() > 0 {
		var err error
		if out, err = c.writeMemtable(s.table, e); err != nil {
			return err
		}
		defer c.pending.remove(out.meta.Path)
	}
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	c.mu.Lock()
	held := c.holds(e)
	c.mu.Unlock()
	if !held { // the table was dropped, or dropped and made anew
		if out != nil {
			c.discard(out)
		}
		return nil
	}
	if err := c.commitFlush(e, out); err != nil {
		if out != nil {
			c.discard(out)
		}
		return err
	}
	c.removeLogs()
	c.collectGarbage()
	c.stats.flushes.Add(1)
	c.stats.flushNanos.Add(int64(time.Since(start)))
	return nil
}

// writeMemtable writes the newest version of every key.
func (c *core) writeMemtable(t *table, e *memEntry) (*newFile, error) {
	it := e.mt.NewIter(base.MaxSeq)
	return c.writeFile(t, &memtableSource{it: it}, fileOptions{level: 0})
}

// memtableSource yields a memtable's rows to the file writer.
type memtableSource struct {
	it      *memtable.Iter
	started bool
}

func (s *memtableSource) Next() bool {
	if s.started {
		s.it.Next()
	} else {
		s.it.First()
		s.started = true
	}
	return s.it.Valid()
}

func (s *memtableSource) Key() []byte   { return s.it.Key() }
func (s *memtableSource) Seq() base.Seq { return s.it.Seq() }
func (s *memtableSource) Op() base.Op   { return s.it.Op() }
func (s *memtableSource) Value() []byte { return s.it.Value() }
func (s *memtableSource) Err() error    { return nil }

type fileOptions struct {
	level      int
	inheritSeq bool
}

// writeFile writes rows to a new data file. The file stays marked as pending until the caller has committed it or given
// it up.
func (c *core) writeFile(t *table, src sst.RowSource, o fileOptions) (*newFile, error) {
	rel := "data/L" + strconv.Itoa(o.level) + "/" + newUUID() + ".parquet"
	dir := c.fs.Join(c.dir, "data", "L"+strconv.Itoa(o.level))
	if err := c.mkdirDurable(dir); err != nil {
		return nil, err
	}
	c.pending.add(rel)
	path := c.fs.Join(c.dir, rel)
	info, err := sst.Write(c.fs, path, sst.WriterOptions{Schema: t.schema, Level: o.level, InheritSeq: o.inheritSeq}, src)
	if err == nil {
		err = c.fs.SyncDir(dir)
	}
	if err != nil {
		_ = c.fs.Remove(path) // best effort, as above
		c.pending.remove(rel)
		return nil, err
	}
	meta := &manifest.File{
		Path: rel, Size: info.Size, Rows: info.Rows, Level: o.level, SeqMin: info.SeqMin, SeqMax: info.SeqMax,
		KeyMin: info.KeyMin, KeyMax: info.KeyMax, SeqInherited: o.inheritSeq,
	}
	for _, col := range info.NaNColumns {
		meta.NaNFieldIDs = append(meta.NaNFieldIDs, t.schema.Columns[col].FieldID)
	}
	c.stats.bytesFlushed.Add(info.Size)
	return &newFile{meta: meta, dead: info.Tombstones}, nil
}

// mkdirDurable creates a directory and syncs the entries that lead to it, so that what is synced inside survives. One
// that is there may be no more than a name in memory: whoever made it may have died before it was synced.
func (c *core) mkdirDurable(dir string) error {
	_, synced := c.dirs.Load(dir)
	if synced {
		if _, err := c.fs.Stat(dir); err == nil {
			return nil
		}
	}
	if err := c.fs.MkdirAll(dir); err != nil {
		return err
	}
	if err := c.syncParents(dir); err != nil {
		return err
	}
	c.dirs.Store(dir, struct{}{})
	return nil
}

// syncParents syncs the directories above dir. Above the database directory it does what it is allowed to: those mostly
// exist for long.
func (c *core) syncParents(dir string) error {
	inside := true
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		inside = inside && dir != c.dir && strings.HasPrefix(dir, c.dir)
		if err := c.fs.SyncDir(parent); err != nil && inside {
			return err
		}
	}
	return nil
}

// commitFlush runs under commitMu.
func (c *core) commitFlush(e *memEntry, out *newFile) error {
	s := c.current()
	defer s.unref()
	next := s.manifest.Next()
	next.Properties[manifest.PropJob] = "flush"
	ch := change{dead: map[*dataFile]*roaring.Bitmap{}}
	var keys *keyWindow
	for _, f := range s.files {
		hits, err := e.superseded(f, s.table, e.mt.Len(), &keys)
		if err != nil {
			return err
		}
		ch.dead[f.dataFile] = hits
	}
	if out != nil {
		next.Properties[manifest.PropFirstSeq] = strconv.FormatUint(out.meta.SeqMin, 10)
		next.Properties[manifest.PropLastSeq] = strconv.FormatUint(e.lastSeq, 10)
	}
	next.FlushedSeq = max(next.FlushedSeq, e.lastSeq)
	next.MinLog = e.log + 1
	for _, m := range s.mems {
		if m != e {
			next.MinLog = min(next.MinLog, m.log)
		}
	}
	if out != nil {
		ch.added = append(ch.added, out)
	}
	if err := c.commitFiles(s, next, ch); err != nil {
		return err
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
