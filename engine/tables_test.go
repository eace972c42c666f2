package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func namedSchema(name string) *Schema {
	s := testSchema()
	s.TableName = name
	return s
}

// open opens a table of db.
func openTable(t testing.TB, db *DB, name string) *DB {
	t.Helper()
	h, err := db.OpenTable(name)
	must(t, err)
	return h
}

func tableNames(db *DB) string {
	var names []string
	for _, i := range db.Tables() {
		names = append(names, fmt.Sprintf("%d:%s", i.ID, i.Name))
	}
	return strings.Join(names, " ")
}

// TestManyTables: tables come and go, each with its rows, through memory, log, files and re-opening.
func TestManyTables(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{GCGrace: -1})
	must(t, db.CreateTable(namedSchema("b")))
	must(t, db.CreateTable(namedSchema("a name; with \"signs\"")))
	wantCode(t, db.CreateTable(namedSchema("B")), CodeAlreadyExists)
	if got := tableNames(db); got != `0:t 1:b 2:a name; with "signs"` {
		t.Fatal(got)
	}
	_, err := db.OpenTable("c")
	wantCode(t, err, CodeNotFound)
	b, c := openTable(t, db, "B"), openTable(t, db, "a name; with \"signs\"")
	rng := rand.New(rand.NewPCG(1, 1))
	ma, mb, mc := model{}, model{}, model{}
	for range 5 {
		writeRandom(t, db, rng, ma, 100, 60)
		writeRandom(t, b, rng, mb, 100, 60)
		writeRandom(t, c, rng, mc, 100, 60)
	}
	check(t, db, ma)
	check(t, b, mb)
	check(t, c, mc)
	must(t, b.c.flushAll()) // one table alone
	writeRandom(t, b, rng, mb, 100, 60)
	writeRandom(t, c, rng, mc, 100, 60)

	reader := otherProcess(t, fs)
	defer reader.c.drop()
	rb, rc := openTable(t, reader, "b"), openTable(t, reader, `A NAME; WITH "SIGNS"`)
	check(t, reader, ma)
	check(t, rb, mb)
	check(t, rc, mc)

	must(t, b.RenameTable("z"))
	wantCode(t, b.RenameTable("T"), CodeAlreadyExists)
	writeRandom(t, b, rng, mb, 100, 60)
	must(t, c.DropTable())
	wantCode(t, c.DropTable(), CodeNotFound)
	_, err = c.Snapshot()
	wantCode(t, err, CodeNotFound)
	must(t, db.DropTable())
	must(t, reader.Refresh())
	check(t, rb, mb)
	if got := tableNames(reader); got != "1:z" {
		t.Fatal(got)
	}
	_, err = rc.Snapshot()
	wantCode(t, err, CodeNotFound)

	b.Free()
	c.Free()
	killed(db)
	db, err = Open("/db", Options{fs: fs, GCGrace: -1})
	must(t, err)
	if got := tableNames(db); got != "1:z" || db.HasTable() {
		t.Fatal(got)
	}
	b = openTable(t, db, "z")
	check(t, b, mb)
	must(t, db.CreateTable(namedSchema("new"))) // to the root, which is free
	must(t, db.CreateTable(namedSchema("newer")))
	if got := tableNames(db); got != "0:new 1:z 3:newer" {
		t.Fatal(got)
	}
	check(t, db, model{})
	must(t, db.Close())
	db.Free()
	b.Free()
	// The directory of the one that was dropped goes once no reader uses it.
	reader.c.drop()
	db, err = Open("/db", Options{fs: fs, GCGrace: -1})
	must(t, err)
	defer db.Free()
	eventually(t, "what was dropped is gone", func() bool {
		_, err := db.CollectGarbage(false)
		must(t, err)
		names, err := fs.List("/db/tables")
		must(t, err)
		return slices.Equal(names, []string{"1", "3"})
	})
}

// TestCommitAcrossTables: batches of several tables are one record of the log. In a crash of any moment they come back
// together or not at all, and readers see them together.
func TestCommitAcrossTables(t *testing.T) {
	mem := vfs.NewMem()
	db := openMem(t, mem, Options{MemtableBytes: minMemtableBytes, GCGrace: -1})
	must(t, db.CreateTable(namedSchema("b")))
	must(t, db.CreateTable(namedSchema("c")))
	handles := []*DB{db, openTable(t, db, "b"), openTable(t, db, "c")}
	syncs := db.Stats().WALSyncs
	put := func(v int64, which ...*DB) {
		var batches []*batch
		for _, h := range which {
			w, err := h.NewWrite()
			must(t, err)
			defer w.Close()
			for id := range int64(40) {
				must(t, w.Put(testRow(id, v)))
			}
			batches = append(batches, &w.batch)
		}
		_, err := db.c.applyAll(batches)
		must(t, err)
	}
	reader := otherProcess(t, mem)
	defer reader.c.drop()
	rng := rand.New(rand.NewPCG(5, 5))
	for v := int64(1); v <= 60; v++ {
		put(v, handles...)
		if v%3 == 0 {
			put(v, handles[1], handles[0])
			put(v, handles[2])
		}
		if v%7 == 0 {
			must(t, handles[rng.IntN(3)].c.flushAll())
		}
		must(t, reader.Refresh())
		sameVersion(t, reader, v)
		if v%4 == 0 {
			again, err := Open("/db", Options{fs: mem.CrashClone(rng), MemtableBytes: minMemtableBytes})
			must(t, err)
			sameVersion(t, again, v)
			again.Free()
		}
	}
	if n := db.Stats().WALSyncs - syncs; n != 60+2*20 {
		t.Fatalf("%d syncs of the log", n)
	}
	for _, h := range handles {
		h.Free()
	}
}

// sameVersion checks that all three tables show the same version of all rows, at one moment.
func sameVersion(t testing.TB, db *DB, v int64) {
	t.Helper()
	all, err := db.c.acquireAll()
	must(t, err)
	if len(all) != 3 {
		t.Fatalf("%d tables", len(all))
	}
	m := model{}
	for id := range int64(40) {
		m[id] = v
	}
	for _, s := range all {
		checkSnapshot(t, s, m)
		s.Close()
	}
}

// TestTablesConflict: a commit for several tables of which one fails its check writes nothing in any.
func TestTablesConflict(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{})
	defer db.Free()
	must(t, db.CreateTable(namedSchema("b")))
	b := openTable(t, db, "b")
	defer b.Free()
	_, err := b.Put(testRow(1, 1))
	must(t, err)
	s := mustSnapshot(t, b)
	_, err = b.Put(testRow(1, 2))
	must(t, err)
	w1, err := db.NewWrite()
	must(t, err)
	defer w1.Close()
	w2, err := b.NewWrite()
	must(t, err)
	defer w2.Close()
	must(t, w1.Put(testRow(5, 5)))
	must(t, w2.SetSnapshot(s))
	must(t, w2.Put(testRow(1, 3)))
	_, err = db.c.applyAll([]*batch{&w1.batch, &w2.batch})
	wantCode(t, err, CodeConflict)
	check(t, db, model{})
	check(t, b, model{1: 2})
}

// TestTablesInCrashes: CREATE, DROP and RENAME of tables are atomic: a power cut at any step of the file system leaves a
// database in which each has happened or has not, and no rows of other tables are lost.
func TestTablesInCrashes(t *testing.T) {
	for step := 1; ; step += unlessShort(1, 3) {
		mem := vfs.NewMem()
		fs := newFaultyFS(mem)
		db := openMem(t, fs, Options{GCGrace: -1})
		must(t, db.CreateTable(namedSchema("b")))
		b := openTable(t, db, "b")
		_, err := db.Put(testRow(1, 1))
		must(t, err)
		_, err = b.Put(testRow(2, 2))
		must(t, err)
		cut := cutPower(fs, mem, step, rand.New(rand.NewPCG(uint64(step), 3)))
		states := []string{"0:t 1:b"}
		note := func(err error, state string) {
			if err == nil || !cut.dead() {
				must(t, err)
			}
			states = append(states, state)
		}
		note(db.CreateTable(namedSchema("c")), "0:t 1:b 2:c")
		if !cut.dead() {
			note(b.RenameTable("d"), "0:t 1:d 2:c")
		}
		if !cut.dead() {
			note(db.DropTable(), "1:d 2:c")
		}
		if !cut.dead() {
			w, err := db.NewTableWrite(namedSchema("e"), false)
			if err == nil {
				err = w.Put(testRow(3, 3))
				if err == nil {
					_, err = w.Commit()
				}
				w.Close()
			}
			note(err, "0:e 1:d 2:c")
		}
		if !cut.dead() {
			w, err := db.NewTableWrite(namedSchema("f"), false)
			if err == nil {
				if err = w.Put(testRow(3, 3)); err == nil {
					_, err = w.Commit()
				}
				w.Close()
			}
			note(err, "0:e 1:d 2:c 3:f")
		}
		if !cut.dead() {
			note(b.DropTable(), "0:e 2:c 3:f")
		}
		done := !cut.dead()
		fs.set(nil)
		killed(db)
		if done {
			if step < 40 {
				t.Fatalf("only %d steps", step)
			}
			return
		}
		again, err := Open("/db", Options{fs: cut.disk(), GCGrace: -1})
		must(t, err)
		got := tableNames(again)
		n := len(states)
		if got != states[n-1] && got != states[n-2] {
			t.Fatalf("step %d: %s, want %s or %s", step, got, states[n-2], states[n-1])
		}
		for _, i := range again.Tables() {
			h := openTable(t, again, i.Name)
			want := map[string]model{"t": {1: 1}, "b": {2: 2}, "d": {2: 2}, "c": {}, "e": {3: 3}, "f": {3: 3}}[i.Name]
			check(t, h, maps.Clone(want))
			h.Free()
		}
		must(t, again.CreateTable(namedSchema("last")))
		must(t, again.Close())
		again.Free()
	}
}
