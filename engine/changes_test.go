package engine

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// change is one change as a feed must tell it: payloads are negative where there is no row.
type change1 struct {
	seq           uint64
	op            ChangeOp
	id            int64
	before, after int64
}

const noRow = int64(-1)

// feedOf reads a whole feed, in small batches.
func feedOf(t testing.TB, db *DB, since, until uint64) []change1 {
	t.Helper()
	f, err := db.Changes(ChangesOptions{Since: since, Until: until, BatchRows: 7})
	must(t, err)
	defer f.Close()
	payload := func(c *Columns, i int) int64 {
		if c.Cols[3].IsNull(i) {
			if !c.Cols[1].IsNull(i) {
				t.Fatal("an image is NULL in part")
			}
			return noRow
		}
		return int64(math.Float64frombits(c.Cols[3].Value(i).Lo))
	}
	var out []change1
	for {
		b, err := f.Next()
		must(t, err)
		if b == nil {
			return out
		}
		for i := range b.N {
			out = append(out, change1{b.Seqs[i], b.Ops[i], b.Keys.Cols[0].Value(i).Int64(), payload(b.Before, i), payload(b.After, i)})
		}
	}
}

// written is what a test wrote: by sequence number the key and the payload, noRow for a deletion.
type written []change1

func (w *written) put(t testing.TB, db *DB, id, payload int64) {
	t.Helper()
	seq, err := db.Put(testRow(id, payload))
	must(t, err)
	*w = append(*w, change1{seq: seq, id: id, after: payload})
}

func (w *written) delete(t testing.TB, db *DB, id int64) {
	t.Helper()
	seq, err := db.Delete(testKey(id))
	must(t, err)
	*w = append(*w, change1{seq: seq, id: id, after: noRow})
}

// at is the table as of a sequence number.
func (w written) at(seq uint64) model {
	m := model{}
	for _, c := range w {
		if c.seq > seq {
			break
		}
		if c.after == noRow {
			delete(m, c.id)
		} else {
			m[c.id] = c.after
		}
	}
	return m
}

// check holds a feed against what was written: its changes were made, they come in order, and lead from the table at
// since to the table at until. exact says that every image before a change is the row that the feed itself has led to.
func (w written) check(t testing.TB, feed []change1, since, until uint64, exact bool) {
	t.Helper()
	state := w.at(since)
	w.apply(t, state, feed, since, until, exact)
	if want := w.at(until); !maps.Equal(state, want) {
		t.Fatalf("the changes since %d until %d lead to %d rows, not the %d that there were", since, until, len(state), len(want))
	}
}

// apply is check without the end: the versions at until may have been merged with later ones.
func (w written) apply(t testing.TB, state model, feed []change1, since, until uint64, exact bool) {
	t.Helper()
	bySeq := map[uint64]change1{}
	for _, c := range w {
		bySeq[c.seq] = c
	}
	last := since
	for _, c := range feed {
		if c.seq <= last || c.seq > until {
			t.Fatalf("since %d until %d: change %+v after %d", since, until, c, last)
		}
		last = c.seq
		if made := bySeq[c.seq]; made.id != c.id || made.after != c.after {
			t.Fatalf("change %+v, written was %+v", c, made)
		}
		if exact {
			before, ok := state[c.id]
			if !ok {
				before = noRow
			}
			want := ChangeUpdate
			if before == noRow {
				want = ChangeInsert
			} else if c.after == noRow {
				want = ChangeDelete
			}
			if c.before != before || c.op != want {
				t.Fatalf("since %d: change %+v of a row that was %d", since, c, before)
			}
		}
		if c.after == noRow {
			delete(state, c.id)
		} else {
			state[c.id] = c.after
		}
	}
}

// TestChangesInMemory has every version at hand.
func TestChangesInMemory(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{})
	defer db.Free()
	var w written
	w.put(t, db, 1, 10)
	w.put(t, db, 2, 20)
	w.put(t, db, 1, 11)
	w.delete(t, db, 2)
	w.delete(t, db, 2) // nothing: there is no row
	w.put(t, db, 2, 21)
	first := w[0].seq
	got := feedOf(t, db, 0, 0)
	want := []change1{
		{first, ChangeInsert, 1, noRow, 10},
		{first + 1, ChangeInsert, 2, noRow, 20},
		{first + 2, ChangeUpdate, 1, 10, 11},
		{first + 3, ChangeDelete, 2, 20, noRow},
		{first + 5, ChangeInsert, 2, noRow, 21},
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
	if got := feedOf(t, db, first+1, first+3); !slices.Equal(got, want[2:4]) {
		t.Fatalf("in part: %+v", got)
	}
	if got := feedOf(t, db, first+5, 0); got != nil {
		t.Fatalf("after the last: %+v", got)
	}
	if got := feedOf(t, db, 1<<60, 0); got != nil {
		t.Fatalf("in the future: %+v", got)
	}
	if _, err := db.Changes(ChangesOptions{Since: 5, Until: 4}); CodeOf(err) != CodeInvalidArgument {
		t.Fatalf("until before since: %v", err)
	}
	stop := ChangesOptions{Interrupt: func() bool { return true }}
	f, err := db.Changes(stop)
	if err == nil {
		_, err = f.Next()
		f.Close()
	}
	if CodeOf(err) != CodeCancelled {
		t.Fatalf("interrupted: %v", err)
	}
}

// TestChangesOfHistories writes at random, flushes and compacts, and takes feeds from everywhere.
func TestChangesOfHistories(t *testing.T) {
	for _, retain := range []int{0, 1000} {
		for seed := range uint64(unlessShort(6, 2)) {
			fs := vfs.NewMem()
			o := Options{MemtableBytes: minMemtableBytes, RetainVersions: retain, GCGrace: -1, NoAutoCompaction: true}
			db := openMem(t, fs, o)
			rng := rand.New(rand.NewPCG(seed, 1))
			var w written
			flushed := map[uint64]bool{0: true}
			compacted := false
			var payload int64
			check := func(db *DB, floor uint64) {
				t.Helper()
				newest := db.Stats().Seq
				points := []uint64{floor, newest}
				for range 6 {
					points = append(points, floor+rng.Uint64N(newest-floor+1))
				}
				for _, since := range points {
					until := max(1, since+rng.Uint64N(newest-since+1)) // 0 is now
					exact := flushed[since] || since >= db.c.lastFlushedSeq()
					if flushed[until] || until >= db.c.lastFlushedSeq() {
						w.check(t, feedOf(t, db, since, until), since, until, exact)
					} else {
						w.apply(t, w.at(since), feedOf(t, db, since, until), since, until, exact)
					}
				}
				// In steps, each of which goes on where the one before ended: what a step lacks comes with the next one.
				state := w.at(floor)
				for since := floor; since < newest; {
					until := min(newest, since+1+rng.Uint64N(40))
					w.apply(t, state, feedOf(t, db, since, until), since, until, false)
					since = until
				}
				if want := w.at(newest); !maps.Equal(state, want) {
					t.Fatalf("the steps from %d to %d lead to %d rows, not %d", floor, newest, len(state), len(want))
				}
			}
			for range 12 {
				for range 5 + rng.IntN(40) {
					if id := rng.Int64N(30); rng.IntN(4) == 0 {
						w.delete(t, db, id)
					} else {
						payload++
						w.put(t, db, id, payload)
					}
				}
				if retain == 0 && compacted {
					continue
				}
				check(db, 0)
				switch rng.IntN(4) {
				case 0, 1:
					must(t, db.Flush())
					flushed[db.Stats().Seq] = true
				case 2:
					must(t, db.CompactRange(CompactOptions{}))
					flushed[db.Stats().Seq] = true
					compacted = true
				}
			}
			if retain > 0 {
				must(t, db.Close())
				db.Free()
				db = openMem(t, fs, Options{ReadOnly: true})
				flushed[db.Stats().Seq] = true
				check(db, 0)
			}
			db.Free()
		}
	}
}

// lastFlushedSeq is the newest sequence number in files.
func (c *core) lastFlushedSeq() uint64 {
	s := c.current()
	defer s.unref()
	return s.manifest.FlushedSeq
}

// TestChangesFloor drops versions: what is not known any more is an error that names what is.
func TestChangesFloor(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, GCGrace: -1, NoAutoCompaction: true})
	defer db.Free()
	var w written
	for i := range int64(20) {
		w.put(t, db, i%5, i)
		must(t, db.Flush())
	}
	collectNow(t, db)
	w.check(t, feedOf(t, db, 0, 0), 0, w[19].seq, true)
	must(t, db.CompactRange(CompactOptions{}))
	// A version stays while the engine itself looks at it, which may be a moment longer than the statement.
	var err error
	eventually(t, "the versions before the compaction are gone", func() bool {
		collectNow(t, db)
		_, err = db.Changes(ChangesOptions{Since: 3})
		return CodeOf(err) == CodeInvalidArgument
	})
	if !strings.Contains(err.Error(), "the oldest possible since is 20") {
		t.Fatalf("since 3: %v", err)
	}
	w.put(t, db, 1, 100)
	w.delete(t, db, 2)
	must(t, db.Flush())
	eventually(t, "no version of sequence number 20 is kept", func() bool {
		collectNow(t, db)
		_, err := db.Changes(ChangesOptions{Since: 20})
		return CodeOf(err) == CodeInvalidArgument
	})
	w.put(t, db, 3, 101)
	w.check(t, feedOf(t, db, 22, 0), 22, 23, true)
}

// TestChangesOfLoads has rows of bulk loads, of which all have one sequence number, and some supersede others of the same
// load.
func TestChangesOfLoads(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, RetainVersions: 100, NoAutoCompaction: true})
	defer db.Free()
	load := func(ids []int64, payload int64, deleted ...int64) uint64 {
		t.Helper()
		w, err := db.NewWrite()
		must(t, err)
		defer w.Close()
		for _, id := range ids {
			must(t, w.Put(testRow(id, payload)))
		}
		for _, id := range deleted {
			must(t, w.Delete(testKey(id)))
		}
		seq, err := w.Commit()
		must(t, err)
		return seq
	}
	var ids []int64
	for i := range int64(20_000) {
		ids = append(ids, i)
	}
	first := load(ids, 1)
	second := load(append(slices.Clone(ids), 5, 6, 7, -1), 2, 8, 9)
	if db.Stats().Loads != 2 {
		t.Fatalf("%d loads", db.Stats().Loads)
	}
	feed := feedOf(t, db, first, 0)
	var inserts, updates, deletes int
	for i, c := range feed {
		if c.seq != second || i > 0 && feed[i-1].id >= c.id {
			t.Fatalf("change %d: %+v", i, c)
		}
		switch {
		case c.op == ChangeInsert && c.id == -1 && c.after == 2:
			inserts++
		case c.op == ChangeUpdate && c.before == 1 && c.after == 2:
			updates++
		case c.op == ChangeDelete && c.before == 1 && (c.id == 8 || c.id == 9):
			deletes++
		default:
			t.Fatalf("%+v", c)
		}
	}
	if inserts != 1 || updates != 19_998 || deletes != 2 {
		t.Fatalf("%d inserts, %d updates, %d deletes", inserts, updates, deletes)
	}
}

// TestChangesBesideWriters takes feeds in steps while others write, flush, compact and collect; what the steps lead to is
// the table in the end.
func TestChangesBesideWriters(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, RetainFor: time.Hour, GCGrace: -1, RetainVersions: 3})
	defer db.Free()
	var w written
	done := make(chan struct{})
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range int64(1500) {
			if id := rng.Int64N(50); rng.IntN(5) == 0 {
				w.delete(t, db, id)
			} else {
				w.put(t, db, id, i)
			}
			if i%50 == 49 {
				must(t, db.Flush())
			}
			if i%400 == 399 {
				must(t, db.CompactRange(CompactOptions{}))
			}
		}
	}()
	state, since := model{}, uint64(0)
	step := func() bool {
		f, err := db.Changes(ChangesOptions{Since: since})
		must(t, err)
		until := f.Until()
		f.Close()
		feed := feedOf(t, db, since, until)
		for _, c := range feed {
			if c.after == noRow {
				delete(state, c.id)
			} else {
				state[c.id] = c.after
			}
		}
		since = until
		return len(feed) > 0
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		step()
	}
	for step() {
		continue
	}
	if want := w.at(1 << 62); !maps.Equal(state, want) {
		t.Fatalf("%d rows, want %d", len(state), len(want))
	}
}

// TestRowSorterSpills sorts more than its buffer holds, with values of the largest kind now and then.
func TestRowSorterSpills(t *testing.T) {
	fs := vfs.NewMem()
	s, err := newRowSorter(fs, func() (string, error) { return "/tmp", fs.MkdirAll("/tmp") })
	must(t, err)
	rng := rand.New(rand.NewPCG(2, 2))
	var want []string
	value := make([]byte, 64<<10)
	for range 1200 {
		k := make([]byte, 12)
		for i := range k {
			k[i] = byte(rng.Uint32())
		}
		want = append(want, string(k))
		must(t, s.add(k, append(value[:rng.IntN(len(value))], k...)))
	}
	if len(s.runs) == 0 {
		t.Fatal("nothing was spilled")
	}
	must(t, s.collapse())
	slices.Sort(want)
	walk := s.sorted()
	n := 0
	for walk.First(); walk.Valid(); walk.Next() {
		if string(walk.Key()) != want[n] || !strings.HasSuffix(string(walk.Value()), want[n]) {
			t.Fatalf("row %d", n)
		}
		n++
	}
	must(t, walk.Err())
	if n != len(want) {
		t.Fatalf("%d rows of %d", n, len(want))
	}
	s.close()
	if names, _ := fs.List("/tmp"); len(names) != 0 {
		t.Fatalf("left over: %v", names)
	}
}
