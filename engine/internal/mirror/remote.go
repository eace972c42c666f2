package mirror

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
)

// remote is what is known of one table at the store: which manifests are there, and which files they name. As at home, a
// file comes with one version and goes with a later one for good, so the first and the last version that name it say it
// all.
type remote struct {
	id     uint32
	newest int64 // version, 0 where there is no manifest
	// name is that of the newest manifest, as nameOf has it.
	name string
	// old are the superseded manifests that are still there, ascending.
	old []oldManifest
	// live are the files that the newest manifest names, dead those that only older ones do, by path in the table.
	live map[string]span
	dead map[string]deadFile
	// unnamed are files that no manifest names, and since when that is known.
	unnamed map[string]time.Time
	// dropped is when the table went; zero where it is there.
	dropped time.Time
	// unsure says that a manifest was put, the version tried, of which nobody knows whether it came to be: nothing goes
	// that it may name.
	unsure   bool
	tried    int64
	lowWater int64

	record       record
	recordLoaded bool
}

type oldManifest struct {
	version    int64
	superseded time.Time // at the latest
	read       bool      // its files are known
}

// deadFile is a file that the newest manifest does not name, and since when.
type deadFile struct {
	span
	since time.Time
}

// span is a range of versions, both inclusive.
type span struct{ first, last int64 }

func newRemote(id uint32) *remote {
	return &remote{id: id, live: map[string]span{}, dead: map[string]deadFile{}, unnamed: map[string]time.Time{}}
}

func (r *remote) key(rel string) string { return tablePrefix(r.id) + rel }

func (r *remote) manifestKey(version int64) string { return r.key(manifestName(version)) }

// published takes note that a manifest is the newest one since a moment.
func (r *remote) published(mf *manifest.Manifest, now time.Time) {
	v := mf.Version
	_ = eachFile(mf, func(rel string, _ int64) error {
		s, known := r.live[rel]
		if !known {
			s.first = v
		}
		r.live[rel] = span{s.first, v}
		delete(r.unnamed, rel)
		return nil
	})
	for rel, s := range r.live {
		if s.last != v {
			r.dead[rel] = deadFile{s, now}
			delete(r.live, rel)
		}
	}
	r.supersede(now)
	r.newest, r.name, r.unsure = v, nameOf(mf), false
}

// publishedBefore takes note of the newest manifest that was found at the store.
func (r *remote) publishedBefore(mf *manifest.Manifest) { r.published(mf, time.Time{}) }

// nameOf returns the name of a table as it is compared, "" where there is none.
func nameOf(mf *manifest.Manifest) string {
	if mf.Schema == nil {
		return ""
	}
	return strings.ToLower(mf.Schema.TableName)
}

// supersede takes note that the newest manifest is an old one since a moment.
func (r *remote) supersede(now time.Time) {
	if r.newest > 0 {
		r.addOld(oldManifest{version: r.newest, superseded: now, read: true})
	}
}

// passed takes note of a manifest of ours between the newest and one that is to come.
func (r *remote) passed(version int64, now time.Time) {
	r.supersede(now)
	r.addOld(oldManifest{version: version, superseded: now})
}

// addOld adds an old manifest, unless it is known as one.
func (r *remote) addOld(o oldManifest) {
	i, known := slices.BinarySearchFunc(r.old, o.version, func(o oldManifest, v int64) int { return cmp.Compare(o.version, v) })
	if !known {
		r.old = slices.Insert(r.old, i, o)
	}
}

// learn takes note of the files of an old manifest.
func (r *remote) learn(mf *manifest.Manifest) {
	v := mf.Version
	i := slices.IndexFunc(r.old, func(o oldManifest) bool { return o.version == v })
	if i < 0 {
		return
	}
	r.old[i].read = true
	_ = eachFile(mf, func(rel string, _ int64) error {
		d := deadFile{span{v, v}, r.old[i].superseded}
		if s, ok := r.live[rel]; ok {
			r.live[rel] = span{min(s.first, v), s.last}
			return nil
		} else if s, ok := r.dead[rel]; ok {
			d.span = span{min(s.first, v), max(s.last, v)}
			if s.since.After(d.since) {
				d.since = s.since
			}
		}
		r.dead[rel] = d
		delete(r.unnamed, rel)
		return nil
	})
}

// empty reports whether the store has nothing of the table.
func (r *remote) empty() bool {
	return r.newest == 0 && r.dropped.IsZero() && !r.unsure && len(r.old) == 0 && len(r.dead) == 0 && len(r.unnamed) == 0
}

// complete reports whether the files of all manifests are known.
func (r *remote) complete() bool {
	return !slices.ContainsFunc(r.old, func(o oldManifest) bool { return !o.read })
}

// unneeded returns the files that are dead for so long and that no manifest names any more.
func (r *remote) unneeded(retain time.Duration) []string {
	var out []string
	for rel, s := range r.dead {
		if time.Since(s.since) < retain {
			continue
		}
		i, _ := slices.BinarySearchFunc(r.old, s.first, func(o oldManifest, v int64) int { return int(o.version - v) })
		if i == len(r.old) || r.old[i].version > s.last {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// forget takes note of manifests that were removed, given by their paths.
func (r *remote) forget(gone []string) {
	r.old = slices.DeleteFunc(r.old, func(o oldManifest) bool { return slices.Contains(gone, manifestName(o.version)) })
}
