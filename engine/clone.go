package engine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// A clone is a writable copy of a database: of a mirror, to go on from it, or of another directory. It has the manifest of
// one version of each table, byte for byte, and the files that it names. So it is the same table, with the same identity,
// and may go on where its source ended: a mirror that had the source's versions takes the clone's next ones. Where both go
// on, the manifests of one number differ, and whoever finds the other's at a destination stops.
//
// It is made in a directory aside, verified there, and gets its name last.

// CloneOptions say what is copied, and who follows it.
type CloneOptions struct {
	// Version is that of the table's manifest, 0 the newest. A database of several tables is cloned as of now only.
	Version int64
	// S3 says how the S3 of the source is reached.
	S3 S3Config
	// Parallelism is how many files are read at a time, 1 to 64. The default is 4. Each takes 4 MiB of memory.
	Parallelism int
	// Interrupt, if not nil, is asked several times a second; true ends the call with CodeCancelled, and nothing stays.
	Interrupt func() bool
	// Progress, if not nil, is told how much is done, from 0 to 1. Both are called on the caller's goroutine.
	Progress func(done float64)

	// fs is the file system of directories, and store that of a URL: tests set them.
	fs    vfs.FS
	store objstore.Store
}

// CloneReport says what was made.
type CloneReport struct {
	Source  string `json:"source"`
	Path    string `json:"path"`    // absolute
	Version int64  `json:"version"` // of the table's manifest, or the only table's
	Tables  int    `json:"tables"`
	Files   int    `json:"files"` // data files and those with deletion vectors
	Bytes   int64  `json:"bytes"` // of data files
	Rows    int64  `json:"rows"`  // live ones
	// RowsFromMemory are versions of rows that the source had in its log only. The clone has them in files of its own, by a
	// commit of its own.
	RowsFromMemory int     `json:"rows_from_memory"`
	Seconds        float64 `json:"seconds"`
}

const (
	cloneAside     = ".tmp-"
	cloneChunk     = 4 << 20
	cloneAsk       = 50 * time.Millisecond // between questions for interrupts
	cloneTolerance = 5                     // how often a source may reclaim what is being read
)

// Clone makes a writable copy of the database at source, the URL of an object store or a directory, in dir, which must be
// absent or empty. The copy is verified as Verify does. After an error, an interrupt or a crash there is nothing at dir. A
// source that is open for writing, here or in another process, goes on meanwhile; what is copied is one moment of it.
func Clone(source, dir string, o CloneOptions) (CloneReport, error) {
	if o.fs == nil {
		o.fs = vfs.OS
	}
	if o.Parallelism == 0 {
		o.Parallelism = 4
	}
	if o.Parallelism < 1 || o.Parallelism > 64 || o.Version < 0 {
		return CloneReport{}, base.Errorf(base.CodeInvalidArgument, "clone of version %d with parallelism %d: a version from 1 on, or 0 for the newest, and 1 to 64 are allowed",
			o.Version, o.Parallelism)
	}
	c := &cloner{o: o, source: source, began: time.Now()}
	if err := c.prepare(dir); err != nil {
		return CloneReport{}, err
	}
	for i := 0; ; i++ {
		err := c.make()
		if err == nil {
			return c.report, nil
		}
		_ = o.fs.RemoveAll(c.aside) // what stays goes with the next clone to this place
		// The source of a URL may have reclaimed what was being read: the newest version is another one now.
		if !isGone(err) || !objstore.IsURL(source) || o.Version != 0 || i == cloneTolerance {
			return CloneReport{}, err
		}
	}
}

// isGone reports whether an error comes of a file that is not there.
func isGone(err error) bool { return errors.Is(err, &base.Error{Code: base.CodeNotFound}) }

type cloner struct {
	o      CloneOptions
	source string
	dir    string    // absolute
	empty  bool      // it is there, with nothing in it
	aside  string    // where it is made
	lock   io.Closer // on it; nil: none
	began  time.Time
	report CloneReport
	from   objstore.Store
	root   string // of the source, as its engine has it
	tables []cloneTable
	names  []cloneFile
	list   *catalog

	total, done atomic.Int64
}

// cloneTable is a table to copy.
type cloneTable struct {
	prefix string // of its names: "", or with a slash at the end
	m      *manifest.Manifest
	snap   *Snapshot // nil where the table was dropped
}

// cloneFile is a file to copy; size is -1 where nobody knows it.
type cloneFile struct {
	key  string
	size int64
}

// prepare looks at the destination.
func (c *cloner) prepare(dir string) (err error) {
	if objstore.IsURL(dir) {
		return base.Errorf(base.CodeInvalidArgument, "clone to %s: the copy of a database is a directory", dir)
	}
	if c.dir, err = absoluteDir(c.o.fs, dir); err != nil {
		return err
	}
	if err := c.outside(); err != nil {
		return err
	}
	names, err := c.o.fs.List(c.dir)
	switch {
	case base.CodeOf(err) == base.CodeNotFound:
		if err := c.o.fs.MkdirAll(filepath.Dir(c.dir)); err != nil {
			return err
		}
	case err != nil:
		return base.Wrapf(base.CodeInvalidArgument, err, "clone to %s", c.dir)
	case len(names) > 0:
		return base.Errorf(base.CodeAlreadyExists, "clone to %s: the directory is not empty", c.dir)
	default:
		c.empty = true
	}
	c.sweep()
	c.aside = c.dir + cloneAside + newUUID()
	return nil
}

// sweep removes what clones to the same place left that were killed: nobody holds their locks. Nothing depends on it.
func (c *cloner) sweep() {
	parent := filepath.Dir(c.dir)
	names, err := c.o.fs.List(parent)
	if err != nil {
		return
	}
	for _, n := range names {
		if tag, found := strings.CutPrefix(n, filepath.Base(c.dir)+cloneAside); !found || !manifest.IsUUID(tag) {
			continue
		}
		left := c.o.fs.Join(parent, n)
		if _, err := c.o.fs.Stat(c.o.fs.Join(left, lockFile)); err != nil {
			continue
		}
		lock, err := c.o.fs.Lock(c.o.fs.Join(left, lockFile), holder())
		if err != nil {
			continue
		}
		_ = c.o.fs.RemoveAll(left)
		_ = lock.Close()
	}
}

// outside refuses a destination within the source, whose next sweep would take it for something left over.
func (c *cloner) outside() error {
	if objstore.IsURL(c.source) {
		return nil
	}
	root, err := resolveDir(c.o.fs, c.source, false)
	if err != nil {
		return nil //nolint:nilerr // opening says it
	}
	for at := c.dir; ; at = filepath.Dir(at) {
		if at == root || c.o.fs == vfs.OS && sameDir(at, root) {
			return base.Errorf(base.CodeInvalidArgument, "clone to %s: it is in the directory of its source, %s", c.dir, root)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// sameDir reports whether two paths are of one directory.
func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// make copies, verifies and gives the copy its name.
func (c *cloner) make() error {
	db, err := c.openUnless()
	if err != nil {
		return err
	}
	defer db.Free()
	defer c.closeSnapshots()
	defer c.unlock()
	if err := c.plan(db); err != nil {
		return err
	}
	if err := c.copyAll(); err != nil {
		return err
	}
	if err := c.verify(); err != nil {
		return err
	}
	if err := c.addMemory(); err != nil {
		return err
	}
	if c.empty {
		// A directory takes no other one's place. If somebody put something there meanwhile this fails.
		if err := c.o.fs.Remove(c.dir); err != nil && base.CodeOf(err) != base.CodeNotFound {
			return base.Wrapf(base.CodeOf(err), err, "clone to %s", c.dir)
		}
	}
	if err := c.o.fs.Rename(c.aside, c.dir); err != nil {
		return base.Wrapf(base.CodeOf(err), err, "clone to %s", c.dir)
	}
	if err := c.o.fs.SyncDir(filepath.Dir(c.dir)); err != nil {
		_ = c.o.fs.RemoveAll(c.dir) // nobody can have used it
		return err
	}
	c.tell(1)
	c.report.Seconds = time.Since(c.began).Seconds()
	return nil
}

// openUnless is openSource, which is left where an interrupt comes: an object store may not answer for long.
func (c *cloner) openUnless() (*DB, error) {
	type opened struct {
		db  *DB
		err error
	}
	answer := make(chan opened, 1)
	go func() {
		var o opened
		o.err = base.Guard(func() (err error) {
			o.db, err = c.openSource()
			return err
		})
		answer <- o
	}()
	tick := time.NewTicker(cloneAsk)
	defer tick.Stop()
	for {
		select {
		case o := <-answer:
			return o.db, o.err
		case <-tick.C:
			if err := c.ask(); err != nil {
				go func() {
					if o := <-answer; o.db != nil {
						o.db.Free()
					}
				}()
				return nil, err
			}
		}
	}
}

func (c *cloner) openSource() (*DB, error) {
	o := Options{ReadOnly: true, S3: c.o.S3, fs: c.o.fs, store: c.o.store}
	db, err := Open(c.source, o)
	if err != nil {
		return nil, err
	}
	err = db.Refresh()
	if err == nil && objstore.IsURL(c.source) {
		c.from, err = o.openStore(db.Path())
	} else {
		c.from = objstore.NewDir(c.o.fs, db.Path())
	}
	if err != nil {
		db.Free()
		return nil, err
	}
	c.root = db.Path()
	if !objstore.IsURL(c.root) && strings.HasPrefix(c.dir, c.root+string(filepath.Separator)) {
		db.Free()
		return nil, base.Errorf(base.CodeInvalidArgument, "clone to %s: it is inside the database %s", c.dir, c.root)
	}
	return db, nil
}

func (c *cloner) unlock() {
	if c.lock != nil {
		_ = c.lock.Close() // it goes with the process at the latest
		c.lock = nil
	}
}

func (c *cloner) closeSnapshots() {
	for _, t := range c.tables {
		if t.snap != nil {
			t.snap.Close()
		}
	}
	c.tables = nil
}

// plan decides what is copied.
func (c *cloner) plan(db *DB) error {
	c.report = CloneReport{Source: c.root, Path: c.dir}
	c.tables, c.names = nil, nil
	c.total.Store(0)
	c.done.Store(0)
	if err := c.takeTables(db); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, t := range c.tables {
		if t.snap != nil {
			c.report.Tables++
		}
		if t.prefix == "" || len(c.tables) == 1 || c.report.Version == 0 {
			c.report.Version = t.m.Version
		}
		for _, f := range t.m.Files {
			c.names = append(c.names, cloneFile{t.prefix + f.Path, f.Size})
			c.report.Bytes += f.Size
			c.report.Rows += f.Live()
			if dv := t.prefix + f.DVPath; f.DVPath != "" && !known[dv] {
				known[dv] = true
				c.names = append(c.names, cloneFile{dv, -1})
			}
		}
	}
	c.report.Files = len(c.names)
	c.total.Store(max(c.report.Bytes, 1))
	return nil
}

// takeTables takes a snapshot of each table, all of one moment.
func (c *cloner) takeTables(db *DB) error {
	d := db.c.database
	if c.o.Version != 0 {
		d.mu.Lock()
		several := len(d.tables) > 1
		d.mu.Unlock()
		if several {
			return base.Errorf(base.CodeUnsupported, "%s has several tables, each with versions of its own: it is cloned as of now only", c.root)
		}
		s, err := db.SnapshotAt(c.o.Version)
		if err != nil {
			return err
		}
		c.list = &catalog{nextID: 1}
		c.tables = []cloneTable{{m: s.state.manifest, snap: s}}
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c.list = d.catalog
	for _, core := range d.live() {
		if core.state == nil || core.state.manifest == nil {
			continue // a root without a table
		}
		t := cloneTable{m: core.state.manifest}
		if core.id != 0 {
			t.prefix = tableDir(core.id) + "/"
		}
		if core.hasTable() {
			t.snap = core.snapshotLocked()
		}
		c.tables = append(c.tables, t)
	}
	if len(c.tables) == 0 {
		return base.Errorf(base.CodeNotFound, "no table in %s", c.root)
	}
	return nil
}

// verify checks the copy as Verify does.
func (c *cloner) verify() error {
	var bad error
	err := verifyIn(c.o.fs, c.aside, VerifyOptions{
		Interrupt: c.o.Interrupt,
		Progress:  func(done float64) { c.tell(0.7 + done*0.25) },
		Found: func(i VerifyItem) {
			if i.Status != VerifyOK && bad == nil {
				name := c.root + strings.TrimPrefix(i.Path, c.aside)
				bad = base.Errorf(base.CodeCorruption, "the copy of %s is %s (%s): %s", name, i.Status, i.What, i.Detail)
			}
		},
	})
	if err == nil {
		err = bad
	}
	return err
}

// addMemory commits what the source had in its log only.
func (c *cloner) addMemory() error {
	for _, t := range c.tables {
		if t.snap != nil {
			c.report.RowsFromMemory += t.snap.MemoryRows()
		}
	}
	if c.report.RowsFromMemory == 0 {
		return nil
	}
	c.unlock() // the engine locks it
	db, err := Open(c.aside, Options{NoCreate: true, fs: c.o.fs})
	if err != nil {
		return err
	}
	defer db.Free()
	for _, t := range c.tables {
		if t.snap == nil || t.snap.MemoryRows() == 0 {
			continue
		}
		if err := c.addRows(db, t.snap); err != nil {
			return err
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	return c.ask()
}

func (c *cloner) addRows(db *DB, s *Snapshot) error {
	into, err := db.OpenTableID(s.state.core.id)
	if err != nil {
		return err
	}
	defer into.Free()
	w, err := into.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	w.SetInterrupt(c.o.Interrupt)
	it := s.memIter()
	for it.First(); it.Valid(); it.Next() {
		if err := w.add(it.Op(), it.Key(), it.Value()); err != nil {
			return err
		}
	}
	_, err = w.Commit()
	return err
}

func (c *cloner) ask() error {
	if c.o.Interrupt != nil && c.o.Interrupt() {
		return interruptedError()
	}
	return nil
}

func (c *cloner) tell(done float64) {
	if c.o.Progress != nil {
		c.o.Progress(min(done, 1))
	}
}

// absoluteDir returns the path of a directory that need not be there.
func absoluteDir(fs vfs.FS, dir string) (string, error) {
	resolved, err := resolveDir(fs, dir, false)
	if base.CodeOf(err) != base.CodeNotFound || fs != vfs.OS {
		return resolved, err
	}
	abs, err := filepath.Abs(strings.TrimPrefix(dir, "file://"))
	return abs, base.Wrapf(base.CodeIO, err, "path %q", dir)
}
