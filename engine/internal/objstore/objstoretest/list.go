package objstoretest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

func testListOrder(t *testing.T, client func() objstore.Store) {
	s := client()
	// "-" and "." sort before "/", "0" and "_" after it.
	want := []string{"a-b", "a.c", "a/-", "a/b/c", "a/b0", "a0", "a_", "b", "b-/x", "b.x/y", "ba"}
	for _, i := range rand.New(rand.NewPCG(3, 3)).Perm(len(want)) {
		put(t, s, want[i], "x")
	}
	wantList(t, s, "", "", 100, want)
	wantList(t, s, "a", "", 100, want[:7])
	wantList(t, s, "a/", "", 100, want[2:5])
	wantList(t, s, "a/b", "", 100, want[3:5])
	wantList(t, s, "a/b/", "", 100, want[3:4])
	wantList(t, s, "a/b/c/", "", 100, nil)
	wantList(t, s, "none/", "", 100, nil)
	wantList(t, s, "none/x/y", "", 100, nil)
	wantList(t, s, "", "a/b", 100, want[3:])
	wantList(t, s, "", "a/b/c", 100, want[4:])
	wantList(t, s, "", "a/z", 100, want[5:])
	wantList(t, s, "a/", "b", 100, nil)
	wantList(t, s, "b", "a", 100, want[7:])
	for i, key := range want {
		wantList(t, s, "", key, 100, want[i+1:])
		wantList(t, s, "", key, 1, want[i+1:min(i+2, len(want))])
	}
}

// testListRandom compares pages of random listings with a model.
func testListRandom(t *testing.T, client func() objstore.Store) {
	s := client()
	rng := rand.New(rand.NewPCG(8, 1))
	word := func() string {
		const letters = "ab-.0~"
		w := []byte{letters[rng.IntN(2)]} // no dot in front
		for range rng.IntN(3) {
			w = append(w, letters[rng.IntN(len(letters))])
		}
		return string(w)
	}
	var keys []string
	for range 120 {
		key := word()
		for range rng.IntN(3) {
			key += "/" + word()
		}
		clash := slices.ContainsFunc(keys, func(k string) bool {
			return k == key || strings.HasPrefix(k, key+"/") || strings.HasPrefix(key, k+"/")
		})
		if !clash {
			put(t, s, key, "x")
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for range 300 {
		prefix, after := "", ""
		if rng.IntN(3) > 0 {
			k := keys[rng.IntN(len(keys))]
			prefix = k[:rng.IntN(len(k)+1)]
		}
		if rng.IntN(2) > 0 {
			after = keys[rng.IntN(len(keys))]
			after = after[:rng.IntN(len(after)+1)]
		}
		size := 1 + rng.IntN(10)
		if objstore.CheckPrefix(prefix) != nil {
			continue
		}
		var want []string
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && k > after && len(want) < size {
				want = append(want, k)
			}
		}
		wantList(t, s, prefix, after, size, want)
	}
	var all []string
	must(t, objstore.ListAll(ctx, s, "", func(i objstore.Info) error {
		all = append(all, i.Key)
		return nil
	}))
	if !slices.Equal(all, keys) {
		t.Fatalf("ListAll gave %d keys, want %d", len(all), len(keys))
	}
	stop := base.Errorf(base.CodeCancelled, "stop")
	if err := objstore.ListAll(ctx, s, "", func(objstore.Info) error { return stop }); err != stop {
		t.Fatal(err)
	}
}

func testListArguments(t *testing.T, client func() objstore.Store) {
	s := client()
	for _, size := range []int{0, -1, objstore.MaxList + 1} {
		_, err := s.List(ctx, "", "", size)
		wantCode(t, err, base.CodeInvalidArgument, fmt.Sprint(size))
	}
	for _, prefix := range []string{"/", "../x", "a/../b", "a//", ".tmp/", "\xff"} {
		_, err := s.List(ctx, prefix, "", 1)
		wantCode(t, err, base.CodeInvalidArgument)
	}
	_, err := s.List(ctx, "", "any\xff\x00/../thing", objstore.MaxList)
	must(t, err)
}
