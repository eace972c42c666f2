package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

var errDown = errors.New("503 slow down")

// unlessShort says how much a test does.
func unlessShort(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

const retain = 100 * time.Second

// scenario is a history with everything that there is.
func scenario(t *testing.T, db *fakeDB) {
	db.settle(t)
	db.flush(0, 3)
	db.settle(t)
	db.flush(0, 1)
	a := db.create("a")
	b := db.create("b")
	db.flush(a, 2)
	db.settle(t)
	db.compact(0)
	db.flush(b, 1)
	db.flush(b, 1)
	db.drop(a)
	db.settle(t)
	db.rename(0, "other")
	db.flush(0, 2)
	db.settle(t)
	time.Sleep(3 * retain)
	db.flush(b, 1)
	db.settle(t)
	time.Sleep(10 * retain)
}

// failures makes calls fail: fail is asked with the number of the call.
type failures struct {
	mu    sync.Mutex
	calls int
	fail  func(call int, op objstore.Op) error
}

func (f *failures) inject(op objstore.Op, _ string) error {
	f.mu.Lock()
	n := f.calls
	f.calls++
	f.mu.Unlock()
	return f.fail(n, op)
}

// run runs the scenario with failures and returns how many calls there were, and how many objects are left.
func run(t *testing.T, fail func(call int, op objstore.Op) error) (calls, left int) {
	f := &failures{fail: fail}
	checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
	db := newFakeDB(1)
	m := db.start(objstore.NewFaulty(checker, f.inject), retain)
	scenario(t, db)
	db.check(t, checker)
	m.Stop(time.Second)
	if db.open != 0 || db.most > 2 {
		t.Errorf("%d cuts are open, %d were at once", db.open, db.most)
	}
	return f.calls, objects(checker)
}

func TestEachCallFails(t *testing.T) {
	var calls, left int
	synctest.Test(t, func(t *testing.T) {
		calls, left = run(t, func(int, objstore.Op) error { return nil })
	})
	if calls < 20 || calls > 200 {
		t.Fatalf("%d calls", calls)
	}
	for i := 0; i < calls; i += unlessShort(1, 5) {
		for _, err := range []error{errDown, &objstore.AnswerLost{Err: errDown}} {
			t.Run(fmt.Sprintf("%d %v", i, err), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, n := run(t, func(call int, _ objstore.Op) error {
						if call == i {
							return err
						}
						return nil
					})
					if n != left {
						t.Errorf("%d objects are left, want %d", n, left)
					}
				})
			})
		}
	}
}

// TestCrashes abandons the mirror at each call, and lets another one go on.
func TestCrashes(t *testing.T) {
	var calls, left int
	synctest.Test(t, func(t *testing.T) {
		calls, left = run(t, func(int, objstore.Op) error { return nil })
	})
	for i := 0; i < calls; i += unlessShort(1, 5) {
		for _, crash := range []error{errDown, &objstore.AnswerLost{Err: errDown}} {
			t.Run(fmt.Sprintf("%d %v", i, crash), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crashAt(t, i, crash, left) })
			})
		}
	}
}

func crashAt(t *testing.T, i int, crash error, left int) {
	checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
	db := newFakeDB(1)
	dead := make(chan struct{})
	f := &failures{fail: func(call int, _ objstore.Op) error {
		if call < i {
			return nil
		}
		if call == i {
			close(dead)
			return crash
		}
		return errDown
	}}
	first := db.start(objstore.NewFaulty(checker, f.inject), retain)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-dead:
			first.Stop(time.Second)
			db.start(checker, retain)
		case <-ctx.Done():
		}
	}()
	scenario(t, db)
	cancel()
	time.Sleep(10 * retain)
	db.check(t, checker)
	db.m.Stop(time.Second)
	if n := objects(checker); n != left {
		t.Errorf("%d objects are left, want %d", n, left)
	}
}

func TestHalfOfAllFails(t *testing.T) {
	for seed := range uint64(unlessShort(20, 3)) {
		synctest.Test(t, func(t *testing.T) {
			rng := newFakeDB(seed).rng
			var mu sync.Mutex
			run(t, func(int, objstore.Op) error {
				mu.Lock()
				defer mu.Unlock()
				switch rng.IntN(4) {
				case 0:
					return errDown
				case 1:
					return &objstore.AnswerLost{Err: errDown}
				}
				return nil
			})
		})
	}
}

// TestOutage: a store that is down costs few requests, keeps no files from removal, and is caught up with when it is back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		var mu sync.Mutex
		down, calls := false, 0
		m := newFakeDB(1)
		store := objstore.NewFaulty(checker, func(objstore.Op, string) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				calls++
				return errDown
			}
			return nil
		})
		m.start(store, retain)
		m.flush(0, 5)
		m.settle(t)
		mu.Lock()
		down = true
		mu.Unlock()
		for range 300 {
			m.flush(0, 2)
			m.compact(0)
			time.Sleep(time.Second)
		}
		if s := m.m.Status(); s.State != mirror.Retrying || s.LastError == "" || s.Retries == 0 {
			t.Errorf("in the outage: %+v", s)
		}
		mu.Lock()
		if calls > 50 || calls < 10 {
			t.Errorf("%d requests in 5 minutes of outage", calls)
		}
		down = false
		mu.Unlock()
		if m.open != 0 || len(m.tables[0].files) > 3 {
			t.Errorf("%d cuts are open, %d files kept", m.open, len(m.tables[0].files))
		}
		m.settle(t)
		m.check(t, checker)
		if s := m.m.Status(); s.State != mirror.Idle {
			t.Errorf("after it: %+v", s)
		}
		m.m.Stop(time.Second)
	})
}

// lying is a store whose answers are wrong.
type lying struct {
	objstore.Store
	mu   sync.Mutex
	size int64 // what a put says it stored too much
	full bool
}

func (l *lying) PutIfAbsent(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	l.mu.Lock()
	size, full := l.size, l.full
	l.mu.Unlock()
	if full {
		return objstore.Info{}, base.Errorf(base.CodeNoSpace, "put if absent %s: the store is full", key)
	}
	info, err := l.Store.PutIfAbsent(ctx, key, body)
	info.Size += size
	return info, err
}

// TestWrongAnswers: an object that was not stored as it is is looked at again; a full store is tried again.
func TestWrongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		store := &lying{Store: checker, size: 1}
		db := newFakeDB(1)
		db.flush(0, 3)
		m := db.start(store, retain)
		db.settle(t)
		db.check(t, checker)
		if s := m.Status(); s.Retries == 0 || !strings.Contains(s.LastError, "was stored with") {
			t.Errorf("%+v", s)
		}
		store.mu.Lock()
		store.size, store.full = 0, true
		store.mu.Unlock()
		db.flush(0, 3)
		time.Sleep(10 * time.Minute)
		if s := m.Status(); s.State != mirror.Retrying || !strings.Contains(s.LastError, "the store is full") {
			t.Errorf("%+v", s)
		}
		store.mu.Lock()
		store.full = false
		store.mu.Unlock()
		db.settle(t)
		db.check(t, checker)
		m.Stop(time.Second)
	})
}

// TestStopsOnce: a manifest that was on its way when the mirror stopped changes nothing, however it ends.
func TestStopsOnce(t *testing.T) {
	for _, late := range []error{nil, errDown} {
		synctest.Test(t, func(t *testing.T) {
			store := objstore.NewMem()
			db := newFakeDB(1)
			db.start(objstore.NewFaulty(store, func(op objstore.Op, k string) error {
				if op == objstore.OpPutIfAbsent && strings.Contains(k, "/v3.manifest") {
					time.Sleep(10 * time.Second)
					return late
				} else if op == objstore.OpPutIfAbsent && strings.HasSuffix(k, ".dv-4.puffin") {
					_, _ = store.Put(context.Background(), k, objstore.Bytes([]byte("another one")))
				}
				return nil
			}), retain)
			db.flush(0, 1)
			db.settle(t)
			db.flush(0, 1)
			time.Sleep(time.Second)
			db.flush(0, 1) // its files are sent beside the manifest before
			time.Sleep(time.Hour)
			if s := db.m.Status(); s.State != mirror.Stopped || !strings.Contains(s.LastError, "11 bytes") || db.open != 0 {
				t.Errorf("%d cuts are open: %+v", db.open, s)
			}
			db.m.Stop(time.Second)
		})
	}
}

// TestDamagedOnTheWay: an object of which the answer was lost is compared byte by byte.
func TestDamagedOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		db := newFakeDB(1)
		db.flush(0, 1)
		key := db.tables[0].newest.Files[0].Path
		damaged := bytes.Repeat([]byte("x"), len(db.tables[0].files[key]))
		db.start(objstore.NewFaulty(store, func(op objstore.Op, k string) error {
			if op != objstore.OpPutIfAbsent || k != key {
				return nil
			}
			_, _ = store.Put(context.Background(), key, objstore.Bytes(damaged))
			return errDown
		}), retain)
		time.Sleep(time.Minute)
		if s := db.m.Status(); s.State != mirror.Stopped || !strings.Contains(s.LastError, "other contents") {
			t.Errorf("%+v", s)
		}
		db.m.Stop(time.Second)
	})
}

func tableOf(key string) (id uint32) {
	_, _ = fmt.Sscanf(key, "tables/%d/", &id)
	return id
}

func TestIdleAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := newFakeDB(1)
		m := db.start(checker, retain)
		db.flush(0, 5)
		db.settle(t)
		db.compact(0)
		db.settle(t)
		time.Sleep(10 * retain) // what is superseded goes
		before := checker.AllRequests()
		time.Sleep(24 * time.Hour)
		if n := checker.AllRequests() - before; n != 0 {
			t.Errorf("%d requests in a day", n)
		}
		m.Stop(time.Second)
	})
}

// TestManyCommits: the manifests at the store stay few, and the requests are in proportion.
func TestManyCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := newFakeDB(1)
		m := db.start(checker, time.Hour)
		for range unlessShort(5000, 1000) {
			db.compact(0)
			time.Sleep(10 * time.Millisecond)
		}
		db.settle(t)
		if n := checker.MostManifests(); n > 700 {
			t.Errorf("%d manifests at once", n)
		}
		time.Sleep(3 * time.Hour)
		if n := objects(checker); n > 3 {
			t.Errorf("%d objects are left", n)
		}
		m.Stop(time.Second)
	})
}

// TestRandomHistories has failures, outages and crashes beside commits of all kinds.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(unlessShort(60, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomHistory(t, seed) })
		})
	}
}

func randomHistory(t *testing.T, seed uint64) {
	db := newFakeDB(seed)
	rng := newFakeDB(seed + 1000).rng
	checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
	var mu sync.Mutex
	failing, life := 0, 0 // percent of the calls; which mirror may call
	open := func() {
		mine := life
		slow := newFakeDB(seed + 2000 + uint64(life)).rng
		db.start(objstore.NewFaulty(checker, func(objstore.Op, string) error {
			mu.Lock()
			wait, fails, lost := time.Duration(slow.IntN(200))*time.Millisecond, slow.IntN(100) < failing, slow.IntN(2) == 0
			mu.Unlock()
			time.Sleep(wait)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case mine != life:
				return errDown
			case fails && lost:
				return &objstore.AnswerLost{Err: errDown}
			case fails:
				return errDown
			}
			return nil
		}), retain)
	}
	open()
	var freed []string
	for i := range 300 {
		ids := db.ids()
		id := ids[rng.IntN(len(ids))]
		switch n := rng.IntN(30); {
		case n < 12:
			db.flush(id, 1+rng.IntN(3))
		case n < 16:
			db.compact(id)
		case n < 18:
			db.create(fmt.Sprint("new", i))
		case n < 20 && id != 0:
			freed = append(freed, db.tables[id].newest.Schema.TableName)
			db.drop(id)
		case n < 22:
			name := fmt.Sprint("other", i)
			if len(freed) > 0 && rng.IntN(2) == 0 {
				name, freed = freed[0], freed[1:]
			}
			db.rename(id, name)
		case n < 24:
			mu.Lock()
			failing = []int{0, 10, 50, 100}[rng.IntN(4)]
			mu.Unlock()
		case n < 25: // a crash
			mu.Lock()
			life++
			mu.Unlock()
			db.m.Stop(time.Second)
			open()
		case n < 26:
			time.Sleep(time.Duration(rng.IntN(int(2 * retain))))
		default:
			time.Sleep(time.Duration(rng.IntN(int(2 * time.Second))))
		}
	}
	mu.Lock()
	failing = 0
	mu.Unlock()
	db.settle(t)
	db.check(t, checker)
	time.Sleep(20 * retain)
	files := 1 // the low-water mark of the root table
	for _, table := range db.tables {
		files += 2 + len(table.files)
	}
	if n := objects(checker); n > files+1 {
		t.Errorf("%d objects are left of at most %d", n, files+1)
		for key := range contents(t, checker) {
			if !strings.HasPrefix(key, "tables/") || db.tables[tableOf(key)] == nil {
				t.Log(key)
			}
		}
	}
	db.m.Stop(time.Second)
	if db.open != 0 || db.most > 2 {
		t.Errorf("%d cuts are open, %d were at once", db.open, db.most)
	}
}
