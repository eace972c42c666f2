package mirror_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// TestClockAhead: what was superseded a moment ago stays for readers when the mirror starts anew with a clock that is far
// ahead of the store's, and goes in its time.
func TestClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := newFakeDB(1)
		m := db.start(checker, retain)
		db.flush(0, 2)
		db.settle(t)
		db.compact(0)
		db.settle(t)
		m.Stop(time.Second)
		before := objects(checker)
		m = mirror.Start(checker, db, mirror.Options{Parallelism: 3, Retain: retain, Now: func() time.Time { return time.Now().Add(1000 * retain) }})
		time.Sleep(retain * 9 / 10)
		if n := objects(checker); n != before {
			t.Errorf("%d objects are left of %d for readers of a moment ago", n, before)
		}
		time.Sleep(2 * retain)
		if n := objects(checker); n != 3 { // a file, its manifest, the low-water mark
			t.Errorf("%d objects are left", n)
		}
		m.Stop(time.Second)
	})
}

// delaying is a store to which one put of the catalog comes late: it fails, and is delivered after the next one.
type delaying struct {
	objstore.Store
	mu   sync.Mutex
	next bool // the next one is the late one
	late []byte
}

func (d *delaying) Put(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key != "TABLES" {
		return d.Store.Put(ctx, key, body)
	}
	if d.next {
		d.next, d.late = false, make([]byte, body.Size)
		_, _ = body.Reader.ReadAt(d.late, 0)
		return objstore.Info{}, errDown
	}
	info, err := d.Store.Put(ctx, key, body)
	if err == nil && d.late != nil {
		_, err = d.Store.Put(ctx, key, objstore.Bytes(d.late))
		d.late = nil
	}
	return info, err
}

// TestCatalogComesLate: a catalog that comes after a newer one is put right by the next publication.
func TestCatalogComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMem()
		db := newFakeDB(1)
		late := &delaying{Store: store}
		m := db.start(late, retain)
		db.create("a")
		db.settle(t)
		late.mu.Lock()
		late.next = true
		late.mu.Unlock()
		db.create("b")
		time.Sleep(time.Millisecond)
		db.create("c")
		// The cut with b is tried again first: a newer one comes when it was given up, or is there.
		db.settle(t)
		has := func() []byte {
			data, err := objstore.ReadAll(t.Context(), store, "TABLES", 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		t.Logf("%q", has())
		db.flush(0, 1)
		db.settle(t)
		if !bytes.Equal(has(), db.catalogText()) {
			t.Errorf("TABLES is %q, want %q", has(), db.catalogText())
		}
		m.Stop(time.Second)
	})
}
