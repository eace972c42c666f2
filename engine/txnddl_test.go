package engine

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func schemaOf(name string) *Schema {
	s := testSchema()
	s.TableName = name
	return s
}

// putIn runs a statement that puts rows into a table of a transaction.
func putIn(t *testing.T, txn *Txn, table string, m model, ids ...int64) {
	t.Helper()
	w, err := txn.NewWriteTo(table)
	must(t, err)
	defer w.Close()
	for _, id := range ids {
		must(t, w.Put(testRow(id, id+7)))
		m[id] = id + 7
	}
	_, err = w.Commit()
	must(t, err)
}

func checkTxn(t *testing.T, txn *Txn, table string, m model) {
	t.Helper()
	s, err := txn.SnapshotOf(table)
	must(t, err)
	defer s.Close()
	checkSnapshot(t, s, m)
}

// checkTables compares the database's tables with models.
func checkTables(t *testing.T, db *DB, want map[string]model) {
	t.Helper()
	var names []string
	for _, info := range db.Tables() {
		names = append(names, info.Name)
	}
	slices.Sort(names)
	if keys := slices.Sorted(maps.Keys(want)); !slices.Equal(names, keys) {
		t.Fatalf("the database has tables %v, want %v", names, keys)
	}
	for name, m := range want {
		one, err := db.OpenTable(name)
		must(t, err)
		check(t, one, m)
		one.Free()
	}
}

// TestTransactionTables: a transaction over several tables sees one moment of all, and is one log record.
func TestTransactionTables(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
	for _, name := range []string{"b", "c"} {
		must(t, db.CreateTable(schemaOf(name)))
	}
	b, err := db.OpenTable("b")
	must(t, err)
	defer b.Free()
	txn, err := db.Begin()
	must(t, err)
	_, err = b.Put(testRow(1, 1))
	must(t, err)
	a, inB, others := model{}, model{}, model{1: 1}
	checkTxn(t, txn, "B", model{}) // of the moment of the begin, though it is looked at only now
	putIn(t, txn, "", a, 1, 2)
	putIn(t, txn, "b", inB, 5, 6)
	putIn(t, txn, "t", a, 3)
	checkTxn(t, txn, "t", a)
	checkTxn(t, txn, "b", inB)
	checkTables(t, db, map[string]model{"t": {}, "b": others, "c": {}})
	_, err = txn.Commit()
	must(t, err)
	maps.Copy(inB, others)
	want := map[string]model{"t": a, "b": inB, "c": {}}
	checkTables(t, db, want)

	// a conflict in one table keeps all of it out
	txn, err = db.Begin()
	must(t, err)
	putIn(t, txn, "t", model{}, 100)
	putIn(t, txn, "b", model{}, 5)
	_, err = b.Put(testRow(5, 9))
	must(t, err)
	inB[5] = 9
	_, err = txn.Commit()
	wantCode(t, err, CodeConflict)
	checkTables(t, db, want)

	// too many rows for one record
	txn, err = db.Begin()
	must(t, err)
	putIn(t, txn, "t", model{}, 100)
	w, err := txn.NewWriteTo("b")
	must(t, err)
	many := model{}
	for id := range int64(20_000) {
		must(t, w.Put(testRow(id, id)))
		many[id] = id
	}
	_, err = w.Commit()
	must(t, err)
	w.Close()
	maps.Copy(many, inB)
	for id := range int64(20_000) {
		many[id] = id
	}
	checkTxn(t, txn, "b", many)
	txn.Rollback()
	db.Free()
	db = openMem(t, fs, Options{})
	defer db.Free()
	checkTables(t, db, want)
}

// definitions is a database with table t, and what its tables hold.
type definitions struct {
	t    *testing.T
	db   *DB
	want map[string]model
}

func newDefinitions(t *testing.T) *definitions {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	t.Cleanup(db.Free)
	_, err := db.Put(testRow(1, 8))
	must(t, err)
	return &definitions{t, db, map[string]model{"t": {1: 8}}}
}

func (d *definitions) begin() *Txn {
	d.t.Helper()
	txn, err := d.db.Begin()
	must(d.t, err)
	return txn
}

// ends commits a transaction, which is to have that result, and compares the tables.
func (d *definitions) ends(txn *Txn, code int) {
	d.t.Helper()
	_, err := txn.Commit()
	if got := CodeOf(err); int(got) != code {
		d.t.Fatalf("commit: %v, want code %d", err, code)
	}
	d.check()
}

func (d *definitions) check() {
	d.t.Helper()
	checkTables(d.t, d.db, d.want)
}

// TestTransactionDefinitions: tables that are made in a transaction are in its own view, and in the database with its
// commit; of two that make one name the later one fails.
func TestTransactionDefinitions(t *testing.T) {
	d := newDefinitions(t)
	created := d.begin()
	must(t, created.CreateTable(schemaOf("new")))
	wantCode(t, created.CreateTable(schemaOf("NEW")), CodeAlreadyExists)
	m := model{}
	putIn(t, created, "New", m, 1, 2, 3)
	checkTxn(t, created, "new", m)
	if names := created.TableNames(); !slices.Equal(names, []string{"new", "t"}) {
		t.Fatalf("it sees %v", names)
	}
	d.check()
	rolledBack := d.begin()
	must(t, rolledBack.CreateTable(schemaOf("other")))
	rolledBack.Rollback()
	d.check()
	late := d.begin()
	must(t, late.CreateTable(schemaOf("new")))
	putIn(t, created, "t", d.want["t"], 4001) // two manifests
	d.want["new"] = m
	d.ends(created, int(CodeOK))
	d.ends(late, int(CodeConflict))

	// created, filled, dropped: nothing
	nothing := d.begin()
	must(t, nothing.CreateTable(schemaOf("gone")))
	putIn(t, nothing, "gone", model{}, 1)
	must(t, nothing.DropTable("gone"))
	wantCode(t, nothing.DropTable("gone"), CodeNotFound)
	putIn(t, nothing, "t", d.want["t"], 20)
	d.ends(nothing, int(CodeOK))
}

// TestTransactionDrops: dropped and rolled back, dropped by two, dropped and made anew.
func TestTransactionDrops(t *testing.T) {
	d := newDefinitions(t)
	must(t, d.db.CreateTable(schemaOf("new")))
	d.want["new"] = model{}
	drop := d.begin()
	must(t, drop.DropTable("new"))
	_, err := drop.SnapshotOf("new")
	wantCode(t, err, CodeNotFound)
	drop.Rollback()
	d.check()
	replace, second := d.begin(), d.begin()
	must(t, second.DropTable("new"))
	must(t, replace.DropTable("new"))
	other := schemaOf("new")
	other.Columns = append(other.Columns, Column{Name: "more", Type: Type{Kind: KindBigInt}, Nullable: true})
	must(t, replace.CreateTable(other))
	s, err := replace.SchemaOf("new")
	must(t, err)
	if len(s.Columns) != 5 {
		t.Fatalf("it sees %d columns", len(s.Columns))
	}
	must(t, replace.DropTable("new"))
	must(t, replace.CreateTable(schemaOf("new")))
	putIn(t, replace, "new", d.want["new"], 7)
	d.ends(replace, int(CodeOK))
	d.ends(second, int(CodeConflict))
	last := d.begin()
	must(t, last.DropTable("new"))
	delete(d.want, "new")
	d.ends(last, int(CodeOK))
}

// TestTransactionTableAs: a table with its rows in one statement, large, in the place of another one.
func TestTransactionTableAs(t *testing.T) {
	d := newDefinitions(t)
	as := d.begin()
	_, err := as.NewTableWrite(schemaOf("t"), false)
	wantCode(t, err, CodeAlreadyExists)
	w, err := as.NewTableWrite(schemaOf("t"), true)
	must(t, err)
	m := model{}
	for id := range int64(20_000) {
		must(t, w.Put(testRow(id, id)))
		m[id] = id
	}
	checkTxn(t, as, "t", d.want["t"])
	_, err = w.Commit()
	must(t, err)
	w.Close()
	checkTxn(t, as, "t", m)
	given, err := as.NewTableWrite(schemaOf("x"), false)
	must(t, err)
	given.Close()
	d.want["t"] = m
	d.ends(as, int(CodeOK))
	if st := d.db.Stats(); st.OpenTransactions != 0 || st.TransactionMemory != 0 || st.TransactionFileBytes != 0 {
		t.Fatalf("%+v", st.TxnStats)
	}
}

// TestTransactionFirstTables: the first tables of a database come together.
func TestTransactionFirstTables(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Open("/db", Options{fs: fs})
	must(t, err)
	txn, err := db.Begin()
	must(t, err)
	want := map[string]model{}
	for _, name := range []string{"a", "b", "c"} {
		must(t, txn.CreateTable(schemaOf(name)))
		want[name] = model{}
		putIn(t, txn, name, want[name], 1, 2)
	}
	_, err = txn.Commit()
	must(t, err)
	checkTables(t, db, want)
	db.Free()
	db, err = Open("/db", Options{fs: fs})
	must(t, err)
	defer db.Free()
	checkTables(t, db, want)
	drop, err := db.Begin()
	must(t, err)
	must(t, drop.DropTable("b"))
	must(t, drop.CreateTable(schemaOf("b")))
	putIn(t, drop, "a", want["a"], 9)
	_, err = drop.Commit()
	must(t, err)
	want["b"] = model{}
	checkTables(t, db, want)
}

// TestTransactionDefinitionCrash cuts the power after every system call of transactions that make, replace and drop the
// table and write its rows.
func TestTransactionDefinitionCrash(t *testing.T) {
	cutEverywhere(t, 5, func(at int) int {
		return crashRun(t, at, rand.New(rand.NewPCG(uint64(at), 17)), func(t *testing.T, fs vfs.FS, p *progress) {
			db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1})
			defer db.Free()
			run := func(replace bool, n int64) {
				txn, err := db.Begin()
				must(t, err)
				defer txn.Rollback()
				next := maps.Clone(p.acked)
				if replace {
					must(t, txn.DropTable("t"))
					must(t, txn.CreateTable(testSchema()))
					next = model{}
				}
				ids := make([]int64, n)
				for i := range ids {
					ids[i] = int64(i)
				}
				putIn(t, txn, "t", next, ids...)
				p.begin(next)
				_, err = txn.Commit()
				must(t, err)
				p.end()
			}
			run(false, 3)
			run(true, 5)
			must(t, db.Flush())
			run(true, 2)
			run(false, 9)
		})
	})
}
