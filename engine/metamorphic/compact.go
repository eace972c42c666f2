package metamorphic

import (
	"fmt"
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// compact runs the maintenance that moves rows between files and removes files.
func (r *run) compact(op Op, rng *rand.Rand) error {
	switch op.Kind {
	case OpCompact:
		return r.maintain(r.db.Compact)
	case OpCompactRange:
		return r.maintain(func() error { return r.db.CompactRange(compactRange(r.keys, rng)) })
	}
	report, err := r.db.CollectGarbage(op.N == 0)
	if !r.current().hasTable && engine.CodeOf(err) == engine.CodeNotFound {
		return nil
	}
	r.saw("files collected", report.Files)
	return err
}

// compactRange makes a range of keys, sometimes an empty one.
func compactRange(keys int64, rng *rand.Rand) (o engine.CompactOptions) {
	if rng.IntN(4) > 0 {
		o.Lower = keyOf(rng.Int64N(keys))[:1+rng.IntN(2)]
	}
	if rng.IntN(4) > 0 {
		o.Upper = keyOf(rng.Int64N(keys))[:1+rng.IntN(2)]
	}
	return o
}

// maintainOnce does one thing of what must not change any answer.
func maintainOnce(db *engine.DB, rng *rand.Rand) error {
	switch rng.IntN(8) {
	case 0:
		return db.Compact()
	case 1:
		return db.CompactRange(compactRange(firstBlock+blockRows, rng))
	case 2:
		_, err := db.CollectGarbage(rng.IntN(2) == 0)
		return err
	}
	return db.Flush()
}

// checkGarbage opens the database with nothing held and nothing going on, and looks for files that nobody will ever
// remove.
func (r *run) checkGarbage() error {
	r.disk.setCut(0, nil)
	r.releaseAll()
	r.config.Options.NoAutoCompaction = true
	reopen := func() error { return r.reopen(true) }
	if r.disk.afterCut() != nil { // in the background, just now
		reopen = r.recover
	}
	if err := reopen(); err != nil {
		return err
	}
	if !r.current().hasTable {
		return nil
	}
	if _, err := r.db.CollectGarbage(false); err != nil {
		return err
	}
	store := manifest.NewFSStore(r.disk.mem, dir)
	versions, err := store.Versions()
	if err != nil {
		return err
	}
	if most := r.config.Options.RetainVersions + 1; r.config.Options.GCGrace < 0 && len(versions) > most {
		return fmt.Errorf("manifests %v are kept, more than %d", versions, most)
	}
	named := map[string]bool{}
	for _, v := range versions {
		m, err := store.At(v)
		if err != nil {
			return err
		}
		for _, f := range m.Files {
			named[dir+"/"+f.Path], named[dir+"/"+f.DVPath] = true, true
		}
	}
	files, err := r.disk.dataFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		if !named[f] {
			return fmt.Errorf("no manifest of %v names %s, but it is still there", versions, f)
		}
		delete(named, f)
	}
	delete(named, dir+"/")
	for f := range named {
		return fmt.Errorf("a manifest of %v names %s, which is not there", versions, f)
	}
	return nil
}
