package engine

import (
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

// logTail is how far a read-only core has read the writer's logs.
type logTail struct {
	mu   sync.Mutex
	logs []*tailedLog // ascending
}

type tailedLog struct {
	num     uint64
	at      wal.Position
	entries []*memEntry // oldest first; the last one grows
}

func (t *tailedLog) unref() {
	for _, e := range t.entries {
		e.mt.Unref()
	}
}

func (c *core) openReadOnly() error {
	if _, err := c.fs.Stat(c.dir); err != nil {
		return err
	}
	m, err := c.store.Newest()
	if err != nil {
		return err
	}
	return c.refreshTo(m)
}

// refresh brings a read-only core up to date.
func (c *core) refresh() error {
	s := c.current()
	m := s.manifest
	s.unref()
	newer, err := c.store.Changed(m)
	if err != nil {
		return err
	}
	if newer == nil {
		newer = m
	}
	return c.refreshTo(newer)
}

// refreshTo installs a manifest and the logs that it does not cover. The writer may commit and remove logs meanwhile;
// then the newer manifest has their rows, so try again with that one.
func (c *core) refreshTo(m *manifest.Manifest) error {
	c.tail.mu.Lock()
	defer c.tail.mu.Unlock()
	const attempts = 100
	for range attempts {
		newer, err := c.tryRefresh(m)
		if err != nil || newer == nil {
			return err
		}
		m = newer
	}
	return base.Errorf(base.CodeTimeout, "%s changed %d times while it was read", c.dir, attempts)
}

// tryRefresh installs m and its logs, or returns what to try instead: a newer manifest, or m again.
func (c *core) tryRefresh(m *manifest.Manifest) (next *manifest.Manifest, err error) {
	c.pinned.add(m)
	defer c.pinned.remove(m)
	err = c.pinned.lock(c.store, m)
	if err == nil {
		err = c.readTail(m)
	}
	newer, changedErr := c.store.Changed(m)
	switch {
	case changedErr != nil:
		return nil, changedErr
	case newer != nil:
		return newer, nil // whatever was wrong with manifest or logs: they belonged to another state
	case err == nil:
		c.installTail(m)
		return nil, nil
	}
	switch base.CodeOf(err) {
	case base.CodeNotFound, base.CodeConflict, base.CodeLocked:
		return m, nil
	}
	return nil, err
}

// readTail reads what came to the logs since. A table that was replaced starts afresh.
func (c *core) readTail(m *manifest.Manifest) error {
	if err := c.adoptTable(m); err != nil {
		return err
	}
	if m.Dropped {
		c.dropTail(^uint64(0))
		return nil
	}
	c.dropTail(m.MinLog)
	if err := c.findLogDir(nil); err != nil {
		return err
	}
	numbers, err := listLogs(c.fs, c.walDir, m.MinLog)
	if err != nil {
		return err
	}
	for _, num := range numbers {
		if err := c.readLog(num); err != nil {
			return err
		}
	}
	return nil
}

// adoptTable makes the table of m the core's, and forgets rows of another one.
func (c *core) adoptTable(m *manifest.Manifest) error {
	c.mu.Lock()
	cur := c.state
	c.mu.Unlock()
	same := cur != nil && cur.manifest.TableUUID == m.TableUUID && cur.manifest.Dropped == m.Dropped
	if same && (m.Dropped || cur.manifest.Schema.SchemaID == m.Schema.SchemaID) {
		c.lastFlushed = m.FlushedSeq
		return nil
	}
	c.dropTail(^uint64(0))
	c.lastFlushed = m.FlushedSeq
	var t *table
	if !m.Dropped {
		var err error
		if t, err = newTable(m.Schema); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.table = t
	c.mu.Unlock()
	return nil
}

// dropTail forgets logs before minimum.
func (c *core) dropTail(minimum uint64) {
	for len(c.tail.logs) > 0 && c.tail.logs[0].num < minimum {
		c.tail.logs[0].unref()
		c.tail.logs = c.tail.logs[1:]
	}
}

// readLog reads what came to a log.
func (c *core) readLog(num uint64) error {
	var t *tailedLog
	for _, l := range c.tail.logs {
		if l.num == num {
			t = l
		}
	}
	if t == nil {
		t = &tailedLog{num: num}
		c.tail.logs = append(c.tail.logs, t)
	}
	path := c.fs.Join(c.walDir, wal.Name(num))
	var cur *memEntry
	if n := len(t.entries); n > 0 {
		cur = t.entries[n-1]
	}
	var err error
	t.at, err = wal.ReplayFrom(c.fs, path, num, t.at, func(offset int64, payload []byte) error {
		var err error
		cur, t.entries, err = c.replayBatch(path, offset, num, payload, cur, t.entries)
		return err
	})
	if base.CodeOf(err) == base.CodeConflict {
		// The writer took records back that it could not make durable: read the log anew.
		t.unref()
		t.at, t.entries = wal.Position{}, nil
	}
	return err
}

// installTail makes what was read visible, all of it at once.
func (c *core) installTail(m *manifest.Manifest) {
	var mems []*memEntry
	c.lastSeq = m.FlushedSeq
	for _, l := range c.tail.logs {
		for _, e := range l.entries {
			if e.lastSeq > m.FlushedSeq {
				mems = append([]*memEntry{e}, mems...)
				c.lastSeq = max(c.lastSeq, e.lastSeq)
			}
		}
	}
	c.mu.Lock()
	prev := c.state
	unchanged := prev != nil && prev.manifest == m && c.visible == c.lastSeq && slices.Equal(prev.mems, mems)
	t := c.table
	if unchanged {
		c.idle.awake(c.checkIdle)
	}
	c.mu.Unlock()
	if unchanged {
		return
	}
	s := c.newState(prev, m, t, mems)
	for _, e := range mems {
		e.resolutions.keepOnly(s.files)
	}
	c.install(s, func() {
		c.idle.awake(c.checkIdle)
		c.visible = c.lastSeq
		for _, e := range mems {
			e.visible = e.mt.Len()
		}
	})
}
