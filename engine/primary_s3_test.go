package engine

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// fill does some of everything to a database, and notes it.
func (state primaryState) fill(t *testing.T, db *DB) {
	t.Helper()
	for _, s := range append(primaryTransactions(), primaryHistory()[2:4]...) {
		if err := s.do(db); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		s.apply(state)
	}
}

// TestPrimaryS3 writes to a real server: every kind of commit, two writers of which one loses its place, and a reader that
// follows.
func TestPrimaryS3(t *testing.T) {
	server := s3test.Start(t)
	url := s3test.URL("some/where")
	open := func(o Options) *DB {
		t.Helper()
		o.S3 = server.Config()
		db, err := Open(url, o)
		must(t, err)
		return db
	}
	db := open(Options{NoAutoCompaction: true})
	defer func() { db.Free() }()
	state := primaryState{}
	state.fill(t, db)
	if d := state.differs(t, db); d != "" {
		t.Fatal(d)
	}
	// Another process, which to this one is another endpoint's.
	config := server.Config()
	config.Endpoint = strings.Replace(config.Endpoint, "127.0.0.1", "localhost", 1)
	if config == server.Config() {
		t.Fatalf("the endpoint is %s", config.Endpoint)
	}
	other, err := Open(url, Options{S3: config})
	must(t, err)
	defer func() { other.Free() }()
	if d := state.differs(t, other); d != "" {
		t.Fatal("another writer: ", d)
	}
	more := putStep("t", 100, 110, 4)
	must(t, more.do(other))
	more.apply(state)
	if err := putStep("t", 100, 110, 5).do(db); base.CodeOf(err) != base.CodeConflict {
		t.Fatalf("the writer that lost its place: %v", err)
	}
	must(t, db.Close())
	db.Free()
	db = open(Options{ReadOnly: true})
	if d := state.differs(t, db); d != "" {
		t.Fatal("a reader: ", d)
	}
	must(t, other.Compact())
	must(t, db.Refresh())
	if d := state.differs(t, db); d != "" {
		t.Fatal("a reader after a compaction: ", d)
	}
	_, err = Open(s3test.URL("no/where"), Options{S3: config, NoCreate: true})
	if base.CodeOf(err) != base.CodeNotFound {
		t.Fatalf("a database that is not there: %v", err)
	}
}

// TestPrimaryS3Faults: half of the requests fail before or after the server did them. What was acknowledged is there, and on
// the wire no manifest came before what it names, nor one after a later one.
func TestPrimaryS3Faults(t *testing.T) {
	tuning := objstore.DefaultS3Tuning()
	tuning.BackoffBase, tuning.BackoffMax, tuning.RetriesPerSecond = time.Millisecond, 10*time.Millisecond, 100_000
	defer objstore.SetS3Tuning(tuning)()
	front := s3test.NewFront(t, s3test.NewStub())
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(3, 1))
	front.SetFault(func(s3test.Request) s3test.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch n := rng.IntN(100); {
		case n < 30:
			return s3test.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		case n < 40:
			return s3test.Fault{LoseAnswer: true}
		case n < 50:
			return s3test.Fault{Drop: true}
		}
		return s3test.Fault{}
	})
	open := func() *DB {
		t.Helper()
		db, err := Open(s3test.URL("db"), Options{S3: front.Config(), L0Files: 8})
		must(t, err)
		return db
	}
	db := open()
	defer func() { db.Free() }()
	state := primaryState{}
	state.fill(t, db)
	var wg sync.WaitGroup
	for id := range int64(8) {
		wg.Go(func() {
			for round := range int64(5) {
				if _, err := db.Put(testRow(10_000+id, round)); err != nil {
					t.Error(err)
				}
			}
		})
		state["t"][10_000+id] = 4
	}
	wg.Wait()
	sameState(t, "the writer", state, db)
	must(t, db.Close())
	db.Free()
	front.SetFault(nil)
	db = open()
	sameState(t, "the next writer", state, db)
	if err := s3test.Check(slices.DeleteFunc(front.Requests(), func(r s3test.Request) bool {
		// OPTIONS is stored beside a primary. What a search for orphans lists, the writer has not been told of.
		return strings.Contains(r.Key, "/OPTIONS") || r.Op == "ListObjectsV2"
	}), "db"); err != nil {
		t.Error(err)
	}
	t.Logf("%d requests", front.Count())
}

// BenchmarkPrimary measures commits of a row to a server on this machine.
func BenchmarkPrimary(b *testing.B) {
	for _, writers := range []int{1, 16} {
		for _, update := range []bool{false, true} {
			b.Run(fmt.Sprintf("writers=%d/update=%v", writers, update), func(b *testing.B) {
				server := s3test.Start(b)
				db, err := Open(s3test.URL("db"), Options{S3: server.Config()})
				must(b, err)
				defer db.Free()
				must(b, db.CreateTable(testSchema()))
				before := manifestVersion(b, db)
				var next, total atomic.Int64
				b.ResetTimer()
				start := time.Now()
				var wg sync.WaitGroup
				for range writers {
					wg.Go(func() {
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							id := n
							if update {
								id = n % 100
							}
							if _, err := db.Put(testRow(id, n)); err != nil {
								b.Error(err)
								return
							}
							total.Add(1)
						}
					})
				}
				wg.Wait()
				secs := time.Since(start).Seconds()
				b.StopTimer()
				b.ReportMetric(float64(total.Load())/secs, "rows/s")
				b.ReportMetric(float64(manifestVersion(b, db)-before)/secs, "manifests/s")
			})
		}
	}
}
