package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/mirror/mirrortest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

var errUnavailable = errors.New("503 slow down")

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// waitMirrored waits until the mirror has all there is, in memory too.
func waitMirrored(t *testing.T, db *DB) {
	t.Helper()
	must(t, db.Flush())
	waitFor(t, "the mirror has all", func() bool {
		s := db.MirrorStatus()
		if s.State == "stopped" {
			t.Fatalf("the mirror stopped: %s", s.LastError)
		}
		return s.LagSecs == 0 && s.Seq == s.VisibleSeq && s.State == "idle"
	})
	if s := db.MirrorStatus(); s.FilesPending != 0 || s.BytesPending != 0 {
		t.Fatalf("it is idle with files pending: %+v", s)
	}
}

// copyNewest writes what the newest manifest of the root table names to a directory, as a reader would read it.
func copyNewest(t *testing.T, s objstore.Store) string {
	t.Helper()
	ctx := context.Background()
	newest := int64(0)
	must(t, objstore.ListAll(ctx, s, "metadata/v", func(i objstore.Info) error {
		if v, ok := manifest.ParseFileName(filepath.Base(i.Key)); ok {
			newest = max(newest, v)
		}
		return nil
	}))
	dir, key := t.TempDir(), "metadata/"+manifest.FileName(newest)
	data, err := objstore.ReadAll(ctx, s, key, 1<<30)
	must(t, err)
	m, err := manifest.Decode(key, data)
	must(t, err)
	writeUnder(t, dir, key, data)
	for rel := range mirrortest.Files(m) {
		data, err := objstore.ReadAll(ctx, s, rel, 1<<30)
		must(t, err)
		writeUnder(t, dir, rel, data)
	}
	return dir
}

func writeUnder(t *testing.T, dir, key string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, key)
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, data, 0o666))
}

// copyStore writes a store's objects to a directory, while nothing changes them.
func copyStore(t *testing.T, s objstore.Store) string {
	t.Helper()
	dir := t.TempDir()
	err := objstore.ListAll(context.Background(), s, "", func(i objstore.Info) error {
		data, err := objstore.ReadAll(context.Background(), s, i.Key, 1<<30)
		if err == nil {
			writeUnder(t, dir, i.Key, data)
		}
		return err
	})
	must(t, err)
	return dir
}

// openMirrored opens a database in memory with a mirror.
func openMirrored(t *testing.T, fs vfs.FS, store objstore.Store, o Options) *DB {
	t.Helper()
	o.UseMirror(store)
	return openMem(t, fs, o)
}

func putRows(t *testing.T, db *DB, m model, from, to int64) {
	t.Helper()
	for i := from; i < to; i++ {
		_, err := db.Put(testRow(i, i))
		must(t, err)
		m[i] = i
	}
}

// checkMirror opens a copy of the mirror and compares it with a model.
func checkMirror(t *testing.T, store objstore.Store, m model) {
	t.Helper()
	r, err := Open(copyStore(t, store), Options{ReadOnly: true})
	must(t, err)
	defer r.Free()
	check(t, r, m)
}

func TestMirrorHasWhatIsThere(t *testing.T) {
	fs, store := vfs.NewMem(), objstore.NewMem()
	checker := mirrortest.NewChecker(store, t.Errorf)
	db := openMirrored(t, fs, checker, Options{MirrorFlush: -1})
	want := model{}
	putRows(t, db, want, 0, 10)
	waitMirrored(t, db)
	checkMirror(t, store, want)
	putRows(t, db, want, 5, 40)
	must(t, db.Close())
	db.Free()
	checkMirror(t, store, want) // Close brought it there
	sent := checker.Requests(objstore.OpPutIfAbsent)
	db = openMirrored(t, fs, checker, Options{MirrorFlush: -1})
	waitMirrored(t, db)
	if n := checker.Requests(objstore.OpPutIfAbsent) - sent; n != 0 {
		t.Errorf("%d objects were sent again", n)
	}
	s := db.MirrorStatus()
	if s.Destination != "memory store" || s.BytesUploaded != 0 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
	must(t, db.Close())
	if s := db.MirrorStatus(); s.Seq != s.VisibleSeq {
		t.Errorf("after Close: %+v", s)
	}
	db.Free()
}

// TestMirrorSeq: the sequence number is exact over tables of which some have rows in memory.
func TestMirrorSeq(t *testing.T) {
	fs, store := vfs.NewMem(), objstore.NewMem()
	db := openMirrored(t, fs, store, Options{MirrorFlush: -1})
	defer db.Free()
	must(t, db.CreateTable(namedSchema("other")))
	other := openTable(t, db, "other")
	defer other.Free()
	m := model{}
	putRows(t, db, m, 0, 10)
	waitMirrored(t, db)
	putRows(t, other, m, 0, 1)
	first := db.Stats().Seq
	putRows(t, other, m, 1, 5)
	putRows(t, db, m, 10, 20)
	must(t, db.c.flushAll())
	waitFor(t, "the rows of one table", func() bool { return db.MirrorStatus().FilesPending == 0 && db.MirrorStatus().Seq == first-1 })
	if s := db.MirrorStatus(); s.VisibleSeq <= s.Seq || s.LagSecs <= 0 {
		t.Errorf("%+v", s)
	}
	killed(db)
	db2 := openMirrored(t, fs, store, Options{MirrorFlush: -1})
	defer db2.Free()
	waitMirrored(t, db2)
}

// TestMirrorRandom runs random histories of many tables, re-opens and power cuts, with a store that fails often, and
// compares the store with the model.
func TestMirrorRandom(t *testing.T) {
	histories := unlessShort(6, 2)
	for seed := range histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { mirrorHistory(t, uint64(seed)) })
	}
}

func mirrorHistory(t *testing.T, seed uint64) {
	checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
	var mu sync.Mutex
	failing, rng := 30, rand.New(rand.NewPCG(seed, 5))
	store := objstore.NewFaulty(checker, func(objstore.Op, string) error {
		mu.Lock()
		defer mu.Unlock()
		switch n := rng.IntN(100); {
		case n < failing/2:
			return errUnavailable
		case n < failing:
			return &objstore.AnswerLost{Err: errUnavailable}
		}
		return nil
	})
	h := &tablesHistory{
		t: t, rng: rand.New(rand.NewPCG(seed, 99)), mem: vfs.NewMem(), want: map[string]model{},
		o: Options{MemtableBytes: minMemtableBytes, GCGrace: -1, L0Files: 2, MirrorRetain: time.Millisecond, MirrorFlush: 10 * time.Millisecond},
	}
	h.o.UseMirror(store)
	h.open()
	for i := range 40 {
		h.step()
		if i%10 != 9 {
			continue
		}
		mu.Lock()
		failing = 0
		mu.Unlock()
		waitMirrored(t, h.db)
		r, err := Open(copyStore(t, checker), Options{ReadOnly: true})
		must(t, err)
		h.check(r)
		r.Free()
		mu.Lock()
		failing = 30
		mu.Unlock()
	}
	h.reader.c.release()
	h.reader.c.drop()
	must(t, h.db.Close())
	h.db.Free()
}

// TestMirrorAtAnyMoment opens what the store has while it changes: each time it is the local snapshot of that version.
func TestMirrorAtAnyMoment(t *testing.T) {
	store := objstore.NewMem()
	checker := mirrortest.NewChecker(store, t.Errorf)
	db := openMirrored(t, vfs.NewMem(), checker, Options{
		MemtableBytes: minMemtableBytes, RetainVersions: 100_000, MirrorFlush: 20 * time.Millisecond, L0Files: 2, MirrorParallelism: 2,
	})
	defer db.Free()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := db.Put(testRow(i%300, i)); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond / 10)
		}
	})
	last := int64(0)
	for range unlessShort(30, 8) {
		waitFor(t, "another version", func() bool { return checker.Newest("") > last })
		r, err := Open(copyNewest(t, store), Options{ReadOnly: true})
		must(t, err)
		there, err := r.Snapshot()
		must(t, err)
		here, err := db.SnapshotAt(there.Version())
		must(t, err)
		last = there.Version()
		sameSnapshots(t, here, there)
		here.Close()
		there.Close()
		r.Free()
	}
	close(stop)
	wg.Wait()
	must(t, db.Close())
}

func sameSnapshots(t *testing.T, a, b *Snapshot) {
	t.Helper()
	rows := func(s *Snapshot) [][]Value {
		it, err := s.Scan(ScanOptions{})
		must(t, err)
		return collect(t, it)
	}
	x, y := rows(a), rows(b)
	if len(x) != len(y) {
		t.Fatalf("version %d has %d rows here and %d there", a.Version(), len(x), len(y))
	}
	for i := range x {
		if !equalRows(x[i], y[i]) {
			t.Fatalf("version %d, row %d: %v here, %v there", a.Version(), i, x[i], y[i])
		}
	}
}

// TestMirrorOutage: writes go on, closing does not wait, what is kept on disk is bounded, and the next open goes on.
func TestMirrorOutage(t *testing.T) {
	fs := vfs.NewMem()
	checker := mirrortest.NewChecker(objstore.NewMem(), t.Errorf)
	var down atomic.Bool
	store := objstore.NewFaulty(checker, func(objstore.Op, string) error {
		if down.Load() {
			return errUnavailable
		}
		return nil
	})
	o := Options{MirrorFlush: -1, GCGrace: -1, L0Files: 2}
	db := openMirrored(t, fs, store, o)
	want := model{}
	putRows(t, db, want, 0, 50)
	waitMirrored(t, db)
	down.Store(true)
	for i := range int64(20) {
		putRows(t, db, want, i*10, i*10+20)
		must(t, db.Flush())
	}
	waitFor(t, "it retries", func() bool { s := db.MirrorStatus(); return s.State == "retrying" && s.Retries > 0 })
	s := db.MirrorStatus()
	if s.LagSecs <= 0 || s.FilesPending == 0 || s.BytesPending == 0 || !strings.Contains(s.LastError, "503") || s.LastErrorAt == "" {
		t.Errorf("%+v", s)
	}
	must(t, db.CompactRange(CompactOptions{}))
	waitFor(t, "what compaction removed goes, but for one snapshot", func() bool {
		n, err := fs.List("/db/data/L0")
		return err == nil && len(n) <= 6
	})
	began := time.Now()
	must(t, db.Close())
	db.Free()
	if d := time.Since(began); d > mirrorStop+mirrorFinish {
		t.Errorf("closing took %v", d)
	}
	db = openMirrored(t, fs, store, o) // still down: no error
	putRows(t, db, want, 300, 310)
	down.Store(false)
	waitMirrored(t, db)
	checkMirror(t, checker, want)
	must(t, db.Close())
	db.Free()
}

// TestMirrorHangs: a store that never answers does not keep the database from being closed.
func TestMirrorHangs(t *testing.T) {
	defer func(finish, stop time.Duration) { mirrorFinish, mirrorStop = finish, stop }(mirrorFinish, mirrorStop)
	mirrorFinish, mirrorStop = 200*time.Millisecond, 100*time.Millisecond
	release := make(chan struct{})
	defer close(release)
	store := objstore.NewFaulty(objstore.NewMem(), func(objstore.Op, string) error {
		<-release
		return errUnavailable
	})
	for _, end := range []func(db *DB){func(db *DB) { must(t, db.Close()) }, (*DB).Free} {
		db := openMirrored(t, vfs.NewMem(), store, Options{})
		putRows(t, db, model{}, 0, 10)
		began := time.Now()
		end(db)
		if d := time.Since(began); d > mirrorFinish+mirrorStop+5*time.Second {
			t.Errorf("it took %v", d)
		}
		db.Free()
	}
}

// TestMirrorFlushesByAge: rows do not stay in memory for long.
func TestMirrorFlushesByAge(t *testing.T) {
	store := objstore.NewMem()
	db := openMirrored(t, vfs.NewMem(), store, Options{MirrorFlush: 20 * time.Millisecond})
	defer db.Free()
	want := model{}
	for i := range int64(5) {
		putRows(t, db, want, i, i+1)
		waitFor(t, "the row is at the mirror", func() bool { s := db.MirrorStatus(); return s.Seq == s.VisibleSeq && s.LagSecs == 0 })
		checkMirror(t, store, want)
	}
}

// TestMirrorAlert: a warning once an episode, and its end.
func TestMirrorAlert(t *testing.T) {
	r := &recorder{events: map[string]int{}}
	defer AddLogHandler(r)()
	var down atomic.Bool
	store := objstore.NewFaulty(objstore.NewMem(), func(objstore.Op, string) error {
		if down.Load() {
			return errUnavailable
		}
		return nil
	})
	db := openMirrored(t, vfs.NewMem(), store, Options{MaxLagAlert: 50 * time.Millisecond, MirrorFlush: 5 * time.Millisecond})
	defer db.Free()
	waitMirrored(t, db)
	DrainLog()
	before := r.count("mirror_lag WARN") // a slow machine may have been late
	for episode := 1; episode <= 2; episode++ {
		down.Store(true)
		putRows(t, db, model{}, 0, 10)
		waitFor(t, "the warning", func() bool { return db.MirrorStatus().Alert })
		putRows(t, db, model{}, 0, 10)
		time.Sleep(60 * time.Millisecond)
		DrainLog()
		if n := r.count("mirror_lag WARN") - before; n != episode {
			t.Errorf("%d warnings in episode %d", n, episode)
		}
		down.Store(false)
		waitFor(t, "its end", func() bool { return !db.MirrorStatus().Alert })
		DrainLog()
		if n := r.count("mirror_lag_end INFO") - before; n != episode {
			t.Errorf("%d ends in episode %d", n, episode)
		}
	}
	if n := r.count("mirror_error WARN"); n != 1 { // at most one a minute
		t.Errorf("%d events about errors", n)
	}
}

// TestMirrorClock: a wall clock that jumps changes no age.
func TestMirrorClock(t *testing.T) {
	var jump atomic.Int64
	store := objstore.NewMem()
	db := openMirrored(t, vfs.NewMem(), store, Options{MirrorFlush: -1, MaxLagAlert: time.Minute})
	defer db.Free()
	waitMirrored(t, db) // nobody asks for the time just now
	db.c.mu.Lock()
	db.c.setClock(func() time.Time { return time.Now().Add(time.Duration(jump.Load())) })
	db.c.mu.Unlock()
	want := model{}
	for i, by := range []time.Duration{-time.Hour, 48 * time.Hour, -365 * 24 * time.Hour, 0} {
		putRows(t, db, want, int64(i), int64(i)+1)
		jump.Store(int64(by))
		if s := db.MirrorStatus(); s.LagSecs < 0 || s.LagSecs > 30 || s.Alert {
			t.Errorf("a jump by %v: %+v", by, s)
		}
		waitMirrored(t, db)
		checkMirror(t, store, want)
	}
}

// TestMirrorForeign: a copy of the directory, and both go on.
func TestMirrorForeign(t *testing.T) {
	r := &recorder{events: map[string]int{}}
	defer AddLogHandler(r)()
	fs, store := vfs.NewMem(), objstore.NewMem()
	db := openMirrored(t, fs, store, Options{MirrorFlush: -1})
	putRows(t, db, model{}, 0, 10)
	must(t, db.Close())
	db.Free()
	copied := fs.CrashClone(nil)
	db = openMirrored(t, fs, store, Options{MirrorFlush: -1})
	putRows(t, db, model{}, 10, 20)
	waitMirrored(t, db)
	must(t, db.Close())
	db.Free()
	db = openMirrored(t, copied, store, Options{MirrorFlush: -1})
	defer db.Free()
	putRows(t, db, model{}, 30, 40)
	must(t, db.Flush())
	waitFor(t, "it stops", func() bool { return db.MirrorStatus().State == "stopped" })
	if s := db.MirrorStatus(); !strings.Contains(s.LastError, "in use by another database") || !strings.Contains(s.LastError, "version ") {
		t.Errorf("%+v", s)
	}
	DrainLog()
	if n := r.count("mirror_stopped ERROR"); n != 1 {
		t.Errorf("%d events", n)
	}
	putRows(t, db, model{}, 40, 50) // the database goes on
	must(t, db.Close())
}

func TestMirrorOption(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	for _, bad := range []string{"nowhere", "ftp://x/y", "file://relative", "file://" + dir, "file://" + dir + "/sub", "file://" + filepath.Dir(dir)} {
		_, err := Open(dir, Options{Mirror: bad})
		wantCode(t, err, CodeInvalidArgument)
	}
	_, err := Open(dir, Options{Mirror: "file://" + to, ReadOnly: true})
	wantCode(t, err, CodeInvalidArgument)
	db, err := Open(dir, Options{Mirror: "file://" + to})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	want := model{}
	putRows(t, db, want, 0, 10)
	waitMirrored(t, db)
	if s := db.MirrorStatus(); s.Destination != "file://"+to {
		t.Errorf("%+v", s)
	}
	r, err := Open(to, Options{ReadOnly: true})
	must(t, err)
	check(t, r, want)
	if s := r.MirrorStatus(); s.State != "off" || s.VisibleSeq == 0 {
		t.Errorf("of a reader: %+v", s)
	}
	r.Free()
	must(t, db.Close())
}
