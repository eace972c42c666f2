package engine

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/wal"
)

// A read-only core writes nothing and does not take the writer's lock; it pins the manifests that it uses (pins.go). It
// shows the newest manifest and, where the log of the writer can be read, the rows of the log: every whole record that
// the writer has written, in order. Records are seen as soon as they are in the log, which may be a moment before the
// writer's own fsync returns.

// logTail is how far a read-only database has read the writer's logs.
type logTail struct {
	mu   sync.Mutex
	logs []*tailedLog // ascending
}

type tailedLog struct {
	replayedLog
	at wal.Position
}

// readView is what a refresh brings together: a catalog, a manifest of each table that it lists, and the logs that those
// do not cover. It is what there was at one moment if none of them has changed when all are read.
type readView struct {
	catalog *catalog
	tables  map[uint32]*core
	// newest are the manifests; manifests are those to be shown, which are older where a commit over several tables was
	// not published as a whole.
	newest, manifests map[*core]*manifest.Manifest
	pinned            []pinnedManifest // for the time being
}

type pinnedManifest struct {
	c *core
	m *manifest.Manifest
}

func (v *readView) release() {
	for _, p := range v.pinned {
		p.c.pinned.remove(p.m)
	}
	v.pinned = nil
}

func (d *database) openReadOnly() error {
	if d.remote() {
		d.apart = true
		return d.refresh()
	}
	if _, err := d.fs.Stat(d.fs.Join(d.root, lockFile)); base.CodeOf(err) == base.CodeNotFound {
		d.apart = true // no writer ever had it: it is a mirror
	}
	if _, err := d.fs.Stat(d.root); err != nil {
		return err
	}
	return d.refresh()
}

// refresh brings a read-only database up to date. The writer may commit and remove logs meanwhile; then the newer
// manifests have their rows, so it tries again with those.
func (d *database) refresh() error {
	d.tail.mu.Lock()
	defer d.tail.mu.Unlock()
	if d.remote() {
		return d.refreshRemote()
	}
	const attempts = 100
	for range attempts {
		done, err := d.tryRefresh()
		if done || err != nil {
			return err
		}
	}
	return base.Errorf(base.CodeTimeout, "%s changed %d times while it was read", d.root, attempts)
}

// tryRefresh installs what there is now. It is to be tried again where done is false and there is no error.
func (d *database) tryRefresh() (done bool, err error) {
	v, err := d.readManifests()
	defer v.release()
	if err == nil {
		err = d.pinView(v)
	}
	if err == nil {
		err = d.readTail(v)
	}
	var cut unfinished
	if errors.As(err, &cut) {
		err = d.holdBack(v, cut.intent)
	}
	changed, changedErr := d.changedSince(v)
	switch {
	case changedErr != nil:
		return false, changedErr
	case changed:
		return false, nil // whatever was wrong with manifests or logs: they belonged to another state
	case err == nil:
		d.installView(v)
		return true, nil
	}
	switch base.CodeOf(err) {
	case base.CodeConflict, base.CodeLocked:
		return false, nil
	case base.CodeNotFound:
		return false, d.stillThere(v, err)
	}
	return false, err
}

// stillThere returns the error where what was not found is the database itself, rather than what the writer removes.
func (d *database) stillThere(v *readView, err error) error {
	if v.manifests[d.main] == nil {
		return err
	}
	return nil
}

// readManifests reads the catalog and the newest manifests of its tables.
func (d *database) readManifests() (*readView, error) {
	v := &readView{tables: map[uint32]*core{}, newest: map[*core]*manifest.Manifest{}, manifests: map[*core]*manifest.Manifest{}}
	var err error
	if v.catalog, err = readCatalog(d.fs, d.root); err != nil {
		return v, err
	}
	ids := append([]uint32{0}, v.catalog.ids...)
	d.mu.Lock()
	for _, id := range ids {
		c := d.tables[id]
		if c == nil {
			c = newCore(d, id)
		}
		v.tables[id] = c
		if c.state != nil {
			v.manifests[c] = c.state.manifest
		}
	}
	d.mu.Unlock()
	cores := make([]*core, len(ids))
	for i, id := range ids {
		cores[i] = v.tables[id]
	}
	found, err := newestOf(cores, v.manifests)
	for c, m := range found {
		v.manifests[c], v.newest[c] = m, m
	}
	return v, err
}

// holdBack has a view show what was before a commit over several tables, of which not everything is published. Before it
// the memory of its tables was flushed, so the manifests before are all that there is of them.
func (d *database) holdBack(v *readView, n *intent) error {
	for _, p := range n.parts {
		c := v.tables[p.table]
		if c == nil || v.newest[c].Version < p.version {
			continue
		}
		m, err := c.store.At(p.version - 1)
		if err != nil {
			return err
		}
		if err := v.pin(c, m); err != nil {
			return err
		}
		v.manifests[c] = m
		if err := c.adopt(m); err != nil {
			return err
		}
	}
	return nil
}

// pinView keeps the writer from removing what the view names.
func (d *database) pinView(v *readView) error {
	for c, m := range v.manifests {
		if err := v.pin(c, m); err != nil {
			return err
		}
	}
	return nil
}

func (v *readView) pin(c *core, m *manifest.Manifest) error {
	c.pinned.add(m)
	v.pinned = append(v.pinned, pinnedManifest{c, m})
	return c.pinned.lock(c.store, m)
}

// changedSince reports whether the catalog, or a manifest of the view, is not the newest any more.
func (d *database) changedSince(v *readView) (bool, error) {
	if v.catalog == nil {
		return false, nil
	}
	now, err := readCatalog(d.fs, d.root)
	if err != nil {
		return false, err
	}
	if now.version != v.catalog.version {
		return true, nil
	}
	for c, m := range v.newest {
		if newer, err := c.store.Changed(m); err != nil || newer != nil {
			return newer != nil, err
		}
	}
	return false, nil
}

// readTail reads what came to the logs since. Where tables came or were replaced it reads all of them anew.
func (d *database) readTail(v *readView) error {
	if err := d.adoptView(v); err != nil {
		return err
	}
	oldest := d.oldestLog()
	d.dropTail(oldest)
	if oldest == math.MaxUint64 {
		return nil
	}
	if err := d.findLogDir(); err != nil {
		return err
	}
	numbers, err := listLogs(d.fs, d.walDir, oldest)
	if err != nil {
		return err
	}
	d.tail.logs = slices.DeleteFunc(d.tail.logs, func(t *tailedLog) bool {
		_, there := slices.BinarySearch(numbers, t.num)
		if !there { // the writer removes what is in files
			t.unref()
		}
		return !there
	})
	for _, num := range numbers {
		if err := d.readLog(num); err != nil {
			return err
		}
	}
	return nil
}

// adoptView makes the tables of a view the database's, for the reading of logs.
func (d *database) adoptView(v *readView) error {
	same := len(v.tables) == len(d.tables)
	for id, c := range v.tables {
		m := v.manifests[c]
		same = same && d.tables[id] == c && c.state != nil && c.state.manifest.TableUUID == m.TableUUID &&
			c.state.manifest.Dropped == m.Dropped && (m.Dropped || c.state.manifest.Schema.SchemaID == m.Schema.SchemaID)
	}
	if !same {
		d.dropTail(math.MaxUint64)
	}
	adopted := map[*core]*table{}
	for _, c := range v.tables {
		m := v.manifests[c]
		c.minLog, c.lastFlushed, c.atVersion = m.MinLog, m.FlushedSeq, m.Version
		if c.table != nil && same {
			adopted[c] = c.table
		} else if !m.Dropped {
			t, err := newTable(m.Schema)
			if err != nil {
				return err
			}
			adopted[c] = t
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for c, t := range adopted {
		c.table = t
	}
	for _, c := range v.tables {
		if adopted[c] == nil {
			c.table = nil
		}
	}
	for id, c := range d.tables {
		if v.tables[id] != c {
			c.table = nil
			d.leaving[c] = struct{}{} // until the view is installed
		}
	}
	d.tables, d.catalog = v.tables, v.catalog
	return nil
}

// dropTail forgets logs before minimum.
func (d *database) dropTail(minimum uint64) {
	for len(d.tail.logs) > 0 && d.tail.logs[0].num < minimum {
		d.tail.logs[0].unref()
		d.tail.logs = d.tail.logs[1:]
	}
}

// readLog reads what came to a log.
func (d *database) readLog(num uint64) error {
	var t *tailedLog
	for _, l := range d.tail.logs {
		if l.num == num {
			t = l
		}
	}
	if t == nil {
		t = &tailedLog{replayedLog: replayedLog{num: num}}
		d.tail.logs = append(d.tail.logs, t)
	}
	path := d.fs.Join(d.walDir, wal.Name(num))
	var err error
	t.at, err = wal.ReplayFrom(d.fs, path, num, t.at, func(offset int64, record []byte) error {
		return inRecord(d.replayRecord(&t.replayedLog, record), path, offset)
	})
	if errors.As(err, new(unfinished)) {
		return err
	}
	if err != nil {
		// The writer may have taken records back that it could not make durable, or a record of the log may be of a table
		// that came just now: read the log anew.
		t.unref()
		t.at, t.replayedLog = wal.Position{}, replayedLog{num: num}
	}
	return err
}

// installView makes what was read visible, all of it at once.
func (d *database) installView(v *readView) {
	lastSeq := v.catalog.lastSeq
	mems := map[*core][]*memEntry{}
	for _, l := range d.tail.logs {
		l.prune(v.manifests)
		for c, list := range l.entries {
			for _, e := range list {
				mems[c] = append([]*memEntry{e}, mems[c]...)
				lastSeq = max(lastSeq, e.lastSeq)
			}
		}
	}
	for _, m := range v.manifests {
		lastSeq = max(lastSeq, m.FlushedSeq)
	}
	d.mu.Lock()
	d.lastSeq, d.visible = lastSeq, lastSeq
	var old []*readState
	files := map[*core][]*liveFile{}
	for c, m := range v.manifests {
		if s := c.installTail(m, mems[c]); s != nil {
			old = append(old, s)
		}
		files[c] = c.state.files
	}
	for c := range d.leaving {
		if c.state != nil {
			old = append(old, c.state)
		}
		c.state = c.newState(nil, nil, nil, nil)
		c.stateVersion.Add(1)
		c.idle.end()
	}
	clear(d.leaving)
	d.mu.Unlock()
	for _, s := range old {
		s.unref()
	}
	for c, list := range mems {
		for _, e := range list {
			e.resolutions.keepOnly(files[c])
		}
	}
}

// prune gives up the memtables whose rows are all in files.
func (l *replayedLog) prune(manifests map[*core]*manifest.Manifest) {
	for c, list := range l.entries {
		for len(list) > 0 && list[0].lastSeq <= manifests[c].FlushedSeq {
			list[0].mt.Unref()
			list = list[1:]
		}
		if l.entries[c] = list; len(list) == 0 {
			delete(l.entries, c)
		}
	}
}

// installTail installs what a refresh found of a table, unless it is what there is, and returns the state that it takes
// the place of. It runs under mu.
func (c *core) installTail(m *manifest.Manifest, mems []*memEntry) (old *readState) {
	c.idle.awake(c.checkIdle)
	prev := c.state
	if prev != nil && prev.manifest == m && slices.Equal(prev.mems, mems) {
		grew := false
		for _, e := range mems {
			grew = grew || e.visible != e.mt.Len()
			e.visible = e.mt.Len()
		}
		if grew {
			c.stateVersion.Add(1)
		}
		return nil
	}
	c.state = c.newState(prev, m, c.table, mems)
	for _, e := range mems {
		e.visible = e.mt.Len()
	}
	c.stateVersion.Add(1)
	return prev
}
