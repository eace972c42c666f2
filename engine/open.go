package engine

import (
	"slices"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
	"github.com/merutable/merutable/engine/internal/wal"
)

const lockFile = "LOCK"

// openCore opens a directory; dir is absolute and, but for a new one, resolved.
func openCore(dir string, o Options) (c *core, err error) {
	o = o.withFS()
	stored, err := readOptionsFile(o.fs, dir)
	if err != nil {
		return nil, err
	}
	given := o
	if o, err = stored.apply(given); err != nil {
		return nil, err
	}
	c = newCore(newDatabase(dir, o), dir)
	defer func() {
		if err != nil {
			c.release()
			c = nil
		}
	}()
	if c.readOnly {
		err = c.openReadOnly()
	} else {
		err = c.openWriter(stored, given)
	}
	if err == nil {
		heap.add(&c.opts, 1)
		c.heapCounted = true
	}
	return c, err
}

func newDatabase(dir string, o Options) *database {
	d := &database{
		root: dir, fs: o.fs, opts: o, readOnly: o.ReadOnly, now: time.Now,
		cache: sst.NewCache(o.CacheBytes), rows: newRowCache(o.RowCacheBytes), syncWork: make(chan struct{}, 1),
	}
	d.flushDone.L = &d.mu
	return d
}

// newCore makes the engine of a table without opening it.
func newCore(d *database, dir string) *core {
	return &core{
		database: d, dir: dir, store: manifest.NewFSStore(d.fs, dir), compactions: newCompactions(&d.opts),
		flushWork: make(chan struct{}, max(d.opts.FlushThreads, 1)), stop: make(chan struct{}),
		gc: collector{wake: make(chan struct{}, 1)},
	}
}

func (c *core) openWriter(stored *optionsFile, given Options) error {
	lock, err := c.fs.Lock(c.fs.Join(c.dir, lockFile), holder())
	if err != nil {
		return err
	}
	c.dirLock = lock
	if err := stored.store(given); err != nil {
		return err
	}
	m, err := c.store.Newest()
	if err != nil && base.CodeOf(err) != base.CodeNotFound {
		return err
	}
	if m == nil {
		err = c.refuseOrphans()
	} else {
		// Whoever committed it may not have come to sync its name. What is built on it from here on must not outlive it.
		err = c.fs.SyncDir(c.fs.Join(c.dir, manifest.Dir))
	}
	if err != nil {
		return err
	}
	if err := c.findLogDir(m); err != nil {
		return err
	}
	c.nextLog = 1
	var t *table
	if m != nil {
		c.lastSeq, c.lastFlushed = m.FlushedSeq, m.FlushedSeq
		c.nextLog = max(1, m.MinLog)
		if !m.Dropped {
			if t, err = newTable(m.Schema); err != nil {
				return err
			}
		}
	}
	c.table = t
	mems, err := c.recoverLogs(m, t)
	if err != nil {
		return err
	}
	for _, e := range mems {
		e.visible = e.mt.Len()
	}
	c.install(c.newState(nil, m, t, mems), func() { c.visible = c.lastSeq })
	for _, e := range mems {
		e.mt.Unref() // the state holds them
	}
	if c.gc.opened = m; m != nil {
		c.gc.history.committed(nil, m, c.now())
	}
	c.startWorkers()
	if len(mems) > 0 {
		c.kickFlush()
	}
	return nil
}

// refuseOrphans refuses a directory that holds data files but no manifest: a table lost its metadata there, and a new one
// would take its files for garbage.
func (c *core) refuseOrphans() error {
	dataDir := c.fs.Join(c.dir, "data")
	levels, err := c.fs.List(dataDir)
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	for _, level := range levels {
		names, e := c.fs.List(c.fs.Join(dataDir, level))
		if e == nil && len(names) > 0 {
			return base.Errorf(base.CodeCorruption, "%s holds data files, but there is no manifest in %s", c.fs.Join(dataDir, level),
				c.fs.Join(c.dir, manifest.Dir))
		}
	}
	return err
}

func (c *core) startWorkers() {
	for range cap(c.flushWork) {
		c.workers.Add(1)
		go c.flushLoop()
	}
	c.workers.Add(1)
	go c.garbageLoop()
	if !c.opts.NoAutoCompaction {
		c.workers.Add(1)
		go c.compactLoop()
		c.kickCompaction()
	}
	if c.opts.Durability != Sync {
		c.workers.Add(1)
		go c.syncLoop()
	}
}

// recoverLogs replays the logs that the manifest does not cover into memtables, newest first, and cuts a torn tail off.
// The logs stay until a flush covers them; new writes go to a new log.
func (c *core) recoverLogs(m *manifest.Manifest, t *table) ([]*memEntry, error) {
	numbers, err := listLogs(c.fs, c.walDir, 0)
	if err != nil {
		return nil, err
	}
	var mems []*memEntry
	release := func() {
		for _, e := range mems {
			e.mt.Unref()
		}
	}
	for i, num := range numbers {
		c.nextLog = max(c.nextLog, num+1)
		if t == nil || num < m.MinLog {
			continue // obsolete: the garbage collector removes it
		}
		path := c.fs.Join(c.walDir, wal.Name(num))
		last := i == len(numbers)-1
		valid, entries, err := c.replayLog(path, num, last)
		for _, e := range entries {
			mems = append([]*memEntry{e}, mems...)
		}
		if err != nil {
			release()
			return nil, err
		}
		if last {
			if err := c.cutTail(path, valid); err != nil {
				release()
				return nil, err
			}
		}
	}
	return mems, nil
}

// cutTail removes what follows the last whole record, and syncs the log, so that a later one may follow it: the process
// that wrote it may have died before it synced what it wrote, and what was read here is on no disk yet.
func (c *core) cutTail(path string, valid int64) error {
	if valid > 0 {
		return c.fs.Truncate(path, valid)
	}
	if err := c.fs.Remove(path); err != nil {
		return err
	}
	return c.fs.SyncDir(c.walDir)
}

// listLogs returns the numbers of the logs of a directory from minimum on, ascending.
func listLogs(fs vfs.FS, dir string, minimum uint64) ([]uint64, error) {
	names, err := fs.List(dir)
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
		return nil, err
	}
	var numbers []uint64
	for _, n := range names {
		if num, ok := wal.ParseName(n); ok && num >= minimum {
			numbers = append(numbers, num)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// replayLog reads one log into as many memtables as it takes, oldest first.
func (c *core) replayLog(path string, num uint64, last bool) (valid int64, entries []*memEntry, err error) {
	var cur *memEntry
	valid, err = wal.Replay(c.fs, path, num, last, func(offset int64, payload []byte) error {
		cur, entries, err = c.replayBatch(path, offset, num, payload, cur, entries)
		return err
	})
	return valid, entries, err
}

// replayBatch checks one log record and applies it to cur, or to a new memtable where cur is full. The caller makes it
// visible.
func (c *core) replayBatch(path string, offset int64, num uint64, payload []byte, cur *memEntry, entries []*memEntry) (*memEntry, []*memEntry, error) {
	bad := func(err error) error {
		return base.Wrapf(base.CodeCorruption, err, "%s: record at offset %d", path, offset)
	}
	r, err := readBatch(payload)
	if err != nil {
		return cur, entries, bad(err)
	}
	last := r.first + base.Seq(r.n) - 1
	if cur == nil && last <= c.lastFlushed {
		// In files. A reader that has older rows of this log in memory must take these too: memory hides files.
		return nil, entries, nil
	}
	if err := c.follows(r.first, last, cur); err != nil {
		return cur, entries, bad(err)
	}
	need := 0
	check := r
	for range r.n {
		op, key, value, err := check.next()
		if err != nil {
			return cur, entries, bad(err)
		}
		if op == base.OpPut {
			if err := c.table.layout.Check(value); err != nil {
				return cur, entries, bad(err)
			}
		}
		need += memtable.EntryBytes(len(key), len(value))
	}
	if cur == nil || cur.mt.Capacity()-cur.mt.Bytes() < need {
		mt, err := memtable.New(max(c.opts.MemtableBytes, need+memtableSlack))
		if err != nil {
			return cur, entries, err
		}
		cur = &memEntry{mt: mt, log: num}
		entries = append(entries, cur)
	}
	if err := applyToMemtable(cur, payload); err != nil {
		return cur, entries, bad(err)
	}
	cur.lastSeq = last
	c.lastSeq = max(c.lastSeq, cur.lastSeq)
	return cur, entries, nil
}

// follows checks that a record takes up where the one before left off: a log that ends between two records looks whole by
// itself, and one that is gone leaves no trace but the gap.
func (c *core) follows(first, last base.Seq, cur *memEntry) error {
	before := c.lastSeq
	switch {
	case cur != nil:
		before = cur.lastSeq
	case c.readOnly: // it may know a newer state than this log's
		before = first - 1
	}
	if first != before+1 || last > base.MaxSeq || cur == nil && first <= c.lastFlushed {
		return base.Errorf(base.CodeCorruption, "it has the sequence numbers %d to %d, but %d is the last one before it (a log is missing, or another database's)",
			first, last, before)
	}
	return nil
}

// syncLoop syncs the log behind the writers' backs: at durability Interval every so often, if something was written since,
// and whenever much was, for what is not synced when the memtable is full makes writers wait.
func (c *core) syncLoop() {
	defer c.workers.Done()
	var tick <-chan time.Time
	if c.opts.Durability == Interval {
		ticker := time.NewTicker(c.opts.SyncInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-c.stop:
			return
		case <-tick:
		case <-c.syncWork:
		}
		if !c.logDirty.Swap(false) {
			continue
		}
		c.writeMu.Lock()
		w := c.log
		c.writeMu.Unlock()
		if w == nil || w.Sync() == nil {
			continue
		}
		// The log may have been closed meanwhile, which syncs it, or rewound after a failed write.
		c.writeMu.Lock()
		if c.log == w {
			if err := w.Sync(); err != nil {
				_ = c.fail(err) // later writes report it
			}
		}
		c.writeMu.Unlock()
	}
}

// seal makes everything durable in files and takes no more writes; reads go on. It releases the directory.
func (c *core) seal() error {
	if c.readOnly {
		return nil
	}
	err := c.flushAll()
	c.writeMu.Lock()
	if e := c.closeLog(); err == nil {
		err = e
	}
	c.mu.Lock()
	c.sealed = true
	c.flushDone.Broadcast()
	c.mu.Unlock()
	c.writeMu.Unlock()
	c.stopWorkers()
	c.finishGarbage()
	c.release()
	return err
}

// abandon takes no more writes and releases the directory without flushing: the log has what was acknowledged.
func (c *core) abandon() {
	c.writeMu.Lock()
	_ = c.closeLog() // what could not be synced was not acknowledged as durable
	c.mu.Lock()
	c.sealed = true
	c.flushDone.Broadcast()
	c.mu.Unlock()
	c.writeMu.Unlock()
	c.release()
}

func (c *core) stopWorkers() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.compactions.cancel()
	c.workers.Wait()
	c.closeCompactions()
}

// release stops the workers and gives the lock up. It may be called twice. Snapshots that are still held keep their files.
func (c *core) release() {
	c.stopWorkers()
	c.endIdle()
	if c.dirLock != nil {
		c.endGarbage()
		c.pinned.lockAll(c.store)
		_ = c.dirLock.Close() // nothing to do about it: the lock goes with the process at the latest
		c.dirLock = nil
	}
}

// drop gives up the current state; snapshots that are still held keep theirs.
func (c *core) drop() {
	c.mu.Lock()
	s := c.state
	c.state = nil
	if c.heapCounted {
		c.heapCounted = false
		heap.add(&c.opts, -1)
	}
	c.mu.Unlock()
	if s != nil {
		s.unref()
	}
}
