package engine

import (
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// What the change feed reads. The state at since is known from the base: a kept version that holds nothing newer. What
// changed then is in the files that flushes and loads committed after that version, tombstones and superseded rows
// included, and in memory; compactions make other files of the same rows, and are passed over. The versions from the
// base to the newest must all be kept, or a file that came and went between them would be missed.
//
// As long as no compaction has dropped anything since the table was created, the files of the oldest version hold a
// trace of everything: then there is a base for any since, with no rows in it.

// changePlan is what one feed reads. It holds the states until close.
type changePlan struct {
	c            *core
	now          *Snapshot
	table        *table
	since, until base.Seq
	// base is the state as of baseSeq, nil where that is the empty table.
	base    *readState
	baseSeq base.Seq
	files   []changeFile
	states  []*readState
}

// changeFile is a file whose rows are versions that the feed may need.
type changeFile struct {
	*liveFile
	// superseded are rows that were dead from the start because the same commit brought a newer one of their key; rows
	// that record a deletion are marked too, and count.
	superseded *roaring.Bitmap
}

// maxChangeStates bounds how many versions a feed holds at a time.
const maxChangeStates = 256

func (p *changePlan) close() {
	for _, s := range p.states {
		s.unref()
	}
	p.states = nil
	p.now.Close()
}

// planChanges finds what a feed from since to until reads. until 0 means what is visible now.
func (c *core) planChanges(since, until base.Seq) (*changePlan, error) {
	const attempts = 5
	for range attempts {
		p, err := c.tryPlanChanges(since, until)
		if err != nil || p != nil {
			return p, err
		}
	}
	return nil, base.Errorf(base.CodeTimeout, "%s: versions were removed %d times while their changes were looked for", c.dir, attempts)
}

// tryPlanChanges returns nil where a version that is needed was removed meanwhile.
func (c *core) tryPlanChanges(since, until base.Seq) (_ *changePlan, err error) {
	now, err := c.acquire()
	if err != nil {
		return nil, err
	}
	if until == 0 || until > now.seq {
		until = now.seq
	}
	p := &changePlan{c: c, now: now, table: now.state.table, since: since, until: until}
	done := false
	defer func() {
		if !done {
			p.close()
		}
	}()
	cur := now.state.manifest
	if since < cur.FlushedSeq && since < until {
		ok, err := p.planFiles(cur)
		if err != nil || !ok {
			return nil, err
		}
	} else {
		p.useBase(cur)
	}
	done = true
	return p, nil
}

// useBase makes a pinned version the base.
func (p *changePlan) useBase(m *manifest.Manifest) {
	p.base, p.baseSeq = p.hold(m), m.FlushedSeq
}

// hold makes a state of a pinned version, read by the schema of today.
func (p *changePlan) hold(m *manifest.Manifest) *readState {
	s := p.c.newState(p.now.state, m, p.table, nil)
	p.states = append(p.states, s)
	return s
}

// planFiles finds base and files where something that changed is in files. ok is false where a version that is needed is
// gone.
func (p *changePlan) planFiles(cur *manifest.Manifest) (ok bool, err error) {
	kept, err := p.history(cur)
	if err != nil {
		return false, err
	}
	from, err := p.findBase(cur, kept)
	if err != nil || from == nil {
		return false, err
	}
	if from.FlushedSeq > p.since && from.DroppedSeq > 0 {
		return false, base.Errorf(base.CodeInvalidArgument,
			"the changes since %d of table %q are not kept any more: the oldest possible since is %d (options retain_secs and retain_versions say how long they are kept)",
			p.since, p.table.schema.TableName, from.FlushedSeq)
	}
	if ok, err := p.c.pinOld(from); err != nil || !ok {
		return false, err
	}
	defer p.c.unpin(from)
	return p.collect(from, cur)
}

// history returns the versions that are kept without a gap up to the current one.
func (p *changePlan) history(cur *manifest.Manifest) ([]int64, error) {
	versions, err := p.c.store.Versions()
	if err != nil {
		return nil, err
	}
	end := sort.Search(len(versions), func(i int) bool { return versions[i] > cur.Version })
	if end == 0 || versions[end-1] != cur.Version {
		return []int64{cur.Version}, nil
	}
	at := end - 1
	for at > 0 && versions[at-1] == versions[at]-1 {
		at--
	}
	return versions[at:end], nil
}

// findBase returns the newest of the versions that holds nothing newer than since, else the oldest of the table; nil
// where they are gone.
func (p *changePlan) findBase(cur *manifest.Manifest, versions []int64) (*manifest.Manifest, error) {
	read := func(v int64) (*manifest.Manifest, error) {
		if v == cur.Version {
			return cur, nil
		}
		m, err := p.c.store.At(v)
		if base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
		return m, err
	}
	// Versions of another table stand at the beginning, if there are any.
	own, from := 0, len(versions)-1
	for own < from {
		mid := (own + from) / 2
		m, err := read(versions[mid])
		if err != nil {
			return nil, err
		}
		if m != nil && !m.Dropped && m.TableUUID == cur.TableUUID {
			from = mid
		} else {
			own = mid + 1
		}
	}
	var best *manifest.Manifest
	lo, hi := own, len(versions)
	for lo < hi {
		mid := (lo + hi) / 2
		m, err := read(versions[mid])
		if err != nil || m == nil {
			return nil, err
		}
		if m.FlushedSeq <= p.since {
			best, lo = m, mid+1
		} else {
			hi = mid
		}
	}
	if best == nil {
		return read(versions[own])
	}
	return best, nil
}

// collect takes the files of a base and of the versions after it, up to the current one.
func (p *changePlan) collect(from, cur *manifest.Manifest) (ok bool, err error) {
	prev := from
	var waiting []*manifest.File // of files that no state holds yet
	known := map[string]bool{}
	for _, f := range from.Files {
		known[f.Path] = true
	}
	if from.FlushedSeq <= p.since {
		p.useBase(from)
	} else {
		waiting = append(waiting, from.Files...)
	}
	for prev.Version < cur.Version && (prev.FlushedSeq < p.until || prev == from) {
		next := cur
		if prev.Version+1 < cur.Version {
			next, err = p.c.store.At(prev.Version + 1)
			if base.CodeOf(err) == base.CodeNotFound {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		names := make(map[string]bool, len(next.Files))
		for _, f := range next.Files {
			names[f.Path] = true
		}
		if lost(prev, names) {
			if next.Properties[manifest.PropJob] != "compact" {
				return false, base.Errorf(base.CodeInvalidArgument,
					"the changes since %d of table %q are not known: version %d (%s) dropped rows without a trace, the oldest possible since is %d",
					p.since, p.table.schema.TableName, next.Version, next.Properties[manifest.PropJob], next.FlushedSeq)
			}
			if ok, err := p.cover(prev, &waiting, false); err != nil || !ok {
				return ok, err
			}
		}
		if next.Properties[manifest.PropJob] != "compact" {
			doubled := false
			for _, f := range next.Files {
				if !known[f.Path] {
					waiting = append(waiting, f)
					doubled = doubled || f.SeqInherited && f.Deleted > 0
				}
			}
			if doubled { // only this version tells which of two rows of one load counts
				if ok, err := p.cover(next, &waiting, true); err != nil || !ok {
					return ok, err
				}
			}
		}
		known, prev = names, next
	}
	return p.cover(prev, &waiting, false)
}

// lost reports whether a file of a version is not among the names of the next one.
func lost(m *manifest.Manifest, names map[string]bool) bool {
	for _, f := range m.Files {
		if !names[f.Path] {
			return true
		}
	}
	return false
}

// cover holds a version that names all the files waiting. loaded says that it is the one that brought those of a load. ok
// is false where it is gone.
func (p *changePlan) cover(m *manifest.Manifest, waiting *[]*manifest.File, loaded bool) (ok bool, err error) {
	var wanted []*manifest.File
	for _, f := range *waiting {
		if f.SeqMax > p.baseSeq && f.SeqMin <= p.until {
			wanted = append(wanted, f)
		}
	}
	*waiting = nil
	if len(wanted) == 0 {
		return true, nil
	}
	if len(p.states) >= maxChangeStates {
		return false, base.Errorf(base.CodeInvalidArgument,
			"the changes since %d of table %q are in the files of more than %d versions: ask for fewer at a time, with until",
			p.since, p.table.schema.TableName, maxChangeStates)
	}
	if ok, err := p.c.pinOld(m); err != nil || !ok {
		return false, err
	}
	defer p.c.unpin(m)
	s := p.hold(m)
	byPath := map[string]*liveFile{}
	for _, f := range s.files {
		byPath[f.rel] = f
	}
	for _, meta := range wanted {
		f := changeFile{liveFile: byPath[meta.Path]}
		if loaded && meta.SeqInherited {
			if f.superseded, err = f.deleted(p.c.dir); err != nil {
				return false, err
			}
		}
		p.files = append(p.files, f)
	}
	return true, nil
}
