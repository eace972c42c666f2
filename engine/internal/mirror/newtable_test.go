package mirror_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// TestNewTableIsNotDropped: a table whose files come while an older cut, which lacks it, is published is not taken for one
// that was dropped, however long its files take.
func TestNewTableIsNotDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := newFakeDB(1)
		var slow atomic.Bool
		var ofTable atomic.Int64
		store := objstore.NewFaulty(checker, func(op objstore.Op, key string) error {
			switch {
			case op != objstore.OpPutIfAbsent || !slow.Load() || strings.Contains(key, "manifest"):
			case strings.HasPrefix(key, "tables/") && ofTable.Add(1) == 1: // comes before the pass
			default:
				time.Sleep(25 * time.Second)
			}
			return nil
		})
		m := db.start(store, retain)
		db.flush(0, 2)
		db.settle(t)
		db.compact(0)
		db.settle(t)
		time.Sleep(retain - 5*time.Second) // then there is something to remove
		slow.Store(true)
		db.flush(0, 1) // the older cut
		time.Sleep(time.Second)
		id := db.create("new")
		db.flush(id, 40)
		time.Sleep(3 * time.Second)
		if n := ofTable.Load(); n < 1 {
			t.Fatal("no file of the new table came beside those of the older cut")
		}
		passed := checker.Requests(objstore.OpDelete)
		time.Sleep(10 * time.Second)
		if checker.Requests(objstore.OpDelete) == passed || checker.Newest("") == db.tables[0].newest.Version {
			t.Fatal("no retention pass came while the older cut was on its way")
		}
		began := time.Now()
		db.settle(t)
		db.check(t, checker)
		if time.Since(began) < retain*3/2 {
			t.Fatalf("the new table came within %v", time.Since(began))
		}
		slow.Store(false)
		db.compact(id)
		db.settle(t)
		time.Sleep(10 * retain)
		before := objects(checker)
		db.compact(id) // its old manifests and files go as those of any table
		db.settle(t)
		time.Sleep(10 * retain)
		db.check(t, checker)
		if n := objects(checker); n != before {
			t.Errorf("%d objects are left, there were %d", n, before)
		}
		m.Stop(time.Second)
	})
}
