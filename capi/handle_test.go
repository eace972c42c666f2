package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine"
)

func TestHandles(t *testing.T) {
	o := new(openOptions)
	h := handles.add(o)
	if got, err := lookup[openOptions](h, "options"); got != o || err != nil {
		t.Fatalf("lookup: %v %v", got, err)
	}
	if uint64(h)>>48 != 0x4d52 || uint64(h)%handleStep != 0 {
		t.Errorf("handle %x looks like an address", uint64(h))
	}
	expect := func(err error, about string) {
		t.Helper()
		if engine.CodeOf(err) != engine.CodeInvalidArgument || !strings.Contains(err.Error(), about) {
			t.Errorf("%v: want an invalid argument about %q", err, about)
		}
	}
	_, err := lookup[snapshot](h, "snapshot")
	expect(err, "argument snapshot is a handle of another kind: openOptions")
	_, err = lookup[openOptions](0, "options")
	expect(err, "argument options is NULL")
	_, err = lookup[openOptions](12345, "options")
	expect(err, "argument options is not a handle")
	_, err = remove[snapshot](h, "snapshot")
	expect(err, "another kind")
	if got, err := remove[openOptions](h, "options"); got != o || err != nil {
		t.Fatalf("remove: %v %v", got, err)
	}
	_, err = remove[openOptions](h, "options")
	expect(err, "was freed")
	_, err = lookup[openOptions](h, "options")
	expect(err, "was freed")
	if next := handles.add(o); next == h {
		t.Error("a number was used twice")
	} else if _, err := remove[openOptions](next, "options"); err != nil {
		t.Error(err)
	}
}

func TestHandlesFromManyThreads(t *testing.T) {
	before := handles.count()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				w := new(write)
				h := handles.add(w)
				if got, err := lookup[write](h, "write"); got != w || err != nil {
					t.Error(got, err)
				}
				if got, err := remove[write](h, "write"); got != w || err != nil {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
	for kind, n := range handles.count() {
		if n != before[kind] {
			t.Errorf("%d handles of kind %s, %d before", n, kind, before[kind])
		}
	}
}

// The names in meru_stats_json() are those of the Go types; docs/CAPI.md has them.
func TestHandleKinds(t *testing.T) {
	for _, o := range []any{new(database), new(openOptions), new(tableSchema), new(write), new(txn), new(snapshot), new(stream)} {
		if _, known := handles.count()[describe(o)]; !known {
			t.Errorf("kind %s is not counted", describe(o))
		}
	}
}
