// Package objstoretest holds the tests that every object store must pass.
package objstoretest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Run tests the contract of objstore.Store. open returns an empty store; calls of the function that it returns give
// further clients of the same store.
func Run(t *testing.T, open func(t *testing.T) func() objstore.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, client func() objstore.Store)
	}{
		{"PutAndRead", testPutAndRead},
		{"ReadRanges", testReadRanges},
		{"Replace", testReplace},
		{"PutIfAbsent", testPutIfAbsent},
		{"PutIfAbsentRace", testPutIfAbsentRace},
		{"Missing", testMissing},
		{"Delete", testDelete},
		{"ListOrder", testListOrder},
		{"ListRandom", testListRandom},
		{"ListArguments", testListArguments},
		{"Keys", testKeys},
		{"BadBodies", testBadBodies},
		{"Context", testContext},
		{"WholeOrNot", testWholeOrNot},
		{"ReadAll", testReadAll},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code base.Code, parts ...string) {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("error %v has code %d, want %d", err, base.CodeOf(err), code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not say %q", err, p)
		}
	}
}

func put(t testing.TB, s objstore.Store, key, data string) objstore.Info {
	t.Helper()
	info, err := s.Put(ctx, key, objstore.Bytes([]byte(data)))
	must(t, err)
	if info.Key != key || info.Size != int64(len(data)) || info.ETag == "" {
		t.Fatalf("put %s of %d bytes returned %+v", key, len(data), info)
	}
	return info
}

func wantObject(t testing.TB, s objstore.Store, key, data string) {
	t.Helper()
	got, err := objstore.ReadAll(ctx, s, key, 1<<30)
	must(t, err)
	if string(got) != data {
		t.Fatalf("%s holds %.50q (%d bytes), want %.50q (%d)", key, got, len(got), data, len(data))
	}
}

// sameInfo compares what a store says later with what a Put returned, which may not have said when.
func sameInfo(later, put objstore.Info) bool {
	return later.Key == put.Key && later.Size == put.Size && later.ETag == put.ETag && !later.ModTime.IsZero() &&
		(put.ModTime.IsZero() || later.ModTime.Equal(put.ModTime))
}

func testPutAndRead(t *testing.T, client func() objstore.Store) {
	a, b := client(), client()
	if a.String() == "" {
		t.Error("the store has no name")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i, size := range []int{0, 1, 100, 1<<20 - 1, 1 << 20, 3<<20 + 5} {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(rng.Uint32())
		}
		key := fmt.Sprintf("data/L%d/file-%d.bin", i%2, i)
		info := put(t, a, key, string(data))
		wantObject(t, b, key, string(data))
		head, err := b.Head(ctx, key)
		must(t, err)
		if !sameInfo(head, info) {
			t.Errorf("head %+v, put %+v", head, info)
		}
		page, err := b.List(ctx, key, "", 10)
		must(t, err)
		if len(page) != 1 || !sameInfo(page[0], info) {
			t.Errorf("listed %+v, put %+v", page, info)
		}
	}
}

func testReadRanges(t *testing.T, client func() objstore.Store) {
	s := client()
	const data = "0123456789"
	put(t, s, "k", data)
	for offset := range len(data) + 3 {
		for size := range len(data) + 3 {
			p := make([]byte, size)
			n, err := s.ReadAt(ctx, "k", p, int64(offset))
			want := data[min(offset, len(data)):min(offset+size, len(data))]
			if string(p[:n]) != want {
				t.Fatalf("%d bytes at %d: %q, want %q", size, offset, p[:n], want)
			}
			if n < size && err != io.EOF || n == size && err != nil && err != io.EOF {
				t.Fatalf("%d bytes at %d: %d and %v", size, offset, n, err)
			}
		}
	}
	_, err := s.ReadAt(ctx, "k", make([]byte, 1), -1)
	wantCode(t, err, base.CodeInvalidArgument, "k")
}

func testReplace(t *testing.T, client func() objstore.Store) {
	a, b := client(), client()
	first := put(t, a, "k", "first, longer")
	time.Sleep(2 * time.Millisecond) // the clock of a file system may be coarse
	second := put(t, b, "k", "second")
	wantObject(t, a, "k", "second")
	if first.ETag == second.ETag {
		t.Error("a replaced object kept its ETag")
	}
}

func testPutIfAbsent(t *testing.T, client func() objstore.Store) {
	a, b := client(), client()
	info, err := a.PutIfAbsent(ctx, "m/v1", objstore.Bytes([]byte("one")))
	must(t, err)
	head, err := b.Head(ctx, "m/v1")
	must(t, err)
	if !sameInfo(head, info) {
		t.Errorf("head %+v, put %+v", head, info)
	}
	for _, s := range []objstore.Store{a, b} {
		_, err = s.PutIfAbsent(ctx, "m/v1", objstore.Bytes([]byte("two")))
		wantCode(t, err, base.CodeAlreadyExists, "m/v1", s.String())
	}
	wantObject(t, b, "m/v1", "one")
	must(t, a.Delete(ctx, "m/v1"))
	_, err = b.PutIfAbsent(ctx, "m/v1", objstore.Bytes([]byte("three")))
	must(t, err)
	wantObject(t, a, "m/v1", "three")
}

func testPutIfAbsentRace(t *testing.T, client func() objstore.Store) {
	for round := range 10 {
		key := fmt.Sprint("commit/v", round)
		var wg sync.WaitGroup
		won := make(chan string, 8)
		for i := range cap(won) {
			s := client()
			wg.Go(func() {
				data := strings.Repeat(fmt.Sprint("writer ", i, " "), 1000)
				_, err := s.PutIfAbsent(ctx, key, objstore.Bytes([]byte(data)))
				switch base.CodeOf(err) {
				case base.CodeOK:
					won <- data
				case base.CodeAlreadyExists:
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d writers won", len(won))
		}
		wantObject(t, client(), key, <-won)
	}
}

func testMissing(t *testing.T, client func() objstore.Store) {
	s := client()
	check := func(key string) {
		t.Helper()
		_, err := s.Head(ctx, key)
		wantCode(t, err, base.CodeNotFound, key, s.String())
		_, err = s.ReadAt(ctx, key, make([]byte, 1), 0)
		wantCode(t, err, base.CodeNotFound, key, s.String())
		_, err = objstore.ReadAll(ctx, s, key, 10)
		wantCode(t, err, base.CodeNotFound, key)
	}
	check("nothing/here")
	page, err := s.List(ctx, "", "", 10)
	must(t, err)
	if len(page) != 0 {
		t.Errorf("an empty store lists %v", page)
	}
	put(t, s, "a/b", "x")
	check("a")
	check("a/b/c")
	check("a/c")
}

func testDelete(t *testing.T, client func() objstore.Store) {
	s := client()
	put(t, s, "a/b", "x")
	put(t, s, "a/c", "y")
	must(t, s.Delete(ctx, "a/b"))
	must(t, s.Delete(ctx, "a/b"))
	must(t, s.Delete(ctx, "a"))
	must(t, s.Delete(ctx, "a/c/d"))
	must(t, s.Delete(ctx, "none/none"))
	_, err := s.Head(ctx, "a/b")
	wantCode(t, err, base.CodeNotFound)
	wantObject(t, client(), "a/c", "y")
	wantList(t, s, "", "", 10, []string{"a/c"})
}

func testKeys(t *testing.T, client func() objstore.Store) {
	s := client()
	for _, key := range []string{
		"a", "a b", "ä/ö €", "a=1/b=%20+&?#", strings.Repeat("x", objstore.MaxSegmentBytes),
		strings.Repeat("dir/", 50) + "z", "~", "-", "a.b.c", "x:y", "'\"*|<>",
	} {
		put(t, s, key, key)
		wantObject(t, client(), key, key)
		wantList(t, s, key, "", 2, []string{key})
		must(t, s.Delete(ctx, key))
	}
	long := strings.Repeat(strings.Repeat("d", 100)+"/", 11)
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", ".hidden", "a/.b", "a\x00b", "a\nb",
		"a\\b", "\xff", long + "x", "a/" + strings.Repeat("x", objstore.MaxSegmentBytes+1),
	} {
		_, errPut := s.Put(ctx, key, objstore.Bytes(nil))
		_, errAbsent := s.PutIfAbsent(ctx, key, objstore.Bytes(nil))
		_, errRead := s.ReadAt(ctx, key, nil, 0)
		_, errHead := s.Head(ctx, key)
		for _, err := range []error{errPut, errAbsent, errRead, errHead, s.Delete(ctx, key)} {
			wantCode(t, err, base.CodeInvalidArgument)
		}
	}
	wantList(t, s, "", "", 10, nil)
	put(t, s, "a/b", "x")
	_, err := s.Put(ctx, "a/b/c", objstore.Bytes(nil))
	if code := base.CodeOf(err); code != base.CodeOK && code != base.CodeObjectStore {
		t.Errorf("a key below another: %v", err)
	}
	_, err = s.PutIfAbsent(ctx, "a", objstore.Bytes(nil))
	if code := base.CodeOf(err); code != base.CodeOK && code != base.CodeObjectStore {
		t.Errorf("a key above another: %v", err)
	}
	wantObject(t, s, "a/b", "x")
}

// failingReader fails after some bytes.
type failingReader struct {
	n   int64
	err error
}

func (f failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= f.n {
		return len(p), nil
	}
	return int(max(0, f.n-off)), f.err
}

func testBadBodies(t *testing.T, client func() objstore.Store) {
	s := client()
	put(t, s, "old", "old")
	own := base.Errorf(base.CodeCorruption, "checksum")
	for _, key := range []string{"new", "old"} {
		for _, c := range []struct {
			body objstore.Body
			code base.Code
		}{
			{objstore.Body{Reader: bytes.NewReader(make([]byte, 10)), Size: 11}, base.CodeInvalidArgument},
			{objstore.Body{Reader: bytes.NewReader(nil), Size: -1}, base.CodeInvalidArgument},
			{objstore.Body{Reader: failingReader{2 << 20, own}, Size: 3 << 20}, base.CodeCorruption},
			{objstore.Body{Reader: failingReader{2 << 20, fmt.Errorf("broken")}, Size: 3 << 20}, base.CodeIO},
		} {
			_, err := s.Put(ctx, key, c.body)
			wantCode(t, err, c.code, key)
			if key == "new" {
				_, err = s.PutIfAbsent(ctx, key, c.body)
				wantCode(t, err, c.code, key)
			}
		}
	}
	_, err := s.Head(ctx, "new")
	wantCode(t, err, base.CodeNotFound)
	wantObject(t, s, "old", "old")
	wantList(t, s, "", "", 10, []string{"old"})
	// A longer reader is no harm.
	_, err = s.Put(ctx, "part", objstore.Body{Reader: strings.NewReader("0123456789"), Size: 4})
	must(t, err)
	wantObject(t, s, "part", "0123")
}

func testContext(t *testing.T, client func() objstore.Store) {
	s := client()
	put(t, s, "k", "x")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		code base.Code
	}{{cancelled, base.CodeCancelled}, {late, base.CodeTimeout}} {
		_, errPut := s.Put(c.ctx, "new", objstore.Bytes(nil))
		_, errAbsent := s.PutIfAbsent(c.ctx, "new", objstore.Bytes(nil))
		_, errRead := s.ReadAt(c.ctx, "k", make([]byte, 1), 0)
		_, errHead := s.Head(c.ctx, "k")
		_, errList := s.List(c.ctx, "", "", 1)
		for _, err := range []error{errPut, errAbsent, errRead, errHead, errList, s.Delete(c.ctx, "k")} {
			wantCode(t, err, c.code)
		}
	}
	wantList(t, s, "", "", 10, []string{"k"})
}

// testWholeOrNot reads an object while it is replaced again and again: there is always a whole one, and listings see it.
func testWholeOrNot(t *testing.T, client func() objstore.Store) {
	versions := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 100_000)}
	put(t, client(), "k", versions[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		s := client()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Put(ctx, "k", objstore.Bytes([]byte(versions[i%2]))); err != nil {
				t.Error(err)
			}
		}
	})
	s := client()
	p := make([]byte, 100_000)
	for range 100 {
		if n, err := s.ReadAt(ctx, "k", p, 0); n != len(p) || err != nil && err != io.EOF {
			t.Error(n, err)
			break
		}
		if string(p) != versions[0] && string(p) != versions[1] {
			t.Error("a mixture of two versions was read")
			break
		}
		page, err := s.List(ctx, "", "", 10)
		if err != nil || len(page) != 1 || page[0].Key != "k" {
			t.Error(page, err)
			break
		}
	}
	close(stop)
	wg.Wait()
}

func testReadAll(t *testing.T, client func() objstore.Store) {
	s := client()
	put(t, s, "k", "0123456789")
	_, err := objstore.ReadAll(ctx, s, "k", 9)
	wantCode(t, err, base.CodeObjectStore, "k", "9")
	_, err = objstore.ReadAll(ctx, s, "k", 10)
	must(t, err)
}

func keysOf(page []objstore.Info) []string {
	var keys []string
	for _, i := range page {
		keys = append(keys, i.Key)
	}
	return keys
}

func wantList(t testing.TB, s objstore.Store, prefix, after string, max int, want []string) {
	t.Helper()
	page, err := s.List(ctx, prefix, after, max)
	must(t, err)
	if got := keysOf(page); !slices.Equal(got, want) {
		t.Fatalf("list %q after %q: %q, want %q", prefix, after, got, want)
	}
}
