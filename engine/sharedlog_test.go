package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestLogWithoutRowsOfATable: a table's memtable took writes during a log that has none of its rows. The log goes once the
// others' rows are in files; wherever the power is cut after a recovery, it is not missed.
func TestLogWithoutRowsOfATable(t *testing.T) {
	o := Options{MemtableBytes: minMemtableBytes, GCGrace: -1, NoAutoCompaction: true}
	put := func(db *DB, name string, id int64) {
		table := openTable(t, db, name)
		defer table.Free()
		_, err := table.Put(testRow(id, id))
		must(t, err)
	}
	want := map[string]model{"t": {1: 1}, "u": {2: 2, 3: 3}, "v": {4: 4}}
	for step := 1; ; step += unlessShort(1, 5) {
		mem := vfs.NewMem()
		fs := newFaultyFS(mem)
		db := openMem(t, fs, o)
		must(t, db.CreateTable(schemaOf("u")))
		must(t, db.CreateTable(schemaOf("v")))
		u := openTable(t, db, "u")
		put(db, "t", 1)
		for id := int64(2); id <= 3; id++ { // a log ends each time
			put(db, "u", id)
			must(t, u.c.flushAll())
		}
		u.Free()
		put(db, "v", 4)
		killed(db)

		cut := cutPower(fs, mem, step, rand.New(rand.NewPCG(uint64(step), 12)))
		again := o
		again.fs = fs
		if db, err := Open("/db", again); err == nil {
			for _, name := range []string{"t", "v"} {
				if table, err := db.OpenTable(name); err == nil {
					_ = table.c.flushAll() // fails once the power is gone
					table.Free()
				}
			}
			killed(db)
		}
		fs.set(nil)
		left := mem
		if cut.dead() {
			left = cut.disk()
		}
		again.fs = left
		db, err := Open("/db", again)
		if err != nil {
			t.Fatalf("power cut at operation %d: %v", step, err)
		}
		checkTables(t, db, want)
		db.Free()
		if !cut.dead() {
			return
		}
	}
}
