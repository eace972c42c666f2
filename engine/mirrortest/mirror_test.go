package mirrortest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

const prefix = "some/db"

// patience bounds what the tests wait for; it decides nothing.
const patience = 60 * time.Second

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(6, seed)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// impatient makes stores give up soon, so that outages of a second are long ones.
func impatient(t testing.TB) {
	tuning := objstore.DefaultS3Tuning()
	tuning.BackoffBase, tuning.BackoffMax, tuning.Attempts, tuning.Stall = 2*time.Millisecond, 20*time.Millisecond, 4, 500*time.Millisecond
	t.Cleanup(objstore.SetS3Tuning(tuning))
}

func options(endpoint string) engine.Options {
	return engine.Options{Mirror: s3test.URL(prefix), S3: s3test.Config(endpoint), MirrorFlush: -1}
}

func schema() *engine.Schema {
	return &engine.Schema{
		TableName: "t",
		Columns: []engine.Column{
			{Name: "id", Type: engine.Type{Kind: engine.KindBigInt}},
			{Name: "v", Type: engine.Type{Kind: engine.KindBigInt}, Nullable: true},
			{Name: "s", Type: engine.Type{Kind: engine.KindVarchar}, Nullable: true},
		},
		PrimaryKey: []int{0},
	}
}

// open opens a database, with a table in it.
func open(dir string, o engine.Options) (*engine.DB, error) {
	db, err := engine.Open(dir, o)
	if err != nil || db.HasTable() {
		return db, err
	}
	if err := db.CreateTable(schema()); err != nil {
		db.Free()
		return nil, err
	}
	return db, nil
}

// write puts rows with random keys, in small batches, and flushes them: a file and a manifest, mostly with deletion vectors.
func write(db *engine.DB, rng *rand.Rand, rows int) error {
	for rows > 0 {
		var batch [][]engine.Value
		for range min(rows, 100) {
			batch = append(batch, []engine.Value{
				engine.Int(rng.Int64N(3000)), engine.Int(rng.Int64()), engine.String(strings.Repeat("x", rng.IntN(60))),
			})
		}
		rows -= len(batch)
		if _, err := db.PutBatch(batch); err != nil {
			return err
		}
	}
	return db.Flush()
}

// rowsOf returns what a database holds, as text.
func rowsOf(t testing.TB, db *engine.DB) []string {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	it, err := s.Scan(engine.ScanOptions{})
	must(t, err)
	defer it.Close()
	var rows []string
	for {
		batch, err := it.Next()
		must(t, err)
		if batch == nil {
			return rows
		}
		for i := range batch.N {
			rows = append(rows, rowText(batch, i))
		}
	}
}

func rowText(c *engine.Columns, i int) string {
	var b strings.Builder
	for j := range c.Cols {
		fmt.Fprintf(&b, "%v|", c.Cols[j].Value(i))
	}
	return b.String()
}

// waitMirrored waits until the mirror has all there is.
func waitMirrored(t testing.TB, db *engine.DB) {
	t.Helper()
	must(t, db.Flush())
	waitFor(t, "the mirror has all", func() bool {
		s := db.MirrorStatus()
		if s.State == "stopped" {
			t.Fatalf("the mirror stopped: %s", s.LastError)
		}
		return s.LagSecs == 0 && s.Seq == s.VisibleSeq
	})
}

// wantSame compares the mirror, read where it is, with the database; the reader sends no write.
func wantSame(t testing.TB, want []string, front *s3test.Front) {
	t.Helper()
	// Its own front: the mirror may be removing what is superseded meanwhile.
	own := s3test.NewFront(t, s3test.Forward(front.Endpoint))
	db, err := engine.Open(s3test.URL(prefix), engine.Options{ReadOnly: true, S3: own.Config()})
	must(t, err)
	defer db.Free()
	if got := rowsOf(t, db); !slices.Equal(got, want) {
		t.Fatalf("the mirror has %d rows, the database %d", len(got), len(want))
	}
	for _, r := range own.Requests() {
		switch r.Op {
		case "GetObject", "HeadObject", "ListObjectsV2":
		default:
			t.Errorf("a reader sent %s of %s", r.Op, r.Key)
		}
	}
}

func wantProtocol(t testing.TB, front *s3test.Front) {
	t.Helper()
	if err := s3test.Check(front.Requests(), prefix); err != nil {
		t.Error(err)
	}
}

// TestMirrorOnS3 mirrors to a real server, over a network that delays and resets.
func TestMirrorOnS3(t *testing.T) {
	impatient(t)
	proxy := s3test.StartProxy(t, s3test.Start(t).Endpoint)
	front := s3test.NewFront(t, s3test.Forward(proxy.Endpoint))
	db, err := open(t.TempDir(), options(front.Endpoint))
	must(t, err)
	defer db.Free()
	rng := newRand(1)
	rounds := func() {
		for range 5 {
			must(t, write(db, rng, 300))
		}
	}
	rounds()
	proxy.AddToxic(t, "latency", "downstream", 1, map[string]any{"latency": 20, "jitter": 20})
	rounds()
	proxy.AddToxic(t, "reset_peer", "upstream", 0.3, map[string]any{"timeout": 10})
	rounds()
	proxy.RemoveToxic(t, "reset_peer", "upstream")
	proxy.AddToxic(t, "timeout", "downstream", 1, map[string]any{"timeout": 0}) // half-open
	rounds()
	waitFor(t, "an error", func() bool { return db.MirrorStatus().State == "retrying" })
	if text := db.MirrorStatus().LastError; !strings.Contains(text, s3test.URL(prefix)) || strings.Contains(text, s3test.SecretKey) {
		t.Errorf("the last error is %q", text)
	}
	proxy.RemoveToxic(t, "timeout", "downstream")
	proxy.RemoveToxic(t, "latency", "downstream")
	rounds()
	waitMirrored(t, db)
	wantSame(t, rowsOf(t, db), front)
	must(t, db.Close())
	wantProtocol(t, front)
}

// TestMirrorOutage is case 62, in seconds for minutes: half of the requests fail, then all do, then none.
func TestMirrorOutage(t *testing.T) {
	impatient(t)
	front := s3test.NewFront(t, s3test.Forward(s3test.Start(t).Endpoint))
	o := options(front.Endpoint)
	o.MaxLagAlert = 300 * time.Millisecond
	db, err := open(t.TempDir(), o)
	must(t, err)
	defer db.Free()
	rng := newRand(2)
	n := 0
	front.SetFault(func(s3test.Request) s3test.Fault {
		if n++; n%2 == 0 {
			return s3test.Fault{Status: 503, Code: "SlowDown"}
		}
		return s3test.Fault{}
	})
	for range 10 {
		must(t, write(db, rng, 200))
	}
	waitMirrored(t, db) // half of the requests suffice
	if s := db.MirrorStatus(); s.FilesUploaded == 0 {
		t.Errorf("%+v", s)
	}

	front.SetFault(func(s3test.Request) s3test.Fault { return s3test.Fault{Status: 503, Code: "SlowDown"} })
	before, slowest := front.Count(), time.Duration(0)
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(20 * time.Millisecond) {
		at := time.Now()
		must(t, write(db, rng, 50))
		slowest = max(slowest, time.Since(at))
		if s := db.MirrorStatus(); s.Seq > s.VisibleSeq || s.LagSecs < 0 {
			t.Fatalf("%+v", s)
		}
	}
	waitFor(t, "the alert", func() bool { return db.MirrorStatus().Alert })
	s := db.MirrorStatus()
	if s.State != "retrying" || s.LagSecs < 0.3 || s.FilesPending == 0 || s.BytesPending == 0 || s.Retries == 0 || !strings.Contains(s.LastError, "503") || s.LastErrorAt == "" {
		t.Errorf("in the outage: %+v", s)
	}
	// At 4 attempts a request and pauses that double from 100 ms on: some 6 requests of the mirror.
	if sent := front.Count() - before; sent > 100 {
		t.Errorf("%d requests in the outage", sent)
	}

	front.SetFault(nil)
	waitMirrored(t, db)
	if s := db.MirrorStatus(); s.Alert || s.LagSecs != 0 || s.FilesPending != 0 {
		t.Errorf("after the outage: %+v", s)
	}
	wantSame(t, rowsOf(t, db), front)
	must(t, db.Close())
	wantProtocol(t, front)
	t.Logf("slowest write and flush in the outage: %v", slowest)
}

// TestMirrorLostAnswers is case 59: every third write is applied and its answer lost.
func TestMirrorLostAnswers(t *testing.T) {
	impatient(t)
	front := s3test.NewFront(t, s3test.Forward(s3test.Start(t).Endpoint))
	n := 0
	front.SetFault(func(r s3test.Request) s3test.Fault {
		if strings.HasPrefix(r.Op, "Put") {
			n++
		}
		return s3test.Fault{LoseAnswer: strings.HasPrefix(r.Op, "Put") && n%3 != 0}
	})
	db, err := open(t.TempDir(), options(front.Endpoint))
	must(t, err)
	defer db.Free()
	rng := newRand(3)
	for range 15 {
		must(t, write(db, rng, 100))
	}
	waitMirrored(t, db)
	front.SetFault(nil)
	wantSame(t, rowsOf(t, db), front)
	must(t, db.Close())
	wantProtocol(t, front)
}

// TestMirrorForeign has another database at the destination: nothing of it is touched.
func TestMirrorForeign(t *testing.T) {
	impatient(t)
	server := s3test.Start(t)
	front := s3test.NewFront(t, s3test.Forward(server.Endpoint))
	rng := newRand(4)
	first, err := open(t.TempDir(), options(front.Endpoint))
	must(t, err)
	must(t, write(first, rng, 500))
	waitMirrored(t, first)
	want := rowsOf(t, first)
	must(t, first.Close())
	second, err := open(t.TempDir(), options(front.Endpoint))
	must(t, err)
	defer second.Free()
	must(t, write(second, rng, 500))
	waitFor(t, "the mirror stops", func() bool { return second.MirrorStatus().State == "stopped" })
	if text := second.MirrorStatus().LastError; !strings.Contains(text, s3test.URL(prefix)) {
		t.Errorf("the mirror stopped with %q", text)
	}
	must(t, write(second, rng, 500)) // writing goes on
	wantSame(t, want, front)
	must(t, second.Close())
}
