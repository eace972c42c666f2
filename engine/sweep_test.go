package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/mirror"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// tree lists all files below a directory.
func tree(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	var out []string
	for _, n := range names {
		info, err := fs.Stat(fs.Join(dir, n))
		must(t, err)
		if info.IsDir {
			out = append(out, tree(t, fs, fs.Join(dir, n))...)
		} else {
			out = append(out, fs.Join(dir, n))
		}
	}
	return out
}

func writeFileAt(t testing.TB, fs vfs.FS, path, content string) {
	t.Helper()
	f, err := fs.Create(path)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	must(t, f.Close())
}

const sweptUUID = "11111111-2222-4333-8444-555555555555"

// swept is what TestSweep plants, or finds.
var swept = map[string]GarbageReason{
	"/db/data/L0/" + sweptUUID + ".parquet":        GarbageOrphan,
	"/db/data/L3/" + sweptUUID + ".parquet":        GarbageOrphan,
	"/db/data/L0/" + sweptUUID + ".dv-77.puffin":   GarbageOrphan,
	"/db/metadata/v9.manifest.bin.tmp":             GarbageLeftover,
	"/db/wal/000001.wal":                           GarbageLog,
	"/db/metadata/v2.manifest.bin":                 GarbageManifest,
	"/db/tmp/" + sweptUUID:                         GarbageTemporary,
	"/db/data/L0/important.parquet":                GarbageUnknown,
	"/db/data/L0/" + sweptUUID + ".dv-x.puffin":    GarbageUnknown,
	"/db/data/L0/" + sweptUUID + ".dv-.puffin":     GarbageUnknown,
	"/db/data/L0/" + sweptUUID + ".parquet.backup": GarbageUnknown,
	"/db/data/notes.txt":                           GarbageUnknown,
	"/db/metadata/v0.manifest.bin":                 GarbageUnknown,
	"/db/tmp/mine":                                 GarbageUnknown,
}

// TestSweep: what crashes leave behind goes, what the engine did not make stays, and a dry run only tells.
func TestSweep(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(1, 4))
	o := frugal
	o.GCGrace = time.Hour
	db := openMem(t, fs, o)
	defer db.Free()
	clock := setClock(db)
	m := model{}
	for range 3 {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
	}
	collectNow(t, db)
	must(t, fs.MkdirAll("/db/data/L3"))
	must(t, fs.MkdirAll("/db/tmp"))
	for path, reason := range swept {
		switch reason {
		case GarbageManifest: // it is there
		case GarbageTemporary:
			must(t, fs.MkdirAll(path))
			writeFileAt(t, fs, path+"/x.run", "x")
		default:
			writeFileAt(t, fs, path, "x")
		}
	}
	other := strings.Replace(sweptUUID, "1", "2", 1)
	for _, written := range []string{"tmp/" + other, "data/L0/" + other + ".parquet"} {
		db.c.pending.add(written)
		writeFileAt(t, fs, "/db/"+written, "x")
	}
	clock.Store(int64(2 * time.Hour))
	before := tree(t, fs, "/db")
	dry, err := db.CollectGarbage(true)
	must(t, err)
	if now := tree(t, fs, "/db"); !slices.Equal(now, before) {
		t.Fatalf("a dry run changed the directory:\n%q\n%q", before, now)
	}
	was := db.Stats()
	r := collectNow(t, db)
	byPath := func(a, b GarbageItem) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortFunc(dry.Items, byPath)
	slices.SortFunc(r.Items, byPath)
	if !dry.DryRun || r.DryRun || !slices.Equal(dry.Items, r.Items) || dry.Files != r.Files || dry.Bytes != r.Bytes ||
		dry.KeptManifests != 2 || dry.OldestVersion != 3 || r.KeptManifests != 2 || r.OldestVersion != 3 {
		t.Fatalf("the dry run said\n%+v, then came\n%+v", dry, r)
	}
	checkSweep(t, fs, r, swept, before)
	check(t, db, m)
	for _, item := range collectNow(t, db).Items {
		if item.Reason != GarbageUnknown {
			t.Errorf("%+v is found again", item)
		}
	}
	if st := db.Stats(); st.FilesRemoved-was.FilesRemoved != r.Files || st.BytesRemoved-was.BytesRemoved != r.Bytes {
		t.Errorf("%+v after %+v", st.GarbageStats, r)
	}
}

// checkSweep checks that all of want was found, and that just what was found is gone.
func checkSweep(t *testing.T, fs vfs.FS, r GarbageReport, want map[string]GarbageReason, before []string) {
	t.Helper()
	found := map[string]GarbageReason{}
	superseded := 0
	files, size := int64(0), int64(0)
	for _, item := range r.Items {
		found[item.Path] = item.Reason
		if item.Reason == GarbageSuperseded {
			superseded++
		}
		if item.Reason != GarbageUnknown {
			files++
			size += item.Bytes
		}
		if item.Err != nil {
			t.Errorf("%+v", item)
		}
	}
	for path, reason := range want {
		if found[path] != reason {
			t.Errorf("%s is %q, want %q", path, found[path], reason)
		}
	}
	if superseded == 0 || files != r.Files || size != r.Bytes {
		t.Errorf("%d superseded; %d files, %d bytes of %+v", superseded, files, size, r)
	}
	left := tree(t, fs, "/db")
	for _, path := range before {
		reason, ok := found[path]
		if !ok && strings.HasPrefix(path, "/db/tmp/") {
			reason, ok = found[path[:strings.LastIndexByte(path, '/')]]
		}
		if gone := ok && reason != GarbageUnknown; gone == slices.Contains(left, path) && path != "/db/metadata/low_water.txt" {
			t.Errorf("%s: found as %q; still there: %v", path, reason, !gone)
		}
	}
}

// setClock makes the database's clock one that a test moves; the result is how far it is ahead, in nanoseconds.
func setClock(db *DB) *atomic.Int64 {
	ahead := new(atomic.Int64)
	db.c.gc.pass.Lock()
	defer db.c.gc.pass.Unlock()
	db.c.commitMu.Lock()
	defer db.c.commitMu.Unlock()
	db.c.setClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	return ahead
}

// TestSweepLeavesTheMirrorsRecord: what the mirror is writing is no leftover; without a mirror it is.
func TestSweepLeavesTheMirrorsRecord(t *testing.T) {
	const writing = "/db/metadata/" + mirror.RecordFile + tmpSuffix
	fs := vfs.NewMem()
	db := openMirrored(t, fs, objstore.NewMem(), Options{MirrorFlush: -1})
	waitMirrored(t, db)
	writeFileAt(t, fs, writing, "x")
	collectNow(t, db)
	_, err := fs.Stat(writing)
	must(t, err)
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	collectNow(t, db)
	_, err = fs.Stat(writing)
	wantCode(t, err, base.CodeNotFound)
}

// TestSweepAtOpen: what a crash left behind goes by itself at the next open.
func TestSweepAtOpen(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, frugal)
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	must(t, db.Close())
	db.Free()
	const orphan = "/db/data/L0/11111111-2222-4333-8444-555555555555.parquet"
	writeFileAt(t, fs, orphan, "x")
	db = openMem(t, fs, frugal)
	defer db.Free()
	eventually(t, "the orphan is gone", func() bool { return !slices.Contains(tree(t, fs, "/db"), orphan) })
	check(t, db, model{1: 1})
}

// eventually waits for what another goroutine does.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a minute later it is still not so that %s", what)
		}
	}
}

// TestSpaceComesBack: after the last commit, and after the last snapshot is closed, garbage goes without any further
// call.
func TestSpaceComesBack(t *testing.T) {
	fs := vfs.NewMem()
	o := frugal
	o.RetainFor = 50 * time.Millisecond
	db := openMem(t, fs, o)
	defer db.Free()
	rng := rand.New(rand.NewPCG(2, 4))
	m := model{}
	var held *Snapshot
	for i := range 6 {
		writeRandom(t, db, rng, m, 100, 20)
		must(t, db.Flush())
		if i == 2 {
			var err error
			held, err = db.Snapshot()
			must(t, err)
		}
	}
	eventually(t, "only the snapshot's and the retained manifest are left", func() bool { return len(versionsOf(t, db)) == 3 })
	held.Close()
	eventually(t, "the snapshot's manifest is gone too", func() bool { return len(versionsOf(t, db)) == 2 })
	eventually(t, "only named files are left", func() bool { return db.Stats().GarbageFiles <= int64(len(db.c.state.files)) })
	check(t, db, m)
}

// TestNoGarbageAfterFailure: after a commit of which nobody knows whether it happened nothing is removed.
func TestNoGarbageAfterFailure(t *testing.T) {
	mem := vfs.NewMem()
	var fail atomic.Bool
	fs := vfs.NewErrorFS(mem, func(op vfs.Op, path string) error {
		if fail.Load() && op == vfs.OpSyncDir && strings.HasSuffix(path, "/metadata") {
			return syscall.EIO
		}
		return nil
	})
	db := openMem(t, fs, frugal)
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	collectNow(t, db)
	fail.Store(true)
	wantCode(t, db.Flush(), CodeIO)
	_, err = db.CollectGarbage(false)
	wantCode(t, err, CodeIO)
	db.c.finishGarbage()
	db.Free()
	db = openMem(t, mem, frugal)
	defer db.Free()
	check(t, db, model{1: 1})
	if v := db.Stats().Version; v != 2 {
		t.Fatalf("the commit of version 2 is there, but %d is the newest", v)
	}
}
