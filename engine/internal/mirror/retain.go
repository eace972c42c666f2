package mirror

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Retention: a manifest goes when it was superseded longer than Retain ago, or is not among the newest maxKept; a file
// goes when no manifest that is there names it, nor a cut under way, and it has been so for Retain. Everything is known
// from memory: what is removed costs a request each, and nothing else does.

const (
	// maxKept bounds the superseded manifests of a table, so that one listing has them all.
	maxKept = 500
	// shortestPass is the least time between passes, so that a fast writer pays for few.
	shortestPass = time.Second
	longestPass  = 30 * time.Second
	// maxRemoved bounds what one pass removes, so that manifests do not wait for it.
	maxRemoved = 256
)

// passEvery is the time between passes.
func (m *Mirror) passEvery() time.Duration {
	return min(max(m.opt.Retain/10, shortestPass), longestPass)
}

// retention is one pass.
type retention struct {
	m         *Mirror
	protected func(id uint32, rel string) bool
	inUse     func(id uint32) bool // a cut has the table
	there     map[uint32][]string  // files at the store, as of the begin
	left      int                  // how much it may still remove
}

// thereNow returns the files that the store has, by table. It runs in the loop.
func (m *Mirror) thereNow() map[uint32][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[uint32][]string{}
	for _, set := range []map[string]int64{m.confirmed, m.listed, m.suspect} {
		for key := range set {
			id, rel, _, _ := parseKey(key)
			there[id] = append(there[id], rel)
		}
	}
	return there
}

// retain removes what nobody needs, and returns when there will be more.
func (m *Mirror) retain(ctx context.Context, p *retention) (next time.Time, err error) {
	p.left = maxRemoved
	for id := range p.there {
		if m.remotes[id] == nil { // files of a table that has no manifest there
			m.remotes[id] = newRemote(id)
		}
	}
	for id, r := range m.remotes {
		for _, rel := range p.there[id] {
			_, live := r.live[rel]
			_, dead := r.dead[rel]
			_, known := r.unnamed[rel]
			if !live && !dead && !known {
				r.unnamed[rel] = time.Now()
			}
		}
		if err := p.table(ctx, r); err != nil {
			return next, err
		}
		if r.empty() {
			delete(m.remotes, id)
		}
		if p.left <= 0 {
			return time.Now(), nil
		}
	}
	return m.nextRetention(), nil
}

func (p *retention) table(ctx context.Context, r *remote) error {
	m := p.m
	if !r.dropped.IsZero() && !m.catalog.unsure {
		if time.Since(r.dropped) >= m.opt.Retain && !m.catalog.lists(r.id) && !p.inUse(r.id) {
			return p.wholeTable(ctx, r)
		}
		return nil
	}
	if r.unsure || m.catalog.unsure {
		return nil
	}
	if err := p.manifests(ctx, r); err != nil {
		return err
	}
	if !r.complete() {
		return nil
	}
	gone, err := p.remove(ctx, r, r.unneeded(m.opt.Retain))
	for _, rel := range gone {
		delete(r.dead, rel)
	}
	if err != nil {
		return err
	}
	var garbage []string
	for rel, since := range r.unnamed {
		if time.Since(since) >= m.opt.Retain && !p.protected(r.id, rel) {
			garbage = append(garbage, rel)
		}
	}
	slices.Sort(garbage)
	gone, err = p.remove(ctx, r, garbage)
	for _, rel := range gone {
		delete(r.unnamed, rel)
	}
	return err
}

// due returns how many of the old manifests are to go, the oldest.
func (m *Mirror) due(r *remote) int {
	n := max(len(r.old)-maxKept, 0)
	for n < len(r.old) && time.Since(r.old[n].superseded) >= m.opt.Retain {
		n++
	}
	return n
}

// manifests removes those that are due, after it said so in the low-water mark.
func (p *retention) manifests(ctx context.Context, r *remote) error {
	m := p.m
	n := min(m.due(r), p.left)
	if n <= 0 {
		return nil
	}
	low := r.newest
	if n < len(r.old) {
		low = r.old[n].version
	}
	if low != r.lowWater {
		ctx, cancel := withPatience(ctx, 0)
		defer cancel()
		if _, err := m.store.Put(ctx, r.key(lowWaterName), objstore.Bytes([]byte(strconv.FormatInt(low, 10)))); err != nil {
			return err
		}
		r.lowWater = low
	}
	names := make([]string, n)
	for i := range names {
		names[i] = manifestName(r.old[i].version)
	}
	gone, err := p.remove(ctx, r, names)
	r.forget(gone)
	return err
}

// wholeTable removes all of a table that was dropped: the manifests, then the files.
func (p *retention) wholeTable(ctx context.Context, r *remote) error {
	r.supersede(time.Now())
	r.newest = 0
	if r.unsure {
		r.addOld(oldManifest{version: r.tried, superseded: time.Now()})
		r.unsure = false
	}
	names := []string{lowWaterName}
	for _, o := range r.old {
		names = append(names, manifestName(o.version))
	}
	gone, err := p.remove(ctx, r, names)
	r.forget(gone)
	if err != nil || len(gone) < len(names) {
		return err
	}
	files := p.there[r.id]
	slices.Sort(files)
	files = slices.Compact(files)
	gone, err = p.remove(ctx, r, files)
	if err == nil && len(gone) == len(files) {
		delete(p.m.remotes, r.id)
	}
	return err
}

// remove removes files of a table, as many as the pass may, side by side, and returns those that are gone.
func (p *retention) remove(ctx context.Context, r *remote, rels []string) (gone []string, err error) {
	m := p.m
	rels = rels[:min(len(rels), max(p.left, 0))]
	p.left -= len(rels)
	var failed atomic.Bool
	errs := base.Each(len(rels), m.opt.Parallelism, func(i int) error {
		if failed.Load() {
			return context.Canceled // the rest is tried later
		}
		ctx, cancel := withPatience(ctx, 0)
		defer cancel()
		err := m.store.Delete(ctx, r.key(rels[i]))
		if err != nil {
			failed.Store(true)
		}
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, rel := range rels {
		if errs[i] == nil {
			gone = append(gone, rel)
			delete(m.confirmed, r.key(rel))
			delete(m.listed, r.key(rel))
			delete(m.suspect, r.key(rel))
		} else if err == nil && errs[i] != context.Canceled { //nolint:errorlint // the mark of what was not tried
			err = errs[i]
		}
	}
	return gone, err
}

// nextRetention returns when there will be something to remove, zero where there is nothing.
func (m *Mirror) nextRetention() time.Time {
	var next time.Time
	crowded := false
	soonest := func(t time.Time) {
		if t = t.Add(m.opt.Retain); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, r := range m.remotes {
		if len(r.old) > 0 {
			soonest(r.old[0].superseded)
			crowded = crowded || len(r.old) > maxKept
		}
		if !r.dropped.IsZero() {
			soonest(r.dropped)
		}
		if !r.complete() || r.unsure {
			continue
		}
		for _, since := range r.unnamed {
			soonest(since)
		}
		for _, d := range r.dead {
			soonest(d.since)
		}
	}
	if crowded {
		return time.Now().Add(shortestPass)
	}
	if earliest := time.Now().Add(m.passEvery()); !next.IsZero() && next.Before(earliest) {
		next = earliest
	}
	return next
}
