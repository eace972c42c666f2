package mirror

import (
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// target is a cut with what the store lacks of it.
type target struct {
	cut   *Cut
	need  map[string]*object // not confirmed yet
	queue []*object          // what is to be sent, in order; some may be confirmed meanwhile

	once  sync.Once
	named map[string]struct{} // all files, by key
}

// object is a file on its way.
type object struct {
	key, rel string
	dir      TableDir
	size     int64
	// tries is how many times it failed.
	tries int
}

// newTarget finds out what the store lacks of a cut.
func (m *Mirror) newTarget(cut *Cut) (*target, error) {
	t := &target{cut: cut, need: map[string]*object{}}
	sizes, err := m.sizesOfListed(cut)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, table := range cut.Tables {
		prefix := tablePrefix(table.ID)
		err := eachFile(table.Manifest, func(rel string, size int64) error {
			key := prefix + rel
			if _, there := m.confirmed[key]; there || t.need[key] != nil {
				return nil
			}
			o := &object{key: key, rel: rel, dir: table.Dir, size: size}
			if has, there := m.listed[key]; there {
				if size == 0 {
					size = sizes[key]
				}
				if size != has {
					return m.notOurs(key, "has %d bytes: ours has %d", has, size)
				}
				delete(m.listed, key)
				m.confirmed[key] = has
				return nil
			}
			t.need[key] = o
			t.queue = append(t.queue, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// sizesOfListed returns, by key, the sizes of those files of a cut that the store had before and whose sizes no manifest
// says. It looks at files, and so runs without mu. Only what becomes confirmed or is removed leaves the listed objects
// meanwhile; none comes.
func (m *Mirror) sizesOfListed(cut *Cut) (map[string]int64, error) {
	var unknown []*object
	m.mu.Lock()
	for _, table := range cut.Tables {
		prefix := tablePrefix(table.ID)
		_ = eachFile(table.Manifest, func(rel string, size int64) error {
			if _, there := m.listed[prefix+rel]; there && size == 0 {
				unknown = append(unknown, &object{key: prefix + rel, rel: rel, dir: table.Dir})
			}
			return nil
		})
	}
	m.mu.Unlock()
	sizes := make(map[string]int64, len(unknown))
	for _, o := range unknown {
		f, err := o.dir.Open(o.rel)
		if err != nil {
			return nil, err
		}
		size, err := f.Size()
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		sizes[o.key] = size
	}
	return sizes, nil
}

// notOurs is the error about an object that this database did not put.
func (m *Mirror) notOurs(key, format string, args ...any) error {
	return base.Wrapf(base.CodeConflict, base.Errorf(base.CodeConflict, key+" "+format, args...),
		"the mirror's destination %s is in use by another database; nothing was overwritten", m.store)
}

// eachFile calls fn with the files that a manifest names, each once but for deletion vectors; the size of those is not
// known.
func eachFile(mf *manifest.Manifest, fn func(rel string, size int64) error) error {
	for _, f := range mf.Files {
		if err := fn(f.Path, f.Size); err != nil {
			return err
		}
		if f.DVPath != "" {
			if err := fn(f.DVPath, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick returns the next object to send that is not on its way, nil where there is none.
func (t *target) pick(inflight map[string]*object) *object {
	for len(t.queue) > 0 && t.need[t.queue[0].key] == nil {
		t.queue = t.queue[1:]
	}
	for _, o := range t.queue {
		if t.need[o.key] != nil && inflight[o.key] == nil {
			return o
		}
	}
	return nil
}

// waits reports whether there is something to send that is not on its way.
func (t *target) waits(inflight map[string]*object) bool { return t.pick(inflight) != nil }

// names reports whether the cut names a file.
func (t *target) names(id uint32, rel string) bool {
	t.once.Do(func() {
		t.named = map[string]struct{}{}
		for _, table := range t.cut.Tables {
			prefix := tablePrefix(table.ID)
			_ = eachFile(table.Manifest, func(rel string, _ int64) error {
				t.named[prefix+rel] = struct{}{}
				return nil
			})
		}
	})
	_, ok := t.named[tablePrefix(id)+rel]
	return ok
}
