package engine

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// A write may bring its own table: CREATE TABLE AS, and COPY to a new path. Table and rows come in one manifest, so nobody
// sees the one without the others, and whatever ends the write early leaves the database as it was. Such a write is always
// a bulk load.

// creation is what a write that creates its table knows of it.
type creation struct {
	replaced *table // the table that it takes the place of; nil: there must be none
}

// NewTableWrite starts a write whose Commit creates the table, with the rows that were added. Where there is one already,
// it is replaced if replace is set, else CodeAlreadyExists is returned. If the table that there is changes meanwhile,
// Commit fails with CodeConflict. Close the write in every case.
func (db *DB) NewTableWrite(s *Schema, replace bool) (*Write, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	return db.c.newTableWrite(s, replace)
}

func (c *core) newTableWrite(s *base.Schema, replace bool) (*Write, error) {
	t, err := prepareTable(s)
	if err != nil {
		return nil, err
	}
	if err := c.writable(); err != nil {
		return nil, err
	}
	old, err := c.tableToReplace()
	if err != nil {
		return nil, err
	}
	if old != nil && !replace {
		return nil, base.Errorf(base.CodeAlreadyExists, "%s holds table %q already", c.dir, old.schema.TableName)
	}
	w := &Write{c: c, table: t, batch: batch{table: t}, creates: &creation{replaced: old}}
	w.load, err = newLoad(w, nil)
	return w, err
}

// tableToReplace returns the table that there is, if any. A new database gets its first manifest here: without one, data
// files would be those of a table that lost its metadata.
func (c *core) tableToReplace() (*table, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	s := c.current()
	defer s.unref()
	if s.manifest != nil {
		return c.table, nil
	}
	if err := c.mkdirDurable(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return nil, err
	}
	next := c.nextManifest("create")
	next.Dropped = true
	return nil, c.commitTable(next, nil)
}

// expectedTable is the table that there must be when the load commits.
func (l *load) expectedTable() *table {
	if l.w.creates != nil {
		return l.w.creates.replaced
	}
	return l.w.table
}

// supersededNow returns what a load that is about to be committed does to the files that there are.
func (l *load) supersededNow(s *readState) (change, error) {
	ch := change{dead: map[*dataFile]*roaring.Bitmap{}}
	if l.w.creates != nil {
		ch.removed = map[*dataFile]bool{}
		for _, f := range s.files {
			ch.removed[f.dataFile] = true
		}
		return ch, nil
	}
	for _, f := range s.files {
		dead, known := l.marks[f.dataFile]
		if !known {
			var err error
			if dead, err = l.supersededBy(f, l.all()); err != nil {
				return ch, err
			}
		}
		ch.dead[f.dataFile] = dead
	}
	return ch, l.checkMarks(s, ch.dead)
}
