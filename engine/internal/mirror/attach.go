package mirror

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// catalogCopy is the store's catalog as it is known.
type catalogCopy struct {
	data  []byte    // nil: there is none
	since time.Time // when it was put, by the store's clock; zero: long ago
	// unsure says that one was put of which nobody knows whether it came to be.
	unsure bool
	// late says that an older one may still come in the place of this one: the put of it failed, nobody knows how.
	late bool
}

// lists reports whether readers of the store find a table besides the root one.
func (c *catalogCopy) lists(id uint32) bool {
	dir := []byte(" " + strings.TrimSuffix(tablePrefix(id), "/"))
	for line := range bytes.Lines(c.data) {
		if bytes.HasPrefix(line, []byte("table ")) && bytes.HasSuffix(bytes.TrimSpace(line), dir) {
			return true
		}
	}
	return false
}

// listing is what the store has of one table.
type listing struct {
	manifests []listedManifest // ascending
	files     []objstore.Info  // data files and deletion vectors
}

type listedManifest struct {
	version int64
	info    objstore.Info
}

// maxReadManifests bounds how many superseded manifests are read to know their files. Where there are more, nothing that
// they may name goes before they all have.
const maxReadManifests = 32

// attach finds out what the store has, and whether that is this database's.
func (m *Mirror) attach(ctx context.Context, cut *Cut) error {
	found, catalog, err := m.list(ctx)
	if err != nil {
		return err
	}
	m.remotes = map[uint32]*remote{}
	if err := m.readCatalog(ctx, catalog); err != nil {
		return err
	}
	tables := map[uint32]*Table{}
	for _, t := range cut.Tables {
		tables[t.ID] = t
	}
	ids := make([]uint32, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r, err := m.attachTable(ctx, id, found[id], tables[id], cut)
		if err != nil {
			return err
		}
		m.remotes[id] = r
	}
	if catalog != nil {
		if err := m.checkCatalog(m.catalog.data, cut.Catalog); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.listed)
	for id, l := range found {
		for _, f := range l.files {
			m.listed[f.Key] = f.Size
			_, rel, _, _ := parseKey(f.Key)
			r := m.remotes[id]
			if _, named := r.live[rel]; named {
				continue
			}
			if _, named := r.dead[rel]; !named {
				r.unnamed[rel] = m.agoOf(f.ModTime)
			}
		}
	}
	return nil
}

// agoOf is a moment of the store's clock on ours, never one to come. What both clocks agree on counts: by the store's it
// is as old as the last thing that came to the store is younger, whatever our clock says.
func (m *Mirror) agoOf(t time.Time) time.Time {
	return time.Now().Add(-max(min(m.lastSeen.Sub(t), m.opt.Now().Sub(t)), 0))
}

// list lists all that the store has.
func (m *Mirror) list(ctx context.Context) (map[uint32]*listing, *objstore.Info, error) {
	found := map[uint32]*listing{}
	var catalog *objstore.Info
	m.lastSeen = time.Time{}
	err := m.eachObject(ctx, "", func(info objstore.Info) {
		if info.ModTime.After(m.lastSeen) {
			m.lastSeen = info.ModTime
		}
		if info.Key == catalogKey {
			catalog = &info
			return
		}
		id, _, kind, version := parseKey(info.Key)
		if kind != kindManifest && kind != kindData {
			return
		}
		l := found[id]
		if l == nil {
			l = &listing{}
			found[id] = l
		}
		if kind == kindManifest {
			l.manifests = append(l.manifests, listedManifest{version, info})
		} else {
			l.files = append(l.files, info)
		}
	})
	for _, l := range found {
		slices.SortFunc(l.manifests, func(a, b listedManifest) int { return int(a.version - b.version) })
	}
	return found, catalog, err
}

// eachObject is objstore.ListAll with a bound on the time of each page.
func (m *Mirror) eachObject(ctx context.Context, prefix string, fn func(info objstore.Info)) error {
	for after := ""; ; {
		page, err := m.listPage(ctx, prefix, after)
		if err != nil {
			return err
		}
		for _, info := range page {
			fn(info)
			after = info.Key
		}
		if len(page) < objstore.MaxList {
			return nil
		}
	}
}

func (m *Mirror) listPage(ctx context.Context, prefix, after string) ([]objstore.Info, error) {
	ctx, cancel := withPatience(ctx, 0)
	defer cancel()
	return m.store.List(ctx, prefix, after, objstore.MaxList)
}

// attachTable finds out what the store has of one table; t is nil where the database does not have it.
func (m *Mirror) attachTable(ctx context.Context, id uint32, l *listing, t *Table, cut *Cut) (*remote, error) {
	r := newRemote(id)
	if len(l.manifests) == 0 {
		return r, nil
	}
	newest := l.manifests[len(l.manifests)-1]
	if t == nil && (id == 0 || id >= cut.NextTable) {
		return nil, m.notOurs(newest.info.Key, "(version %d) is there, and this database has no such table", newest.version)
	}
	if t == nil {
		return r, m.attachDropped(ctx, r, l)
	}
	if newest.version > t.Manifest.Version {
		return nil, m.notOurs(newest.info.Key, "(version %d) is newer than version %d of this database", newest.version, t.Manifest.Version)
	}
	data, err := m.read(ctx, newest.info.Key, newest.info.Size)
	if err != nil {
		return nil, err
	}
	mf, err := m.recognise(r, t, newest.version, data)
	if err != nil {
		return nil, err
	}
	r.publishedBefore(mf)
	m.superseded(r, l)
	return r, m.readOld(ctx, r, l)
}

// attachDropped is attachTable for a table that was dropped here. At the store it may still be listed.
func (m *Mirror) attachDropped(ctx context.Context, r *remote, l *listing) error {
	newest := l.manifests[len(l.manifests)-1]
	m.superseded(r, l)
	if !m.catalog.lists(r.id) {
		r.newest, r.dropped = newest.version, m.agoOf(m.catalog.since)
		return nil
	}
	data, err := m.read(ctx, newest.info.Key, newest.info.Size)
	if err != nil {
		return err
	}
	mf, err := manifest.Decode(m.store.String()+": "+newest.info.Key, data)
	if err != nil {
		return err
	}
	r.publishedBefore(mf)
	return nil
}

// recognise returns the manifest in data, which the store has under a version, if this database put it.
func (m *Mirror) recognise(r *remote, t *Table, version int64, data []byte) (*manifest.Manifest, error) {
	key := r.manifestKey(version)
	ours, err := t.Dir.ManifestBytes(version)
	switch base.CodeOf(err) {
	case base.CodeOK:
		if !bytes.Equal(ours, data) {
			return nil, m.notOurs(key, "(version %d) is another manifest than this database's", version)
		}
	case base.CodeNotFound:
		if err := r.loadRecord(t.Dir); err != nil {
			return nil, err
		}
		if !r.record.to(m.store.String()).has(version, data) {
			return nil, m.notOurs(key, "(version %d) is not known to this database", version)
		}
	default:
		return nil, err
	}
	return manifest.Decode(m.store.String()+": "+key, data)
}

// superseded takes note of the older manifests of a listing.
func (m *Mirror) superseded(r *remote, l *listing) {
	for i := range l.manifests[:len(l.manifests)-1] {
		// It was superseded when the next one came.
		r.old = append(r.old, oldManifest{version: l.manifests[i].version, superseded: m.agoOf(l.manifests[i+1].info.ModTime)})
	}
}

// readOld reads the older manifests that are to be kept for a while, if they are few.
func (m *Mirror) readOld(ctx context.Context, r *remote, l *listing) error {
	var kept []listedManifest
	for i, o := range r.old {
		if time.Since(o.superseded) < m.opt.Retain {
			kept = append(kept, l.manifests[i])
		}
	}
	if len(kept) > maxReadManifests {
		return nil
	}
	for _, k := range kept {
		data, err := m.read(ctx, k.info.Key, k.info.Size)
		if base.CodeOf(err) == base.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		if mf, err := manifest.Decode(k.info.Key, data); err == nil { // else no file goes before it does
			r.learn(mf)
		}
	}
	return nil
}

// readCatalog reads the store's catalog.
func (m *Mirror) readCatalog(ctx context.Context, info *objstore.Info) error {
	m.catalog = catalogCopy{}
	if info == nil {
		return nil
	}
	data, err := m.read(ctx, info.Key, info.Size)
	if err != nil {
		return err
	}
	m.catalog = catalogCopy{data: data, since: info.ModTime}
	return nil
}

// checkCatalog refuses a catalog at the store that is not one of this database's, whose own is ours.
func (m *Mirror) checkCatalog(theirs, ours []byte) error {
	if bytes.Equal(theirs, ours) {
		return nil
	}
	if ours == nil {
		return m.notOurs(catalogKey, "is there, and this database has one table at most")
	}
	their, err := m.src.CatalogVersion(theirs)
	if err != nil {
		return m.notOurs(catalogKey, "is not a catalog: %v", err)
	}
	our, err := m.src.CatalogVersion(ours)
	if err != nil {
		return err
	}
	if their >= our {
		return m.notOurs(catalogKey, "(version %d) is another catalog than version %d of this database", their, our)
	}
	return nil
}
