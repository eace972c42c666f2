package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// primaryState is what a database of a history must hold: the rows of each table, by name.
type primaryState map[string]model

func (s primaryState) clone() primaryState {
	n := primaryState{}
	for name, m := range s {
		n[name] = maps.Clone(m)
	}
	return n
}

// primaryStep is a change, and what it makes of a state.
type primaryStep struct {
	name  string
	do    func(db *DB) error
	apply func(s primaryState)
}

func onTable(name string, fn func(db *DB) error) func(*DB) error {
	return func(db *DB) error {
		one, err := db.OpenTable(name)
		if err != nil {
			return err
		}
		defer one.Free()
		return fn(one)
	}
}

func putStep(table string, from, to, payload int64) primaryStep {
	return primaryStep{
		fmt.Sprintf("put %d to %d in %s", from, to, table),
		onTable(table, func(db *DB) error {
			var rows [][]Value
			for id := from; id < to; id++ {
				rows = append(rows, testRow(id, payload+id))
			}
			_, err := db.PutBatch(rows)
			return err
		}),
		func(s primaryState) {
			for id := from; id < to; id++ {
				s[table][id] = payload + id
			}
		},
	}
}

func deleteStep(table string, id int64) primaryStep {
	return primaryStep{
		"delete", onTable(table, func(db *DB) error { _, err := db.Delete(testKey(id)); return err }),
		func(s primaryState) { delete(s[table], id) },
	}
}

func createStep(table string) primaryStep {
	return primaryStep{"create " + table, func(db *DB) error {
		s := testSchema()
		s.TableName = table
		return db.CreateTable(s)
	}, func(s primaryState) { s[table] = model{} }}
}

func dropStep(table string) primaryStep {
	return primaryStep{"drop " + table, onTable(table, (*DB).DropTable), func(s primaryState) { delete(s, table) }}
}

func sameStep(name string, do func(db *DB) error) primaryStep {
	return primaryStep{name, do, func(primaryState) {}}
}

// txnStep changes several tables in one transaction: rows of table from id on, and what ddl does.
func txnStep(name string, from int64, rows map[string]int64, ddl func(x *Txn) error, apply func(s primaryState)) primaryStep {
	tables := slices.Sorted(maps.Keys(rows))
	return primaryStep{
		"transaction: " + name,
		func(db *DB) error {
			x, err := db.Begin()
			if err != nil {
				return err
			}
			defer x.Rollback()
			if ddl != nil {
				if err := ddl(x); err != nil {
					return err
				}
			}
			for _, table := range tables {
				w, err := x.NewWriteTo(table)
				if err != nil {
					return err
				}
				defer w.Close()
				for id := from; id < from+rows[table]; id++ {
					if err := w.Put(testRow(id, 40+id)); err != nil {
						return err
					}
				}
				if _, err := w.Commit(); err != nil {
					return err
				}
			}
			_, err = x.Commit()
			return err
		},
		func(s primaryState) {
			if apply != nil {
				apply(s)
			}
			for _, table := range tables {
				for id := from; id < from+rows[table]; id++ {
					s[table][id] = 40 + id
				}
			}
		},
	}
}

func txnCreate(table string) func(x *Txn) error {
	return func(x *Txn) error {
		s := testSchema()
		s.TableName = table
		return x.CreateTable(s)
	}
}

// primaryTransactions are those over several tables.
func primaryTransactions() []primaryStep {
	return []primaryStep{
		createStep("t"), createStep("u"), putStep("u", 0, 5, 7),
		txnStep("few rows", 3, map[string]int64{"t": 4, "u": 6}, nil, nil),
		txnStep("many rows", 5, map[string]int64{"t": 6000, "u": 3}, nil, nil),
		txnStep("a table comes", 100, map[string]int64{"t": 4, "y": 6}, txnCreate("y"), func(s primaryState) { s["y"] = model{} }),
		txnStep("a table goes", 200, map[string]int64{"y": 4}, func(x *Txn) error { return x.DropTable("u") },
			func(s primaryState) { delete(s, "u") }),
		txnStep("one comes, one goes", 300, map[string]int64{"t": 1, "z": 4}, func(x *Txn) error {
			if err := x.DropTable("y"); err != nil {
				return err
			}
			return txnCreate("z")(x)
		}, func(s primaryState) {
			delete(s, "y")
			s["z"] = model{}
		}),
		putStep("z", 1, 3, 5),
	}
}

// primaryHistory has every kind of commit.
func primaryHistory() []primaryStep {
	return []primaryStep{
		createStep("t"), putStep("t", 0, 20, 0), putStep("t", 10, 30, 1000), deleteStep("t", 3),
		createStep("u"), putStep("u", 0, 5, 7),
		sameStep("compact", (*DB).Compact),
		putStep("t", 0, 6000, 5000), // a bulk load
		{"rename", onTable("u", func(db *DB) error { return db.RenameTable("w") }), func(s primaryState) {
			s["w"] = s["u"]
			delete(s, "u")
		}},
		putStep("w", 3, 9, 70), dropStep("w"), createStep("x"), putStep("x", 1, 3, 5), deleteStep("t", 17),
	}
}

// differs returns how a database differs from a state, "" where it does not.
func (s primaryState) differs(t testing.TB, db *DB) string {
	t.Helper()
	var names []string
	for _, info := range db.Tables() {
		names = append(names, info.Name)
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(s)); !slices.Equal(names, want) {
		return fmt.Sprintf("tables %q, want %q", names, want)
	}
	for name, m := range s {
		one, err := db.OpenTable(name)
		must(t, err)
		got := rowsOf(t, one)
		one.Free()
		if !maps.Equal(got, m) {
			return fmt.Sprintf("table %s has %d rows, want %d", name, len(got), len(m))
		}
	}
	return ""
}

// rowsOf reads a table as a model.
func rowsOf(t testing.TB, db *DB) model {
	t.Helper()
	snap, err := db.Snapshot()
	must(t, err)
	defer snap.Close()
	it, err := snap.Scan(ScanOptions{})
	must(t, err)
	got := model{}
	for _, r := range collect(t, it) {
		got[int64(r[1].Lo)] = int64(math.Float64frombits(r[3].Lo))
	}
	return got
}

// crashStore ends at a request that would change the store: it fails, having happened or not, and so does everything behind
// it.
type crashStore struct {
	at    int64 // 0: never
	after bool  // it happened
	count atomic.Int64
	dead  atomic.Bool
}

var errCrashed = base.Errorf(base.CodeObjectStore, "the process is dead")

func (c *crashStore) inject(op objstore.Op, _ string) error {
	if c.dead.Load() {
		return errCrashed
	}
	if op != objstore.OpPut && op != objstore.OpPutIfAbsent && op != objstore.OpDelete {
		return nil
	}
	if c.count.Add(1) != c.at {
		return nil
	}
	c.dead.Store(true)
	if c.after {
		return &objstore.AnswerLost{Err: errors.New("the process died")}
	}
	return errCrashed
}

// runPrimary runs a history until a step fails, and returns what the store must hold then: one of two states.
func runPrimary(t testing.TB, store objstore.Store, steps []primaryStep) (before, after primaryState, done bool) {
	t.Helper()
	before = primaryState{}
	db, err := tryPrimary(store, Options{MemtableBytes: minMemtableBytes, NoAutoCompaction: true, patience: 5 * time.Millisecond})
	if err != nil {
		return before, before, false
	}
	defer db.Free()
	for _, s := range steps {
		after = before.clone()
		s.apply(after)
		if err := s.do(db); err != nil {
			if testing.Verbose() && base.CodeOf(err) != base.CodeObjectStore {
				t.Logf("%s: %v", s.name, err)
			}
			return before, after, false
		}
		before = after
	}
	return before, before, true
}

// TestPrimaryCrash: wherever a writer dies, what it acknowledged is there for the next one, and the rest whole or not at
// all.
func TestPrimaryCrash(t *testing.T) {
	t.Run("tables", func(t *testing.T) { crashPrimary(t, primaryHistory()) })
	t.Run("transactions", func(t *testing.T) { crashPrimary(t, primaryTransactions()) })
}

func crashPrimary(t *testing.T, steps []primaryStep) {
	c := &crashStore{}
	if was, _, done := runPrimary(t, objstore.NewFaulty(objstore.NewMem(), c.inject), steps); !done {
		t.Fatalf("the history fails by itself, at %v", was)
	}
	requests := c.count.Load()
	t.Logf("%d requests that change the store", requests)
	step := int64(1)
	if testing.Short() {
		step = 3
	}
	for at := int64(1); at <= requests; at += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %v", at, after), func(t *testing.T) {
				t.Parallel()
				mem := objstore.NewMem()
				c := &crashStore{at: at, after: after}
				was, will, _ := runPrimary(t, objstore.NewFaulty(mem, c.inject), steps)
				db, err := tryPrimary(mem, Options{})
				must(t, err)
				defer db.Free()
				d1, d2 := was.differs(t, db), will.differs(t, db)
				if d1 != "" && d2 != "" {
					t.Fatalf("neither what was acknowledged (%s) nor one step more (%s)", d1, d2)
				}
				// It goes on, and so does who opens it after that.
				state := was
				if d1 != "" {
					state = will
				}
				if state["t"] == nil {
					createStep("t").apply(state)
					must(t, createStep("t").do(db))
				}
				more := putStep("t", 5, 15, 9000)
				more.apply(state)
				must(t, more.do(db))
				must(t, db.Close())
				db.Free()
				if db, err = tryPrimary(mem, Options{}); err != nil {
					t.Fatal(err)
				}
				defer db.Free()
				if d := state.differs(t, db); d != "" {
					t.Fatal("after the next writer: ", d)
				}
				noLog(t, mem)
			})
		}
	}
}

// TestPrimaryLostAnswers: a commit whose answer is lost is found to be there; requests that fail now and then are made again.
func TestPrimaryLostAnswers(t *testing.T) {
	for name, inject := range map[string]func(n int64, op objstore.Op, key string) error{
		"every answer to a commit is lost once": func(n int64, op objstore.Op, key string) error {
			if op == objstore.OpPutIfAbsent && n%2 == 1 {
				return &objstore.AnswerLost{Err: errors.New("connection reset")}
			}
			return nil
		},
		"every other request fails": func(n int64, op objstore.Op, key string) error {
			if (op == objstore.OpPutIfAbsent || strings.Contains(key, "metadata/v")) && n%2 == 1 {
				return errors.New("503 slow down")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			mem := objstore.NewMem()
			store := objstore.NewFaulty(mem, func(op objstore.Op, key string) error {
				if op != objstore.OpPutIfAbsent {
					return nil
				}
				return inject(n.Add(1), op, key)
			})
			db, err := tryPrimary(store, Options{NoAutoCompaction: true, patience: time.Minute})
			must(t, err)
			defer db.Free()
			state := primaryState{}
			for _, s := range append(primaryTransactions(), primaryHistory()[2:4]...) {
				must(t, s.do(db))
				s.apply(state)
			}
			if d := state.differs(t, db); d != "" {
				t.Fatal(d)
			}
			again, err := tryPrimary(mem, Options{})
			must(t, err)
			defer again.Free()
			if d := state.differs(t, again); d != "" {
				t.Fatal("opened anew: ", d)
			}
		})
	}
}

// TestPrimaryOutage: while the store is away statements fail and nothing of them is seen; when it is back they work, unless
// a commit was under way of which nobody knows.
func TestPrimaryOutage(t *testing.T) {
	var away, onlyManifests atomic.Bool
	mem := objstore.NewMem()
	store := objstore.NewFaulty(mem, func(op objstore.Op, key string) error {
		if away.Load() && (!onlyManifests.Load() || strings.HasPrefix(key, "metadata/v")) {
			return errors.New("503 service unavailable")
		}
		return nil
	})
	db, m := openPrimary(t, store, Options{patience: 50 * time.Millisecond}), model{}
	defer func() { db.Free() }()
	put(t, db, m, 1, 1)
	away.Store(true)
	for range 3 {
		if _, err := db.Put(testRow(2, 2)); base.CodeOf(err) != base.CodeObjectStore {
			t.Fatalf("a write without a store: %v", err)
		}
	}
	away.Store(false)
	check(t, db, m)
	put(t, db, m, 3, 3)
	check(t, db, m)
	onlyManifests.Store(true)
	away.Store(true)
	_, err := db.Put(testRow(4, 4))
	if base.CodeOf(err) != base.CodeObjectStore || !strings.Contains(err.Error(), "opening the database anew") {
		t.Fatalf("a commit of unknown outcome: %v", err)
	}
	away.Store(false)
	check(t, db, m)
	if _, err := db.Put(testRow(5, 5)); err == nil {
		t.Fatal("a writer that does not know the newest version goes on")
	}
	db.Free()
	db = openPrimary(t, store, Options{})
	check(t, db, m)
	put(t, db, m, 5, 5)
	check(t, db, m)
}
