package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

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
	for _, s := range append(primaryTransactions(), primaryHistory()[2:4]...) {
		if err := s.do(db); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		s.apply(state)
	}
	if d := state.differs(t, db); d != "" {
		t.Fatal(d)
	}
	// Another process, which to this one is another region's.
	config := server.Config()
	config.UseSSL = "false"
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
