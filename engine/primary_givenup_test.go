package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// TestPrimaryGivenUpReclaimed: a version that was given up needs the manifest before it. A writer that does nothing but open
// the database and collect garbage leaves a database that can be opened.
func TestPrimaryGivenUpReclaimed(t *testing.T) {
	mem := objstore.NewMem()
	_, before, _, _, end := beforeIntent(t, mem)
	o := Options{NoAutoCompaction: true, GCGrace: -1}
	other := openPrimary(t, another(mem), o)
	defer func() { other.Free() }()
	if err := end(); base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("a transaction that was given up: %v", err)
	}
	_, err := other.CollectGarbage(false) // it has seen what is there
	must(t, err)
	var ahead atomic.Int64
	now := time.Now()
	other.c.setClock(func() time.Time { return now.Add(time.Duration(ahead.Load())) })
	ahead.Store(int64(2 * manifest.LeastGrace))
	eventually(t, "older manifests are gone", func() bool {
		_, err := other.CollectGarbage(false)
		must(t, err)
		versions, err := other.c.store.Versions()
		must(t, err)
		return len(versions) == 1
	})
	sameState(t, "the other writer", before, other)
	must(t, other.Close())
	other.Free()
	other = openPrimary(t, another(mem), o)
	sameState(t, "the next one", before, other)
	sameState(t, "a reader", before, openRemote(t, mem, Options{}))
}

// TestPrimaryGivenUpNeedsAnother: who finds that the manifest is gone which a version stands for says so, and does not take
// it for no table.
func TestPrimaryGivenUpNeedsAnother(t *testing.T) {
	mem := objstore.NewMem()
	db, _, _, _, end := beforeIntent(t, mem)
	versions, err := db.c.store.Versions()
	must(t, err)
	last := versions[len(versions)-1]
	_, err = openRemote(t, mem, Options{}).c.store.Newest()
	must(t, err)
	must(t, mem.Delete(context.Background(), "metadata/"+manifest.FileName(last-1)))
	_, err = tryPrimary(another(mem), Options{})
	if base.CodeOf(err) != base.CodeCorruption || !strings.Contains(err.Error(), manifest.FileName(last-1)) {
		t.Errorf("opening it: %v", err)
	}
	_ = end() // another table's manifest has given it up
}

// TestPrimaryGivenUpLate: a manifest of a transaction that comes after it was given up is in nobody's way.
func TestPrimaryGivenUpLate(t *testing.T) {
	mem := objstore.NewMem()
	var holding atomic.Bool
	reached, release := make(chan struct{}), make(chan struct{})
	db := openPrimary(t, objstore.NewFaulty(mem, func(op objstore.Op, key string) error {
		if op == objstore.OpPutIfAbsent && strings.HasPrefix(key, "tables/1/metadata/v") && holding.CompareAndSwap(true, false) {
			close(reached)
			<-release
		}
		return nil
	}), Options{NoAutoCompaction: true})
	defer db.Free()
	state := primaryState{"t": model{}}
	for _, s := range []primaryStep{createStep("u"), putStep("u", 0, 5, 7), putStep("t", 0, 3, 1)} {
		must(t, s.do(db))
		s.apply(state)
	}
	version := manifestVersion(t, db)
	holding.Store(true)
	done := make(chan error, 1)
	go func() { done <- txnStep("two tables", 2, map[string]int64{"t": 4, "u": 6}, nil, nil).do(db) }()
	<-reached
	eventually(t, "one of the manifests is there", func() bool {
		_, err := mem.Head(context.Background(), "metadata/"+manifest.FileName(version+1))
		return err == nil
	})
	other := openPrimary(t, another(mem), Options{NoAutoCompaction: true, GCGrace: -1})
	defer func() { other.Free() }()
	close(release)
	if err := <-done; base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("a transaction that was given up: %v", err)
	}
	steps := []primaryStep{
		putStep("u", 3, 8, 90), putStep("t", 1, 4, 9), deleteStep("u", 4),
		txnStep("two tables", 2, map[string]int64{"t": 4, "u": 6}, nil, nil),
	}
	for _, s := range steps {
		must(t, s.do(other))
		s.apply(state)
	}
	sameState(t, "the other writer", state, other)
	u, err := other.OpenTable("u")
	must(t, err)
	defer func() { u.Free() }()
	versions, err := u.c.store.Versions()
	must(t, err)
	for _, v := range versions {
		if _, err := u.c.store.At(v); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
	now := time.Now().Add(2 * manifest.LeastGrace)
	other.c.setClock(func() time.Time { return now })
	eventually(t, "older manifests are gone", func() bool {
		_, err := u.CollectGarbage(false)
		must(t, err)
		versions, err := u.c.store.Versions()
		must(t, err)
		return len(versions) == 1
	})
	u.Free()
	must(t, other.Close())
	other.Free()
	other = openPrimary(t, another(mem), Options{})
	u, err = other.OpenTable("u")
	must(t, err)
	sameState(t, "the next one", state, other)
}

// hangingStore answers no listing of data files before its context ends.
type hangingStore struct {
	objstore.Store
	reached chan struct{}
	hangs   atomic.Bool
	once    atomic.Bool
}

func (h *hangingStore) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	if prefix != dataDir+"/" || !h.hangs.Load() {
		return h.Store.List(ctx, prefix, after, limit)
	}
	if h.once.CompareAndSwap(false, true) {
		close(h.reached)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestPrimarySweepEnds: the search for orphans ends when the database is closed, whatever the store does.
func TestPrimarySweepEnds(t *testing.T) {
	h := &hangingStore{Store: objstore.NewMem(), reached: make(chan struct{})}
	db := openPrimary(t, h, Options{})
	h.hangs.Store(true)
	put(t, db, model{}, 1, 1)
	go func() { _, _ = db.CollectGarbage(false) }() // whatever comes of it
	select {
	case <-h.reached:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody looks for orphans")
	}
	done := make(chan struct{})
	go func() {
		_ = db.Close()
		db.Free()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("closing waits for a listing")
	}
}
