package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

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

func (c *core) createTable(s *base.Schema) error {
	t, err := prepareTable(s)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	if err := c.writable(); err != nil {
		return err
	}
	if c.table != nil {
		return base.Errorf(base.CodeAlreadyExists, "%s holds table %q already", c.dir, c.table.schema.TableName)
	}
	if err := c.mkdirDurable(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return err
	}
	next := c.nextManifest("create")
	next.Schema, next.TableUUID, next.Dropped = t.schema, newUUID(), false
	return c.commitTable(next, t)
}

func (c *core) dropTable() error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.writable(); err != nil {
		return err
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
	next := c.nextManifest("drop")
	next.Schema, next.Dropped, next.Files = nil, true, nil
	next.MinLog, next.FlushedSeq = c.nextLog, c.lastSeq
	if err := c.commitTable(next, nil); err != nil {
		return err
	}
	c.collectGarbage()
	return nil
}

func (c *core) nextManifest(job string) *manifest.Manifest {
	s := c.current()
	defer s.unref()
	var next *manifest.Manifest
	if s.manifest != nil {
		next = s.manifest.Next()
	} else {
		next = &manifest.Manifest{Version: 1, MinLog: c.nextLog, Properties: map[string]string{}}
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
