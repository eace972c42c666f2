package engine

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// heldStore stops at the object of an intent until it is told to go on.
type heldStore struct {
	mu      sync.Mutex
	holding bool
	reached chan struct{}
	release chan struct{}
}

func newHeldStore() *heldStore {
	return &heldStore{reached: make(chan struct{}), release: make(chan struct{})}
}

func (h *heldStore) inject(op objstore.Op, key string) error {
	h.mu.Lock()
	hold := h.holding && op == objstore.OpPutIfAbsent && strings.HasPrefix(key, manifest.IntentDir+"/")
	h.holding = h.holding && !hold
	h.mu.Unlock()
	if hold {
		close(h.reached)
		<-h.release
	}
	return nil
}

func (h *heldStore) hold() {
	h.mu.Lock()
	h.holding = true
	h.mu.Unlock()
}

// beforeIntent brings a writer to the moment before a transaction over two tables is committed, and returns how that ends.
func beforeIntent(t *testing.T, mem objstore.Store) (db *DB, before, after primaryState, h *heldStore, end func() error) {
	t.Helper()
	h = newHeldStore()
	db = openPrimary(t, objstore.NewFaulty(mem, h.inject), Options{NoAutoCompaction: true})
	t.Cleanup(db.Free)
	before = primaryState{"t": model{}}
	for _, s := range []primaryStep{createStep("u"), putStep("u", 0, 5, 7), putStep("t", 0, 3, 1)} {
		must(t, s.do(db))
		s.apply(before)
	}
	step := txnStep("two tables", 2, map[string]int64{"t": 4, "u": 6}, nil, nil)
	after = before.clone()
	step.apply(after)
	h.hold()
	done := make(chan error, 1)
	go func() { done <- step.do(db) }()
	<-h.reached
	return db, before, after, h, func() error {
		close(h.release)
		return <-done
	}
}

func sameState(t *testing.T, who string, want primaryState, db *DB) {
	t.Helper()
	if d := want.differs(t, db); d != "" {
		t.Fatalf("%s: %s", who, d)
	}
}

// TestPrimaryIntentCommitted: readers see nothing of a transaction whose manifests are there before it is committed, and all
// of it then.
func TestPrimaryIntentCommitted(t *testing.T) {
	mem := objstore.NewMem()
	db, before, after, _, end := beforeIntent(t, mem)
	r := openRemote(t, mem, Options{})
	sameState(t, "a reader before the commit", before, r)
	dir := filepath.Join(t.TempDir(), "undecided")
	_, err := Clone(remoteURL, dir, CloneOptions{store: mem})
	must(t, err)
	sameState(t, "a clone before the commit", before, openClone(t, dir))
	must(t, end())
	sameState(t, "the writer", after, db)
	must(t, r.Refresh())
	sameState(t, "a reader after the commit", after, r)
	dir = filepath.Join(t.TempDir(), "committed")
	_, err = Clone(remoteURL, dir, CloneOptions{store: mem})
	must(t, err)
	sameState(t, "a clone after the commit", after, openClone(t, dir))
}

func openClone(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(dir, Options{})
	must(t, err)
	t.Cleanup(db.Free)
	return db
}

// TestPrimaryIntentGivenUp: who opens the database before a transaction is committed gives it up, for good.
func TestPrimaryIntentGivenUp(t *testing.T) {
	mem := objstore.NewMem()
	db, before, _, _, end := beforeIntent(t, mem)
	other := openPrimary(t, another(mem), Options{NoAutoCompaction: true})
	defer other.Free()
	sameState(t, "the other writer", before, other)
	if err := end(); base.CodeOf(err) != base.CodeConflict || !strings.Contains(err.Error(), "opened anew") {
		t.Fatalf("a transaction that was given up: %v", err)
	}
	sameState(t, "the writer", before, db)
	if _, err := db.Put(testRow(1, 1)); base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("the next write: %v", err)
	}
	for _, s := range []primaryStep{putStep("t", 7, 9, 3), putStep("u", 1, 2, 3)} {
		must(t, s.do(other))
		s.apply(before)
	}
	must(t, other.Compact())
	sameState(t, "the other writer", before, other)
	sameState(t, "a reader", before, openRemote(t, mem, Options{}))
	// The versions that were given up are what the ones before are.
	versions, err := other.c.store.Versions()
	must(t, err)
	for _, v := range versions {
		if _, err := other.c.store.At(v); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
	if _, err := other.Changes(ChangesOptions{}); err != nil {
		t.Errorf("the change feed over a version that was given up: %v", err)
	}
}
