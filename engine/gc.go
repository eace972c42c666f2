package engine

import (
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/wal"
)

// Garbage: a manifest is kept while it is among the newest RetainVersions, or was superseded less than GCGrace ago. A
// file is kept while a kept manifest names it, a snapshot of this process needs it, or it is being written. Everything
// else in data, and what crashed commits left behind, goes. It runs when the directory is opened and after commits, never
// beside another commit. The clock only decides how long what nothing here needs is kept for readers elsewhere.

// garbage is what the collector knows about the kept manifests. It is guarded by commitMu.
type garbage struct {
	// named has for each data file and deletion vector the newest manifest that names it.
	named map[string]int64
	// updated has the time of each kept manifest, in milliseconds.
	updated map[int64]int64
}

// committed takes note of a commit: prev, nil for the first one, is the manifest before it.
func (g *garbage) committed(prev, next *manifest.Manifest) {
	if g.named == nil {
		g.named, g.updated = map[string]int64{}, map[int64]int64{}
	}
	if prev != nil {
		g.note(prev)
	}
	g.note(next)
}

func (g *garbage) note(m *manifest.Manifest) {
	g.updated[m.Version] = m.UpdatedMS
	for _, f := range m.Files {
		g.named[f.Path] = max(g.named[f.Path], m.Version)
		if f.DVPath != "" {
			g.named[f.DVPath] = max(g.named[f.DVPath], m.Version)
		}
	}
}

// collectGarbage runs in openWriter, or under commitMu. What cannot be removed is tried again next time.
func (c *core) collectGarbage() {
	oldest, err := c.retireManifests()
	if err != nil {
		return // without all kept manifests nobody knows what is garbage
	}
	pinned := map[string]struct{}{}
	c.pinned.paths(func(rel string) { pinned[rel] = struct{}{} })
	dataDir := c.fs.Join(c.dir, "data")
	levels, err := c.fs.List(dataDir)
	if err != nil {
		return
	}
	for _, level := range levels {
		names, err := c.fs.List(c.fs.Join(dataDir, level))
		if err != nil {
			continue
		}
		for _, n := range names {
			rel := "data/" + level + "/" + n
			_, held := pinned[rel]
			if held || c.garbage.named[rel] >= oldest || c.pending.has(rel) || !strings.HasSuffix(n, ".parquet") && !strings.HasSuffix(n, ".puffin") {
				continue
			}
			if c.fs.Remove(c.fs.Join(c.dir, rel)) == nil {
				delete(c.garbage.named, rel)
				c.stats.filesRemoved.Add(1)
			}
		}
	}
}

// retireManifests removes old manifests and the leftovers of commits, and returns the oldest version that is kept.
func (c *core) retireManifests() (oldest int64, err error) {
	metaDir := c.fs.Join(c.dir, manifest.Dir)
	if names, err := c.fs.List(metaDir); err == nil {
		for _, n := range names {
			if manifest.IsTemporary(n) {
				_ = c.fs.Remove(c.fs.Join(metaDir, n))
			}
		}
	}
	versions, err := c.store.Versions()
	if err != nil {
		return 0, err
	}
	s := c.current()
	defer s.unref()
	cutoff := c.now().Add(-max(c.opts.GCGrace, 0)).UnixMilli()
	supersededAt := int64(1<<63 - 1)
	kept := len(versions)
	for kept > 0 && (len(versions)-kept <= c.opts.RetainVersions || supersededAt > cutoff) {
		v := versions[kept-1]
		if err := c.knowManifest(s, v); err != nil {
			return 0, err
		}
		supersededAt = c.garbage.updated[v]
		kept--
	}
	if kept == len(versions) {
		return 0, base.Errorf(base.CodeNotFound, "%s: no manifest", metaDir)
	}
	// All older ones go with the first that does; a damaged one among them is no harm.
	removed := false
	for _, v := range versions[:kept] {
		if c.store.Remove(v) == nil {
			removed = true
			delete(c.garbage.updated, v)
		}
	}
	if removed {
		c.writeLowWater(metaDir, versions[kept])
	}
	return versions[kept], nil
}

// knowManifest takes note of a kept manifest, which is read unless this process committed it.
func (c *core) knowManifest(s *readState, version int64) error {
	if _, ok := c.garbage.updated[version]; ok {
		return nil
	}
	m := s.manifest
	if m.Version != version {
		var err error
		if m, err = c.store.At(version); err != nil {
			return err
		}
	}
	c.garbage.committed(nil, m)
	return nil
}

// writeLowWater tells readers the smallest version still there. It is a hint: a failure is no harm.
func (c *core) writeLowWater(metaDir string, version int64) {
	const name = "low_water.txt"
	tmp := c.fs.Join(metaDir, name+".tmp")
	f, err := c.fs.Create(tmp)
	if err != nil {
		return
	}
	_, err = f.Write([]byte(strconv.FormatInt(version, 10)))
	if e := f.Sync(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		_ = c.fs.Rename(tmp, c.fs.Join(metaDir, name))
	}
}

// removeLogs deletes the logs that the current manifest covers. A log that cannot be removed is removed next time.
func (c *core) removeLogs() {
	s := c.current()
	defer s.unref()
	if s.manifest == nil {
		return
	}
	numbers, err := listLogs(c.fs, c.walDir, 0)
	if err != nil {
		return
	}
	for _, n := range numbers {
		if n < s.manifest.MinLog {
			_ = c.fs.Remove(c.fs.Join(c.walDir, wal.Name(n)))
		}
	}
}

// ManifestInfo is what ReadManifest tells.
type ManifestInfo struct {
	Schema  *Schema
	Version int64
	// Files are the absolute paths of the live data files.
	Files []string
}

// ReadManifest reads the newest manifest without opening the database. CodeNotFound where there is no table.
func ReadManifest(path string) (*ManifestInfo, error) {
	o := Options{ReadOnly: true}.withFS()
	dir, err := resolveDir(o.fs, path, false)
	if err != nil {
		return nil, err
	}
	m, err := manifest.NewFSStore(o.fs, dir).Newest()
	if err != nil {
		return nil, err
	}
	if m.Dropped {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", dir)
	}
	info := &ManifestInfo{Schema: m.Schema, Version: m.Version}
	for _, f := range m.Files {
		info.Files = append(info.Files, o.fs.Join(dir, f.Path))
	}
	return info, nil
}
