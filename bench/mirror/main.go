// Command mirror measures the mirror against a real S3 server on this machine (versitygw, which ./dev puts into build/bin):
// how far it is behind while rows come in at a given rate, how fast it catches up after an outage beside a plain parallel
// upload of the same files, and how many requests it makes while nothing happens.
//
//	./dev bench mirror [-only lag|outage|idle] [-rate MB/S] [-secs N] [-flush SECS] [-outage MB] [-idle DURATION] [-v] [-dir DIR]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/merutable/merutable/engine"
)

var (
	only     = flag.String("only", "", "measure this alone: lag, outage or idle")
	rate     = flag.Float64("rate", 50, "MB of rows a second that come in")
	secs     = flag.Float64("secs", 30, "for how long")
	flushAge = flag.Float64("flush", 0.5, "mirror_flush_secs: how old rows become before they are flushed for the mirror")
	outage   = flag.Float64("outage", 500, "MB of rows that come in while the server is down")
	idle     = flag.Duration("idle", 3*time.Minute, "how long nothing happens")
	parallel = flag.Int("parallel", 4, "mirror_parallelism, and that of the plain upload")
	verbose  = flag.Bool("v", false, "print the requests of the idle part")
	base     = flag.String("dir", "", "where everything is (default: the system's temporary directory)")
)

// retain is mirror_retain_secs: short, so that the removal of what was superseded is over before the idle part begins.
const retain = 2 * time.Second

func main() {
	flag.Parse()
	root, err := os.MkdirTemp(*base, "merutable-bench-mirror-")
	check(err)
	defer func() { _ = os.RemoveAll(root) }()
	for _, part := range []struct {
		name string
		run  func(dir string)
	}{{"lag", measureLag}, {"outage", measureOutage}, {"idle", measureIdle}} {
		if *only == "" || *only == part.name {
			dir := filepath.Join(root, part.name)
			check(os.MkdirAll(dir, 0o755))
			part.run(dir)
			check(os.RemoveAll(dir))
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/mirror:", err)
		os.Exit(1)
	}
}

func open(dir string, endpoint string) *engine.DB {
	db, err := engine.Open(filepath.Join(dir, "db"), engine.Options{
		Mirror: "s3://" + bucket + "/db", S3: config(endpoint), MirrorParallelism: *parallel,
		MirrorFlush: time.Duration(*flushAge * float64(time.Second)), MirrorRetain: retain,
	})
	check(err)
	check(db.CreateTable(schema()))
	return db
}

// waitMirrored waits until the mirror has all, and returns how long that took.
func waitMirrored(db *engine.DB) time.Duration {
	began := time.Now()
	for {
		s := db.MirrorStatus()
		if s.State == "stopped" {
			check(fmt.Errorf("the mirror stopped: %s", s.LastError))
		}
		if s.LagSecs == 0 && s.Seq == s.VisibleSeq {
			return time.Since(began)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// measureLag has rows come in at the rate, and looks how old the oldest is that the mirror lacks.
func measureLag(dir string) {
	s := startServer(dir)
	defer s.stop()
	db := open(dir, s.endpoint())
	defer db.Free()
	stop := make(chan struct{})
	samples := make(chan []float64)
	go func() {
		var lags []float64
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-tick.C:
				lags = append(lags, db.MirrorStatus().LagSecs)
			case <-stop:
				samples <- lags
				return
			}
		}
	}()
	g := newGenerator(1)
	began := time.Now()
	for time.Since(began).Seconds() < *secs {
		g.put(db)
		ahead := time.Duration(float64(g.bytes)/(*rate*1e6)*float64(time.Second)) - time.Since(began)
		time.Sleep(ahead)
	}
	took := time.Since(began).Seconds()
	close(stop)
	lags := <-samples
	for second := 0; second*100 < len(lags); second++ { // every five seconds
		fmt.Printf("  lag after %3d s: %.2f s\n", second*5, lags[second*100])
	}
	slices.Sort(lags)
	status := db.MirrorStatus()
	fmt.Printf("lag at %.1f MB/s of %.0f asked for (%.0f k rows/s, %.0f s, flushed after %.1f s): median %.2f s, 99 %% %.2f s, max %.2f s\n",
		float64(g.bytes)/1e6/took, *rate, float64(g.rows)/1e3/took, took, *flushAge, lags[len(lags)/2], lags[len(lags)*99/100], lags[len(lags)-1])
	fmt.Printf("  %d files, %.0f MB uploaded, %d manifests, %d retries; all is there %.2f s after the last row\n",
		status.FilesUploaded, float64(status.BytesUploaded)/1e6, status.ManifestsUploaded, status.Retries, waitMirrored(db).Seconds())
	check(db.Close())
}

// measureOutage has rows come in while the server is down, and compares what follows with a plain upload.
func measureOutage(dir string) {
	s := startServer(dir)
	defer func() { s.stop() }()
	db := open(dir, s.endpoint())
	defer db.Free()
	g := newGenerator(2)
	g.put(db)
	check(db.Flush())
	waitMirrored(db)
	s.stop()
	for float64(g.bytes) < *outage*1e6 {
		g.put(db)
	}
	check(db.Flush())
	waitQuiet(db)
	before := db.MirrorStatus()
	s.start()
	back := time.Now()
	for db.MirrorStatus().BytesUploaded == before.BytesUploaded {
		time.Sleep(time.Millisecond)
	}
	noticed := time.Since(back)
	caughtUp := waitMirrored(db)
	after := db.MirrorStatus()
	sent := float64(after.BytesUploaded-before.BytesUploaded) / 1e6
	files := s.files("db/data")
	check(db.Close())
	var plain []float64
	for i := range 3 {
		took, bytes := s.upload(files, fmt.Sprint("plain", i))
		plain = append(plain, float64(bytes)/1e6/took.Seconds())
	}
	slices.SortFunc(plain, func(a, b float64) int { return cmp.Compare(b, a) })
	ours := sent / caughtUp.Seconds()
	fmt.Printf("after an outage: noticed after %.1f s, then %.0f MB in %d files at %.0f MB/s; plain upload of the same files %.0f MB/s (best of 3); ratio %.2f\n",
		noticed.Seconds(), sent, after.FilesUploaded-before.FilesUploaded, ours, plain[0], ours/plain[0])
}

// waitQuiet waits until no compaction changes the files any more.
func waitQuiet(db *engine.DB) {
	for last, since := int64(-1), time.Now(); time.Since(since) < 2*time.Second; time.Sleep(50 * time.Millisecond) {
		sn, err := db.Snapshot()
		check(err)
		if v := sn.Version(); v != last {
			last, since = v, time.Now()
		}
		sn.Close()
	}
}

// measureIdle counts the requests of a mirror that has nothing to do.
func measureIdle(dir string) {
	s := startServer(dir)
	defer s.stop()
	c := startCounter(s.endpoint())
	db := open(dir, c.endpoint)
	defer db.Free()
	g := newGenerator(3)
	for range 20 {
		g.put(db)
		check(db.Flush())
	}
	waitMirrored(db)
	waitQuiet(db)
	waitMirrored(db)
	for last := int64(-1); last != c.n.Load(); time.Sleep(10 * retain) { // what was superseded goes, once
		last = c.n.Load()
	}
	before := c.n.Load()
	time.Sleep(*idle)
	n := c.n.Load() - before
	fmt.Printf("idle: %d requests in %v: %.0f an hour\n", n, *idle, float64(n)*float64(time.Hour)/float64(*idle))
	check(db.Close())
}
