package engine

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// createLoad creates a table with n rows in one write.
func createLoad(db *DB, s *Schema, n int64, replace bool) (model, error) {
	w, err := db.NewTableWrite(s, replace)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	m := model{}
	for i := range n {
		id := i * 7919 % max(n, 1)
		if err := w.Put(testRow(id, i)); err != nil {
			return nil, err
		}
		m[id] = i
	}
	_, err = w.Commit()
	return m, err
}

// TestTableWrite: a table comes with its rows, none and many, in the place of an older one too.
func TestTableWrite(t *testing.T) {
	fs := vfs.NewMem()
	o := spillOptions()
	o.fs = fs
	reopen := func(db *DB) *DB {
		t.Helper()
		if db != nil {
			db.Free()
		}
		db, err := Open("/db", o)
		must(t, err)
		return db
	}
	db := reopen(nil)
	// Given up: there is no table, and the directory can be opened.
	w, err := db.NewTableWrite(testSchema(), false)
	must(t, err)
	for id := range int64(5000) {
		must(t, w.Put(testRow(id, id)))
	}
	w.Close()
	if db.HasTable() {
		t.Fatal("a write that was given up left a table")
	}
	if db = reopen(db); db.HasTable() {
		t.Fatal("a write that was given up left a table")
	}
	for _, n := range []int64{0, 1, 9000} {
		m, err := createLoad(db, testSchema(), n, true)
		must(t, err)
		check(t, db, m)
		db = reopen(db)
		check(t, db, m)
		for id := range int64(50) { // rows in memory and in files go with the table
			_, err := db.Put(testRow(id, -5))
			must(t, err)
			m[id] = -5
			if id == 20 {
				must(t, db.Flush())
			}
		}
		check(t, db, m)
	}
	_, err = createLoad(db, testSchema(), 1, false)
	wantCode(t, err, CodeAlreadyExists)
	held := mustSnapshot(t, db)
	defer held.Close()
	rows := held.LiveRows()
	m, err := createLoad(db, testSchema(), 500, true)
	must(t, err)
	check(t, db, m)
	if held.LiveRows() != rows {
		t.Fatal("a snapshot of the table that was replaced changed")
	}
	_, err = db.Put(testRow(1, 99))
	must(t, err)
	m[1] = 99
	db = reopen(db)
	check(t, db, m)
	db.Free()
}

// TestTableWriteConflict: of two writes that create the table one wins, and writes to a table that was replaced fail.
func TestTableWriteConflict(t *testing.T) {
	db, err := Open("/db", Options{fs: vfs.NewMem()})
	must(t, err)
	defer db.Free()
	a, err := db.NewTableWrite(testSchema(), false)
	must(t, err)
	defer a.Close()
	b, err := db.NewTableWrite(testSchema(), true)
	must(t, err)
	defer b.Close()
	must(t, a.Put(testRow(1, 1)))
	must(t, b.Put(testRow(2, 2)))
	_, err = a.Commit()
	must(t, err)
	_, err = b.Commit()
	wantCode(t, err, CodeConflict)
	check(t, db, model{1: 1})
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	must(t, w.Put(testRow(3, 3)))
	m, err := createLoad(db, testSchema(), 10, true)
	must(t, err)
	_, err = w.Commit()
	wantCode(t, err, CodeConflict)
	check(t, db, m)
}

// TestTableWriteCrash cuts the power at each operation of a write that creates a table, where there is none and where
// there is one: the old state is there afterwards, or the new one.
func TestTableWriteCrash(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		run := func(at int) (n int) {
			mem := vfs.NewMem()
			fs := vfs.NewCountingFS(mem)
			o := spillOptions()
			o.fs = fs
			db, err := Open("/db", o)
			must(t, err)
			var before model
			if replaces {
				before, err = createLoad(db, testSchema(), 20, false)
				must(t, err)
				_, err = db.Put(testRow(100, 100))
				must(t, err)
				before[100] = 100
			}
			var clone *vfs.MemFS
			var mu sync.Mutex
			fs.SetHook(func(vfs.Op, string) {
				mu.Lock()
				defer mu.Unlock()
				if n == at {
					clone = mem.CrashClone(rand.New(rand.NewPCG(uint64(at), 4)))
				}
				n++
			})
			after, err := createLoad(db, testSchema(), 3000, replaces)
			must(t, err)
			fs.SetHook(nil)
			mu.Lock() // the collector of garbage may still be in the hook
			taken, total := clone, n
			mu.Unlock()
			if taken != nil {
				o.fs = taken
				again, err := Open("/db", o)
				must(t, err)
				switch {
				case again.HasTable() && checkScanEither(t, again, after) == nil:
				case replaces:
					must(t, checkScanEither(t, again, before))
				case again.HasTable():
					t.Fatalf("operation %d: a table without its rows", at)
				}
				again.Free()
			}
			db.Free()
			return total
		}
		cutEverywhere(t, 5, run)
	}
}
