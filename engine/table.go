package engine

import (
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// Tables come and go, and get other names (alter.go), under writeMu. A table is in the root of the database directory, if that is free,
// or in a directory of its own that the catalog lists. There a table comes to be, and is gone, with the catalog; in the
// root with its manifest. What a crash leaves of the other step is found at the next open.

// prepareTable returns the table that a schema describes: key columns become NOT NULL, and columns without a field id get
// one. The schema stays as it is.
func prepareTable(s *base.Schema) (*table, error) {
	s = s.Clone()
	for _, k := range s.PrimaryKey {
		if k >= 0 && k < len(s.Columns) {
			s.Columns[k].Nullable = false
		}
	}
	s.AssignFieldIDs()
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return newTable(s)
}

// ValidateSchema returns what CreateTable would refuse a schema for, wherever it were to be created.
func ValidateSchema(s *Schema) error {
	_, err := prepareTable(s)
	return err
}

// foldName returns what names that stand for the same table have in common: as DuckDB has it, the case of A to Z does not
// count.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, name)
}

// find returns the table of a name, nil where there is none. It runs under writeMu or mu.
func (d *database) find(name string) *core {
	folded := foldName(name)
	for _, c := range d.tables {
		if c.table != nil && foldName(c.table.schema.TableName) == folded {
			return c
		}
	}
	return nil
}

// checkNames refuses a database with two tables of one name.
func (d *database) checkNames() error {
	known := map[string]*core{}
	for _, c := range d.live() {
		if c.table == nil {
			continue
		}
		name := foldName(c.table.schema.TableName)
		if other := known[name]; other != nil {
			return base.Errorf(base.CodeCorruption, "%s and %s both hold table %q", other.dir, c.dir, c.table.schema.TableName)
		}
		known[name] = c
	}
	return nil
}

func (d *database) existing(c *core) error {
	return base.Errorf(base.CodeAlreadyExists, "%s holds table %q already", d.root, c.table.schema.TableName)
}

// mayBeNamed refuses a name that another table has, whatever its case. It runs under writeMu.
func (c *core) mayBeNamed(name string) error {
	if other := c.find(name); other != nil && other != c {
		return c.existing(other)
	}
	return nil
}

// place returns where the next table goes: to the root if that is free and apart is not set, else to a directory that is
// not made yet. It runs under writeMu.
func (d *database) place(apart bool) (*core, error) {
	if d.main.table == nil && !apart {
		return d.main, nil
	}
	if len(d.tables) >= maxTables || d.nextID == 1<<32-1 {
		return nil, base.Errorf(base.CodeInvalidArgument, "%s holds %d tables: the limit is %d", d.root, len(d.tables), maxTables)
	}
	c := newCore(d, d.nextID)
	d.nextID++ // whatever becomes of it: something may be left in the directory
	c.install(c.newState(nil, nil, nil, nil), nil)
	return c, nil
}

// enlist makes a table that has its manifest one of the database's. It runs under writeMu.
func (d *database) enlist(c *core) error {
	if c.id == 0 {
		return nil
	}
	next := d.catalog.next()
	next.add(c.id)
	return d.commitCatalog(next)
}

// enlisted takes note of what enlist committed. It runs under writeMu and mu.
func (d *database) enlisted(c *core) {
	if c.id == 0 {
		return
	}
	next := d.catalog.next()
	next.add(c.id)
	d.catalog = next
	d.tables[c.id] = c
}

// forsake gives up a table of a directory of its own that did not come to be.
func (d *database) forsake(c *core) {
	if c.id == 0 {
		return
	}
	c.beginStop()
	c.workers.Wait()
	c.closeCompactions()
	d.mu.Lock()
	s, failed := c.state, d.failure != nil
	c.state = nil
	d.mu.Unlock()
	if s != nil {
		s.unref()
	}
	if !failed {
		_ = d.fs.RemoveAll(c.dir) // what stays is found at the next open
	}
}

// forsakeUnlisted gives up a table that a write was to create.
func (c *core) forsakeUnlisted() {
	c.mu.Lock()
	known := c.tables[c.id] == c
	_, leaving := c.leaving[c]
	c.mu.Unlock()
	if !known && !leaving && c.id != 0 {
		c.forsake(c)
	}
}

func (d *database) createTable(s *base.Schema) error {
	t, err := prepareTable(s)
	if err != nil {
		return err
	}
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	if c := d.find(t.schema.TableName); c != nil {
		return d.existing(c)
	}
	c, err := d.place(false)
	if err != nil {
		return err
	}
	if err := c.create(t); err != nil {
		d.forsake(c)
		return err
	}
	if c.id != 0 {
		c.startWorkers()
	}
	return nil
}

// create commits the manifest of a table without rows, and lists it. It runs under writeMu.
func (c *core) create(t *table) error {
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	if err := c.mkdirDurable(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return err
	}
	next := c.nextManifest("create")
	next.Schema, next.TableUUID, next.Dropped, next.DroppedSeq = t.schema, newUUID(), false, 0
	next.FlushedSeq = max(next.FlushedSeq, c.lastSeq)
	s := c.current()
	defer s.unref()
	if err := c.commit(s.manifest, next); err != nil {
		return err
	}
	if err := c.enlist(c); err != nil {
		return err
	}
	c.install(c.newState(s, next, t, nil), func() {
		c.table = t
		c.enlisted(c)
	})
	return nil
}

// dropTable drops the table, if it is still the one expected; nil is any.
func (c *core) dropTable(expected *table) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.writable(); err != nil {
		return err
	}
	if expected != nil && c.table != expected {
		return replacedMeanwhile(expected)
	}
	if c.table == nil {
		return base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	// The rows in memory go with the table: retire them, and wait for a flush that is under way.
	if err := c.retireActive(); err != nil {
		return err
	}
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	if c.id != 0 && c.remote() {
		return c.dropListed()
	}
	var listed *catalog
	if c.id != 0 {
		listed = c.catalog.next()
		listed.remove(c.id)
		listed.nextID, listed.lastSeq = max(listed.nextID, c.id+1), max(listed.lastSeq, c.lastSeq)
		if err := c.commitCatalog(listed); err != nil {
			return err
		}
	}
	if err := c.commitDrop(listed); err != nil {
		return err
	}
	c.collectGarbage()
	return nil
}

// commitDrop commits a manifest without schema and files, after which the files go as garbage. listed is the catalog that
// does not name the table, nil for the root: there the manifest is what drops it. It runs under writeMu and commitMu.
func (c *core) commitDrop(listed *catalog) error {
	next := c.dropManifest()
	s := c.current()
	defer s.unref()
	err := c.commit(s.manifest, next)
	if err != nil && (listed == nil || !manifest.NotCommitted(err)) {
		return err
	}
	if err != nil { // the table is gone all the same; its files are found at the next open
		next = s.manifest
	}
	c.install(c.newState(s, next, nil, nil), func() {
		c.table = nil
		if listed != nil {
			c.catalog = listed
			delete(c.tables, c.id)
			if err == nil {
				c.leaving[c] = struct{}{}
			}
		}
	})
	return nil
}

func (c *core) dropManifest() *manifest.Manifest {
	next := c.nextManifest("drop")
	next.Schema, next.Dropped, next.Files = nil, true, nil
	next.MinLog, next.FlushedSeq = c.nextLog, max(next.FlushedSeq, c.lastSeq)
	return next
}

func (c *core) nextManifest(job string) *manifest.Manifest {
	s := c.current()
	defer s.unref()
	var next *manifest.Manifest
	if s.manifest != nil {
		next = s.manifest.Next()
	} else {
		next = &manifest.Manifest{Version: 1, MinLog: c.currentLog(), Properties: map[string]string{}}
	}
	next.Properties[manifest.PropJob] = job
	return next
}

// commitTable commits a manifest that changes the table itself and installs it without memtables.
func (c *core) commitTable(next *manifest.Manifest, t *table) error {
	s := c.current()
	defer s.unref()
	if err := c.commit(s.manifest, next); err != nil {
		return err
	}
	c.install(c.newState(s, next, t, nil), func() { c.table = t })
	return nil
}

// findLeftovers looks for directories of tables that the catalog does not list: what a crash left of a CREATE or a DROP.
// They are dropped tables.
func (d *database) findLeftovers() error {
	names, err := d.listDir(d.fs.Join(d.root, tablesDir))
	if err != nil {
		return err
	}
	for _, n := range names {
		id, ok := parseTableDir(n)
		if !ok || d.catalog.has(id) {
			continue
		}
		d.nextID = max(d.nextID, id+1)
		if err := d.findLeftover(id); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) findLeftover(id uint32) error {
	c := newCore(d, id)
	m, err := c.store.Newest()
	switch base.CodeOf(err) {
	case base.CodeOK:
	case base.CodeNotFound: // it died before it had a manifest
		return d.fs.RemoveAll(c.dir)
	case base.CodeCorruption, base.CodeUnsupported:
		return nil //nolint:nilerr // nobody needs it, and nobody can tell what it is
	default:
		return err
	}
	if err := c.fs.SyncDir(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return err
	}
	c.begin(m, nil)
	if !m.Dropped {
		return c.commitDrop(d.catalog)
	}
	d.leaving[c] = struct{}{}
	return nil
}
