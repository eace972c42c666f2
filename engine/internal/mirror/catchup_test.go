package mirror_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// TestCatchUpSideBySide: after an outage files go side by side as soon as the store answers, not after a first one went
// alone. A store that answers, but takes no file, is tried by one at a time.
func TestCatchUpSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10 * time.Second
		checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
		db := newFakeDB(1)
		var mu sync.Mutex
		down, full := false, false
		puts, under, most := 0, 0, 0
		set := func(d, f bool) {
			mu.Lock()
			defer mu.Unlock()
			down, full, puts, most = d, f, 0, 0
		}
		store := objstore.NewFaulty(checker, func(op objstore.Op, key string) error {
			mu.Lock()
			defer mu.Unlock()
			put := op == objstore.OpPutIfAbsent && strings.Contains(key, "data/")
			if down || full && put {
				puts++
				return errDown
			}
			if put {
				under++
				most = max(most, under)
				mu.Unlock()
				time.Sleep(each)
				mu.Lock()
				under--
			}
			return nil
		})
		m := db.start(store, retain)
		db.settle(t)
		set(true, false)
		db.flush(0, 2) // three objects, as many as are sent at a time
		time.Sleep(10 * time.Minute)
		set(false, false)
		for m.Status().State == mirror.Retrying {
			time.Sleep(100 * time.Millisecond)
		}
		db.settle(t)
		db.check(t, checker)
		if most != 3 {
			t.Errorf("%d at a time were sent after the outage", most)
		}
		set(false, true)
		db.flush(0, 8)
		time.Sleep(time.Minute)
		set(false, true)
		time.Sleep(10 * time.Minute)
		mu.Lock()
		if puts > 45 {
			t.Errorf("%d puts in ten minutes were sent to a store that takes none", puts)
		}
		mu.Unlock()
		set(false, false)
		db.settle(t)
		db.check(t, checker)
		m.Stop(time.Second)
	})
}
