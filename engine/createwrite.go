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

// NewTableWrite starts a write whose Commit creates the table, with the rows that were added. Where there is one of its
// name already, it is replaced if replace is set, else CodeAlreadyExists is returned. If the table that there is changes
// meanwhile, Commit fails with CodeConflict. Close the write in every case.
func (db *DB) NewTableWrite(s *Schema, replace bool) (*Write, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	return db.c.newTableWrite(s, replace)
}

func (d *database) newTableWrite(s *base.Schema, replace bool) (*Write, error) {
	t, err := prepareTable(s)
	if err != nil {
		return nil, err
	}
	w, err := d.newCreation(t, false, nil)
	if err != nil {
		return nil, err
	}
	if old := w.creates.replaced; old != nil && !replace {
		w.Close()
		return nil, base.Errorf(base.CodeAlreadyExists, "%s holds table %q already", d.root, old.schema.TableName)
	}
	return w, nil
}

// newCreation starts a write that puts a table in the place of the one of its name, if there is one that does not leave;
// else it is in the root, if that is free, unless apart is set.
func (d *database) newCreation(t *table, apart bool, leaves *table) (*Write, error) {
	c, old, err := d.placeOf(t.schema.TableName, apart, leaves)
	if err != nil {
		return nil, err
	}
	w := &Write{c: c, table: t, batch: batch{core: c, table: t}, creates: &creation{replaced: old}}
	w.load, err = newLoad(w, nil)
	return w, err
}

// placeOf returns where a table of a name goes, and the table that is there now, if any; leaves is one that gives up the
// name in the same commit.
func (d *database) placeOf(name string, apart bool, leaves *table) (*core, *table, error) {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if err := d.writable(); err != nil {
		return nil, nil, err
	}
	if c := d.find(name); c != nil && (leaves == nil || c.table != leaves) {
		return c, c.table, nil
	}
	c, err := d.place(apart)
	if err != nil {
		return nil, nil, err
	}
	if err := c.makeFirst(); err != nil {
		d.forsake(c)
		return nil, nil, err
	}
	return c, nil, nil
}

// makeFirst gives a new place its first manifest: without one, data files would be those of a table that lost its
// metadata. It runs under writeMu.
func (c *core) makeFirst() error {
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	s := c.current()
	defer s.unref()
	if s.manifest != nil {
		return nil
	}
	if err := c.mkdirDurable(c.fs.Join(c.dir, manifest.Dir)); err != nil {
		return err
	}
	next := c.nextManifest("create")
	next.Dropped = true
	return c.commitTable(next, nil)
}

// inPlace returns an error where the table that a write creates cannot take its place any more. It runs under writeMu.
func (l *load) inPlace() error {
	c := l.c
	if c.table != l.expectedTable() {
		return base.Errorf(base.CodeConflict, "the table in %s was dropped, replaced or altered during the load", c.dir)
	}
	if l.w.creates == nil && l.w.alters == nil {
		return nil
	}
	switch other := c.find(l.w.table.schema.TableName); {
	case other != nil && other != c:
		return base.Errorf(base.CodeConflict, "a table %q was created in %s during the load", other.table.schema.TableName, c.root)
	case l.w.creates == nil:
	case c.id != 0 && c.tables[c.id] == nil && l.w.creates.replaced == nil && len(c.tables) >= maxTables:
		return base.Errorf(base.CodeInvalidArgument, "%s holds %d tables: the limit is %d", c.root, len(c.tables), maxTables)
	}
	return nil
}

// expectedTable is the table that there must be when the load commits.
func (l *load) expectedTable() *table {
	if l.w.creates != nil {
		return l.w.creates.replaced
	}
	if l.w.alters != nil {
		return l.w.alters.from
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
	if err := l.checkMarks(s, ch.dead); err != nil || l.w.alters == nil {
		return ch, err
	}
	return ch, l.checkFits(s, ch.dead)
}
