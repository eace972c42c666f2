package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// openPrimary opens a store for writing, as another process would where the store is another value, and creates the table
// where there is none.
func openPrimary(t testing.TB, store objstore.Store, o Options) *DB {
	t.Helper()
	db, err := tryPrimary(store, o)
	must(t, err)
	if !db.HasTable() {
		must(t, db.CreateTable(testSchema()))
	}
	return db
}

func tryPrimary(store objstore.Store, o Options) (*DB, error) {
	o.UseStore(store)
	if o.patience == 0 {
		o.patience = 300 * time.Millisecond
	}
	return Open(remoteURL, o)
}

// another is the same store, as another process has it.
func another(store objstore.Store) objstore.Store {
	return objstore.NewFaulty(store, func(objstore.Op, string) error { return nil })
}

func put(t testing.TB, db *DB, m model, id, payload int64) {
	t.Helper()
	_, err := db.Put(testRow(id, payload))
	must(t, err)
	m[id] = payload
}

// TestPrimaryModel runs random histories on an object store.
func TestPrimaryModel(t *testing.T) {
	steps := 100
	if testing.Short() {
		steps = 40
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			store := objstore.NewMem()
			o := Options{MemtableBytes: minMemtableBytes}
			if seed%2 == 0 {
				o = smallLevels(o)
			}
			runModel(t, seed, steps, func() *DB { return openPrimary(t, store, o) })
			noLog(t, store)
		})
	}
}

// noLog fails where something is in a store that belongs to a directory.
func noLog(t testing.TB, store objstore.Store) {
	t.Helper()
	must(t, objstore.ListAll(context.Background(), store, "", func(i objstore.Info) error {
		for _, part := range []string{"wal/", "LOCK", "tmp/", ".tmp", "staged"} {
			if strings.Contains(i.Key, part) {
				t.Errorf("%s is in the store", i.Key)
			}
		}
		return nil
	}))
}

// TestPrimaryRequests counts what a commit costs.
func TestPrimaryRequests(t *testing.T) {
	log := newRequestLog(objstore.NewMem())
	db := openPrimary(t, log, Options{NoAutoCompaction: true})
	defer db.Free()
	m := model{}
	put(t, db, m, 1, 1)
	take := func() []string { // without those of the tests' own checks, and of the hourly search for orphans
		return slices.DeleteFunc(log.take(), func(r string) bool {
			return strings.HasPrefix(r, "head ") || r == "list data/" || r == "list intents/"
		})
	}
	take()
	put(t, db, m, 2, 2)
	if got := take(); len(got) != 2 || !strings.Contains(got[0], "data/L0/") || !strings.HasSuffix(got[1], "metadata/v3.manifest.bin") {
		t.Fatalf("a new row takes %q", got)
	}
	put(t, db, m, 1, 3)
	got := take()
	if len(got) != 3 || !strings.HasSuffix(got[1], ".dv-4.puffin") || !strings.HasSuffix(got[2], "metadata/v4.manifest.bin") {
		t.Fatalf("another version of a row takes %q", got)
	}
	check(t, db, m)
	if got := take(); len(got) != 0 {
		t.Fatalf("reading what was just written takes %q", got)
	}
	_, err := db.Delete(testKey(2))
	must(t, err)
	delete(m, 2)
	check(t, db, m)
	must(t, db.Close())
	db.Free()
	take()
	db = openPrimary(t, log, Options{NoAutoCompaction: true})
	defer db.Free()
	requests := take()
	t.Logf("opening: %q", requests)
	for _, r := range requests {
		if strings.HasPrefix(r, string(objstore.OpPut)) || strings.HasPrefix(r, string(objstore.OpDelete)) {
			t.Fatalf("opening for writing makes the request %q", r)
		}
	}
	check(t, db, m)
}

// TestPrimaryGroups: writers that come while a commit is under way share the next one, and those that come within the
// linger time the first.
func TestPrimaryGroups(t *testing.T) {
	const writers = 16
	for _, linger := range []time.Duration{0, 200 * time.Millisecond} {
		t.Run(linger.String(), func(t *testing.T) {
			var slow atomic.Bool
			held := make(chan struct{})
			store := objstore.NewFaulty(objstore.NewMem(), func(op objstore.Op, key string) error {
				if op == objstore.OpPutIfAbsent && strings.HasPrefix(key, "metadata/") && slow.CompareAndSwap(true, false) {
					<-held
				}
				return nil
			})
			db := openPrimary(t, store, Options{CommitLinger: linger, NoAutoCompaction: true})
			defer db.Free()
			before := manifestVersion(t, db)
			slow.Store(linger == 0)
			var wg sync.WaitGroup
			for i := range int64(writers) {
				wg.Go(func() {
					if _, err := db.Put(testRow(i, i)); err != nil {
						t.Error(err)
					}
				})
			}
			if linger == 0 {
				eventually(t, "a commit is under way and another writer waits", func() bool {
					db.c.queueMu.Lock()
					defer db.c.queueMu.Unlock()
					return len(db.c.queue) >= 1 && !slow.Load()
				})
				time.Sleep(50 * time.Millisecond) // most come meanwhile
				close(held)
			}
			wg.Wait()
			commits := manifestVersion(t, db) - before
			t.Logf("%d rows in %d commits", writers, commits)
			if commits < 1 || commits > writers/2 {
				t.Fatalf("%d rows took %d commits", writers, commits)
			}
			m := model{}
			for i := range int64(writers) {
				m[i] = i
			}
			check(t, db, m)
		})
	}
}

func manifestVersion(t testing.TB, db *DB) int64 {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	return s.Version()
}

// TestPrimaryFence: of two writers the one that commits first stays, the other one keeps reading and writes again when it
// was opened anew.
func TestPrimaryFence(t *testing.T) {
	store := objstore.NewMem()
	first, m := openPrimary(t, store, Options{}), model{}
	defer first.Free()
	put(t, first, m, 1, 1)
	second := openPrimary(t, another(store), Options{})
	defer func() { second.Free() }()
	put(t, first, m, 2, 2)
	_, err := second.Put(testRow(3, 3))
	if base.CodeOf(err) != base.CodeConflict || !strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), "opened anew") {
		t.Fatalf("the second writer's write: %v", err)
	}
	check(t, second, model{1: 1})
	for name, write := range map[string]func() error{
		"put":    func() error { _, err := second.Put(testRow(4, 4)); return err },
		"delete": func() error { _, err := second.Delete(testKey(1)); return err },
		"create": func() error { s := testSchema(); s.TableName = "other"; return second.CreateTable(s) },
		"drop":   second.DropTable,
		"alter":  func() error { return second.RenameTable("u") },
		"begin":  func() error { _, err := second.Begin(); return err },
	} {
		if err := write(); base.CodeOf(err) != base.CodeConflict {
			t.Errorf("%s of a writer that lost its place: %v", name, err)
		}
	}
	check(t, second, model{1: 1})
	put(t, first, m, 5, 5)
	check(t, first, m)
	must(t, second.Close())
	second.Free()
	second = openPrimary(t, another(store), Options{})
	check(t, second, m)
	put(t, second, m, 3, 3)
	if _, err := first.Put(testRow(6, 6)); base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("the first writer, after the second was opened anew: %v", err)
	}
	check(t, second, m)
}

// TestPrimaryRefused: options that have no meaning there.
func TestPrimaryRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"wal_dir": {WALDir: "/nowhere/at/all"},
		"mirror":  {Mirror: "file:///nowhere"},
	} {
		_, err := tryPrimary(objstore.NewMem(), o)
		if code := base.CodeOf(err); code != base.CodeInvalidArgument && code != base.CodeUnsupported || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPrimaryRival: a process has no two writers of one database that differ in how they reach the store.
func TestPrimaryRival(t *testing.T) {
	const url = "s3://bucket/rival"
	o := Options{S3: S3Config{Endpoint: "http://127.0.0.1:1", Region: "x", AccessKeyID: "one", SecretAccessKey: "s"}}.withFS()
	key, err := o.resolve(url, false)
	must(t, err)
	registry.mu.Lock()
	registry.writers[key] = &shared{key: key}
	registry.mu.Unlock()
	defer func() {
		registry.mu.Lock()
		delete(registry.writers, key)
		registry.mu.Unlock()
	}()
	o.S3.AccessKeyID = "another"
	if _, err := Open(url+"/", o); base.CodeOf(err) != base.CodeLocked || !strings.Contains(err.Error(), url) {
		t.Errorf("a writer with other credentials: %v", err)
	}
	other, err := o.resolve("s3://bucket/other", false)
	must(t, err)
	elsewhere := other
	elsewhere.dir, elsewhere.store.config.Endpoint = url, "http://127.0.0.1:2"
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if registry.rival(other) || registry.rival(elsewhere) || registry.rival(key) {
		t.Error("other databases are refused")
	}
}
