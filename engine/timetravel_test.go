package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestEveryVersion writes, flushes and compacts, and compares every version with what the table held when it was made:
// while it grows, after it was opened again, and through a read-only handle of another process.
func TestEveryVersion(t *testing.T) {
	fs := vfs.NewMem()
	rng := rand.New(rand.NewPCG(7, 7))
	o := Options{MemtableBytes: minMemtableBytes, RetainVersions: 1000, NoAutoCompaction: true}
	db := openMem(t, fs, o)
	m := model{}
	history := map[int64]model{}
	remember := func() { history[db.Stats().Version] = maps.Clone(m) }
	remember()
	checkAll := func(db *DB) {
		t.Helper()
		for version, want := range history {
			s, err := db.SnapshotAt(version)
			must(t, err)
			if s.Version() != version || s.MemoryRows() != 0 {
				t.Fatalf("version %d: got %d with %d rows in memory", version, s.Version(), s.MemoryRows())
			}
			checkSnapshot(t, s, want)
			s.Close()
		}
	}
	for i := range 30 {
		writeRandom(t, db, rng, m, 60, 20)
		must(t, db.Flush())
		remember()
		if i%7 == 6 {
			must(t, db.CompactRange(CompactOptions{}))
			remember()
		}
		if i%10 == 0 {
			writeRandom(t, db, rng, m, 60, 5) // in memory: belongs to no version yet
			checkAll(db)
		}
	}
	must(t, db.Flush())
	remember()
	checkAll(db)
	must(t, db.Close())
	db.Free()

	db = openMem(t, fs, Options{ReadOnly: true})
	checkAll(db)
	db.Free()
	db = openMem(t, fs, o)
	checkAll(db)
	check(t, db, m)
	db.Free()
}

func TestVersionsThatAreNotThere(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{GCGrace: -1, NoAutoCompaction: true})
	defer db.Free()
	for i := range int64(5) {
		_, err := db.Put(testRow(i, i))
		must(t, err)
		must(t, db.Flush())
	}
	collectNow(t, db)
	newest := db.Stats().Version
	for _, version := range []int64{-1, 0, 1, newest - 1, newest + 1, 1 << 62} {
		_, err := db.SnapshotAt(version)
		if CodeOf(err) != CodeNotFound || !strings.Contains(err.Error(), fmt.Sprintf("the newest %d", newest)) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	s, err := db.SnapshotAt(newest)
	must(t, err)
	s.Close()
	if _, err := db.SnapshotAsOf(time.Unix(0, 0)); CodeOf(err) != CodeNotFound || !strings.Contains(err.Error(), "1970-01-01") {
		t.Errorf("as of 1970: %v", err)
	}
	must(t, db.DropTable())
	if _, err := db.SnapshotAt(newest + 1); CodeOf(err) != CodeNotFound || !strings.Contains(err.Error(), "no table in version") {
		t.Errorf("the version without a table: %v", err)
	}
	other := testSchema()
	other.TableName = "other"
	must(t, db.CreateTable(other))
	s, err = db.SnapshotAt(newest + 2)
	must(t, err)
	s.Close()
}

// TestAsOf finds versions by their time, under a clock that jumps.
func TestAsOf(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{RetainVersions: 1000, NoAutoCompaction: true})
	defer db.Free()
	now := time.UnixMilli(time.Now().Add(time.Hour).UnixMilli())
	db.c.setClock(func() time.Time { return now })
	type commit struct {
		version int64
		at      time.Time
	}
	var commits []commit
	last := now
	for i, step := range []time.Duration{time.Second, 0, time.Minute, -time.Hour, time.Millisecond, 2 * time.Hour} {
		now = now.Add(step)
		_, err := db.Put(testRow(int64(i), 1))
		must(t, err)
		must(t, db.Flush())
		if now.After(last) {
			last = now
		}
		commits = append(commits, commit{db.Stats().Version, last})
	}
	for i, c := range commits {
		want := c.version
		for _, later := range commits[i+1:] {
			if later.at.Equal(c.at) {
				want = later.version
			}
		}
		for _, at := range []time.Time{c.at, c.at.Add(999 * time.Microsecond)} {
			s, err := db.SnapshotAsOf(at)
			must(t, err)
			if s.Version() != want {
				t.Errorf("as of %v: version %d, want %d", at, s.Version(), want)
			}
			s.Close()
		}
	}
}

// TestOldVersionsArePinned reads older versions while another goroutine collects garbage without mercy: a version that
// was given out stays readable, whatever else happens.
func TestOldVersionsArePinned(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, GCGrace: -1, RetainVersions: 1, NoAutoCompaction: true})
	defer db.Free()
	var mu sync.Mutex
	history := map[int64]model{}
	m := model{}
	done := make(chan struct{})
	var readers sync.WaitGroup
	got := 0
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				version := db.Stats().Version - 1
				s, err := db.SnapshotAt(version)
				if CodeOf(err) == base.CodeNotFound {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want, known := history[version]
				got++
				mu.Unlock()
				if known {
					_, err := db.CollectGarbage(false)
					if err == nil {
						it, scanErr := s.Scan(ScanOptions{})
						if err = scanErr; err == nil && len(collect(t, it)) != len(want) {
							t.Errorf("version %d has other rows", version)
						}
					}
					if err != nil {
						t.Errorf("version %d: %v", version, err)
					}
				}
				s.Close()
			}
		})
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for range 60 {
		writeRandom(t, db, rng, m, 40, 10)
		must(t, db.Flush())
		mu.Lock()
		history[db.Stats().Version] = maps.Clone(m)
		mu.Unlock()
		must(t, db.CompactRange(CompactOptions{}))
		mu.Lock()
		history[db.Stats().Version] = maps.Clone(m)
		mu.Unlock()
	}
	close(done)
	readers.Wait()
	if got == 0 {
		t.Error("no older version was ever read")
	}
}
