package mirrortest

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// TestMirrorReaders has readers of a mirror on a real server while the primary writes, compacts, and the mirror removes what
// is superseded. Each commit replaces all rows by ones of its own number: a reader sees one commit whole, and none that is
// older than what it saw before. Requests fail for everybody.
func TestMirrorReaders(t *testing.T) {
	impatient(t)
	server := s3test.Start(t)
	front := s3test.NewFront(t, s3test.Forward(server.Endpoint))
	o := options(front.Endpoint)
	o.MirrorRetain = readersGrace
	db, err := open(t.TempDir(), o)
	must(t, err)
	defer db.Free()
	commit := func(v int64) {
		var rows [][]engine.Value
		for id := range int64(300) {
			rows = append(rows, []engine.Value{engine.Int(id), engine.Int(v), engine.String("row")})
		}
		_, err := db.PutBatch(rows)
		must(t, err)
		must(t, db.Flush())
	}
	commit(1)
	waitMirrored(t, db)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		// Its own front: one process has one engine for a place.
		other := s3test.NewFront(t, s3test.Forward(server.Endpoint))
		n := 0
		other.SetFault(func(s3test.Request) s3test.Fault {
			if n++; n%5 == 0 {
				return s3test.Fault{Status: 503, Code: "SlowDown"}
			}
			return s3test.Fault{}
		})
		reader, err := engine.Open(s3test.URL(prefix), engine.Options{ReadOnly: true, S3: other.Config()})
		must(t, err)
		defer reader.Free()
		wg.Go(func() { follow(t, reader, stop) })
	}
	last := int64(1)
	for began := time.Now(); time.Since(began) < 5*readersGrace/2; last++ {
		commit(last + 1)
	}
	close(stop)
	wg.Wait()
	waitMirrored(t, db)
	wantSame(t, rowsOf(t, db), front)
	must(t, db.Close())
	wantProtocol(t, front)
	t.Logf("%d commits", last)
}

// readersGrace is for how long the mirror keeps what is superseded.
const readersGrace = time.Second

// follow reads again and again.
func follow(t *testing.T, db *engine.DB, stop chan struct{}) {
	seen, reads := int64(0), 0
	for ; ; reads++ {
		select {
		case <-stop:
			if reads < 3 {
				t.Errorf("a reader read %d times", reads)
			}
			return
		default:
		}
		began := time.Now()
		v, err := int64(0), db.Refresh()
		if err == nil {
			v, err = version(db)
		}
		if engine.CodeOf(err) == engine.CodeNotFound && time.Since(began) > readersGrace/2 {
			continue // on a machine that stood still
		}
		if err != nil {
			t.Error(err)
			return
		}
		if v == 0 || v < seen {
			t.Errorf("a reader saw commit %d after %d", v, seen)
		}
		seen = v
	}
}

// version returns the commit that a database shows, 0 where it shows a mixture.
func version(db *engine.DB) (v int64, err error) {
	s, err := db.Snapshot()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	it, err := s.Scan(engine.ScanOptions{Projection: []int{1}})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for rows := 0; ; {
		c, err := it.Next()
		if err != nil {
			return 0, err
		}
		if c == nil {
			if rows != 300 {
				return 0, nil
			}
			return v, nil
		}
		for i := range c.N {
			got := int64(c.Cols[0].Value(i).Lo)
			if rows++; rows > 1 && got != v {
				return 0, nil
			}
			v = got
		}
	}
}

// TestMirrorClone makes a database of a mirror on a real server, over a network that resets connections.
func TestMirrorClone(t *testing.T) {
	impatient(t)
	server := s3test.Start(t)
	front := s3test.NewFront(t, s3test.Forward(server.Endpoint))
	db, err := open(t.TempDir(), options(front.Endpoint))
	must(t, err)
	defer db.Free()
	rng := newRand(8)
	for range 8 {
		must(t, write(db, rng, 400))
	}
	waitMirrored(t, db)
	want := rowsOf(t, db)
	must(t, db.Close())

	n := 0
	front.SetFault(func(s3test.Request) s3test.Fault {
		n++
		return s3test.Fault{Drop: n%4 == 0}
	})
	dir := filepath.Join(t.TempDir(), "copy")
	report, err := engine.Clone(s3test.URL(prefix), dir, engine.CloneOptions{S3: front.Config()})
	must(t, err)
	front.SetFault(nil)
	copied, err := open(dir, engine.Options{})
	must(t, err)
	defer copied.Free()
	if got := rowsOf(t, copied); !slices.Equal(got, want) {
		t.Fatalf("the copy has %d rows, want %d: %+v", len(got), len(want), report)
	}
	must(t, write(copied, rng, 100))
	must(t, copied.Close())
}
