package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/wal"
)

// Garbage: a manifest is kept while it is among the newest RetainVersions, or was superseded less than GCGrace ago. A
// file is kept while a kept manifest names it, a snapshot of this process needs it, or it is being written. Everything
// else in data, and what crashed commits left behind, goes. It runs when the directory is opened and after commits, never
// beside another commit.

// collectGarbage runs in openWriter, or under commitMu. What cannot be removed is tried again next time.
func (c *core) collectGarbage() {
	keep, err := c.retireManifests()
	if err != nil {
		return // without all kept manifests nobody knows what is garbage
	}
	c.pinned.paths(func(rel string) { keep[rel] = struct{}{} })
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
			_, kept := keep[rel]
			if kept || c.pending.has(rel) || !strings.HasSuffix(n, ".parquet") && !strings.HasSuffix(n, ".puffin") {
				continue
			}
			if c.fs.Remove(c.fs.Join(c.dir, rel)) == nil {
				c.stats.filesRemoved.Add(1)
			}
		}
	}
}

// retireManifests removes old manifests and the leftovers of commits, and returns the paths that the kept ones name.
func (c *core) retireManifests() (map[string]struct{}, error) {
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
		return nil, err
	}
	s := c.current()
	defer s.unref()
	cutoff := time.Now().Add(-max(c.opts.GCGrace, 0)).UnixMilli()
	keep := map[string]struct{}{}
	supersededAt := int64(1<<63 - 1)
	removed := false
	for i := len(versions) - 1; i >= 0; i-- {
		m, err := c.manifestAt(s, versions[i])
		if err != nil {
			return nil, err
		}
		if len(versions)-1-i > c.opts.RetainVersions && supersededAt < cutoff {
			// All older ones go with this one.
			for _, v := range versions[:i+1] {
				if c.store.Remove(v) == nil {
					removed = true
					c.forgetManifest(v)
				}
			}
			versions = versions[i+1:]
			break
		}
		for _, f := range m.Files {
			keep[f.Path] = struct{}{}
			if f.DVPath != "" {
				keep[f.DVPath] = struct{}{}
			}
		}
		supersededAt = m.UpdatedMS
	}
	if removed && len(versions) > 0 {
		c.writeLowWater(metaDir, versions[0])
	}
	return keep, nil
}

// manifestAt returns the manifest of a version, from memory where it was read before.
func (c *core) manifestAt(s *readState, version int64) (*manifest.Manifest, error) {
	if s.manifest.Version == version {
		return s.manifest, nil
	}
	c.oldMu.Lock()
	defer c.oldMu.Unlock()
	if m := c.oldManifests[version]; m != nil {
		return m, nil
	}
	m, err := c.store.At(version)
	if err != nil {
		return nil, err
	}
	if c.oldManifests == nil {
		c.oldManifests = map[int64]*manifest.Manifest{}
	}
	c.oldManifests[version] = m
	return m, nil
}

func (c *core) forgetManifest(version int64) {
	c.oldMu.Lock()
	delete(c.oldManifests, version)
	c.oldMu.Unlock()
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
	numbers, err := listLogs(c, 0)
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
	o := Options{ReadOnly: true}.withDefaults()
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
