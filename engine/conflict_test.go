package engine

import (
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestConflicts: a change made from a snapshot fails exactly where one of its keys was changed since, wherever the newer
// version is by now, and however large the change is.
func TestConflicts(t *testing.T) {
	type step func(t *testing.T, db *DB)
	put := func(id int64) step {
		return func(t *testing.T, db *DB) { _, err := db.Put(testRow(id, 77)); must(t, err) }
	}
	del := func(id int64) step {
		return func(t *testing.T, db *DB) { _, err := db.Delete(testKey(id)); must(t, err) }
	}
	flush := func(t *testing.T, db *DB) { must(t, db.Flush()) }
	compact := func(t *testing.T, db *DB) { must(t, db.Compact()) }
	load := func(t *testing.T, db *DB) { _, err := loadRows(db, 30_000, nil); must(t, err) }
	for _, c := range []struct {
		name     string
		between  []step
		conflict bool
	}{
		{"nothing", nil, false},
		{"flush alone", []step{flush}, false},
		{"another key", []step{put(500_000), flush, put(500_001)}, false},
		{"put in memory", []step{put(3)}, true},
		{"delete in memory", []step{del(3)}, true},
		{"put in a file", []step{put(3), flush}, true},
		{"delete in a file", []step{put(9), del(3), flush, put(500_000)}, true},
		{"delete, compacted", []step{del(3), flush, compact}, true},
		{"delete, compacted with other changes", []step{put(9), del(3), put(11), flush, compact, put(12), flush}, true},
		{"delete of another key, compacted", []step{del(5), put(9), flush, compact, del(8)}, false},
		{"a key that came and went", []step{put(600_000), flush, del(600_000), flush, compact}, false},
		{"delete and put, compacted", []step{del(3), flush, put(3), flush, compact}, true},
		{"compaction alone", []step{flush, compact}, false},
		{"load", []step{load}, true},
	} {
		for _, large := range []bool{false, true} {
			name := c.name
			if large {
				name += ", large"
			}
			t.Run(name, func(t *testing.T) {
				db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
				defer db.Free()
				for id := range int64(10) {
					_, err := db.Put(testRow(id, id))
					must(t, err)
				}
				s, err := db.Snapshot()
				must(t, err)
				defer s.Close()
				w, err := db.NewWrite()
				must(t, err)
				defer w.Close()
				must(t, w.SetSnapshot(s))
				must(t, w.Delete(testKey(3)))
				must(t, w.Put(testRow(4, 99)))
				if large {
					for id := range int64(20_000) {
						must(t, w.Put(testRow(600_000+id, id)))
					}
				}
				for _, b := range c.between {
					b(t, db)
				}
				_, err = w.Commit()
				if c.conflict {
					wantCode(t, err, CodeConflict)
				} else {
					must(t, err)
				}
				_, found, err := db.Get(testKey(600_000))
				must(t, err)
				if found != (large && !c.conflict) {
					t.Fatalf("a row of the change is there: %v", found)
				}
			})
		}
	}
}
