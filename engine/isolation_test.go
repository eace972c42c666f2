package engine

import (
	"fmt"
	"maps"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// placements are what may happen to rows after a write.
var placements = []struct {
	name string
	do   func(db *DB) error
}{
	{"memory", func(*DB) error { return nil }},
	{"level 0", (*DB).Flush},
	{"compacted", func(db *DB) error {
		if err := db.Flush(); err != nil {
			return err
		}
		return db.Compact()
	}},
}

// TestIsolation: a snapshot shows what was committed before it, wherever the rows of before and after lie: nothing of a
// change under way, however large, and nothing that was committed later.
func TestIsolation(t *testing.T) {
	for _, before := range placements {
		for _, after := range placements {
			t.Run(before.name+", "+after.name, func(t *testing.T) { testIsolation(t, before.do, after.do) })
		}
	}
}

func testIsolation(t *testing.T, before, after func(db *DB) error) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, GCGrace: -1, RetainVersions: 1})
	defer db.Free()
	m := model{}
	for id := range int64(100) {
		_, err := db.Put(testRow(id, id))
		must(t, err)
		m[id] = id
	}
	must(t, before(db))
	a, err := db.Snapshot()
	must(t, err)
	defer a.Close()

	batch, err := db.NewWrite() // stays in its buffer
	must(t, err)
	defer batch.Close()
	must(t, batch.Put(testRow(1, 1000)))
	load, err := db.NewWrite() // has written files by now
	must(t, err)
	defer load.Close()
	for id := range int64(30_000) {
		must(t, load.Put(testRow(id, id+1)))
	}
	check(t, db, m)

	next := maps.Clone(m)
	b, err := db.NewWrite()
	must(t, err)
	for id := int64(95); id < 110; id++ {
		must(t, b.Put(testRow(id, id+500)))
		next[id] = id + 500
	}
	for id := int64(10); id < 20; id++ {
		must(t, b.Delete(testKey(id)))
		delete(next, id)
	}
	_, err = b.Commit()
	must(t, err)
	must(t, after(db))
	checkSnapshot(t, a, m)
	check(t, db, next)
	a.Close()
	check(t, db, next)
}

// TestLostUpdate: of two changes that were decided on in one snapshot and write the same key, the second one fails, and
// so does one of a key that was deleted meanwhile: whatever flushes and compactions made of the first.
func TestLostUpdate(t *testing.T) {
	for _, p := range placements {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted: %v", p.name, deleted), func(t *testing.T) {
				db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, GCGrace: -1, RetainVersions: 1})
				defer db.Free()
				for id := range int64(100) {
					_, err := db.Put(testRow(id, id))
					must(t, err)
				}
				must(t, p.do(db))
				s, err := db.Snapshot()
				must(t, err)
				defer s.Close()
				if deleted {
					_, err = db.Delete(testKey(7))
				} else {
					_, err = db.Put(testRow(7, 70))
				}
				must(t, err)
				must(t, p.do(db))
				wantCode(t, putFrom(db, s, 7), CodeConflict)
				must(t, putFrom(db, s, 8))
				must(t, p.do(db))
				wantCode(t, putFrom(db, s, 8), CodeConflict)
				wantCode(t, putFrom(db, s, 6, 7), CodeConflict)
				must(t, putFrom(db, s, 6))
			})
		}
	}
}

// putFrom changes rows on the strength of a snapshot.
func putFrom(db *DB, s *Snapshot, ids ...int64) error {
	w, err := db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.SetSnapshot(s); err != nil {
		return err
	}
	for _, id := range ids {
		if err := w.Put(testRow(id, 1000)); err != nil {
			return err
		}
	}
	_, err = w.Commit()
	return err
}
