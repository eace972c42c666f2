package engine

import (
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/mirror"
)

const (
	lowWaterFile = "low_water.txt"
	tmpSuffix    = ".tmp"
	dataDir      = "data"
	// temporaryDir, inside the database's, has a directory for each bulk load that does not fit in memory.
	temporaryDir = "tmp"
)

// remove removes a file that is there, or would, and reports whether it is gone.
func (p *gcPass) remove(path string, reason GarbageReason) bool {
	return p.removeBy(path, reason, func() error {
		if p.dry {
			return nil
		}
		if reason == GarbageTemporary {
			return p.c.fs.RemoveAll(path)
		}
		return p.c.fs.Remove(path)
	}) == nil
}

// removeManifest removes a manifest, or tells whether it would: CodeLocked where a reader pins it.
func (p *gcPass) removeManifest(version int64) error {
	c := p.c
	// A reader of an older version may have come since the pass began.
	if !c.pinned.claim(version) {
		return base.Errorf(base.CodeLocked, "a reader uses version %d", version)
	}
	defer c.pinned.unclaim()
	if c.remote() && !p.dry {
		return p.removeManifestObject(version)
	}
	return p.removeBy(c.fs.Join(c.dir, manifest.Dir, manifest.FileName(version)), GarbageManifest, func() error {
		if !p.dry {
			return c.store.Remove(version)
		}
		pinned, err := c.store.Pinned(version)
		if pinned {
			err = base.Errorf(base.CodeLocked, "a reader in another process uses version %d", version)
		}
		return err
	})
}

func (p *gcPass) removeBy(path string, reason GarbageReason, remove func() error) error {
	info, err := p.c.fs.Stat(path)
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	item := GarbageItem{Path: path, Bytes: info.Size, Reason: reason, Err: err}
	if err == nil {
		item.Err = remove()
	}
	p.report.Items = append(p.report.Items, item)
	if item.Err != nil {
		p.again = true
		return item.Err
	}
	p.report.Files++
	p.report.Bytes += item.Bytes
	if !p.dry {
		p.removed++
		p.c.gc.filesRemoved.Add(1)
		p.c.gc.bytesRemoved.Add(item.Bytes)
	}
	return nil
}

func (p *gcPass) unknown(path string) {
	p.report.Items = append(p.report.Items, GarbageItem{Path: path, Reason: GarbageUnknown})
}

// sweep looks through the directory for what crashes left behind.
func (p *gcPass) sweep() error {
	if err := p.sweepMetadata(); err != nil {
		return err
	}
	if err := p.sweepTemporary(); err != nil {
		return err
	}
	if err := p.sweepTables(); err != nil {
		return err
	}
	return p.sweepData()
}

func (p *gcPass) sweepMetadata() error {
	c := p.c
	dir := c.fs.Join(c.dir, manifest.Dir)
	names, err := c.listDir(dir)
	if err != nil {
		return err
	}
	c.mu.Lock()
	mirrored := c.mirror != nil
	c.mu.Unlock()
	var leftovers []string
	for _, n := range names {
		_, known := manifest.ParseFileName(n)
		switch {
		case known, n == lowWaterFile, n == mirror.RecordFile:
		case mirrored && n == mirror.RecordFile+tmpSuffix: // being written, or else soon to be written anew
		case manifest.IsTemporary(n), n == lowWaterFile+tmpSuffix, n == mirror.RecordFile+tmpSuffix:
			leftovers = append(leftovers, manifest.Dir+"/"+n)
		default:
			p.unknown(c.fs.Join(dir, n))
		}
	}
	return p.removeUnowned(leftovers, GarbageLeftover)
}

// sweepTemporary removes the directories of bulk loads that nobody runs any more.
func (p *gcPass) sweepTemporary() error {
	c := p.c
	names, err := c.listDir(c.fs.Join(c.dir, temporaryDir))
	if err != nil {
		return err
	}
	for _, n := range names {
		path := c.fs.Join(c.dir, temporaryDir, n)
		switch {
		case !manifest.IsUUID(n):
			p.unknown(path)
		case !c.pending.has(temporaryDir + "/" + n): // a load names its directory before it makes it
			p.remove(path, GarbageTemporary)
		}
	}
	return nil
}

// sweepTables names what is among the tables' directories and is not the engine's.
func (p *gcPass) sweepTables() error {
	c := p.c
	if c.id != 0 {
		return nil
	}
	names, err := c.listDir(c.fs.Join(c.root, tablesDir))
	if err != nil {
		return err
	}
	for _, n := range names {
		if _, ok := parseTableDir(n); !ok {
			p.unknown(c.fs.Join(c.root, tablesDir, n))
		}
	}
	return nil
}

func (p *gcPass) sweepData() error {
	c := p.c
	if !c.gc.history.complete() {
		return nil // without all kept manifests nobody knows what is an orphan
	}
	levels, err := c.listDir(c.fs.Join(c.dir, dataDir))
	if err != nil {
		return err
	}
	var orphans []string
	for _, level := range levels {
		names, err := c.listDir(c.fs.Join(c.dir, dataDir, level))
		if err != nil {
			p.unknown(c.fs.Join(c.dir, dataDir, level))
			continue
		}
		for _, n := range names {
			rel := dataDir + "/" + level + "/" + n
			switch {
			case c.gc.history.named(rel) || c.pending.has(rel):
			case manifest.IsDataFileName(n):
				orphans = append(orphans, rel)
			default:
				p.unknown(c.fs.Join(c.dir, rel))
			}
		}
	}
	return p.removeUnowned(orphans, GarbageOrphan)
}

// listDir returns the names in a directory, none where it is not there.
func (d *database) listDir(dir string) ([]string, error) {
	names, err := d.fs.List(dir)
	if base.CodeOf(err) == base.CodeNotFound {
		return nil, nil
	}
	return names, err
}

// removeUnowned removes files that are neither named by a manifest nor being written. Such a name may come again: a
// commit that failed is tried anew. So it looks once more, while no commit is under way, and in small portions, so that
// none waits for long.
func (p *gcPass) removeUnowned(rels []string, reason GarbageReason) error {
	const portion = 16
	for rels := range slices.Chunk(rels, portion) {
		if err := p.removePortion(rels, reason); err != nil {
			return err
		}
	}
	return nil
}

func (p *gcPass) removePortion(rels []string, reason GarbageReason) error {
	c := p.c
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	if !p.allowed() || p.stopped() {
		return base.Errorf(base.CodeClosed, "%s: the collection was cut short", c.dir)
	}
	for _, rel := range rels {
		c.pending.unlessWritten(rel, func() {
			if !c.gc.history.named(rel) {
				p.remove(c.fs.Join(c.dir, rel), reason)
			}
		})
	}
	return nil
}
