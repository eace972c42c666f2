package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// largeRows is more than a quarter of the smallest memtable.
const largeRows = 6000

// writeVersion writes a version of all rows of three tables at once: many rows to the first, few to the others. The third
// one is created with it, if it is not there; a fourth one takes the place of that of the version before, which is dropped.
func writeVersion(db *DB, v int64) error {
	var writes []*Write
	var drops []droppedTable
	if old, err := db.OpenTable(fmt.Sprintf("x%d", v-1)); err == nil {
		defer old.Free()
		drops = append(drops, droppedTable{old.c, old.c.table})
	}
	for i, name := range []string{"t", "b", "c", fmt.Sprintf("x%d", v)} {
		var w *Write
		h, err := db.OpenTable(name)
		if err == nil {
			defer h.Free()
			w, err = h.NewWrite()
		} else {
			w, err = db.NewTableWrite(namedSchema(name), false)
		}
		if err != nil {
			return err
		}
		defer w.Close()
		n := int64(10)
		if i == 0 {
			n = largeRows
		}
		for id := range n {
			if err := w.Put(testRow(id, v)); err != nil {
				return err
			}
		}
		writes = append(writes, w)
	}
	_, err := db.c.commitTogether(writes, drops...)
	return err
}

// versionOf returns which version all tables show, 0 where there are no rows in any.
func versionOf(t testing.TB, db *DB) int64 {
	t.Helper()
	all, err := db.c.acquireAll()
	must(t, err)
	var found []int64
	rows := 0
	for _, s := range all {
		n := len(found)
		it, err := s.Scan(ScanOptions{})
		must(t, err)
		for _, r := range collect(t, it) {
			v := int64(math.Float64frombits(r[3].Lo))
			if len(found) == n || found[len(found)-1] != v {
				found = append(found, v)
			}
			rows++
		}
		s.Close()
	}
	switch {
	case rows == 0:
		return 0
	case len(all) != 4 || len(found) != 4 || rows != largeRows+30:
		t.Fatalf("%d rows, versions %v", rows, found)
	}
	for _, v := range found {
		if v != found[0] {
			t.Fatalf("the tables show the versions %v", found)
		}
	}
	return found[0]
}

// TestTogetherInCrashes: a commit over several tables, of which one takes a bulk load and one is created, has happened in
// all of them or in none after a power cut at any step; readers see it so before anybody opens the database to write.
func TestTogetherInCrashes(t *testing.T) {
	for before := range int64(2) { // the first version creates a table, the second one replaces rows
		crashTogether(t, before)
	}
}

func crashTogether(t *testing.T, before int64) {
	o := Options{MemtableBytes: minMemtableBytes, GCGrace: -1, NoAutoCompaction: true}
	seen := map[int64]int{}
	for step := 1; ; step += unlessShort(1, 9) {
		mem := vfs.NewMem()
		fs := newFaultyFS(mem)
		db := openMem(t, fs, o)
		must(t, db.CreateTable(namedSchema("b")))
		if before > 0 {
			must(t, writeVersion(db, before))
			_, err := db.Put(testRow(3, before)) // something in the log
			must(t, err)
		}
		cut := cutPower(fs, mem, step, rand.New(rand.NewPCG(uint64(step), 4)))
		err := writeVersion(db, before+1)
		fs.set(nil)
		killed(db)
		left := cut.disk()
		if left == nil {
			must(t, err)
			if step < 60 || seen[before] == 0 || !testing.Short() && seen[before+1] == 0 { // few steps are behind the commit
				t.Fatalf("%d steps, versions %v", step, seen)
			}
			return
		}
		reader := otherProcess(t, left)
		shown := versionOf(t, reader)
		reader.c.release()
		reader.c.drop()
		again := openMem(t, left, o)
		found := versionOf(t, again)
		if shown != before && shown != found || found != before && found != before+1 {
			t.Fatalf("step %d: a reader shows version %d, then there is %d", step, shown, found)
		}
		seen[found]++
		must(t, writeVersion(again, found+1))
		killed(again)
		again = openMem(t, left, o)
		if v := versionOf(t, again); v != found+1 {
			t.Fatalf("step %d: version %d after another commit, want %d", step, v, found+1)
		}
		must(t, again.Close())
		again.Free()
	}
}

// TestTogetherConflict: one part that fails its check takes all others with it, and leaves nothing.
func TestTogetherConflict(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: true})
	defer db.Free()
	must(t, db.CreateTable(namedSchema("b")))
	must(t, writeVersion(db, 1))
	b := openTable(t, db, "b")
	defer b.Free()
	old := mustSnapshot(t, b)
	_, err := b.Put(testRow(5, 1))
	must(t, err)
	w1, err := db.NewWrite()
	must(t, err)
	for id := range int64(largeRows) {
		must(t, w1.Put(testRow(id, 2)))
	}
	w2, err := b.NewWrite()
	must(t, err)
	must(t, w2.SetSnapshot(old))
	must(t, w2.Put(testRow(5, 2)))
	_, err = db.c.commitTogether([]*Write{w1, w2})
	wantCode(t, err, CodeConflict)
	if v := versionOf(t, db); v != 1 {
		t.Fatalf("version %d", v)
	}
	names, err := fs.List("/db/metadata")
	must(t, err)
	for _, n := range names {
		if len(n) > 30 {
			t.Fatalf("%s is left", n)
		}
	}
	must(t, writeVersion(db, 2))
	if v := versionOf(t, db); v != 2 {
		t.Fatalf("version %d", v)
	}
}
