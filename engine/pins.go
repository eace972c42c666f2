package engine

import (
	"io"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// Pins. As long as a state is alive its files must stay on disk. Within the writing process the collector asks for the
// states alive. A reader in another process holds a shared lock on the manifest that it reads from: it writes nothing,
// may lack the right to, and a reader that dies lets go. The writer removes a manifest only with an exclusive lock on
// it, and after it the files that it alone names. Where the file system has no locks the grace period alone protects
// readers.

// pinSet has the manifests of all states alive. A read-only core holds a lock for each, so it has as many descriptors
// as it has manifests in use.
type pinSet struct {
	mu  sync.Mutex
	set map[*manifest.Manifest]*pin
	// files are those that jobs need for longer than the rest of their state.
	files map[string]int
	// claimed is the version that the collector is about to remove, 0 where there is none.
	claimed int64
}

type pin struct {
	users int       // states, and refreshes under way
	lock  io.Closer // nil: none
}

// add counts one more state of m, which may be nil.
func (p *pinSet) add(m *manifest.Manifest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(m)
}

func (p *pinSet) addLocked(m *manifest.Manifest) {
	if p.set == nil {
		p.set = map[*manifest.Manifest]*pin{}
	}
	if p.set[m] == nil {
		p.set[m] = new(pin)
	}
	p.set[m].users++
}

// addOld is add for a manifest that no state may be using. False: the collector is just removing it. After true the
// caller asks, by lock, whether it is still there.
func (p *pinSet) addOld(m *manifest.Manifest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claimed == m.Version {
		return false
	}
	p.addLocked(m)
	return true
}

// claim keeps a version from being used anew until unclaim. False: it is in use.
func (p *pinSet) claim(version int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m := range p.set {
		if m != nil && m.Version == version {
			return false
		}
	}
	p.claimed = version
	return true
}

func (p *pinSet) unclaim() {
	p.mu.Lock()
	p.claimed = 0
	p.mu.Unlock()
}

// remove counts one state less, and reports whether it was the last one.
func (p *pinSet) remove(m *manifest.Manifest) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.set[m]
	if e.users--; e.users > 0 {
		return false
	}
	delete(p.set, m)
	e.unlock()
	return true
}

func (e *pin) unlock() {
	if e.lock != nil {
		_ = e.lock.Close() // nothing to do about it
		e.lock = nil
	}
}

// lock makes m one that the writer leaves alone, in whatever process; add comes before. CodeNotFound or CodeLocked: the
// writer removes it, or has.
func (p *pinSet) lock(store manifest.Store, m *manifest.Manifest) error {
	p.mu.Lock()
	locked := p.set[m].lock != nil
	p.mu.Unlock()
	if locked {
		return nil
	}
	l, err := store.Pin(m)
	if err != nil {
		if base.CodeOf(err) == base.CodeUnsupported {
			return nil
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.set[m]; e.lock == nil {
		e.lock = l
		return nil
	}
	_ = l.Close() // another goroutine was faster
	return nil
}

// lockAll locks what is alive, as far as it can: the writer gives its directory up, and another one may come.
func (p *pinSet) lockAll(store manifest.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m, e := range p.set {
		if m != nil && e.lock == nil {
			if l, err := store.Pin(m); err == nil {
				e.lock = l
			}
		}
	}
}

// unlockIdle gives the lock on m up if nothing but the core's own state uses it. The next refresh takes it again.
func (p *pinSet) unlockIdle(m *manifest.Manifest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.set[m]; e != nil && e.users == 1 {
		e.unlock()
	}
}

// holdFiles keeps files with their deletion vectors, which a state alive has, until releaseFiles.
func (p *pinSet) holdFiles(files []*liveFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[string]int{}
	}
	for _, f := range files {
		p.files[f.meta.Path]++
		p.files[f.meta.DVPath]++ // "" is no file's path
	}
}

func (p *pinSet) releaseFiles(files []*liveFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range files {
		for _, rel := range []string{f.meta.Path, f.meta.DVPath} {
			if p.files[rel]--; p.files[rel] == 0 {
				delete(p.files, rel)
			}
		}
	}
}

func (p *pinSet) holdsFile(rel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[rel] > 0
}

// versions returns the versions in use.
func (p *pinSet) versions() map[int64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[int64]bool, len(p.set))
	for m := range p.set {
		if m != nil {
			out[m.Version] = true
		}
	}
	return out
}
