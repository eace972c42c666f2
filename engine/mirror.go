package engine

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The mirror of a database that is open for writing. internal/mirror has the protocol; here it is told what there is, woken
// by commits, and its lag watched. Writers never wait for it: all that they do is to note the time.

// mirroring is a database's mirror.
type mirroring struct {
	d           *database
	m           *mirror.Mirror
	destination string // for people

	// rows and commits say how old is what the mirror does not have, commit counts the commits of all tables. They are
	// guarded by the database's mu.
	rows, commits mirror.Timeline
	rowsSeq       base.Seq
	commit        uint64

	kick chan struct{} // wakes watch
	lag  lagAlert
	errs errorEvents
}

// errorEvents keeps errors that repeat from filling the log.
type errorEvents struct {
	mu   sync.Mutex
	last time.Time
}

// Tests make them shorter.
var (
	// mirrorFinish is how long Close waits for a mirror that works; one that does not answer is not waited for.
	mirrorFinish = 5 * time.Second
	// mirrorStop is how long Close and Free wait for requests under way that are told to end.
	mirrorStop = 2 * time.Second
)

const (
	// mirrorErrorEvery is the least time between events about errors that are tried again.
	mirrorErrorEvery = time.Minute
)

// mirrorStore returns the store of option mirror, nil where there is none. It asks nothing of it.
func (o *Options) mirrorStore(dir string) (objstore.Store, error) {
	switch {
	case o.ReadOnly:
		return nil, nil
	case o.mirrorTo != nil:
		return o.mirrorTo, nil
	case o.Mirror == "":
		return nil, nil
	}
	store, err := objstore.Open(o.Mirror, o.S3)
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "option mirror")
	}
	if to, ok := strings.CutPrefix(store.String(), "/"); ok && dir != "" {
		if err := apart(dir, "/"+to); err != nil {
			return nil, err
		}
	}
	return store, nil
}

// apart refuses a destination that shares files with the database: each would remove the other's.
func apart(dir, to string) error {
	to = resolveExisting(to)
	within := func(inner, outer string) bool {
		rel, err := filepath.Rel(outer, inner)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	}
	if within(to, dir) || within(dir, to) {
		return base.Errorf(base.CodeInvalidArgument, "option mirror: %s and the database's directory %s must not be one in the other", to, dir)
	}
	return nil
}

// resolveExisting resolves symbolic links in as much of a path as there is.
func resolveExisting(path string) string {
	path = filepath.Clean(path)
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// startMirror begins to mirror what was just opened. It runs before anything changes it.
func (d *database) startMirror() error {
	store, err := d.opts.mirrorStore(d.root)
	if store == nil || err != nil {
		return err
	}
	g := &mirroring{d: d, kick: make(chan struct{}, 1), destination: d.opts.Mirror}
	if d.opts.mirrorTo != nil {
		g.destination = store.String()
	}
	d.mu.Lock()
	d.mirror = g
	g.changed()
	d.mu.Unlock()
	g.m = mirror.Start(store, g, mirror.Options{
		Parallelism: d.opts.MirrorParallelism, Retain: d.opts.MirrorRetain, Now: func() time.Time { return d.now() },
		Published: g.published, Failed: g.failed, Stopped: g.stopped,
	})
	d.workers.Add(1)
	go g.watch()
	return nil
}

// finishMirror gives the mirror some time to take what there is, unless it does not work.
func (d *database) finishMirror() {
	g := d.mirror
	if g == nil {
		return
	}
	d.mu.Lock()
	seq, commit := d.visible, g.commit
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), mirrorFinish)
	defer cancel()
	g.m.Wait(ctx, seq, commit)
}

// stopMirror ends the mirror. It may be called twice.
func (d *database) stopMirror() {
	if d.mirror != nil && d.mirror.m != nil {
		d.mirror.m.Stop(mirrorStop)
	}
}

// wrote takes note of rows that became visible in memory, the first ones of a memtable if begins is set. It runs under mu.
func (g *mirroring) wrote(begins bool) {
	if g == nil {
		return
	}
	g.noteRows()
	if begins {
		g.wakeWatch()
	}
}

func (g *mirroring) noteRows() {
	if seq := g.d.visible; seq > g.rowsSeq {
		g.rows.Add(g.rowsSeq+1, seq, time.Now())
		g.rowsSeq = seq
	}
}

// changed takes note of a commit. It runs under mu.
func (g *mirroring) changed() {
	if g == nil {
		return
	}
	g.noteRows()
	g.commit++
	g.commits.Add(g.commit, g.commit, time.Now())
	if g.m != nil {
		g.m.Notify()
	}
	g.wakeWatch()
}

func (g *mirroring) wakeWatch() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// Cut implements [mirror.Source].
func (g *mirroring) Cut() (*mirror.Cut, error) {
	d := g.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed {
		return nil, base.Errorf(base.CodeClosed, "%s is closed", d.root)
	}
	cut := &mirror.Cut{Seq: d.visible, Commit: g.commit, NextTable: d.catalog.nextID}
	if d.catalog.version > 0 {
		cut.Catalog = []byte(d.catalog.file())
	}
	var release []func()
	for _, c := range d.live() {
		if c.state == nil {
			continue
		}
		for _, e := range c.state.mems {
			if e.visible > 0 {
				cut.Seq = min(cut.Seq, e.firstSeq-1)
			}
		}
		m := c.state.manifest
		if m == nil {
			continue
		}
		c.pinned.add(m)
		release = append(release, func() { c.unpin(m) })
		cut.Tables = append(cut.Tables, &mirror.Table{ID: c.id, Manifest: m, Dir: tableFiles{c}})
	}
	cut.Close = func() {
		for _, fn := range release {
			fn()
		}
	}
	return cut, nil
}

// CatalogVersion implements [mirror.Source].
func (g *mirroring) CatalogVersion(data []byte) (uint64, error) {
	k, err := parseCatalog(catalogFileName, string(data))
	if err != nil {
		return 0, err
	}
	return k.version, nil
}

// tableFiles are the files of a table, for the mirror.
type tableFiles struct{ c *core }

func (t tableFiles) Open(rel string) (mirror.File, error) {
	return t.c.fs.Open(t.c.fs.Join(t.c.dir, rel))
}

func (t tableFiles) ManifestBytes(version int64) ([]byte, error) {
	return vfs.ReadFile(t.c.fs, t.c.fs.Join(t.c.dir, manifest.Dir, manifest.FileName(version)), base.MaxManifestBytes)
}

func (t tableFiles) Record() ([]byte, error) {
	data, err := vfs.ReadFile(t.c.fs, t.c.fs.Join(t.c.dir, manifest.Dir, mirror.RecordFile), base.MaxManifestBytes)
	if base.CodeOf(err) == base.CodeNotFound {
		return nil, nil
	}
	return data, err
}

func (t tableFiles) SetRecord(data []byte) error {
	dir := t.c.fs.Join(t.c.dir, manifest.Dir)
	if err := replaceFile(t.c.fs, t.c.fs.Join(dir, mirror.RecordFile), string(data)); err != nil {
		return err
	}
	return t.c.fs.SyncDir(dir)
}

// published is told that the mirror has all of a cut.
func (g *mirroring) published(seq, commit uint64) {
	d := g.d
	d.mu.Lock()
	g.rows.Done(seq)
	g.commits.Done(commit)
	d.mu.Unlock()
	g.wakeWatch()
}

func (g *mirroring) failed(err error) {
	g.errs.mu.Lock()
	now := time.Now()
	tell := g.errs.last.IsZero() || now.Sub(g.errs.last) >= mirrorErrorEvery
	if tell {
		g.errs.last = now
	}
	g.errs.mu.Unlock()
	if tell {
		logEventOf(g.d.root, slog.LevelWarn, "mirror_error", "the mirror failed and will be tried again: "+err.Error(),
			slog.String("destination", g.destination))
	}
}

func (g *mirroring) stopped(err error) {
	logEventOf(g.d.root, slog.LevelError, "mirror_stopped", "the mirror stopped until the database is opened again: "+err.Error(),
		slog.String("destination", g.destination))
}
