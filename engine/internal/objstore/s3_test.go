package objstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/objstoretest"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

func openS3(t testing.TB, prefix string, c objstore.S3Config) objstore.Store {
	t.Helper()
	s, err := objstore.Open(s3test.URL(prefix), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// quick scales the patience of the stores that are opened from now on to that of a test.
func quick(t testing.TB, change func(*objstore.S3Tuning)) {
	t.Helper()
	tuning := objstore.DefaultS3Tuning()
	tuning.WholeBytes = 0
	tuning.BackoffBase, tuning.BackoffMax, tuning.RetriesPerSecond = time.Millisecond, 10*time.Millisecond, 1000
	if change != nil {
		change(&tuning)
	}
	t.Cleanup(objstore.SetS3Tuning(tuning))
}

func random(size int) []byte {
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(uint64(size), 7))
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], rng.Uint64())
	}
	return data
}

func mustPut(t testing.TB, s objstore.Store, key string, data []byte) {
	t.Helper()
	if _, err := s.PutIfAbsent(t.Context(), key, objstore.Bytes(data)); err != nil {
		t.Fatal(err)
	}
}

func wantBytes(t testing.TB, s objstore.Store, key string, want []byte) {
	t.Helper()
	got, err := objstore.ReadAll(t.Context(), s, key, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: %d bytes that are not the %d that were stored", key, len(got), len(want))
	}
}

// wantFailure checks the code of an error, what it says, and that it holds no secret.
func wantFailure(t testing.TB, err error, code base.Code, parts ...string) {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("error %v has code %d, want %d", err, base.CodeOf(err), code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not say %q", err, p)
		}
	}
	for _, secret := range []string{s3test.SecretKey, s3test.AccessKey} {
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
			t.Fatalf("error %s holds a secret", text)
		}
	}
}

// TestS3Contract runs the tests of all stores on a real server, each below a prefix of its own.
func TestS3Contract(t *testing.T) {
	server := s3test.Start(t)
	n := 0
	objstoretest.Run(t, func(t *testing.T) func() objstore.Store {
		n++
		prefix := fmt.Sprintf("some where/%d", n)
		clients := []objstore.Store{openS3(t, prefix, server.Config()), openS3(t, prefix, server.Config())}
		var next atomic.Int64
		return func() objstore.Store { return clients[next.Add(1)%2] }
	})
}

// TestS3OneWinner has 16 writers commit the same versions on a real server.
func TestS3OneWinner(t *testing.T) {
	s := openS3(t, "db", s3test.Start(t).Config())
	for version := range 20 {
		key := fmt.Sprintf("metadata/v%d.manifest.bin", version)
		var wins, losses atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		for writer := range 16 {
			wg.Go(func() {
				data := []byte(fmt.Sprintf("writer %d of version %d", writer, version))
				_, err := s.PutIfAbsent(t.Context(), key, objstore.Bytes(data))
				switch base.CodeOf(err) {
				case base.CodeOK:
					wins.Add(1)
					winner.Store(data)
				case base.CodeAlreadyExists:
					losses.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || losses.Load() != 15 {
			t.Fatalf("%d won, %d lost", wins.Load(), losses.Load())
		}
		wantBytes(t, s, key, winner.Load().([]byte))
	}
}

// TestS3NoTrailers is case 60: stores that refuse chunked bodies, and stores that keep the framing as if it were data.
func TestS3NoTrailers(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.PartBytes = 5 << 20 })
	for _, refuse := range []bool{true, false} {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("refuse=%v,tls=%v", refuse, tls), func(t *testing.T) {
				if testing.Short() && refuse != tls {
					t.Skip("the others have both")
				}
				stub := s3test.NewStub()
				stub.NoChunks = refuse
				front := s3test.NewFront(t, stub)
				if tls {
					front = s3test.NewTLSFront(t, stub)
					quick(t, func(tuning *objstore.S3Tuning) {
						tuning.PartBytes, tuning.Transport = 5<<20, front.Transport()
					})
				}
				s := openS3(t, "db", front.Config())
				for _, size := range []int{0, 1, 100_000, 5 << 20, 11<<20 + 3} {
					key, data := fmt.Sprintf("data/L0/%d.parquet", size), random(size)
					mustPut(t, s, key, data)
					if stored, _ := stub.Object("db/" + key); !bytes.Equal(stored, data) {
						t.Fatalf("%d bytes are stored as %d others", size, len(stored))
					}
					wantBytes(t, s, key, data)
				}
				checkUploads(t, front.Requests())
			})
		}
	}
}

// checkUploads says that every upload carried checksums that the server can verify.
func checkUploads(t *testing.T, requests []s3test.Request) {
	t.Helper()
	uploads := 0
	for _, r := range requests {
		if r.Op != "PutObject" && r.Op != "UploadPart" {
			continue
		}
		uploads++
		sum, err := hex.DecodeString(r.Header.Get("X-Amz-Content-Sha256"))
		if err != nil || len(sum) != 32 || r.Header.Get("X-Amz-Checksum-Crc32c") == "" {
			t.Errorf("%s of %s has no checksums: %v", r.Op, r.Key, r.Header)
		}
		for _, name := range []string{"X-Amz-Trailer", "Content-Encoding", "Transfer-Encoding", "Expect"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("%s of %s has %s: %s", r.Op, r.Key, name, v)
			}
		}
	}
	if uploads != 4+3 {
		t.Errorf("%d uploads, want 7", uploads)
	}
}

// TestS3NoChecksums has a store that refuses headers which it does not know. It is asked once.
func TestS3NoChecksums(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.PartBytes = 5 << 20 })
	stub := s3test.NewStub()
	stub.NoChecksums = true
	front := s3test.NewFront(t, stub)
	s := openS3(t, "", front.Config())
	for i, size := range []int{10, 20, 6 << 20} {
		key := fmt.Sprint("k", i)
		mustPut(t, s, key, random(size))
		wantBytes(t, s, key, random(size))
	}
	refused := 0
	for _, r := range front.Requests() {
		if r.Status == http.StatusBadRequest {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d requests were refused, want 1", refused)
	}
}

// TestS3LostAnswer is case 59: the store applies a conditional write, and the client does not hear of it.
func TestS3LostAnswer(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.PartBytes = 5 << 20 })
	for _, size := range []int{100, 6 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			stub := s3test.NewStub()
			front := s3test.NewFront(t, stub)
			s := openS3(t, "db", front.Config())
			lost := map[string]bool{}
			front.SetFault(func(r s3test.Request) s3test.Fault {
				commit := r.Op == "PutObject" || r.Op == "CompleteMultipartUpload"
				if commit && !lost[r.Key] {
					lost[r.Key] = true
					return s3test.Fault{LoseAnswer: true}
				}
				return s3test.Fault{}
			})
			ours, others := random(size), random(size+1)
			_, err := s.PutIfAbsent(t.Context(), "metadata/v7.manifest.bin", objstore.Bytes(ours))
			wantFailure(t, err, base.CodeAlreadyExists, s3test.Bucket, "metadata/v7.manifest.bin")
			wantBytes(t, s, "metadata/v7.manifest.bin", ours)
			_, err = s.PutIfAbsent(t.Context(), "metadata/v7.manifest.bin", objstore.Bytes(others))
			wantFailure(t, err, base.CodeAlreadyExists)
			wantBytes(t, s, "metadata/v7.manifest.bin", ours)
			// A Put has nothing to be in doubt about.
			info, err := s.Put(t.Context(), "replaced", objstore.Bytes(others))
			if err != nil || info.Size != int64(size+1) {
				t.Fatal(info, err)
			}
			wantBytes(t, s, "replaced", others)
			if n := stub.Uploads(); n != 0 {
				t.Errorf("%d uploads are left", n)
			}
		})
	}
}

// TestS3SlowDown is case 62: half of the requests fail, then all, then none.
func TestS3SlowDown(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.RetriesPerSecond = 300 })
	stub := s3test.NewStub()
	front := s3test.NewFront(t, stub)
	s := openS3(t, "db", front.Config())
	faults := []s3test.Fault{
		{Status: 503, Code: "SlowDown"},
		{Status: 500, Code: "InternalError"},
		{Drop: true},
		{Status: 429, Code: "TooManyRequests"},
		{Status: 409, Code: "ConditionalRequestConflict"},
	}
	n := 0
	front.SetFault(func(s3test.Request) s3test.Fault {
		if n++; n%2 == 1 {
			return faults[n/2%len(faults)]
		}
		return s3test.Fault{}
	})
	for i := range 40 {
		mustPut(t, s, fmt.Sprint("data/", i), random(1000+i))
	}
	if st := objstore.StatsOf(s); st.Retries < 30 || st.Requests-st.Retries != 40 {
		t.Errorf("%+v", st)
	}

	// An outage: each call gives up after its attempts, and all together keep to the rate.
	front.SetFault(func(s3test.Request) s3test.Fault { return faults[0] })
	front.Forget()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			_, err := s.PutIfAbsent(t.Context(), fmt.Sprint("late/", i), objstore.Bytes(random(10)))
			wantErr := "gave up after 10 attempts"
			if base.CodeOf(err) != base.CodeObjectStore || !strings.Contains(err.Error(), wantErr) || !strings.Contains(err.Error(), "503 SlowDown") {
				t.Errorf("%v does not say %q", err, wantErr)
			}
		})
	}
	wg.Wait()
	// 576 retries, of which 300 may come at once.
	if took, least := time.Since(began), 900*time.Millisecond; took < least || front.Count() != 640 {
		t.Errorf("%d requests in %v", front.Count(), took)
	}

	front.SetFault(nil)
	for i := range 40 {
		wantBytes(t, s, fmt.Sprint("data/", i), random(1000+i))
	}
	mustPut(t, s, "late/0", random(10))
}

// TestS3RetryAfter leaves a store alone for as long as it asks.
func TestS3RetryAfter(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.BackoffMax = 200 * time.Millisecond })
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "", front.Config())
	first := true
	front.SetFault(func(s3test.Request) (f s3test.Fault) {
		if first {
			f = s3test.Fault{Status: 503, Code: "SlowDown", Header: map[string]string{"Retry-After": "1"}}
		}
		first = false
		return f
	})
	mustPut(t, s, "k", nil)
	r := front.Requests()
	if len(r) != 2 || r[1].At.Sub(r[0].At) < time.Second {
		t.Errorf("%d requests, the last after %v", len(r), r[len(r)-1].At.Sub(r[0].At))
	}
}

// TestS3Pages lists 2,500 objects of a store that gives tiny pages, and of one that does not know where to start.
func TestS3Pages(t *testing.T) {
	for _, size := range []int{7, 999} {
		stub := s3test.NewStub()
		stub.PageSize, stub.NoStartAfter = size, size == 999
		front := s3test.NewFront(t, stub)
		s := openS3(t, "db", front.Config())
		var want []string
		for i := range 2500 {
			want = append(want, fmt.Sprintf("data/L1/%06d.parquet", i))
			stub.SetObject("db/"+want[i], nil)
		}
		stub.SetObject("other/data/L1/x", nil)
		var got []string
		err := objstore.ListAll(t.Context(), s, "data/", func(i objstore.Info) error {
			got = append(got, i.Key)
			return nil
		})
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d objects, %v", len(got), err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("object %d is %s, want %s", i, got[i], want[i])
			}
		}
		page, err := s.List(t.Context(), "data/", want[1200], 20)
		if err != nil || len(page) != 20 || page[0].Key != want[1201] {
			t.Fatalf("%d objects, %v", len(page), err)
		}
	}
}

// TestS3HalfOpen has connections that pass nothing any more, connections that are reset, and slow ones.
func TestS3HalfOpen(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) {
		tuning.Stall, tuning.Attempts = 300*time.Millisecond, 3
	})
	server := s3test.Start(t)
	proxy := s3test.StartProxy(t, server.Endpoint)
	s := openS3(t, "db", proxy.Config())
	data := random(300_000)
	mustPut(t, s, "k", data)
	for _, stream := range []string{"upstream", "downstream"} {
		proxy.AddToxic(t, "timeout", stream, 1, map[string]any{"timeout": 0})
		began := time.Now()
		_, err := s.Put(t.Context(), "other", objstore.Bytes(data))
		wantFailure(t, err, base.CodeObjectStore, "gave up after 3 attempts", "no answer within 300ms", "other")
		_, err = s.ReadAt(t.Context(), "k", make([]byte, 10), 0)
		wantFailure(t, err, base.CodeObjectStore, "no answer within")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		// A context ends it at once.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = s.Head(ctx, "k")
		cancel()
		wantFailure(t, err, base.CodeTimeout)
		proxy.RemoveToxic(t, "timeout", stream)
		wantBytes(t, s, "k", data)
	}
	proxy.AddToxic(t, "reset_peer", "downstream", 1, map[string]any{"timeout": 0})
	_, err := s.Head(t.Context(), "k")
	wantFailure(t, err, base.CodeObjectStore, "gave up")
	proxy.RemoveToxic(t, "reset_peer", "downstream")
	// Slower than the patience, but it moves all the time.
	proxy.AddToxic(t, "bandwidth", "downstream", 1, map[string]any{"rate": 400})
	wantBytes(t, s, "k", data)
	proxy.RemoveToxic(t, "bandwidth", "downstream")
	proxy.SetUp(t, false)
	_, err = s.Head(t.Context(), "k")
	wantFailure(t, err, base.CodeObjectStore, "refused")
	proxy.SetUp(t, true)
	wantBytes(t, s, "k", data)
}

// TestS3Cancelled ends calls that wait for an answer, and calls that wait for the next attempt.
func TestS3Cancelled(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.BackoffBase, tuning.BackoffMax = time.Hour, time.Hour })
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "", front.Config())
	for _, f := range []s3test.Fault{{Hang: true}, {Status: 503, Code: "SlowDown"}} {
		front.SetFault(func(s3test.Request) s3test.Fault { return f })
		calls := []func(ctx context.Context) error{
			func(ctx context.Context) error { _, err := s.Put(ctx, "k", objstore.Bytes(random(10))); return err },
			func(ctx context.Context) error { _, err := s.ReadAt(ctx, "k", make([]byte, 9), 0); return err },
			func(ctx context.Context) error { _, err := s.Head(ctx, "k"); return err },
			func(ctx context.Context) error { _, err := s.List(ctx, "", "", 9); return err },
			func(ctx context.Context) error { return s.Delete(ctx, "k") },
		}
		for _, call := range calls {
			before := front.Count()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- call(ctx) }()
			for front.Count() == before {
				time.Sleep(time.Millisecond)
			}
			cancel()
			select {
			case err := <-done:
				wantFailure(t, err, base.CodeCancelled)
			case <-time.After(20 * time.Second):
				t.Fatal("a cancelled call goes on")
			}
		}
	}
}

// TestS3BrokenAnswers reads over connections that end in the middle.
func TestS3BrokenAnswers(t *testing.T) {
	quick(t, nil)
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "", front.Config())
	data := random(200_000)
	mustPut(t, s, "k", data)
	n := 0
	front.SetFault(func(r s3test.Request) s3test.Fault {
		if n++; r.Op == "GetObject" && n%3 != 0 {
			return s3test.Fault{CutBody: 50_000}
		}
		return s3test.Fault{}
	})
	for range 5 {
		wantBytes(t, s, "k", data)
	}
	front.SetFault(func(r s3test.Request) s3test.Fault {
		if n++; r.Op == "ListObjectsV2" && n%3 != 0 {
			return s3test.Fault{CutBody: 150}
		}
		return s3test.Fault{}
	})
	for range 5 {
		if page, err := s.List(t.Context(), "", "", 10); err != nil || len(page) != 1 {
			t.Errorf("listed %v: %v", page, err)
		}
	}
	front.SetFault(func(r s3test.Request) s3test.Fault { return s3test.Fault{CutBody: 50_000} })
	n, err := s.ReadAt(t.Context(), "k", make([]byte, len(data)), 0)
	wantFailure(t, err, base.CodeObjectStore, "broke off", "gave up")
	if n != 0 {
		t.Errorf("%d bytes with an error", n)
	}
}

// TestS3KeysAsTheyAre stores keys that need escaping, and looks at what the server makes of them.
func TestS3KeysAsTheyAre(t *testing.T) {
	stub, server := s3test.NewStub(), s3test.Start(t)
	onStub, real := openS3(t, "a b/ü+", s3test.Config(s3test.NewFront(t, stub).Endpoint)), openS3(t, "a b/ü+", server.Config())
	for _, key := range []string{"x y", "a+b", "100%", "%2F", "ä€𝄞", "q?v=1&w#f", "(~*'!@$,;:=)"} {
		for _, s := range []objstore.Store{onStub, real} {
			mustPut(t, s, key, []byte(key))
			wantBytes(t, s, key, []byte(key))
			page, err := s.List(t.Context(), key, "", 10)
			if err != nil || len(page) != 1 || page[0].Key != key {
				t.Errorf("%s lists %v, %v", key, page, err)
			}
		}
		if data, _ := stub.Object("a b/ü+/" + key); string(data) != key {
			t.Errorf("the stub has no %s", key)
		}
		if data, err := os.ReadFile(filepath.Join(server.Dir, s3test.Bucket, "a b", "ü+", key)); string(data) != key {
			t.Errorf("the server has no %s: %v", key, err)
		}
		for _, s := range []objstore.Store{onStub, real} {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
	}
}
