package engine

import (
	"sort"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// Time travel: a snapshot of a manifest that was superseded and is still kept. It shows the files of that version and
// nothing from memory: rows that were only in memory then belong to the version that their flush made. The manifest is
// pinned as that of any state is, so the collector leaves its files alone, here and in other processes.

// SnapshotAt returns what the table held in an older version, or the newest one without the rows in memory. Close it.
// CodeNotFound where the version is gone, or is still to come, or was of another table; the message names the versions
// there are.
func (db *DB) SnapshotAt(version int64) (*Snapshot, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.c.acquireAt(func(c *core, cur *manifest.Manifest) (*manifest.Manifest, error) {
		return c.versionAt(cur, version)
	})
}

// SnapshotAsOf is [DB.SnapshotAt] for the newest version that was committed at a point in time or before it, by the
// clock of who committed it, to the millisecond.
func (db *DB) SnapshotAsOf(t time.Time) (*Snapshot, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.c.acquireAt(func(c *core, cur *manifest.Manifest) (*manifest.Manifest, error) {
		return c.versionAsOf(cur, t)
	})
}

// acquireAt takes a snapshot of the manifest that find returns, given the current one; nil: it is gone meanwhile, and
// find is asked again.
func (c *core) acquireAt(find func(c *core, cur *manifest.Manifest) (*manifest.Manifest, error)) (*Snapshot, error) {
	cur, err := c.currentAwake()
	if err != nil {
		return nil, err
	}
	defer cur.unref()
	if cur.manifest == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	const attempts = 10
	for i := range attempts {
		if i > 0 {
			time.Sleep(time.Millisecond << i) // what is being removed is gone then
		}
		m, err := find(c, cur.manifest)
		if err != nil {
			return nil, err
		}
		ok, err := c.pinOld(m)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		defer c.unpin(m)
		if err := sameTable(c.dir, cur.manifest, m); err != nil {
			return nil, err
		}
		return c.snapshotOf(cur, m)
	}
	return nil, base.Errorf(base.CodeTimeout, "%s: versions were removed %d times while one of them was looked for", c.dir, attempts)
}

// currentAwake returns the current state with a reference for the caller.
func (c *core) currentAwake() (*readState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awake(); err != nil {
		return nil, err
	}
	if c.state == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	c.state.ref()
	return c.state, nil
}

// pinOld keeps an older manifest from being removed until pinned.remove. False: it is gone.
func (c *core) pinOld(m *manifest.Manifest) (bool, error) {
	if !c.pinned.addOld(m) {
		return false, nil
	}
	// Also in the process that writes: it may give the directory up, and another one come.
	err := c.pinned.lock(c.store, m)
	if err == nil {
		return true, nil
	}
	c.pinned.remove(m)
	switch base.CodeOf(err) {
	case base.CodeNotFound, base.CodeLocked:
		return false, nil
	}
	return false, err
}

func (c *core) unpin(m *manifest.Manifest) {
	if c.pinned.remove(m) {
		c.collectGarbage()
	}
}

// sameTable refuses a version of a table that was dropped, unless one of its name took its place.
func sameTable(dir string, cur, m *manifest.Manifest) error {
	if m.Dropped {
		return base.Errorf(base.CodeNotFound, "there is no table in version %d of %s", m.Version, dir)
	}
	if cur.Dropped || cur.TableUUID == m.TableUUID || strings.EqualFold(cur.Schema.TableName, m.Schema.TableName) {
		return nil
	}
	return base.Errorf(base.CodeNotFound, "version %d of %s is of table %q, which was dropped", m.Version, dir, m.Schema.TableName)
}

// snapshotOf makes a snapshot of a pinned manifest. What is open of its files is shared with cur.
func (c *core) snapshotOf(cur *readState, m *manifest.Manifest) (*Snapshot, error) {
	t := cur.table
	if t == nil || cur.manifest.TableUUID != m.TableUUID || t.schema.SchemaID != m.Schema.SchemaID {
		var err error
		if t, err = newTable(m.Schema); err != nil {
			return nil, err
		}
		cur = nil // its files are read by another schema
	}
	return &Snapshot{state: c.newState(cur, m, t, nil), seq: m.FlushedSeq}, nil
}

// versionAt reads a version's manifest.
func (c *core) versionAt(cur *manifest.Manifest, version int64) (*manifest.Manifest, error) {
	if version == cur.Version {
		return cur, nil
	}
	if version > cur.Version {
		return nil, c.noVersion(cur, "version %d is still to come", version)
	}
	m, err := c.store.At(version)
	if base.CodeOf(err) == base.CodeNotFound || version < 1 {
		return nil, c.noVersion(cur, "version %d is not kept any more", version)
	}
	return m, err
}

// versionAsOf finds the newest manifest that was committed at t or before it. Their times never fall.
func (c *core) versionAsOf(cur *manifest.Manifest, t time.Time) (*manifest.Manifest, error) {
	ms := t.UnixMilli()
	if cur.UpdatedMS <= ms {
		return cur, nil
	}
	versions, err := c.store.Versions()
	if err != nil {
		return nil, err
	}
	versions = versions[:sort.Search(len(versions), func(i int) bool { return versions[i] >= cur.Version })]
	var best *manifest.Manifest
	for len(versions) > 0 {
		i := len(versions) / 2
		m, err := c.store.At(versions[i])
		switch {
		case base.CodeOf(err) == base.CodeNotFound: // reclaimed meanwhile
			versions = append(versions[:i:i], versions[i+1:]...)
		case err != nil:
			return nil, err
		case m.UpdatedMS <= ms:
			best, versions = m, versions[i+1:]
		default:
			versions = versions[:i]
		}
	}
	if best == nil {
		return nil, c.noVersion(cur, "no version is kept that was committed at %s or before", t.UTC().Format(timeText))
	}
	return best, nil
}

// timeText is how times are written in messages.
const timeText = "2006-01-02 15:04:05.999 MST"

// noVersion makes the error about a version that cannot be had.
func (c *core) noVersion(cur *manifest.Manifest, format string, args ...any) error {
	oldest := cur
	versions, err := c.store.Versions()
	if err != nil {
		return err
	}
	for _, v := range versions {
		if m, err := c.store.At(v); err == nil {
			oldest = m
			break
		}
	}
	args = append(args, oldest.Version, time.UnixMilli(oldest.UpdatedMS).UTC().Format(timeText), cur.Version,
		time.UnixMilli(cur.UpdatedMS).UTC().Format(timeText), c.dir)
	return base.Errorf(base.CodeNotFound, format+": the oldest version is %d (%s), the newest %d (%s), of %s", args...)
}
