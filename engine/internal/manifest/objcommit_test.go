package manifest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/objstore"
)

func TestRecent(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name  string
		began time.Time
		want  bool
	}{
		{"never", time.Time{}, false},
		{"now", now, true},
		{"a moment ago", now.Add(-sureFor / 2), true},
		{"long ago", now.Add(-2 * sureFor), false},
		{"long ago by the wall clock", now.Round(0).Add(-2 * sureFor), false},
		{"to come", now.Round(0).Add(time.Second), false},
	} {
		if got := recent(c.began, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestIntentSweep: what is behind many intents that are needed goes too, and in the end the search begins anew.
func TestIntentSweep(t *testing.T) {
	ctx, store := context.Background(), objstore.NewMem()
	const needed = 600
	began := time.Now()
	add := func(n int, contents string) string {
		key := intentKey(NewTag(began.Add(time.Duration(n)*time.Millisecond), fmt.Sprint(n)))
		if _, err := store.Put(ctx, key, objstore.Bytes([]byte(contents))); err != nil {
			t.Fatal(err)
		}
		return key
	}
	for i := range needed {
		add(i+1, intentAbort)
	}
	last := add(needed+1, intentCommit+"3 tables/1/\n")
	first := add(0, intentCommit+"3 tables/1/\n")
	manifestKey := "tables/1/" + Dir + "/" + FileName(3)
	if _, err := store.Put(ctx, manifestKey, objstore.Bytes([]byte("there"))); err != nil {
		t.Fatal(err)
	}
	left := func() (n int, isFirst, isLast bool) {
		err := objstore.ListAll(ctx, store, IntentDir+"/", func(i objstore.Info) error {
			n, isFirst, isLast = n+1, isFirst || i.Key == first, isLast || i.Key == last
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n, isFirst, isLast
	}
	var w IntentSweep
	sweep := func(ahead time.Duration) {
		if err := w.Sweep(ctx, store, time.Now().Add(ahead)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(2 * LeastGrace) // the manifest is there
	if err := store.Delete(ctx, manifestKey); err != nil {
		t.Fatal(err)
	}
	sweep(0) // too young: from the beginning
	sweep(2 * LeastGrace)
	sweep(2 * LeastGrace)
	sweep(2 * LeastGrace)
	if n, isFirst, isLast := left(); n != needed || isFirst || isLast {
		t.Fatalf("%d are left; the first: %v, the last: %v", n, isFirst, isLast)
	}
	for range 3 {
		sweep(30 * 24 * time.Hour)
	}
	if n, _, _ := left(); n != 0 {
		t.Fatalf("%d are left after a month", n)
	}
}
