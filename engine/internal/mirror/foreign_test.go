package mirror_test

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// clone copies a database that nobody uses, as a copy of its directory would.
func (db *fakeDB) clone(seed uint64) *fakeDB {
	c := &fakeDB{
		rng: rand.New(rand.NewPCG(seed, 7)), tables: map[uint32]*fakeTable{}, next: db.next, catalog: db.catalog, seq: db.seq,
		commits: db.commits,
	}
	for id, t := range db.tables {
		c.tables[id] = &fakeTable{
			db: c, id: id, newest: t.newest, files: maps.Clone(t.files), manifests: maps.Clone(t.manifests),
			history: maps.Clone(t.history), pins: map[*manifest.Manifest]int{}, record: bytes.Clone(t.record),
		}
	}
	return c
}

// contents returns all that a store has.
func contents(t *testing.T, store objstore.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := objstore.ListAll(context.Background(), store, "", func(i objstore.Info) error {
		data, err := objstore.ReadAll(context.Background(), store, i.Key, 1<<30)
		all[i.Key] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantStopped waits until the mirror has stopped, and checks that nothing was changed that was there.
func (db *fakeDB) wantStopped(t *testing.T, store objstore.Store, before map[string]string, words ...string) {
	t.Helper()
	time.Sleep(10 * time.Minute)
	s := db.m.Status()
	if s.State != mirror.Stopped {
		t.Fatalf("it did not stop: %+v", s)
	}
	for _, w := range append(words, "in use by another database", "memory store") {
		if !strings.Contains(s.LastError, w) {
			t.Errorf("%q does not say %q", s.LastError, w)
		}
	}
	if db.open != 0 {
		t.Errorf("%d cuts are open", db.open)
	}
	after := contents(t, store)
	for key, data := range before {
		if after[key] != data {
			t.Errorf("%s was changed", key)
		}
	}
	for key := range after {
		if _, there := before[key]; !there && strings.Contains(key, "manifest") {
			t.Errorf("%s was put", key)
		}
	}
}

// mirrored is a database with two tables that is at the store, and is not being mirrored any more.
func mirrored(t *testing.T, store objstore.Store) *fakeDB {
	t.Helper()
	db := newFakeDB(1)
	db.start(store, retain)
	db.flush(0, 2)
	db.settle(t)
	db.flush(db.create("a"), 1)
	db.settle(t)
	db.m.Stop(time.Second)
	db.m = nil
	return db
}

// goOn mirrors one more version of a table.
func (db *fakeDB) goOn(t *testing.T, store objstore.Store, id uint32) {
	t.Helper()
	db.start(store, retain)
	db.flush(id, 1)
	db.settle(t)
	db.m.Stop(time.Second)
}

func TestForeign(t *testing.T) {
	tests := map[string]func(t *testing.T, store objstore.Store) (*fakeDB, []string){
		"another database": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			mirrored(t, store)
			db := newFakeDB(2)
			db.flush(0, 1) // the same version
			return db, []string{"metadata/v2.manifest.bin", "another manifest"}
		},
		"a new database": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			mirrored(t, store)
			return newFakeDB(2), []string{"metadata/v2.manifest.bin", "newer"}
		},
		"another database that is ahead": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			mirrored(t, store)
			db := newFakeDB(2)
			for range 10 {
				db.flush(0, 1)
			}
			return db, []string{"metadata/v2.manifest.bin", "not known"}
		},
		"restored from a backup": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			db := mirrored(t, store)
			backup := db.clone(5)
			db.goOn(t, store, 0)
			return backup, []string{"metadata/v3.manifest.bin", "newer"}
		},
		"restored from a backup, and written to": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			db := mirrored(t, store)
			backup := db.clone(5)
			db.goOn(t, store, 0)
			for range 5 {
				backup.flush(0, 1)
			}
			return backup, []string{"metadata/v3.manifest.bin", "not known"}
		},
		"a diverged clone of the same version": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			db := mirrored(t, store)
			other := db.clone(5)
			other.flush(1, 1)
			db.goOn(t, store, 1)
			return other, []string{"tables/1/metadata/v3.manifest.bin", "another manifest"}
		},
		"fewer tables": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			db := mirrored(t, store)
			other := db.clone(5)
			delete(other.tables, 1)
			other.next, other.catalog = 1, 0
			return other, []string{"tables/1/metadata", "no such table"}
		},
		"another catalog": func(t *testing.T, store objstore.Store) (*fakeDB, []string) {
			db := mirrored(t, store)
			other := db.clone(5)
			db.start(store, retain)
			db.create("more")
			db.settle(t)
			db.drop(2)
			db.settle(t)
			time.Sleep(10 * retain) // nothing but the catalog is left of it
			db.m.Stop(time.Second)
			return other, []string{"TABLES", "another catalog"}
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := objstore.NewMem()
				db, words := make(t, store)
				before := contents(t, store)
				db.start(store, retain)
				db.wantStopped(t, store, before, words...)
				db.m.Stop(time.Second)
			})
		})
	}
}

// TestForeignWhileRunning: two databases that were one write to one store. Each version is checked, also those that are
// skipped.
func TestForeignWhileRunning(t *testing.T) {
	for _, ahead := range []int{1, 3} { // the next version, or one behind it
		for _, skipped := range []int{1, 2, 5} {
			synctest.Test(t, func(t *testing.T) {
				store := objstore.NewMem()
				db := mirrored(t, store)
				other := db.clone(5)
				db.start(store, retain)
				time.Sleep(time.Second) // it has found what is there to be its own
				for range ahead {
					other.flush(0, 1)
				}
				other.start(store, retain)
				other.settle(t)
				other.m.Stop(time.Second)
				before := contents(t, store)
				m := db.m
				db.m = nil
				for range skipped {
					db.flush(0, 1)
				}
				db.m = m
				m.Notify()
				if ahead > skipped && skipped == 1 {
					// The version before theirs is free, and the next one meets it.
					time.Sleep(time.Minute)
					before = contents(t, store)
					db.m = nil
					db.flush(0, 1)
					db.flush(0, 1)
					db.m = m
					m.Notify()
				}
				db.wantStopped(t, store, before, "metadata/v")
				m.Stop(time.Second)
			})
		}
	}
}

// TestOursWithoutItsFile: the store's newest manifest is an older one of ours, which is not here any more.
func TestOursWithoutItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := mirrored(t, checker)
		for range 5 {
			db.flush(0, 1)
			db.compact(0)
		}
		if len(db.tables[0].manifests) != 1 {
			t.Fatal("the older manifests are still there")
		}
		db.start(checker, retain)
		db.settle(t)
		db.check(t, checker)
		db.m.Stop(time.Second)
		// The answer to the last one was lost, and then the process died.
		lose := true
		lossy := objstore.NewFaulty(checker, func(op objstore.Op, key string) error {
			if lose && op == objstore.OpPutIfAbsent && strings.Contains(key, "manifest") {
				lose = false
				return &objstore.AnswerLost{Err: errDown}
			} else if !lose {
				return errDown
			}
			return nil
		})
		db.start(lossy, retain)
		db.flush(0, 1)
		time.Sleep(time.Minute)
		db.m.Stop(time.Second)
		db.compact(0)
		db.start(checker, retain)
		db.settle(t)
		db.check(t, checker)
		db.m.Stop(time.Second)
	})
}

// TestDamagedObject: an object of ours that somebody replaced is not taken for ours.
func TestDamagedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		db := mirrored(t, store)
		key := db.tables[0].newest.Files[0].Path
		if _, err := store.Put(context.Background(), key, objstore.Bytes([]byte("short"))); err != nil {
			t.Fatal(err)
		}
		before := contents(t, store)
		db.start(store, retain)
		db.flush(0, 1)
		db.wantStopped(t, store, before, key, "5 bytes")
		db.m.Stop(time.Second)
	})
}
