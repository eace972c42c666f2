package engine

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/wal"
)

// Garbage: a manifest is kept while it is among the newest RetainVersions superseded ones, or was superseded less than
// GCGrace or RetainFor ago, or a snapshot of this process or a reader in another one uses it (pins.go). A data file or
// deletion vector is kept while a kept manifest names it (history.go), or it is being written. A log is kept while it
// has rows that are not in files. What nobody ever named is an orphan of a crash (sweep.go).
//
// All of that is removed by one goroutine, in passes: commits and snapshots that end only wake it. A pass holds none of
// the engine's locks while it removes what a manifest once named, for such names do not come back. The clock only
// decides how long what nothing here needs is kept for readers elsewhere.

// collector is the state of garbage collection in a core that writes.
type collector struct {
	wake    chan struct{}
	history fileHistory

	// pass is held during a pass; it comes before all other locks of the core.
	pass   sync.Mutex
	loaded bool // history has the manifests from before the opening
	swept  bool // orphans were looked for
	ended  bool // the directory was given up: no more passes
	// opened is the manifest as of the opening, nil where there was none; lowWater what low_water.txt was last set to.
	opened   *manifest.Manifest
	lowWater int64

	// Of a table in an object store (objectgarbage.go): own is the newest version that this engine committed, 0 before the
	// first; sweptAt and wroteLowWater are when orphans were looked for and low_water.txt was written last, sweptAs what own
	// was then.
	own                    atomic.Int64
	sweptAs                int64
	sweptAt, wroteLowWater time.Time
	slack                  time.Duration
	intents                manifest.IntentSweep // the root table's

	filesRemoved, bytesRemoved, lastNanos, readerPins atomic.Int64
}

const (
	// gcRetry is after how long a pass tries again what a reader in another process pinned, or what failed.
	gcRetry = 2 * time.Second
	// gcPause is between passes that removed something, so that a fast writer pays for few of them.
	gcPause = 200 * time.Millisecond
	// gcIdle is the longest time without a pass.
	gcIdle = time.Minute
)

// collectGarbage wakes the collector. It never waits and may be called with any lock held.
func (c *core) collectGarbage() {
	select {
	case c.gc.wake <- struct{}{}:
	default:
	}
}

func (c *core) garbageLoop() {
	defer c.workers.Done()
	for {
		p := c.newPass(false)
		wait, _ := p.run(false) // whatever is wrong, it tries again
		if c.leave() {
			return
		}
		if p.removed > 0 && !c.pauseGarbage(c.pauseAfter(), nil) || !c.pauseGarbage(wait, c.gc.wake) {
			return
		}
	}
}

// pauseGarbage waits, and returns false when the core stops.
func (c *core) pauseGarbage(d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.stop:
		return false
	case <-wake:
	case <-t.C:
	}
	return true
}

// finishGarbage runs a last pass after the workers, so that a directory that was closed holds no garbage that could go.
// Closing does not wait long for it: the next open goes on.
func (c *core) finishGarbage() {
	const patience = 500 * time.Millisecond
	p := c.newPass(false)
	p.deadline = time.Now().Add(patience)
	_, _ = p.run(false) // nobody is there to try again
}

// endGarbage keeps later passes from a directory that is about to belong to somebody else.
func (c *core) endGarbage() {
	c.gc.pass.Lock()
	c.gc.ended = true
	c.gc.pass.Unlock()
}

// gcPass is one pass.
type gcPass struct {
	c       *core
	dry     bool // tells what would go, and removes nothing
	report  GarbageReport
	removed int  // files that went
	again   bool // something is to be tried again soon
	// deadline is when the pass ends unfinished; zero: when the core stops.
	deadline time.Time
}

func (c *core) newPass(dry bool) *gcPass {
	return &gcPass{c: c, dry: dry, report: GarbageReport{DryRun: dry}}
}

// run does the pass and returns after how long there may be more to do. all looks for orphans too, which the first pass
// does in any case.
func (p *gcPass) run(all bool) (wait time.Duration, err error) {
	g := &p.c.gc
	g.pass.Lock()
	defer g.pass.Unlock()
	if !p.allowed() {
		return gcIdle, nil
	}
	start := time.Now()
	if err := p.load(); err != nil {
		return gcRetry, err
	}
	wait = p.retire()
	err = p.removeLogs()
	if p.c.remote() {
		err = p.sweepObjects(all)
	} else if err == nil && (all || !g.swept) {
		if err = p.sweep(); err == nil && !p.dry {
			g.swept = true
		}
	}
	g.lastNanos.Store(int64(time.Since(start)))
	if p.again || err != nil {
		wait = min(wait, gcRetry)
	}
	return wait, err
}

// allowed reports whether garbage may be collected: not after the directory was given up, and not after a failure, when
// the newest manifest may be one that this process does not know of.
func (p *gcPass) allowed() bool {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.gc.ended && c.failure == nil
}

// keepFor is how long a manifest stays that was superseded.
func (c *core) keepFor() time.Duration {
	least := time.Duration(0)
	if c.remote() {
		least = manifest.LeastGrace
	}
	return max(c.opts.GCGrace, c.opts.RetainFor, least)
}

// load takes note of the manifests from before the opening. It reads those that are to be kept; of the others it is
// known only whether they can go when that is tried.
func (p *gcPass) load() error {
	c := p.c
	if c.gc.loaded || c.gc.opened == nil {
		return nil
	}
	versions, err := c.store.Versions()
	if err != nil {
		return err
	}
	first := c.gc.opened.Version
	var older []*oldManifest
	var read []*manifest.Manifest
	now := c.now()
	// What is there was superseded by now, whatever clock wrote the next one's time.
	at := earlier(now, time.UnixMilli(c.gc.opened.UpdatedMS))
	if c.gc.opened.GivenUp() {
		at = now // it needs the one before, and is superseded only now
	}
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i] >= first {
			continue
		}
		o := &oldManifest{version: versions[i], superseded: at}
		older = append(older, o)
		if len(older) > c.opts.RetainVersions && now.Sub(at) >= c.keepFor() {
			continue // it will be tried, and so will all that are older
		}
		m, err := c.store.At(o.version)
		switch base.CodeOf(err) {
		case base.CodeOK:
			read = append(read, m)
			if !m.GivenUp() { // else it needs the one before for as long as it stays
				at = earlier(at, time.UnixMilli(m.UpdatedMS))
			}
		case base.CodeCorruption, base.CodeUnsupported, base.CodeNotFound:
			// No file goes before this one does. It is gone, or was given up and the one that it stands for is.
		default:
			return err
		}
	}
	slices.Reverse(older)
	c.gc.history.add(older)
	for _, m := range read {
		c.gc.history.learn(m)
	}
	c.gc.loaded = true
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// retire removes the manifests whose time has come, then the files that they alone named.
func (p *gcPass) retire() (wait time.Duration) {
	c, h := p.c, &p.c.gc.history
	due, wait := h.due(c.now(), c.keepFor(), c.opts.RetainVersions, c.remote(), c.pinned.versions)
	if wait < 0 || wait > gcIdle {
		wait = gcIdle
	}
	gone := map[int64]bool{}
	pinned := 0
	for _, o := range due {
		if p.stopped() {
			break
		}
		switch err := p.removeManifest(o.version); base.CodeOf(err) {
		case base.CodeOK:
			gone[o.version] = true
		case base.CodeLocked:
			pinned++
			p.again = true
			if !o.read {
				p.learn(o.version)
			}
		default:
			p.again = true
		}
		if c.remote() && !gone[o.version] {
			break // none before the one before it
		}
	}
	c.gc.readerPins.Store(int64(pinned))
	metaDir := c.fs.Join(c.dir, manifest.Dir)
	if len(gone) > 0 && !p.dry {
		// No manifest may come back in a power cut without its files.
		if err := c.fs.SyncDir(metaDir); err != nil {
			p.again = true
			return wait
		}
		h.forget(gone)
		if _, oldest := h.kept(nil); oldest != c.gc.lowWater && (!c.remote() || time.Since(c.gc.wroteLowWater) > lowWaterEvery) {
			c.gc.lowWater, c.gc.wroteLowWater = oldest, time.Now()
			c.writeLowWater(metaDir, oldest)
		}
	}
	p.report.KeptManifests, p.report.OldestVersion = h.kept(gone)
	p.report.ReaderPins = pinned
	unneeded := h.unneeded(gone)
	if c.remote() && !p.dry {
		p.dropObjects(slices.DeleteFunc(unneeded, c.pinned.holdsFile))
		return wait
	}
	for _, rel := range unneeded {
		if p.stopped() {
			p.again = true
			break
		}
		if c.pinned.holdsFile(rel) {
			continue
		}
		if p.remove(c.fs.Join(c.dir, rel), GarbageSuperseded) && !p.dry {
			h.bury(rel)
		}
	}
	return wait
}

// learn reads a manifest whose files are not known yet. As long as that fails no file goes.
func (p *gcPass) learn(version int64) {
	if m, err := p.c.store.At(version); err == nil {
		p.c.gc.history.learn(m)
	}
}

// stopped reports whether the pass is to end before it is through.
func (p *gcPass) stopped() bool {
	if !p.deadline.IsZero() {
		return time.Now().After(p.deadline)
	}
	select {
	case <-p.c.stop:
		return true
	default:
		return false
	}
}

// writeLowWater tells readers the smallest version still there. It is a hint: a failure is no harm.
func (c *core) writeLowWater(metaDir string, version int64) {
	_ = replaceFile(c.fs, c.fs.Join(metaDir, lowWaterFile), strconv.FormatInt(version, 10))
}

// removeLogs removes the logs whose rows are in files, of all tables, the oldest first.
func (p *gcPass) removeLogs() error {
	d := p.c.database
	if d.remote() {
		return nil
	}
	d.logGC.Lock()
	defer d.logGC.Unlock()
	d.mu.Lock()
	first, known := d.neededLog(), d.main.state != nil && d.main.state.manifest != nil
	d.mu.Unlock()
	if !known { // there never was a table: the logs are not ours
		return nil
	}
	numbers, err := listLogs(d.fs, d.walDir, 0)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n < first {
			p.remove(d.fs.Join(d.walDir, wal.Name(n)), GarbageLog)
		}
	}
	return nil
}

// leave ends a table that was dropped, and removes its directory, once nothing needs its files any more.
func (c *core) leave() bool {
	c.gc.pass.Lock()
	defer c.gc.pass.Unlock()
	c.mu.Lock()
	_, leaving := c.leaving[c]
	leaving = leaving && !c.gc.ended && c.failure == nil && c.state.refs.Load() == 1
	c.mu.Unlock()
	if kept, _ := c.gc.history.kept(nil); !leaving || kept > 1 || c.gc.history.waiting() > 0 || len(c.pinned.versions()) > 1 {
		return false
	}
	if err := c.fs.RemoveAll(c.dir); err != nil {
		return false // it is tried again
	}
	c.gc.ended = true
	c.mu.Lock()
	delete(c.leaving, c)
	c.mu.Unlock()
	c.install(c.newState(nil, nil, nil, nil), nil) // handles may be left
	c.beginStop()
	return true
}
