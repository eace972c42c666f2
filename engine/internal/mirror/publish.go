package mirror

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// publish makes a cut, whose files the store has, what readers of the store see: the manifests, then the catalog. It
// returns when there will be something to remove.
func (m *Mirror) publish(ctx context.Context, cut *Cut) (time.Time, error) {
	var work []*Table
	there := map[uint32]bool{}
	for _, t := range cut.Tables {
		there[t.ID] = true
		r := m.remotes[t.ID]
		if r == nil {
			r = newRemote(t.ID)
			m.remotes[t.ID] = r
		}
		r.dropped = time.Time{}
		if r.newest != t.Manifest.Version {
			work = append(work, t)
		}
	}
	if err := m.putInOrder(ctx, cut, work); err != nil {
		return time.Time{}, err
	}
	for id, r := range m.remotes {
		// One that never had a manifest may be new: of a cut that is still being sent.
		if !there[id] && r.dropped.IsZero() && (r.newest > 0 || r.unsure) {
			r.dropped = time.Now()
		}
	}
	return m.nextRetention(), nil
}

// putInOrder puts manifests and the catalog so that readers never find two tables of one name: tables that the store's
// catalog does not list yet come first, for nobody sees them; a table that takes another's name comes after that one has
// given it up. Only where names go round in a circle, or a name changes hands from a dropped table while others come, a
// reader may meet one twice for a moment.
func (m *Mirror) putInOrder(ctx context.Context, cut *Cut, work []*Table) error {
	if unsure := m.catalog.unsure; unsure || m.catalog.late {
		if err := m.lookAtCatalog(ctx, cut.Catalog); err != nil {
			return err
		}
		m.catalog.late = unsure // what was put next is looked at once more
	}
	var unlisted, listed []*Table
	for _, t := range work {
		if t.ID == 0 || m.catalog.lists(t.ID) {
			listed = append(listed, t)
		} else {
			unlisted = append(unlisted, t)
		}
	}
	if err := m.putManifests(ctx, unlisted); err != nil {
		return err
	}
	renamed := slices.ContainsFunc(listed, func(t *Table) bool { return m.remotes[t.ID].name != nameOf(t.Manifest) })
	if !renamed {
		if err := m.putManifests(ctx, listed); err != nil {
			return err
		}
		return m.putCatalog(ctx, cut.Catalog)
	}
	for len(listed) > 0 {
		i := slices.IndexFunc(listed, func(t *Table) bool { return m.holder(t, cut) == nil })
		if i < 0 {
			// The holder is a table that was dropped, or they go round in a circle.
			if err := m.putCatalog(ctx, cut.Catalog); err != nil {
				return err
			}
			i = 0
		}
		if err := m.putManifests(ctx, listed[i:i+1]); err != nil {
			return err
		}
		listed = slices.Delete(listed, i, i+1)
	}
	return m.putCatalog(ctx, cut.Catalog)
}

// holder returns a table at the store that has the name which a table is to get, or may have it: of one that was dropped it
// may not be known what it was called last. nil: there is none.
func (m *Mirror) holder(t *Table, cut *Cut) *remote {
	name := nameOf(t.Manifest)
	for id, r := range m.remotes {
		if id == t.ID || id != 0 && !m.catalog.lists(id) {
			continue
		}
		dropped := !slices.ContainsFunc(cut.Tables, func(c *Table) bool { return c.ID == id })
		if r.name == name && name != "" || dropped && (r.name == "" || r.unsure) {
			return r
		}
	}
	return nil
}

// putManifests puts the manifests of different tables side by side.
func (m *Mirror) putManifests(ctx context.Context, tables []*Table) error {
	return firstError(base.Each(len(tables), m.opt.Parallelism, func(i int) error {
		return m.putManifest(ctx, m.remotes[tables[i].ID], tables[i])
	}))
}

// firstError returns the error that counts: a conflict ends the mirror, whatever else failed.
func firstError(errs []error) (first error) {
	for _, err := range errs {
		if base.CodeOf(err) == base.CodeConflict {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// putManifest puts the manifest of a table, unless it is there.
func (m *Mirror) putManifest(ctx context.Context, r *remote, t *Table) error {
	v := t.Manifest.Version
	data, err := t.Dir.ManifestBytes(v)
	if err != nil {
		return err
	}
	if v != r.newest+1 || v == 1 {
		if err := m.checkBetween(ctx, r, t); err != nil {
			return err
		}
	}
	if err := m.intend(r, t.Dir, v, data); err != nil {
		return err
	}
	key := r.manifestKey(v)
	r.unsure, r.tried = true, v
	if err := m.putBytes(ctx, key, data); err != nil {
		return err
	}
	r.published(t.Manifest, time.Now())
	m.update(func(s *Status) {
		s.ManifestsUploaded++
		s.LastSuccess = m.opt.Now()
	})
	return nil
}

// putBytes puts an object that is one of ours if it is there already, which its bytes say.
func (m *Mirror) putBytes(ctx context.Context, key string, data []byte) error {
	ctx, cancel := withPatience(ctx, int64(len(data)))
	defer cancel()
	_, err := m.store.PutIfAbsent(ctx, key, objstore.Bytes(data))
	if base.CodeOf(err) != base.CodeAlreadyExists {
		return err
	}
	theirs, err := objstore.ReadAll(ctx, m.store, key, base.MaxManifestBytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(theirs, data) {
		return m.notOurs(key, "is another manifest than this database's")
	}
	return nil
}

// checkBetween looks for manifests that came since the newest one that is known to be there: where versions are skipped,
// another database's may hide between them.
func (m *Mirror) checkBetween(ctx context.Context, r *remote, t *Table) error {
	var between []listedManifest
	err := m.eachObject(ctx, r.key(manifestPrefix), func(info objstore.Info) {
		if _, _, kind, v := parseKey(info.Key); kind == kindManifest && v > r.newest {
			between = append(between, listedManifest{v, info})
		}
	})
	if err != nil {
		return err
	}
	for _, b := range between {
		if b.version > t.Manifest.Version {
			return m.notOurs(b.info.Key, "(version %d) is newer than version %d of this database", b.version, t.Manifest.Version)
		}
		data, err := m.read(ctx, b.info.Key, b.info.Size)
		if err != nil {
			return err
		}
		if _, err := m.recognise(r, t, b.version, data); err != nil {
			return err
		}
		if b.version < t.Manifest.Version { // the answer to it was lost
			r.passed(b.version, time.Now())
		}
	}
	return nil
}

// putCatalog replaces the catalog, after a look at whether it is still the one that is known.
func (m *Mirror) putCatalog(ctx context.Context, data []byte) error {
	if data == nil || bytes.Equal(data, m.catalog.data) {
		return nil
	}
	if err := m.lookAtCatalog(ctx, data); err != nil {
		return err
	}
	if !bytes.Equal(m.catalog.data, data) {
		ctx, cancel := withPatience(ctx, int64(len(data)))
		defer cancel()
		m.catalog.unsure = true
		if _, err := m.store.Put(ctx, catalogKey, objstore.Bytes(data)); err != nil {
			return err
		}
		m.catalog = catalogCopy{data: data, late: m.catalog.late}
	}
	return nil
}

// lookAtCatalog reads the store's catalog, which must be the one that is known or an older one than ours: that of an
// answer that was lost.
func (m *Mirror) lookAtCatalog(ctx context.Context, ours []byte) error {
	ctx, cancel := withPatience(ctx, 0)
	defer cancel()
	theirs, err := objstore.ReadAll(ctx, m.store, catalogKey, base.MaxManifestBytes)
	switch {
	case base.CodeOf(err) == base.CodeNotFound:
		theirs = nil
	case err != nil:
		return err
	}
	if theirs != nil && !bytes.Equal(theirs, m.catalog.data) {
		if err := m.checkCatalog(theirs, ours); err != nil {
			return err
		}
	}
	m.catalog = catalogCopy{data: theirs, late: m.catalog.late}
	return nil
}
