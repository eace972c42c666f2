package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
)

// TableInfo describes a table of a database.
type TableInfo struct {
	Name string
	// ID is 0 for the table in the root of the directory. Other ids are never given twice.
	ID uint32
	// Dir is the directory with the table's metadata and data, absolute.
	Dir string
}

// Tables lists the tables of the database, by id.
func (db *DB) Tables() []TableInfo {
	db.mu.RLock()
	defer db.mu.RUnlock()
	d := db.c.database
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []TableInfo
	for _, c := range d.live() {
		if c.hasTable() {
			out = append(out, TableInfo{Name: c.state.table.schema.TableName, ID: c.id, Dir: c.dir})
		}
	}
	slices.SortFunc(out, func(a, b TableInfo) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// TableID returns the id of the handle's table.
func (db *DB) TableID() uint32 { return db.tableID }

// OpenTable returns a handle on the table of a name, in whatever case, with the rights of this one; CodeNotFound where
// there is none. It stays with the table when that is renamed. It is freed by itself, before this one or after.
func (db *DB) OpenTable(name string) (*DB, error) {
	folded := foldName(name)
	return db.openTable(func(c *core) bool { return c.hasTable() && foldName(c.state.table.schema.TableName) == folded },
		func() error { return base.Errorf(base.CodeNotFound, "no table %q in %s", name, db.dir) })
}

// OpenTableID is OpenTable by the table's id. The root table's may be opened before there is one.
func (db *DB) OpenTableID(id uint32) (*DB, error) {
	return db.openTable(func(c *core) bool { return c.id == id && (id == 0 || c.hasTable()) },
		func() error { return base.Errorf(base.CodeNotFound, "no table of id %d in %s", id, db.dir) })
}

func (db *DB) openTable(match func(*core) bool, missing func() error) (*DB, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed || db.freed {
		return nil, base.Errorf(base.CodeClosed, "the handle on %s is closed", db.dir)
	}
	c := db.c.findState(match)
	if c == nil {
		return nil, missing()
	}
	db.shared.share(!db.readOnly)
	return &DB{shared: db.shared, c: c, tableID: c.id, dir: db.dir, readOnly: db.readOnly, opts: db.opts}, nil
}

// findState returns the table that readers see and that matches, nil where there is none.
func (d *database) findState(match func(*core) bool) *core {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.tables {
		if match(c) {
			return c
		}
	}
	return nil
}

// hasTable reports whether readers see a table. It runs under mu.
func (c *core) hasTable() bool { return c.state != nil && c.state.table != nil }

// byID returns the table of an id; one that is not there is a table without anything.
func (d *database) byID(id uint32) *core {
	d.mu.Lock()
	c := d.tables[id]
	d.mu.Unlock()
	if c == nil {
		c = newCore(d, id)
		c.install(c.newState(nil, nil, nil, nil), nil)
	}
	return c
}

// RenameTable gives the table another name; CodeAlreadyExists where another table has it, in whatever case. Atomic, and
// durable when it returns. Snapshots keep the old one. It is [DB.Alter] with a [RenameTable].
func (db *DB) RenameTable(name string) error { return db.Alter(RenameTable{NewName: name}) }

// acquireAll takes a snapshot of each table, all of one moment. The caller closes them.
func (d *database) acquireAll() (map[uint32]*Snapshot, error) {
	if err := d.awaken(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[uint32]*Snapshot, len(d.tables))
	for id, c := range d.tables {
		c.idle.uses++
		if c.hasTable() {
			all[id] = c.snapshotLocked()
		}
	}
	return all, nil
}

// awaken brings a read-only database up to date of which a table is at rest (readeridle.go).
func (d *database) awaken() error {
	d.mu.Lock()
	resting := false
	for _, c := range d.tables {
		resting = resting || c.idle.resting
	}
	d.mu.Unlock()
	if !resting {
		return nil
	}
	return d.refresh()
}

// SnapshotSet is what a reader sees of all tables at one moment. Close it. It may be used from many goroutines.
type SnapshotSet struct {
	dir       string
	mu        sync.Mutex
	snapshots map[uint32]*Snapshot // nil once closed
}

// SnapshotAll returns what a reader sees of all tables now. A read-only handle has to be refreshed before, to see the
// newest.
func (db *DB) SnapshotAll() (*SnapshotSet, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	all, err := db.c.acquireAll()
	if err != nil {
		return nil, err
	}
	return &SnapshotSet{dir: db.dir, snapshots: all}, nil
}

// Of returns the snapshot of a table, CodeNotFound where it has none. Close it; it may outlive the set.
func (s *SnapshotSet) Of(id uint32) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots == nil {
		return nil, base.Errorf(base.CodeClosed, "the snapshots of %s were closed", s.dir)
	}
	one := s.snapshots[id]
	if one == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table of id %d in %s", id, s.dir)
	}
	one.state.ref()
	return &Snapshot{state: one.state, seq: one.seq, visible: one.visible}, nil
}

// Close gives up what was not taken. A second call does nothing.
func (s *SnapshotSet) Close() {
	s.mu.Lock()
	all := s.snapshots
	s.snapshots = nil
	s.mu.Unlock()
	for _, one := range all {
		one.Close()
	}
}

// CatalogVersion returns a number that changes whenever a table comes or goes, or is defined otherwise.
func (db *DB) CatalogVersion() uint64 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	d := db.c.database
	d.mu.Lock()
	defer d.mu.Unlock()
	// Definitions are numbered, so it takes no more than to add up which ones there are.
	const spread1, spread2 = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9
	version := uint64(1)
	for id, c := range d.tables {
		if c.hasTable() {
			h := (c.state.table.number + uint64(id)<<48) * spread1
			version += (h ^ h>>29) * spread2
		}
	}
	return version
}
