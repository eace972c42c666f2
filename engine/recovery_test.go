package engine

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
	"github.com/merutable/merutable/engine/internal/wal"
)

// killed ends an engine as a killed process does: nothing is flushed or synced, the lock is free.
func killed(db *DB) {
	registry.mu.Lock()
	registry.forget(db.shared)
	registry.mu.Unlock()
	c := db.c
	c.mu.Lock()
	c.failure = base.Errorf(base.CodeIO, "killed")
	c.mu.Unlock()
	c.release()
	c.drop()
}

// TestKilledThenPowerCut: a process dies with log records that it never synced; the next one reads them, writes a log of
// its own, and the power goes. The first log's records were read from the page cache only: they must have been made
// durable before the second log was begun, or it would stand behind a torn one.
func TestKilledThenPowerCut(t *testing.T) {
	for seed := range uint64(unlessShort(20, 5)) {
		mem := vfs.NewMem()
		// Without preallocation the log ends with its last record, and nothing needs to be cut off.
		fs := newFaultyFS(mem)
		fs.set(noSpace(".wal", vfs.OpPreallocate))
		db := openMem(t, fs, Options{Durability: OS})
		m := model{}
		for id := range int64(30) {
			_, err := db.Put(testRow(id, id))
			must(t, err)
			m[id] = id
		}
		killed(db)
		db = openMem(t, fs, Options{MaxImmutables: 64})
		// No flush: the first log stays.
		fs.set(noSpace(".parquet", vfs.OpCreate))
		_, err := db.Put(testRow(100, 100))
		must(t, err)
		m[100] = 100
		after := mem.CrashClone(rand.New(rand.NewPCG(seed, 8)))
		killed(db)
		db = openMem(t, after, Options{})
		check(t, db, m)
		db.Free()
	}
}

// TestLaxDurability cuts the power under durability Interval and OS, across rotations: what comes back must be a prefix
// of what was written, whole batches only, and the database must open.
func TestLaxDurability(t *testing.T) {
	for seed := range uint64(unlessShort(24, 6)) {
		mem := vfs.NewMem()
		o := Options{Durability: Interval + Durability(seed%2), MemtableBytes: minMemtableBytes}
		db := openMem(t, mem, o)
		rng := rand.New(rand.NewPCG(seed, 2))
		const batches, rows = 300, 20
		for b := range int64(batches) {
			batch := make([][]Value, rows)
			for i := range batch {
				batch[i] = testRow(b*rows+int64(i), b)
				batch[i][2] = String(strings.Repeat("x", 500))
			}
			_, err := db.PutBatch(batch)
			must(t, err)
			if rng.IntN(60) == 0 {
				must(t, db.Flush())
			}
		}
		after := mem.CrashClone(rng)
		killed(db)
		db = openMem(t, after, o)
		s, err := db.Snapshot()
		must(t, err)
		it, err := s.Scan(ScanOptions{Projection: []int{1}})
		must(t, err)
		got := collect(t, it)
		for i, r := range got {
			if r[0].Int64() != int64(i) {
				t.Fatalf("seed %d: row %d has id %d: not a prefix", seed, i, r[0].Int64())
			}
		}
		if len(got)%rows != 0 {
			t.Fatalf("seed %d: %d rows: a batch came back in part", seed, len(got))
		}
		s.Close()
		db.Free()
	}
}

// TestMissingLog: a log that is gone from the middle is noticed.
func TestMissingLog(t *testing.T) {
	fs := newFaultyFS(vfs.NewMem())
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 8})
	fs.set(noSpace(".parquet", vfs.OpCreate))
	row := testRow(1, 1)
	row[2] = String(strings.Repeat("x", 200_000))
	for range 14 {
		_, err := db.Put(row)
		must(t, err)
	}
	killed(db)
	fs.set(nil)
	logs, err := fs.List("/db/wal")
	must(t, err)
	if len(logs) < 3 {
		t.Fatalf("only %v", logs)
	}
	must(t, fs.Remove("/db/wal/"+logs[1]))
	_, err = Open("/db", Options{fs: fs})
	wantCode(t, err, CodeCorruption)
	if !strings.Contains(err.Error(), logs[2]) {
		t.Fatalf("the error does not name the log after the gap: %v", err)
	}
}

// TestZeroedRecord: preallocated zeros end an older log, but records that became zeros are noticed.
func TestZeroedRecord(t *testing.T) {
	for _, damage := range []bool{false, true} {
		fs := newFaultyFS(vfs.NewMem())
		db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 8})
		fs.set(noSpace(".parquet", vfs.OpCreate))
		for id := range int64(7) {
			_, err := db.Put(bigRow(id, id))
			must(t, err)
		}
		killed(db)
		fs.set(nil)
		logs, err := fs.List("/db/wal")
		must(t, err)
		path := "/db/wal/" + logs[0]
		if damage {
			lastRecord := int64(0)
			_, err := wal.Replay(fs, path, 1, false, func(offset int64, _ []byte) error {
				lastRecord = offset
				return nil
			})
			must(t, err)
			info, err := fs.Stat(path)
			must(t, err)
			must(t, fs.Truncate(path, lastRecord))
			must(t, fs.Truncate(path, info.Size)) // the rest reads as zeros
		}
		db, err = Open("/db", Options{fs: fs})
		if damage {
			wantCode(t, err, CodeCorruption)
			if !strings.Contains(err.Error(), logs[1]) {
				t.Fatalf("the error does not name the log after the gap: %v", err)
			}
			continue
		}
		must(t, err)
		if n := mustSnapshot(t, db).LiveRows(); n != 7 {
			t.Fatalf("%d rows", n)
		}
		db.Free()
	}
}

// TestPartialFlushOfOneLog: a log that was recovered into several memtables is flushed memtable by memtable. A reader in
// another process that has rows of it in memory must not let them hide newer ones that went to files.
func TestPartialFlushOfOneLog(t *testing.T) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	fs.set(noSpace(".parquet", vfs.OpCreate))
	db := openMem(t, fs, Options{})
	m := model{}
	put := func(version int64) {
		batch := make([][]Value, 600)
		for i := range batch {
			id := int64(i%300) + version/15*1000 // keys of the first memtable are not written again by the second
			batch[i] = testRow(id, version*1000+id)
			m[id] = version*1000 + id
		}
		_, err := db.PutBatch(batch)
		must(t, err)
	}
	for version := range int64(5) {
		put(version)
	}
	reader := otherProcess(t, mem)
	check(t, reader, m)
	for version := int64(5); version < 60; version++ {
		put(version)
	}
	killed(db)
	flushes := 0
	stop := func(op vfs.Op, path string) error { // lets one memtable of several through
		if op == vfs.OpCreate && strings.HasSuffix(path, ".parquet") {
			if flushes++; flushes > 1 {
				return base.Errorf(base.CodeNoSpace, "create %s: no space", path)
			}
		}
		return nil
	}
	fs.set(stop)
	db = openMem(t, fs, Options{MemtableBytes: minMemtableBytes, MaxImmutables: 64, FlushThreads: 1})
	if err := db.Flush(); CodeOf(err) != CodeNoSpace {
		t.Fatalf("the second flush was to fail: %v", err)
	}
	if n := db.Stats().ImmutableCount; n < 1 || db.Stats().DataFiles != 1 {
		t.Fatalf("%d memtables wait, %d files: not what the test wants", n, db.Stats().DataFiles)
	}
	must(t, reader.Refresh())
	check(t, reader, m)
	check(t, db, m)
	killed(db)
	fs.set(nil)
	db = openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	check(t, db, m)
	must(t, db.Flush())
	check(t, db, m)
	must(t, reader.Refresh())
	check(t, reader, m)
	reader.c.drop()
}

// TestLogElsewhere: the log may lie in another directory. Opening without naming it finds it, readers in other processes
// too; naming another one does not lose rows; two databases cannot share one; it moves after a clean close.
func TestLogElsewhere(t *testing.T) {
	fs := vfs.NewMem()
	open := func(path, dir string) (*DB, error) { return Open(path, Options{fs: fs, WALDir: dir}) }
	db, err := open("/db", "/fast/log")
	must(t, err)
	must(t, db.CreateTable(testSchema()))
	_, err = db.Put(testRow(1, 1))
	must(t, err)
	if names, err := fs.List("/db"); err != nil || strings.Contains(strings.Join(names, " "), "wal") {
		t.Fatalf("%v, %v", names, err)
	}
	reader := otherProcess(t, fs)
	check(t, reader, model{1: 1})
	reader.c.drop()
	killed(db)

	for _, dir := range []string{"/db/wal", "/other"} {
		_, err = open("/db", dir)
		wantCode(t, err, CodeInvalidArgument)
		if !strings.Contains(err.Error(), "/fast/log") {
			t.Fatalf("the error does not say where the log is: %v", err)
		}
	}
	_, err = open("/db2", "/fast/log")
	wantCode(t, err, CodeInvalidArgument)
	db, err = open("/db", "")
	must(t, err)
	check(t, db, model{1: 1})
	_, err = db.Put(testRow(2, 2))
	must(t, err)
	must(t, db.Close())
	db.Free()
	_, err = open("/db2", "/fast/log") // no log is there, but it is still the first one's
	wantCode(t, err, CodeInvalidArgument)

	db, err = open("/db", "/db/wal")
	must(t, err)
	_, err = db.Put(testRow(3, 3))
	must(t, err)
	killed(db)
	_, err = open("/db", "/fast/log")
	wantCode(t, err, CodeInvalidArgument)
	db, err = open("/db", "")
	must(t, err)
	check(t, db, model{1: 1, 2: 2, 3: 3})
	db.Free()
	db, err = open("/db2", "/fast/log")
	must(t, err)
	db.Free()
}

// TestManifestNameSynced: a manifest whose name was not synced, because that failed or the process ended before, is found
// at the next opening and made durable: a power cut must not take it from under what came after.
func TestManifestNameSynced(t *testing.T) {
	mem := vfs.NewMem()
	fs := newFaultyFS(mem)
	db, err := Open("/db", Options{fs: fs})
	must(t, err)
	fs.set(func(op vfs.Op, path string) error {
		if op == vfs.OpSyncDir && strings.HasSuffix(path, "/metadata") {
			return base.Errorf(base.CodeIO, "sync %s: input/output error", path)
		}
		return nil
	})
	wantCode(t, db.CreateTable(testSchema()), CodeIO)
	fs.set(nil)
	db.Free()
	db = openMem(t, fs, Options{})
	_, err = db.Put(testRow(1, 1))
	must(t, err)
	left := mem.CrashClone(nil)
	db.Free()
	db = openMem(t, left, Options{})
	defer db.Free()
	check(t, db, model{1: 1})
}
