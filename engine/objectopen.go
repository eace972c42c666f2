package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// Opening a database in an object store for writing. Nothing is locked, and nothing is written unless something is to be put
// in order: who opens it last does not take it from who has it, the first one to commit does.

// checkPrimary refuses what has no meaning for a database in an object store that is opened for writing. How durable writes
// are is not asked: what was acknowledged is in the store.
func (o *Options) checkPrimary(url string) error {
	switch {
	case o.WALDir != "":
		return base.Errorf(base.CodeInvalidArgument, "%s: option wal_dir: a database in an object store has no log", url)
	case o.Mirror != "":
		return base.Errorf(base.CodeUnsupported, "%s: option mirror: a database in an object store is not mirrored", url)
	}
	return nil
}

// mountPrimary returns the options that a database in an object store works with, and those that are stored beside it.
func mountPrimary(url string, given Options) (o Options, stored *optionsFile, err error) {
	if o, err = given.effective(); err != nil {
		return o, nil, err
	}
	objects, err := o.mount(url)
	if err != nil {
		return o, nil, err
	}
	if stored, err = readOptionsFile(objects, url); err != nil {
		return o, nil, err
	}
	if o, err = stored.apply(given); err != nil {
		return o, nil, err
	}
	o.fs = objects
	return o, stored, nil
}

func (d *database) openPrimary(stored *optionsFile, given Options) (err error) {
	if d.catalog, err = readCatalog(d.fs, d.root); err != nil {
		return err
	}
	d.nextID, d.lastSeq = d.catalog.nextID, d.catalog.lastSeq
	for _, id := range d.catalog.ids {
		d.tables[id] = newCore(d, id)
	}
	manifests, err := d.loadAll()
	if err != nil {
		return err
	}
	if d.opts.NoCreate && manifests[d.main] == nil && d.catalog.version == 0 {
		return base.Errorf(base.CodeNotFound, "no database at %s", d.root)
	}
	if err := d.checkNames(); err != nil {
		return err
	}
	if err := stored.store(given); err != nil {
		return err
	}
	d.logFloor = d.nextLog
	for _, c := range d.all() {
		c.begin(manifests[c], nil)
	}
	d.visible = d.lastSeq
	for c, m := range manifests {
		if m != nil && m.GivenUp() {
			if err := c.confirm(); err != nil {
				return err
			}
		}
	}
	if err := d.settleTables(); err != nil {
		return err
	}
	sweepSystemTemporary(d.now())
	d.startWorkers()
	return nil
}

// loadAll reads the newest manifests of all tables, several at a time.
func (d *database) loadAll() (map[*core]*manifest.Manifest, error) {
	cores := d.all()
	found := make([]*manifest.Manifest, len(cores))
	errs := base.Each(len(cores), maxListings, func(i int) (err error) {
		found[i], err = cores[i].newestDecided()
		return err
	})
	manifests := map[*core]*manifest.Manifest{}
	for i, c := range cores {
		m, err := c.take(found[i], errs[i])
		if err != nil {
			return nil, err
		}
		manifests[c] = m
	}
	return manifests, nil
}

// newestDecided reads the newest manifest of a table. A commit over several tables that it is a part of and that nobody has
// decided is given up.
func (c *core) newestDecided() (*manifest.Manifest, error) {
	const attempts = 10
	for i := 0; ; i++ {
		m, err := c.store.Newest()
		if err != nil || m.Undecided() == "" {
			return m, err
		}
		if i == attempts {
			return nil, base.Errorf(base.CodeConflict, "%s: other writers commit to it all the time", c.dir)
		}
		if err := manifest.AbortIntent(c.objects.Store(), m.Undecided(), c.opts.commitPatience()); err != nil {
			return nil, err
		}
	}
}

// confirm commits what a table is once more: its newest version is one that was given up, and needs the manifest before it,
// which would be reclaimed otherwise.
func (c *core) confirm() error {
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	return c.commitTable(c.nextManifest("give up"), c.table)
}

// settleTables finishes what others have left of creating and dropping tables: those that are listed and whose manifest says
// that they are dropped, and directories that are not listed. The catalog is committed first: whoever is just creating one
// of these has to list it, and finds then that he is not the writer any more.
func (d *database) settleTables() error {
	next := d.catalog.next()
	var gone []*core
	for _, id := range d.catalog.ids {
		if c := d.tables[id]; c.table == nil {
			next.remove(id)
			gone = append(gone, c)
		}
	}
	names, err := d.listDir(d.fs.Join(d.root, tablesDir))
	if err != nil {
		return err
	}
	var leftovers []uint32
	for _, n := range names {
		if id, ok := parseTableDir(n); ok && !d.catalog.has(id) {
			leftovers = append(leftovers, id)
			next.nextID = max(next.nextID, id+1)
		}
	}
	if len(gone)+len(leftovers) == 0 {
		return nil
	}
	next.lastSeq = max(next.lastSeq, d.lastSeq)
	if err := d.commitCatalog(next); err != nil {
		return err
	}
	d.catalog = next
	d.nextID = max(d.nextID, next.nextID)
	for _, c := range gone {
		delete(d.tables, c.id)
		d.leaving[c] = struct{}{}
	}
	for _, id := range leftovers {
		if err := d.findLeftover(id); err != nil {
			return err
		}
	}
	return nil
}

// dropListed drops a table in a directory of its own. The manifest is what drops it, so that a writer that has lost its
// place does not go on writing to it; then the catalog lists it no longer, or the next open sees to that. It runs under
// writeMu and commitMu.
func (c *core) dropListed() error {
	next := c.dropManifest()
	s := c.current()
	defer s.unref()
	if err := c.commit(s.manifest, next); err != nil {
		return err
	}
	listed := c.catalog.next()
	listed.remove(c.id)
	listed.nextID, listed.lastSeq = max(listed.nextID, c.id+1), max(listed.lastSeq, c.lastSeq)
	err := c.commitCatalog(listed)
	c.install(c.newState(s, next, nil, nil), func() {
		c.table = nil
		if err == nil {
			c.catalog = listed
			delete(c.tables, c.id)
			c.leaving[c] = struct{}{}
		}
	})
	c.collectGarbage()
	return nil
}
