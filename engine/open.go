package engine

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
	"github.com/merutable/merutable/engine/internal/wal"
)

const lockFile = "LOCK"

// openCore opens a directory; dir is absolute and, but for a new one, resolved. It returns the root table.
func openCore(dir string, o Options) (c *core, err error) {
	o = o.withFS()
	stored, given := &optionsFile{fs: o.fs, dir: dir}, o
	switch {
	case !objstore.IsURL(dir):
		if stored, err = readOptionsFile(o.fs, dir); err != nil {
			return nil, err
		}
		o, err = stored.apply(given)
	case o.ReadOnly:
		o, err = mountReader(dir, given)
	default:
		o, stored, err = mountPrimary(dir, given)
	}
	if err != nil {
		return nil, err
	}
	objects, _ := o.fs.(*objfs.FS)
	d := newDatabase(dir, o, objects)
	defer func() {
		if err != nil {
			d.release()
			d.drop()
			c = nil
		}
	}()
	switch {
	case d.readOnly:
		err = d.openReadOnly()
	case d.remote():
		err = d.openPrimary(stored, given)
	default:
		err = d.openWriter(stored, given)
	}
	if err == nil {
		heap.add(&d.opts, 1)
		d.heapCounted = true
	}
	return d.main, err
}

// newDatabase makes a database without opening it; objects is where it is in an object store, then o.fs as well.
func newDatabase(dir string, o Options, objects *objfs.FS) *database {
	d := &database{
		root: dir, fs: o.fs, objects: objects, opts: o, readOnly: o.ReadOnly,
		cache: sst.NewCache(o.CacheBytes), rows: newRowCache(o.RowCacheBytes), syncWork: make(chan struct{}, 1),
		flushWork: make(chan struct{}, max(o.FlushThreads, 1)), stop: make(chan struct{}),
		compactSlots: make(chan struct{}, max(o.CompactionThreads, 1)), limiter: newLimiter(&o),
		nextLog: 1, nextID: 1, catalog: &catalog{nextID: 1},
		actives: map[*core]struct{}{}, tables: map[uint32]*core{}, leaving: map[*core]struct{}{},
	}
	d.flushDone.L = &d.mu
	d.main = newCore(d, 0)
	d.tables[0] = d.main
	return d
}

// newCore makes the engine of a table without opening it.
func newCore(d *database, id uint32) *core {
	dir := d.root
	if id != 0 {
		dir = d.fs.Join(d.root, tablesDir, strconv.FormatUint(uint64(id), 10))
	}
	return &core{
		database: d, id: id, dir: dir, store: d.newStore(dir), compactions: newCompactions(d.limiter),
		stop: make(chan struct{}), gc: collector{wake: make(chan struct{}, 1), slack: sweepSlack},
	}
}

func (d *database) openWriter(stored *optionsFile, given Options) error {
	lock, err := d.fs.Lock(d.fs.Join(d.root, lockFile), holder())
	if err != nil {
		return err
	}
	d.dirLock = lock
	if err := stored.store(given); err != nil {
		return err
	}
	if d.catalog, err = readCatalog(d.fs, d.root); err != nil {
		return err
	}
	if err := d.redo(); err != nil {
		return err
	}
	if d.catalog, err = readCatalog(d.fs, d.root); err != nil {
		return err
	}
	if d.catalog.version > 0 {
		// As with a manifest: what is built on it must not outlive it.
		if err := d.fs.SyncDir(d.root); err != nil {
			return err
		}
	}
	d.nextID, d.lastSeq = d.catalog.nextID, d.catalog.lastSeq
	for _, id := range d.catalog.ids {
		d.tables[id] = newCore(d, id)
	}
	manifests := map[*core]*manifest.Manifest{}
	for _, c := range d.all() {
		if manifests[c], err = c.loadNewest(); err != nil {
			return err
		}
	}
	if err := d.checkNames(); err != nil {
		return err
	}
	if err := d.findLogDir(); err != nil {
		return err
	}
	mems, err := d.recoverLogs()
	if err != nil {
		return err
	}
	d.logFloor = d.nextLog
	for _, c := range d.all() {
		c.begin(manifests[c], mems[c])
	}
	d.visible = d.lastSeq
	if err := d.findLeftovers(); err != nil {
		return err
	}
	if err := d.startMirror(); err != nil {
		return err
	}
	d.startWorkers()
	return nil
}

// loadNewest reads the newest manifest of a table, and makes the table what that says. nil: the root never had one.
func (c *core) loadNewest() (*manifest.Manifest, error) {
	return c.take(c.store.Newest())
}

// take is loadNewest with what the store answered.
func (c *core) take(m *manifest.Manifest, err error) (*manifest.Manifest, error) {
	switch {
	case base.CodeOf(err) == base.CodeNotFound && c.id == 0:
		return nil, c.refuseOrphans()
	case base.CodeOf(err) == base.CodeNotFound:
		return nil, base.Wrapf(base.CodeCorruption, err, "%s lists table %d", c.fs.Join(c.root, catalogFileName), c.id)
	case err != nil:
		return nil, err
	}
	// Whoever committed it may not have come to sync its name. What is built on it from here on must not outlive it.
	if err := c.fs.SyncDir(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return nil, err
	}
	c.lastSeq = max(c.lastSeq, m.FlushedSeq)
	c.nextLog = max(c.nextLog, m.MinLog)
	return m, c.adopt(m)
}

// adopt makes the table what a manifest says, for the replay of logs.
func (c *core) adopt(m *manifest.Manifest) error {
	c.minLog, c.lastFlushed, c.atVersion = m.MinLog, m.FlushedSeq, m.Version
	if m.Dropped {
		c.table = nil
		return nil
	}
	t, err := newTable(m.Schema)
	c.table = t
	return err
}

// begin installs what was recovered of a table.
func (c *core) begin(m *manifest.Manifest, mems []*memEntry) {
	for _, e := range mems {
		e.visible = e.mt.Len()
	}
	c.install(c.newState(nil, m, c.table, mems), nil)
	for _, e := range mems {
		e.mt.Unref() // the state holds them
	}
	if c.gc.opened = m; m != nil {
		c.gc.history.committed(nil, m, c.now())
	}
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

func (d *database) startWorkers() {
	for range cap(d.flushWork) {
		d.workers.Add(1)
		go d.flushLoop()
	}
	if d.opts.Durability != Sync && !d.remote() {
		d.workers.Add(1)
		go d.syncLoop()
	}
	for _, c := range d.all() {
		c.startWorkers()
	}
	d.kickFlush()
}

// startWorkers starts what a table has of its own.
func (c *core) startWorkers() {
	c.workers.Add(1)
	go c.garbageLoop()
	if !c.opts.NoAutoCompaction {
		c.workers.Add(1)
		go c.compactLoop()
		c.kickCompaction()
	}
}

// cutTail removes what follows the last whole record, and syncs the log, so that a later one may follow it: the process
// that wrote it may have died before it synced what it wrote, and what was read here is on no disk yet.
func (d *database) cutTail(path string, valid int64) error {
	if valid > 0 {
		return d.fs.Truncate(path, valid)
	}
	if err := d.fs.Remove(path); err != nil {
		return err
	}
	return d.fs.SyncDir(d.walDir)
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

// syncLoop syncs the log behind the writers' backs: at durability Interval every so often, if something was written since,
// and whenever much was, for what is not synced when the memtable is full makes writers wait.
func (d *database) syncLoop() {
	defer d.workers.Done()
	var tick <-chan time.Time
	if d.opts.Durability == Interval {
		ticker := time.NewTicker(d.opts.SyncInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-d.stop:
			return
		case <-tick:
		case <-d.syncWork:
		}
		if !d.logDirty.Swap(false) {
			continue
		}
		d.writeMu.Lock()
		w := d.log
		d.writeMu.Unlock()
		if w == nil || w.Sync() == nil {
			continue
		}
		// The log may have been closed meanwhile, which syncs it, or rewound after a failed write.
		d.writeMu.Lock()
		if d.log == w {
			if err := w.Sync(); err != nil {
				_ = d.fail(err) // later writes report it
			}
		}
		d.writeMu.Unlock()
	}
}

// seal makes everything durable in files and takes no more writes; reads go on. It releases the directory.
func (d *database) seal() error {
	if d.readOnly {
		return nil
	}
	var err error
	if !d.remote() { // where nothing is in memory, and a writer that lost its place has nothing left to lose
		err = d.flushTables()
	}
	if err == nil {
		d.finishMirror()
	}
	d.stopMirror()
	if e := d.end(); err == nil {
		err = e
	}
	d.stopWorkers()
	for _, c := range d.allNow() {
		c.finishGarbage()
	}
	d.release()
	return err
}

// abandon takes no more writes and releases the directory without flushing: the log has what was acknowledged.
func (d *database) abandon() {
	d.stopMirror()
	_ = d.end() // what could not be synced was not acknowledged as durable
	d.release()
}

// end takes no more writes.
func (d *database) end() error {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	err := d.closeLog()
	d.mu.Lock()
	d.sealed = true
	d.flushDone.Broadcast()
	d.mu.Unlock()
	return err
}

// all returns the tables by id, and those that were dropped as long as their files are not gone. It runs under mu.
func (d *database) all() []*core {
	cores := d.live()
	for c := range d.leaving {
		cores = append(cores, c)
	}
	return cores
}

// allNow is all for callers without mu.
func (d *database) allNow() []*core {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all()
}

// live returns the tables by id, the root one whether there is a table or not. It runs under mu or writeMu.
func (d *database) live() []*core {
	cores := make([]*core, 0, len(d.tables))
	for _, c := range d.tables {
		cores = append(cores, c)
	}
	slices.SortFunc(cores, func(a, b *core) int { return cmp.Compare(a.id, b.id) })
	return cores
}

func (d *database) stopWorkers() {
	tables := d.allNow()
	d.stopOnce.Do(func() { close(d.stop) })
	for _, c := range tables {
		c.beginStop()
	}
	d.workers.Wait()
	for _, c := range tables {
		c.workers.Wait()
		c.closeCompactions()
	}
}

// beginStop tells what a table has of its own to end.
func (c *core) beginStop() {
	c.stopOnce.Do(func() { close(c.stop) })
	c.compactions.cancel()
}

// release stops the workers and gives the lock up. It may be called twice. Snapshots that are still held keep their files.
func (d *database) release() {
	d.stopMirror()
	d.stopWorkers()
	tables := d.allNow()
	for _, c := range tables {
		c.endIdle()
	}
	if d.dirLock == nil && !d.remote() {
		return
	}
	for _, c := range tables {
		c.endGarbage()
		c.pinned.lockAll(c.store)
	}
	if d.dirLock != nil {
		_ = d.dirLock.Close() // nothing to do about it: the lock goes with the process at the latest
		d.dirLock = nil
	}
}

// drop gives up the current states; snapshots that are still held keep theirs.
func (d *database) drop() {
	d.mu.Lock()
	var states []*readState
	for _, c := range d.all() {
		if c.state != nil {
			states = append(states, c.state)
		}
		c.state = nil
	}
	if d.heapCounted {
		d.heapCounted = false
		heap.add(&d.opts, -1)
	}
	d.mu.Unlock()
	for _, s := range states {
		s.unref()
	}
}
