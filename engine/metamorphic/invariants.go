package metamorphic

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/merutable/merutable/engine"
)

// checkLevels finds files of one level that overlap: only those of level 0 may.
func checkLevels(files []engine.FileInfo) error {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b engine.FileInfo) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), bytes.Compare(a.KeyMin, b.KeyMin))
	})
	for i, f := range sorted {
		if bytes.Compare(f.KeyMin, f.KeyMax) > 0 || f.Deleted > f.Rows {
			return fmt.Errorf("%s: keys from %x to %x, %d of %d rows deleted", f.Path, f.KeyMin, f.KeyMax, f.Deleted, f.Rows)
		}
		if i == 0 || f.Level == 0 || sorted[i-1].Level != f.Level {
			continue
		}
		if before := sorted[i-1]; bytes.Compare(before.KeyMax, f.KeyMin) >= 0 {
			return fmt.Errorf("level %d: %s ends at %x, %s begins at %x", f.Level, before.Path, before.KeyMax, f.Path, f.KeyMin)
		}
	}
	return nil
}

// checkStats compares what the engine says about itself.
func (r *run) checkStats() error {
	st := r.db.Stats()
	switch {
	case st.Seq < r.seq || st.Version < r.version:
		return fmt.Errorf("stats: sequence number %d after %d, version %d after %d", st.Seq, r.seq, st.Version, r.version)
	case st.DeletedRows > st.FileRows || st.DeletedRows < 0 || st.DataBytes < 0 || st.ImmutableCount < 0:
		return fmt.Errorf("stats: %+v", st)
	case st.CacheBytes > st.CacheCapacity:
		return fmt.Errorf("stats: a cache of %d bytes has %d", st.CacheCapacity, st.CacheBytes)
	}
	r.seq, r.version = st.Seq, st.Version
	inFiles := st.MemtableEntries == 0 && st.ImmutableCount == 0
	if live := int64(len(r.current().live())); inFiles && r.maybe == nil && st.FileRows-st.DeletedRows != live {
		return fmt.Errorf("stats: %d rows in files, %d of them deleted, but %d live", st.FileRows, st.DeletedRows, live)
	}
	return nil
}
