package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/compact"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// smallLevels makes levels so small that some hundred rows fill several.
func smallLevels(o Options) Options {
	o.MemtableBytes = minMemtableBytes
	o.L0Files, o.TargetFileBytes, o.BaseLevelBytes, o.LevelMultiplier = 2, 16<<10, 64<<10, 3
	return o
}

// putIDs writes one row for each id, all with one payload, and takes note.
func putIDs(t testing.TB, db *DB, m model, payload int64, ids ...int64) {
	t.Helper()
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	for _, id := range ids {
		must(t, w.Put(testRow(id, payload)))
		m[id] = payload
	}
	_, err = w.Commit()
	must(t, err)
}

func deleteIDs(t testing.TB, db *DB, m model, ids ...int64) {
	t.Helper()
	w, err := db.NewWrite()
	must(t, err)
	defer w.Close()
	for _, id := range ids {
		must(t, w.Delete(testKey(id)))
		delete(m, id)
	}
	_, err = w.Commit()
	must(t, err)
}

func ids(from, to, step int64) (out []int64) {
	for id := from; id < to; id += step {
		out = append(out, id)
	}
	return out
}

// waitIdle waits until no compaction runs and none is to be picked.
func waitIdle(t testing.TB, db *DB) {
	t.Helper()
	c := db.c
	m := c.compactions
	deadline := time.After(time.Minute)
	for {
		m.mu.Lock()
		s := c.current()
		files, spans := m.describe(s, time.Now())
		s.unref()
		idle := len(m.running) == 0 && compact.Pick(files, spans, c.opts.compactOptions()) == nil
		changed := m.changed
		m.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("compaction does not come to rest: %+v", db.Stats().CompactionStats)
		}
	}
}

// TestCompact: what a manual compaction leaves, and that doing it again does nothing.
func TestCompact(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{NoAutoCompaction: true})
	defer db.Free()
	must(t, db.Compact()) // nothing to do
	m := model{}
	putIDs(t, db, m, 1, ids(0, 1000, 1)...)
	must(t, db.Flush())
	putIDs(t, db, m, 2, ids(0, 1000, 3)...)
	deleteIDs(t, db, m, ids(0, 1000, 7)...)
	must(t, db.Flush())
	old, err := db.Snapshot()
	must(t, err)
	defer old.Close()
	oldModel := maps.Clone(m)
	putIDs(t, db, m, 3, ids(500, 1500, 2)...)
	deleteIDs(t, db, m, 1, 2, 2000)
	must(t, db.Compact())
	check(t, db, m)
	checkSnapshot(t, old, oldModel)
	files := mustSnapshot(t, db).Files()
	if len(files) != 1 || files[0].Level != 1 || files[0].Deleted != 0 || files[0].Rows != int64(len(m)) {
		t.Fatalf("files %+v, %d rows", files, len(m))
	}
	version := db.Stats().Version
	must(t, db.Compact())
	st := db.Stats()
	if st.Version != version || st.Compactions != 1 || st.CompactionRowsWritten != int64(len(m)) || st.Levels[1].Files != 1 {
		t.Fatalf("a second compaction did something: %+v", st.CompactionStats)
	}
	deleteIDs(t, db, m, slices.Collect(maps.Keys(m))...)
	must(t, db.Compact())
	check(t, db, m)
	if st := db.Stats(); st.DataFiles != 0 {
		t.Fatalf("%d files of a table without rows", st.DataFiles)
	}
}

// TestCompactRange: files outside of the range stay as they are.
func TestCompactRange(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{NoAutoCompaction: true})
	defer db.Free()
	m := model{}
	for i := range int64(4) {
		putIDs(t, db, m, 1, ids(100*i, 100*i+100, 1)...)
		must(t, db.Flush())
		putIDs(t, db, m, 2, ids(100*i+50, 100*i+90, 1)...)
		must(t, db.Flush())
	}
	must(t, db.CompactRange(CompactOptions{Lower: []Value{Int(110)}, Upper: []Value{Int(199)}}))
	check(t, db, m)
	if st := db.Stats(); st.Levels[0].Files != 6 || st.Levels[1].Files != 1 {
		t.Fatalf("levels %+v", st.Levels)
	}
	must(t, db.CompactRange(CompactOptions{Upper: []Value{Int(-1)}}))
	must(t, db.CompactRange(CompactOptions{Lower: []Value{Int(2)}, Upper: []Value{Int(1)}}))
	wantCode(t, db.CompactRange(CompactOptions{Lower: []Value{Null()}}), CodeInvalidArgument)
	must(t, db.Compact())
	check(t, db, m)
	if st := db.Stats(); st.Levels[0].Files != 0 || st.DeletedRows != 0 {
		t.Fatalf("levels %+v", st.Levels)
	}
}

// duringCompaction runs fn once, while a compaction is writing its first file.
func duringCompaction(fs *vfs.CountingFS, fn func()) {
	var once atomic.Bool
	fs.SetHook(func(op vfs.Op, path string) {
		if op == vfs.OpCreate && isCompacted(path) && once.CompareAndSwap(false, true) {
			fn()
		}
	})
}

// isCompacted reports whether a data file was written for a level below level 0.
func isCompacted(path string) bool {
	var level int
	var name string
	n, _ := fmt.Sscanf(path, "/db/data/L%d/%s", &level, &name)
	return n == 2 && level > 0 && len(name) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.parquet")
}

// TestDeletesDuringCompaction: what is deleted and overwritten in the inputs while a compaction runs is deleted from
// its outputs, whatever rows were dead before and wherever the rows go.
func TestDeletesDuringCompaction(t *testing.T) {
	fs := vfs.NewCountingFS(vfs.NewMem())
	o := smallLevels(Options{NoAutoCompaction: true})
	db := openMem(t, fs, o)
	m := model{}
	rng := rand.New(rand.NewPCG(1, 2))
	var random []int64
	for range 12_000 {
		random = append(random, rng.Int64N(20_000))
	}
	for i := range 4 {
		putIDs(t, db, m, int64(i), random[3000*i:3000*i+3000]...)
		deleteIDs(t, db, m, random[3000*i+50:3000*i+200]...)
		must(t, db.Flush())
	}
	for round := range 3 {
		ran := false
		var held *Snapshot
		heldModel := model{}
		duringCompaction(fs, func() {
			ran = true
			deleteIDs(t, db, m, random[100*round:100*round+3000]...)
			must(t, db.Flush())
			putIDs(t, db, m, 77, random[5000:5100]...)
			var err error
			held, err = db.Snapshot()
			must(t, err)
			maps.Copy(heldModel, m)
		})
		must(t, db.Compact())
		fs.SetHook(nil)
		if !ran {
			t.Fatal("nothing was written")
		}
		check(t, db, m)
		checkSnapshot(t, held, heldModel)
		held.Close()
		st := db.Stats()
		if st.DataFiles-st.Levels[0].Files < 2 || st.DeletedRows == 0 {
			t.Fatalf("%d rows are deleted in %+v", st.DeletedRows, st.Levels)
		}
		db.Free()
		db = openMem(t, fs, o)
		check(t, db, m)
		putIDs(t, db, m, int64(round), random[:6000]...)
	}
	db.Free()
}

// TestDeletesBesideCommit: what is deleted while a commit is prepared is deleted from the outputs too.
func TestDeletesBesideCommit(t *testing.T) {
	db := openMem(t, vfs.NewMem(), smallLevels(Options{NoAutoCompaction: true}))
	defer db.Free()
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(i, 3000, i+2)...)
		must(t, db.Flush())
	}
	jobs, err := db.c.planManual(CompactOptions{})
	must(t, err)
	j := jobs[0]
	must(t, j.repin())
	must(t, j.merge())
	deleteIDs(t, db, m, ids(0, 3000, 5)...)
	must(t, db.Flush())
	putIDs(t, db, m, 8, ids(0, 3000, 9)...)
	check(t, db, m)
	known, err := j.prepare()
	must(t, err)
	deleteIDs(t, db, m, ids(0, 3000, 7)...)
	must(t, db.Flush())
	putIDs(t, db, m, 9, ids(0, 3000, 11)...)
	must(t, j.replace(known))
	db.c.finishJob(j, nil, false)
	check(t, db, m)
	must(t, db.Compact())
	check(t, db, m)
}

// TestAnswersAfterCompaction: what was looked up about the inputs holds for the outputs, for the newest state and for
// older snapshots, and is not looked up again.
func TestAnswersAfterCompaction(t *testing.T) {
	db := openMem(t, vfs.NewMem(), smallLevels(Options{NoAutoCompaction: true}))
	defer db.Free()
	m := model{}
	for i := range int64(4) {
		putIDs(t, db, m, i, ids(i, 8000, i+1)...)
		must(t, db.Flush())
	}
	putIDs(t, db, m, 50, ids(0, 8000, 11)...)
	early, err := db.Snapshot()
	must(t, err)
	defer early.Close()
	earlyModel := maps.Clone(m)
	deleteIDs(t, db, m, ids(0, 8000, 13)...)
	check(t, db, m) // looks everything up
	deleteIDs(t, db, m, ids(0, 8000, 301)...)
	c := db.c
	now := c.current() // of one file more is known than of the others
	_, err = now.mems[0].superseded(now, now.files[0], now.mems[0].mt.Len())
	must(t, err)
	now.unref()
	jobs, err := c.planManual(CompactOptions{})
	must(t, err)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	must(t, jobs[0].run())
	c.finishJob(jobs[0], nil, false)
	s := c.current()
	defer s.unref()
	if len(s.files) < 2 {
		t.Fatalf("%d files", len(s.files))
	}
	hits := 0
	for _, f := range s.files {
		n, known := s.mems[0].resolutions.known(f.dataFile)
		if want := len(ids(0, 8000, 11)) + len(ids(0, 8000, 13)); n != want {
			t.Fatalf("%d entries are known of, want %d", n, want)
		}
		hits += len(known)
	}
	if want := len(ids(0, 8000, 11)) + len(ids(0, 8000, 13)) - len(ids(0, 8000, 143)); hits != want {
		t.Fatalf("%d rows are superseded, want %d", hits, want)
	}
	check(t, db, m)
	checkSnapshot(t, early, earlyModel)
	must(t, db.Flush())
	check(t, db, m)
}

// TestConvergence: a table that is left alone comes to rest, with all levels within their bounds, and stays the same.
func TestConvergence(t *testing.T) {
	fs := vfs.NewMem()
	o := smallLevels(Options{CompactionThreads: 2})
	db := openMem(t, fs, o)
	rng := rand.New(rand.NewPCG(5, 5))
	m := model{}
	for range 30 {
		writeRandom(t, db, rng, m, 30_000, 2000)
		must(t, db.Flush())
	}
	waitIdle(t, db)
	checkRows(t, db, m)
	st := db.Stats()
	deep := int64(0) // which of the deeper levels have files depends on which jobs came first
	for _, l := range st.Levels[2:] {
		deep += l.Files
	}
	if st.Levels[0].Files >= int64(o.L0Files) || deep == 0 || st.CompactionPendingBytes != 0 {
		t.Fatalf("%d bytes wait; levels %+v", st.CompactionPendingBytes, st.Levels)
	}
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, o)
	waitIdle(t, db)
	if again := db.Stats(); again.Levels != st.Levels && st.Levels[0].Files == again.Levels[0].Files {
		t.Fatalf("levels %+v, before %+v", again.Levels, st.Levels)
	}
	checkRows(t, db, m)
	db.Free()
}

// TestPendingAtOpen: what waited for compaction when the database was closed is done once it is open again.
func TestPendingAtOpen(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, smallLevels(Options{NoAutoCompaction: true}))
	m := model{}
	for i := range int64(5) {
		putIDs(t, db, m, i, ids(i, 500, i+1)...)
		must(t, db.Flush())
	}
	if st := db.Stats(); st.Levels[0].Files != 5 || st.CompactionPendingBytes == 0 {
		t.Fatalf("levels %+v", st.Levels)
	}
	must(t, db.Close())
	db.Free()
	o := smallLevels(Options{})
	must(t, o.Set("auto_compaction", "true"))
	db = openMem(t, fs, o)
	defer db.Free()
	waitIdle(t, db)
	if st := db.Stats(); st.Levels[0].Files != 0 || st.DataFiles != 1 {
		t.Fatalf("levels %+v", st.Levels)
	}
	check(t, db, m)
}

// TestCompactRefused: who may not compact, and what ends a compaction.
func TestCompactRefused(t *testing.T) {
	fs := vfs.NewCountingFS(vfs.NewMem())
	db := openMem(t, fs, Options{NoAutoCompaction: true})
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(0, 5000, 1)...)
		must(t, db.Flush())
	}
	reader, err := Open("/db", Options{fs: fs, ReadOnly: true})
	must(t, err)
	wantCode(t, reader.Compact(), CodeReadOnly)
	reader.Free()
	asked := 0
	wantCode(t, db.CompactRange(CompactOptions{Interrupt: func() bool { asked++; return asked > 2 }}), CodeCancelled)
	if st := db.Stats(); st.Levels[0].Files != 3 || st.CompactionErrors != 0 || st.CompactionsRunning != 0 {
		t.Fatalf("an interrupted compaction did something: %+v", st.CompactionStats)
	}
	check(t, db, m)
	// Closing the handle beside a compaction ends it.
	ended := make(chan error, 1)
	duringCompaction(fs, func() { go func() { ended <- db.Close() }() })
	err = db.CompactRange(CompactOptions{Interrupt: func() bool {
		if db.Closed() {
			<-db.c.stop
		}
		return false
	}})
	if err != nil { // it may have been quicker
		wantCode(t, err, CodeClosed)
	}
	must(t, <-ended)
	fs.SetHook(nil)
	wantCode(t, db.Compact(), CodeClosed)
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	check(t, db, m)
}

// TestCompactInParts: a manual compaction of much that overlaps is several jobs that share inputs, each committed by
// itself. Between them, beside changes, and where it ends early, the table is what it was.
func TestCompactInParts(t *testing.T) {
	fs := vfs.NewCountingFS(vfs.NewMem())
	o := smallLevels(Options{NoAutoCompaction: true})
	o.TargetFileBytes, o.BaseLevelBytes = 4<<10, 1<<20
	db := openMem(t, fs, o)
	rng := rand.New(rand.NewPCG(8, 1))
	m := model{}
	random := func(n int) (out []int64) {
		for range n {
			out = append(out, rng.Int64N(60_000))
		}
		return out
	}
	for from := int64(0); from < 60_000; from += 2000 {
		putIDs(t, db, m, 1, ids(from, from+2000, 1)...)
	}
	must(t, db.Compact())
	for i := range int64(6) {
		putIDs(t, db, m, 10+i, random(2500)...)
		deleteIDs(t, db, m, random(500)...)
		must(t, db.Flush())
	}
	before := db.Stats()
	held, err := db.Snapshot()
	must(t, err)
	heldModel := maps.Clone(m)
	putIDs(t, db, m, 20, random(2500)...)
	checkRows(t, db, m)
	jobs, err := db.c.planManual(CompactOptions{})
	must(t, err)
	if len(jobs) < 3 {
		t.Fatalf("%d jobs for %d bytes", len(jobs), before.DataBytes)
	}
	for i, j := range jobs {
		if i == 1 {
			duringCompaction(fs, func() {
				deleteIDs(t, db, m, random(2000)...)
				must(t, db.Flush())
				putIDs(t, db, m, 30, random(2000)...)
				checkRows(t, db, m)
			})
		}
		must(t, j.run())
		db.c.finishJob(j, nil, false)
		fs.SetHook(nil)
		if i == 0 || i == len(jobs)-1 {
			checkRows(t, db, m)
		}
	}
	checkRowsOf(t, held, heldModel)
	held.Close()
	if st := db.Stats(); st.Levels[0].Files != 1 {
		t.Fatalf("levels %+v", st.Levels)
	}
	db.Free()
	db = openMem(t, fs, o)
	checkRows(t, db, m)
	// One that is interrupted leaves what was done.
	for i := range int64(6) {
		putIDs(t, db, m, 40+i, random(2500)...)
		must(t, db.Flush())
	}
	st := db.Stats()
	commits := 0
	interrupt := func() bool { return db.Stats().Commits >= st.Commits+2 }
	wantCode(t, db.CompactRange(CompactOptions{Interrupt: interrupt}), CodeCancelled)
	if commits = int(db.Stats().Commits - st.Commits); commits != 2 {
		t.Fatalf("%d commits", commits)
	}
	checkRows(t, db, m)
	must(t, db.Compact())
	checkRows(t, db, m)
	if st := db.Stats(); st.DeletedRows != 0 || st.Levels[0].Files != 0 || st.FileRows != int64(len(m)) {
		t.Fatalf("%d of %d rows deleted; levels %+v", st.DeletedRows, st.FileRows, st.Levels)
	}
	db.Free()
}

// checkRows compares the rows that a scan yields with the model: one of the read paths, for large tables.
func checkRows(t testing.TB, db *DB, m model) {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	checkRowsOf(t, s, m)
}

func checkRowsOf(t testing.TB, s *Snapshot, m model) {
	t.Helper()
	it, err := s.Scan(ScanOptions{Projection: []int{1, 3}})
	must(t, err)
	rows := collect(t, it)
	for i, r := range rows {
		id := r[0].Int64()
		if payload, ok := m[id]; !ok || doubleOf(r[1]) != float64(payload) || i > 0 && rows[i-1][0].Int64() >= id {
			t.Fatalf("row %v, want %d (%v)", r, payload, ok)
		}
	}
	if len(rows) != len(m) {
		t.Fatalf("%d rows, want %d", len(rows), len(m))
	}
}

// TestOutputInTheWay: where a file came to the level of the outputs meanwhile, as bulk loads put them there, an output
// that meets it goes to level 0.
func TestOutputInTheWay(t *testing.T) {
	fs := vfs.NewCountingFS(vfs.NewMem())
	db := openMem(t, fs, smallLevels(Options{NoAutoCompaction: true}))
	defer db.Free()
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(2*i, 8000, 6)...)
		must(t, db.Flush())
	}
	c := db.c
	duringCompaction(fs, func() {
		putIDs(t, db, m, 9, 3001)
		must(t, db.Flush())
		c.commitMu.Lock()
		defer c.commitMu.Unlock()
		s := c.current()
		defer s.unref()
		f := s.files[0]
		if level := c.placeLevel(s, f.meta.KeyMin, f.meta.KeyMax, 1); level != 0 {
			t.Errorf("a new file was to go to level %d, where a compaction writes", level)
		}
		next := s.manifest.Next()
		must(t, c.commitFiles(s, next, change{levels: map[*dataFile]int{f.dataFile: 1}}))
		c.installFiles(next, nil, nil)
	})
	must(t, db.Compact())
	fs.SetHook(nil)
	if st := db.Stats(); st.Levels[0].Files != 1 || st.Levels[1].Files != 1 {
		t.Fatalf("levels %+v", st.Levels)
	}
	check(t, db, m)
	must(t, db.Compact())
	if st := db.Stats(); st.Levels[0].Files != 0 {
		t.Fatalf("levels %+v", st.Levels)
	}
	check(t, db, m)
}

// TestCompactionRate: a compaction takes the time that the bound on its rate asks for.
func TestCompactionRate(t *testing.T) {
	const perSecond = 48 << 10
	db := openMem(t, vfs.NewMem(), smallLevels(Options{NoAutoCompaction: true, CompactionRate: perSecond}))
	defer db.Free()
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(i, 20_000, 2)...)
		must(t, db.Flush())
	}
	start := time.Now()
	must(t, db.Compact())
	took := time.Since(start).Seconds()
	// A quarter of a second's bytes may come at once, and what is left in the end is not waited for.
	if st := db.Stats(); took < float64(st.CompactionBytesWritten)/perSecond/2-0.25 || st.CompactionBytesWritten < perSecond {
		t.Fatalf("%d bytes in %.2f s", st.CompactionBytesWritten, took)
	}
	check(t, db, m)
	// Waiting ends with the core.
	putIDs(t, db, m, 9, ids(0, 20_000, 1)...)
	must(t, db.Flush())
	ended := make(chan error, 1)
	go func() { ended <- db.Compact() }()
	for db.Stats().CompactionsRunning == 0 {
		time.Sleep(time.Millisecond)
	}
	must(t, db.Close())
	if err := <-ended; err != nil {
		wantCode(t, err, CodeClosed)
	}
}

// TestDropDuringCompaction: a compaction whose table is dropped stops, comes to nothing and leaves no file.
func TestDropDuringCompaction(t *testing.T) {
	fs := vfs.NewCountingFS(vfs.NewMem())
	db := openMem(t, fs, Options{NoAutoCompaction: true})
	defer db.Free()
	m := model{}
	for i := range int64(3) {
		putIDs(t, db, m, i, ids(0, 500, 1)...)
		must(t, db.Flush())
	}
	dropped, asked := false, int64(0)
	duringCompaction(fs, func() {
		must(t, db.DropTable())
		dropped = true
		must(t, db.CreateTable(testSchema()))
		_, err := db.Put(testRow(1, 2))
		must(t, err)
	})
	must(t, db.CompactRange(CompactOptions{Interrupt: func() bool { asked += asInt(dropped); return false }}))
	if fs.SetHook(nil); asked > 0 {
		t.Error("it went on")
	}
	check(t, db, model{1: 2})
	if names, err := fs.List("/db/data/L1"); err != nil || len(names) > 0 {
		t.Fatalf("level 1 holds %v (%v)", names, err)
	}
}
