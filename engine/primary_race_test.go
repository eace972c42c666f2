package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// contender is a process that writes to a database which others write to as well, and opens it anew whenever it has lost
// its place.
type contender struct {
	id       int64
	store    objstore.Store
	acked    model // of its own keys
	adds     int64 // to the counter that all share
	lost     int
	refused  []int64 // keys whose write was refused
	nextKey  int64
	deadline time.Time
}

const sharedKey = int64(1)

// increment adds 1 to the counter, from what a snapshot shows.
func (c *contender) increment(db *DB) error {
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	row, found, err := s.Get(testKey(sharedKey))
	if err != nil {
		return err
	}
	n := int64(0)
	if found {
		n = int64(math.Float64frombits(row.Cols[3].Value(0).Lo))
	}
	w, err := db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.SetSnapshot(s); err != nil {
		return err
	}
	if err := w.Put(testRow(sharedKey, n+1)); err != nil {
		return err
	}
	_, err = w.Commit()
	return err
}

func (c *contender) run(t *testing.T, commits int) {
	rng := rand.New(rand.NewPCG(uint64(c.id), 7))
	var db *DB
	defer func() {
		if db != nil {
			db.Free()
		}
	}()
	for done := 0; done < commits && time.Now().Before(c.deadline); {
		if db == nil {
			var err error
			if db, err = tryPrimary(c.store, smallLevels(Options{})); err != nil {
				if base.CodeOf(err) != base.CodeConflict { // at what the open puts in order
					t.Error("open: ", err)
					return
				}
				continue
			}
		}
		var err error
		key := int64(0)
		if rng.IntN(3) == 0 {
			err = c.increment(db)
		} else {
			c.nextKey++
			key = c.id*1_000_000 + c.nextKey
			_, err = db.Put(testRow(key, key))
		}
		switch {
		case err == nil && key != 0:
			c.acked[key] = key
			done++
		case err == nil:
			c.adds++
			done++
		case base.CodeOf(err) == base.CodeConflict:
			if key != 0 {
				c.refused = append(c.refused, key)
			}
			c.lost++
			db.Free()
			db = nil
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond) // somebody is to get on
		default:
			t.Error("write: ", err)
			return
		}
	}
}

// TestPrimaryContention: several processes write to one database, each opening it anew when another one was first. Exactly
// one makes each version, and no acknowledged change is lost or made twice.
func TestPrimaryContention(t *testing.T) {
	const writers, commits = 3, 40
	mem := objstore.NewMem()
	created := openPrimary(t, mem, Options{})
	must(t, created.Close())
	created.Free()
	var mu sync.Mutex
	puts := map[string]int{} // of manifests that came to be
	var all []*contender
	var wg sync.WaitGroup
	for i := range int64(writers) {
		c := &contender{id: i + 2, acked: model{}, deadline: time.Now().Add(20 * time.Second)}
		c.store = &countedPuts{Store: another(mem), made: func(key string) {
			mu.Lock()
			puts[key]++
			mu.Unlock()
		}}
		all = append(all, c)
		wg.Go(func() { c.run(t, commits) })
	}
	wg.Wait()
	db := openPrimary(t, mem, Options{})
	defer db.Free()
	want, adds := model{}, int64(0)
	for _, c := range all {
		for k, v := range c.acked {
			want[k] = v
		}
		adds += c.adds
		t.Logf("writer %d: %d rows, %d additions, lost its place %d times", c.id, len(c.acked), c.adds, c.lost)
	}
	if adds > 0 {
		want[sharedKey] = adds
	}
	check(t, db, want)
	for key, n := range puts {
		if n != 1 {
			t.Errorf("%s was made %d times", key, n)
		}
	}
	if len(puts) < len(want) {
		t.Errorf("%d versions for %d rows", len(puts), len(want))
	}
}

// countedPuts tells which manifests were made.
type countedPuts struct {
	objstore.Store
	made func(key string)
}

func (c *countedPuts) PutIfAbsent(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	info, err := c.Store.PutIfAbsent(ctx, key, body)
	if err == nil && strings.HasPrefix(key, "metadata/v") {
		c.made(key)
	}
	return info, err
}

// TestPrimaryReclaimedVersion: a writer that slept while others committed, and reclaimed, the version that it is about to
// commit does not take the free name for a success.
func TestPrimaryReclaimedVersion(t *testing.T) {
	mem := objstore.NewMem()
	sleeper, m := openPrimary(t, mem, Options{}), model{}
	defer sleeper.Free()
	put(t, sleeper, m, 1, 1)
	store := sleeper.c.store.(*manifest.ObjectStore)
	o := Options{GCGrace: -1, NoAutoCompaction: true}
	now := time.Now()
	other := openPrimary(t, another(mem), o)
	defer other.Free()
	var ahead atomic.Int64
	other.c.setClock(func() time.Time { return now.Add(time.Duration(ahead.Load())) })
	for i := range int64(5) {
		put(t, other, m, 10+i, i)
	}
	ahead.Store(int64(2 * manifest.LeastGrace))
	put(t, other, m, 20, 20)
	eventually(t, "the versions that were superseded are gone", func() bool {
		other.c.collectGarbage()
		versions, err := store.Versions()
		must(t, err)
		return !slices.Contains(versions, 3)
	})
	store.Forget() // as if it had slept for long
	_, err := sleeper.Put(testRow(2, 2))
	if base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("the sleeper's write: %v", err)
	}
	if _, err := mem.Head(context.Background(), "metadata/v3.manifest.bin"); base.CodeOf(err) != base.CodeNotFound {
		t.Fatalf("the manifest that does not count is there: %v", err)
	}
	put(t, other, m, 21, 21)
	check(t, other, m)
	sleeper.Free()
	again := openPrimary(t, another(mem), Options{})
	defer again.Free()
	check(t, again, m)
}

// TestPrimaryOrphans: what a writer that died left goes, and what another one is about to commit, or has committed, does
// not.
func TestPrimaryOrphans(t *testing.T) {
	mem := objstore.NewMem()
	ctx := context.Background()
	db, m := openPrimary(t, mem, Options{}), model{}
	defer db.Free()
	orphan := "data/L0/00000000-0000-4000-8000-000000000001.parquet"
	later := "data/L1/00000000-0000-4000-8000-000000000002.parquet"
	_, err := mem.Put(ctx, orphan, objstore.Bytes([]byte("left by a crash")))
	must(t, err)
	there := func(key string) bool {
		_, err := mem.Head(ctx, key)
		return err == nil
	}
	db.c.gc.pass.Lock()
	db.c.gc.slack = 0
	db.c.gc.pass.Unlock()
	_, err = db.CollectGarbage(false)
	must(t, err)
	if !there(orphan) {
		t.Fatal("what came after the last own commit is gone")
	}
	time.Sleep(2 * time.Millisecond) // the store's clock
	put(t, db, m, 1, 1)
	_, err = mem.Put(ctx, later, objstore.Bytes([]byte("another writer is about to commit it")))
	must(t, err)
	_, err = db.CollectGarbage(false)
	must(t, err)
	if there(orphan) || !there(later) {
		t.Fatalf("the orphan is there: %v; what came after our commit: %v", there(orphan), there(later))
	}
	check(t, db, m)
}

// TestPrimaryGarbage: what superseded manifests alone name goes with them, and nothing else.
func TestPrimaryGarbage(t *testing.T) {
	mem := objstore.NewMem()
	ctx := context.Background()
	o := smallLevels(Options{GCGrace: -1})
	db, m := openPrimary(t, mem, o), model{}
	defer func() { db.Free() }()
	var ahead atomic.Int64
	now := time.Now()
	tick := func() time.Time { return now.Add(time.Duration(ahead.Load())) }
	db.c.setClock(tick)
	held, err := db.Snapshot()
	must(t, err)
	for i := range int64(40) {
		put(t, db, m, i%5, i)
	}
	ahead.Add(int64(2 * manifest.LeastGrace))
	_, err = db.CollectGarbage(false)
	must(t, err)
	checkSnapshot(t, held, model{})
	held.Close()
	for i := range int64(10) {
		put(t, db, m, i, i)
	}
	must(t, db.Compact())
	ahead.Add(int64(2 * manifest.LeastGrace))
	put(t, db, m, 3, 3)
	eventually(t, "what is there is what is needed", func() bool {
		_, err := db.CollectGarbage(false)
		must(t, err)
		newest, err := db.c.store.Newest()
		must(t, err)
		versions, err := db.c.store.Versions()
		must(t, err)
		named := map[string]bool{}
		for _, v := range versions {
			one, err := db.c.store.At(v)
			must(t, err)
			paths(one, func(rel string) { named[rel] = true })
		}
		surplus := 0
		must(t, objstore.ListAll(ctx, mem, "data/", func(i objstore.Info) error {
			if !named[i.Key] {
				surplus++
			}
			return nil
		}))
		paths(newest, func(rel string) {
			if _, err := mem.Head(ctx, rel); err != nil {
				t.Error(err)
			}
		})
		return surplus == 0 && len(versions) < 10
	})
	check(t, db, m)
	low, err := objstore.ReadAll(ctx, mem, "metadata/"+lowWaterFile, 100)
	must(t, err)
	t.Logf("low_water.txt: %s", low)
	must(t, db.Close())
	db.Free()
	db = openPrimary(t, mem, o)
	check(t, db, m)
}
