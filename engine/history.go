package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
)

// fileHistory is what the collector knows about the manifests on disk and the files that they name. A file comes with
// one commit and goes with a later one for good, so the versions that name it have no gap: the first and the last one
// say it all, and a commit costs no more than finding what came and what went.
//
// Its lock is held for moments only, never across I/O.
type fileHistory struct {
	mu sync.Mutex
	// newest is the version of the newest manifest, live the files that it names: from the oldest version known to, to
	// the newest.
	newest int64
	live   map[string]versionSpan
	// dead are the files that only older manifests name.
	dead map[string]versionSpan
	// old are the superseded manifests that are still there, ascending.
	old []*oldManifest
}

// versionSpan is a range of versions, both inclusive.
type versionSpan struct{ first, last int64 }

type oldManifest struct {
	version    int64
	superseded time.Time // at the latest
	// read says that its files are in live and dead. As long as that is not so for one of them, no file can be given
	// up.
	read bool
}

// paths calls fn with each file of m; some come several times.
func paths(m *manifest.Manifest, fn func(rel string)) {
	for _, f := range m.Files {
		fn(f.Path)
		if f.DVPath != "" {
			fn(f.DVPath)
		}
	}
}

// committed takes note of the newest manifest, which supersedes prev (nil for the first one, and when the database was
// just opened) at a point in time.
func (h *fileHistory) committed(prev, next *manifest.Manifest, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live = map[string]versionSpan{}
	}
	v := next.Version
	paths(next, func(rel string) {
		s, known := h.live[rel]
		if !known {
			s.first = v
		}
		h.live[rel] = versionSpan{s.first, v}
	})
	for rel, s := range h.live {
		if s.last != v {
			h.setDead(rel, s)
			delete(h.live, rel)
		}
	}
	h.newest = v
	if prev != nil { // versions between were given up, and are what prev is
		for old := prev.Version; old < v; old++ {
			h.old = append(h.old, &oldManifest{version: old, superseded: now, read: true})
		}
	}
}

func (h *fileHistory) setDead(rel string, s versionSpan) {
	if h.dead == nil {
		h.dead = map[string]versionSpan{}
	}
	h.dead[rel] = s
}

// add takes note of manifests from before the database was opened, ascending. The files of those that were read follow
// by learn.
func (h *fileHistory) add(older []*oldManifest) {
	h.mu.Lock()
	h.old = append(older, h.old...)
	h.mu.Unlock()
}

// learn takes note of the files of an old manifest.
func (h *fileHistory) learn(m *manifest.Manifest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := m.Version
	paths(m, func(rel string) {
		if s, ok := h.live[rel]; ok {
			h.live[rel] = versionSpan{min(s.first, v), s.last}
		} else if s, ok := h.dead[rel]; ok {
			h.dead[rel] = versionSpan{min(s.first, v), max(s.last, v)}
		} else {
			h.setDead(rel, versionSpan{v, v})
		}
	})
	for _, o := range h.old {
		if o.version == v {
			o.read = true
		}
	}
}

// due returns the manifests whose time has come: they are not among the newest retain superseded ones, were superseded
// at least keep ago, and inUse has not got them; with inOrder, nor any that is older. wait is after how long there will be
// more, negative where no time brings any.
func (h *fileHistory) due(
	now time.Time, keep time.Duration, retain int, inOrder bool, inUse func() map[int64]bool,
) (due []oldManifest, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Asked for only now: a superseded manifest that no state uses at this moment will not be used again.
	used := inUse()
	wait = -1
	for i, o := range h.old {
		if len(h.old)-i <= retain {
			break
		}
		if left := keep - now.Sub(o.superseded); keep > 0 && left > 0 {
			if wait < 0 || left < wait {
				wait = left
			}
			if inOrder {
				break
			}
		} else if !used[o.version] {
			due = append(due, *o)
		} else if inOrder {
			break
		}
	}
	return due, wait
}

// forget takes manifests out that were removed.
func (h *fileHistory) forget(gone map[int64]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.old[:0:0]
	for _, o := range h.old {
		if !gone[o.version] {
			kept = append(kept, o)
		}
	}
	h.old = kept
}

// unneeded returns the dead files that no manifest names but those in gone.
func (h *fileHistory) unneeded(gone map[int64]bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept []int64
	for _, o := range h.old {
		if gone[o.version] {
			continue
		}
		if !o.read {
			return nil
		}
		kept = append(kept, o.version)
	}
	var out []string
	for rel, s := range h.dead {
		if !anyWithin(kept, s) {
			out = append(out, rel)
		}
	}
	return out
}

// anyWithin reports whether one of the ascending versions lies in s.
func anyWithin(versions []int64, s versionSpan) bool {
	i, _ := slices.BinarySearch(versions, s.first)
	return i < len(versions) && versions[i] <= s.last
}

// bury takes a file out that is gone.
func (h *fileHistory) bury(rel string) {
	h.mu.Lock()
	delete(h.dead, rel)
	h.mu.Unlock()
}

// complete reports whether all files are known that any manifest on disk names.
func (h *fileHistory) complete() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.old {
		if !o.read {
			return false
		}
	}
	return true
}

// named reports whether a manifest names a file, or did and the file is not gone yet.
func (h *fileHistory) named(rel string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, live := h.live[rel]
	_, dead := h.dead[rel]
	return live || dead
}

// kept returns how many manifests there are besides gone, and the oldest of them.
func (h *fileHistory) kept(gone map[int64]bool) (n int, oldest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest = h.newest
	if h.newest > 0 {
		n = 1
	}
	for _, o := range h.old {
		if !gone[o.version] {
			n++
			oldest = min(oldest, o.version)
		}
	}
	return n, oldest
}

// waiting returns how many dead files are still there.
func (h *fileHistory) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.dead)
}
