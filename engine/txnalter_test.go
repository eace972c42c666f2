package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// wantTxnRows checks what a transaction sees of table t, read in every way.
func wantTxnRows(t testing.TB, txn *Txn, want string) {
	t.Helper()
	s, err := txn.SnapshotOf("t")
	must(t, err)
	defer s.Close()
	if got := rowsText(t, s); got != want {
		t.Fatalf("the transaction sees %s\nwant %s", got, want)
	}
}

func txnWrite(t testing.TB, txn *Txn, fn func(w *Write)) {
	t.Helper()
	w, err := txn.NewWriteTo("t")
	must(t, err)
	defer w.Close()
	fn(w)
	_, err = w.Commit()
	must(t, err)
}

func txnPut(t testing.TB, txn *Txn, vals ...Value) {
	t.Helper()
	txnWrite(t, txn, func(w *Write) { must(t, w.Put(vals)) })
}

func addInt(name string, initial ...byte) AddColumn {
	return AddColumn{Column: Column{Name: name, Type: Type{Kind: KindInteger}, Nullable: true, InitialDefault: initial}}
}

// TestTransactionAlter: each change of the schema is in the transaction's view at once, wherever rows are, and in the
// database with the commit, or never.
func TestTransactionAlter(t *testing.T) {
	for _, commit := range []bool{true, false} {
		inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
			const before = "(10, 1, x)(NULL, 2, y)(30, 3, NULL)"
			txn, err := db.Begin()
			must(t, err)
			defer txn.Rollback()
			txnPut(t, txn, Int(40), Int(4), String("w"))
			txnWrite(t, txn, func(w *Write) { must(t, w.Delete([]Value{Int(3)})) })
			old, err := txn.SnapshotOf("t")
			must(t, err)
			defer old.Close()
			must(t, txn.Alter(db, addInt("c", 7, 0, 0, 0)))
			wantTxnRows(t, txn, "(10, 1, x, 7)(NULL, 2, y, 7)(40, 4, w, 7)")
			txnPut(t, txn, Int(11), Int(1), String("x"), Int(8))
			wantCode(t, txn.AlterTable("T", SetNotNull{Name: "a", NotNull: true}), CodeSchemaMismatch)
			txnWrite(t, txn, func(w *Write) { must(t, w.Delete([]Value{Int(2)})) })
			must(t, txn.AlterTable("T", SetNotNull{Name: "a", NotNull: true}, SetNotNull{Name: "c", NotNull: true}))
			w, err := txn.NewWriteTo("t")
			must(t, err)
			wantCode(t, w.Put([]Value{Null(), Int(2), Null(), Int(1)}), CodeInvalidArgument)
			w.Close()
			must(t, txn.Alter(db, RenameColumn{Name: "b", NewName: "text"}, SetType{Name: "a", Type: Type{Kind: KindBigInt}}))
			wantTxnRows(t, txn, "(11, 1, x, 8)(40, 4, w, 7)")
			must(t, txn.Alter(db, SetType{Name: "a", Type: Type{Kind: KindHugeInt}}, SetDefault{Name: "text", SQL: "'z'"}))
			must(t, txn.Alter(db, DropColumn{Name: "text"}, addInt("text")))
			txnPut(t, txn, Int(5), Int(5), Int(6), Int(7))
			wantCode(t, txn.Alter(db, SetNotNull{Name: "text", NotNull: true}), CodeSchemaMismatch)
			wantCode(t, txn.Alter(db, DropColumn{Name: "id"}), CodeInvalidArgument)
			const after = "(11, 1, 8, NULL)(40, 4, 7, NULL)(5, 5, 6, 7)"
			wantTxnRows(t, txn, after)
			wantRows(t, db, before)
			if got := rowsText(t, old); got != "(10, 1, x)(NULL, 2, y)(40, 4, w)" {
				t.Fatalf("the snapshot from before shows %s", got)
			}
			if !commit {
				txn.Rollback()
				wantRowsAlways(t, db, fs, before)
				must(t, db.Alter(addInt("c")))
				wantRows(t, db, "(10, 1, x, NULL)(NULL, 2, y, NULL)(30, 3, NULL, NULL)")
				return
			}
			_, err = txn.Commit()
			must(t, err)
			wantRowsAlways(t, db, fs, after)
			s, err := db.Schema()
			must(t, err)
			if s.Columns[0].Nullable || s.Columns[2].Nullable || !s.Columns[3].Nullable || s.ColumnIndex("b") >= 0 {
				t.Fatalf("%+v", s)
			}
			_, err = db.Put([]Value{Int(1), Int(2), Int(3), Null()})
			must(t, err)
			wantRowsAlways(t, db, fs, "(11, 1, 8, NULL)(1, 2, 3, NULL)(40, 4, 7, NULL)(5, 5, 6, 7)")
		})
	}
}

// TestTransactionAlterOnly: a transaction that changes nothing but the schema, and one of a table of its own.
func TestTransactionAlterOnly(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		txn, err := db.Begin()
		must(t, err)
		defer txn.Rollback()
		must(t, txn.Alter(db, DropColumn{Name: "none", IfExists: true}))
		if tt, _ := txn.ofCore(db.c); tt.altered() {
			t.Fatal("nothing was altered")
		}
		must(t, txn.Alter(db, addInt("c"), DropColumn{Name: "b"}))
		_, err = txn.Commit()
		must(t, err)
		wantRowsAlways(t, db, fs, "(10, 1, NULL)(NULL, 2, NULL)(30, 3, NULL)")

		if txn, err = db.Begin(); err != nil {
			t.Fatal(err)
		}
		defer txn.Rollback()
		must(t, txn.DropTable("t"))
		must(t, txn.CreateTable(evolvingSchema()))
		txnPut(t, txn, Int(1), Int(1), String("x"))
		must(t, txn.AlterTable("t", addInt("d", 9, 0, 0, 0), DropColumn{Name: "a"}))
		txnPut(t, txn, Int(2), String("y"), Int(3))
		wantTxnRows(t, txn, "(1, x, 9)(2, y, 3)")
		_, err = txn.Commit()
		must(t, err)
		wantRowsAlways(t, db, fs, "(1, x, 9)(2, y, 3)")
	})
}

// TestTransactionAlterMeanwhile: what others do to the table before the commit.
func TestTransactionAlterMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(db *DB) error
		code Code
		want string
	}{
		"other row": {func(db *DB) error {
			_, err := db.Put([]Value{Int(9), Int(9), Null()})
			return err
		}, CodeOK, "(11, 1, x, 5)(20, 2, y, NULL)(30, 3, NULL, NULL)(9, 9, NULL, NULL)"},
		"same row": {func(db *DB) error {
			_, err := db.Put([]Value{Int(9), Int(1), Null()})
			return err
		}, CodeConflict, "(9, 1, NULL)(NULL, 2, y)(30, 3, NULL)"},
		"null": {func(db *DB) error {
			_, err := db.Put([]Value{Null(), Int(9), Null()})
			return err
		}, CodeConflict, "(10, 1, x)(NULL, 2, y)(30, 3, NULL)(NULL, 9, NULL)"},
		"null in a file": {func(db *DB) error {
			if _, err := db.Put([]Value{Null(), Int(9), Null()}); err != nil {
				return err
			}
			return db.Compact()
		}, CodeConflict, "(10, 1, x)(NULL, 2, y)(30, 3, NULL)(NULL, 9, NULL)"},
		"compacted": {func(db *DB) error { return db.Compact() }, CodeOK, "(11, 1, x, 5)(20, 2, y, NULL)(30, 3, NULL, NULL)"},
		"altered":   {func(db *DB) error { return db.Alter(addInt("z")) }, CodeConflict, "(10, 1, x, NULL)(NULL, 2, y, NULL)(30, 3, NULL, NULL)"},
		"transaction": {func(db *DB) error {
			txn, err := db.Begin()
			if err == nil {
				err = txn.Alter(db, addInt("z"))
			}
			if err == nil {
				_, err = txn.Commit()
			}
			return err
		}, CodeConflict, "(10, 1, x, NULL)(NULL, 2, y, NULL)(30, 3, NULL, NULL)"},
	} {
		t.Run(name, func(t *testing.T) {
			inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
				txn, err := db.Begin()
				must(t, err)
				defer txn.Rollback()
				txnPut(t, txn, Int(20), Int(2), String("y"))
				must(t, txn.Alter(db, SetNotNull{Name: "a", NotNull: true}, addInt("c")))
				txnPut(t, txn, Int(11), Int(1), String("x"), Int(5))
				must(t, c.do(db))
				wantTxnRows(t, txn, "(11, 1, x, 5)(20, 2, y, NULL)(30, 3, NULL, NULL)")
				_, err = txn.Commit()
				wantCode(t, err, c.code)
				wantRowsAlways(t, db, fs, c.want)
			})
		})
	}
}

// TestTransactionAlterWrites: a write that was begun before the change, of few rows or many, is not added to other rows.
func TestTransactionAlterWrites(t *testing.T) {
	db := openEvolving(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	txn, err := db.Begin()
	must(t, err)
	defer txn.Rollback()
	for _, n := range []int64{1, 30_000} {
		w, err := txn.NewWrite(db)
		must(t, err)
		for i := range n {
			vals := []Value{Int(i), Int(i), String("a text of some length"), Null()}
			must(t, w.Put(vals[:len(w.table.schema.Columns)]))
		}
		must(t, txn.Alter(db, addInt(fmt.Sprint("c", n))))
		_, err = w.Commit()
		wantCode(t, err, CodeConflict)
	}
	wantTxnRows(t, txn, "")
	if _, err = txn.Commit(); err != nil {
		t.Fatal(err)
	}
	wantRows(t, db, "")
	if st := db.Stats(); st.TransactionMemory != 0 || st.TransactionFileBytes != 0 {
		t.Fatalf("%+v", st.TxnStats)
	}
}

// alterPair is a table that is changed at once, and one that is changed alike through a transaction.
type alterPair struct {
	t       *testing.T
	rng     *rand.Rand
	one, db *DB
	txn     *Txn // of db, once it has begun
	n       int64
	columns []string
	wide    int // how often the type of a was made wider
}

// row makes up a row of a key.
func (p *alterPair) row(id int64) []Value {
	vals := make([]Value, len(p.columns))
	for i, c := range p.columns {
		switch {
		case c == "id":
			vals[i] = Int(id)
		case p.rng.IntN(4) == 0:
			vals[i] = Null()
		case c == "b":
			vals[i] = String(fmt.Sprint("text ", p.rng.IntN(1000)))
		default:
			vals[i] = Int(p.rng.Int64N(1000))
		}
	}
	return vals
}

// change puts or deletes the same rows of both.
func (p *alterPair) change() {
	var rows [][]Value
	for range p.rng.Int64N(p.n) + 1 {
		rows = append(rows, p.row(p.rng.Int64N(p.n)))
	}
	deleted, key := p.rng.IntN(3) == 0, slices.Index(p.columns, "id")
	begin := p.db.NewWrite
	if p.txn != nil {
		begin = func() (*Write, error) { return p.txn.NewWrite(p.db) }
	}
	for _, begin := range []func() (*Write, error){p.one.NewWrite, begin} {
		w, err := begin()
		must(p.t, err)
		for _, r := range rows {
			if deleted {
				must(p.t, w.Delete([]Value{r[key]}))
			} else {
				must(p.t, w.Put(r))
			}
		}
		_, err = w.Commit()
		must(p.t, err)
		w.Close()
	}
}

// alteration makes up a change of the schema, nil for none.
func (p *alterPair) alteration(step int) Alteration {
	switch p.rng.IntN(6) {
	case 0:
		name := fmt.Sprint("n", step)
		p.columns = append(p.columns, name)
		if p.rng.IntN(2) == 0 {
			return addInt(name, byte(step), 0, 0, 0)
		}
		return addInt(name)
	case 1:
		if i := p.rng.IntN(len(p.columns)); !slices.Contains([]string{"id", "a", "b"}, p.columns[i]) {
			name := p.columns[i]
			p.columns = slices.Delete(p.columns, i, i+1)
			return DropColumn{Name: name}
		}
	case 2:
		if types := []Kind{KindInteger, KindBigInt, KindHugeInt}; p.wide < 2 {
			p.wide++
			return SetType{Name: "a", Type: Type{Kind: types[p.wide]}}
		}
	case 3:
		return SetDefault{Name: "b", SQL: fmt.Sprint(step)}
	}
	return nil
}

func (p *alterPair) rowsOfOne() string {
	s, err := p.one.Snapshot()
	must(p.t, err)
	defer s.Close()
	return rowsText(p.t, s)
}

func (p *alterPair) run(fs vfs.FS) {
	for range 4 {
		p.change()
		if p.rng.IntN(3) == 0 {
			must(p.t, p.one.Flush())
			must(p.t, p.db.Flush())
		}
	}
	txn, err := p.db.Begin()
	must(p.t, err)
	p.txn = txn
	for step := range 10 {
		if op := p.alteration(step); op != nil {
			must(p.t, p.one.Alter(op))
			must(p.t, txn.Alter(p.db, op))
		} else {
			p.change()
		}
		if p.n < 100 || step == 9 {
			wantTxnRows(p.t, txn, p.rowsOfOne())
		}
	}
	_, err = txn.Commit()
	must(p.t, err)
	wantRowsAlways(p.t, p.db, fs, p.rowsOfOne())
}

// TestTransactionAlterRandom does the same things to a table at once and to one through a transaction.
func TestTransactionAlterRandom(t *testing.T) {
	for seed := range uint64(unlessShort(15, 3)) {
		fs := vfs.NewMem()
		o := Options{NoAutoCompaction: true, MemtableBytes: minMemtableBytes}
		p := &alterPair{
			t: t, rng: rand.New(rand.NewPCG(seed, 3)), one: openEvolving(t, vfs.NewMem(), o), db: openEvolving(t, fs, o),
			n: 30, columns: []string{"a", "id", "b"},
		}
		if seed%10 == 0 {
			p.n = 1_000
		}
		p.run(fs)
		p.one.Free()
		p.db.Free()
	}
}

// TestTransactionAlterCrash cuts the power after every system call of transactions that alter one table, alone and beside
// another one: schema and rows of both are there whole or not at all.
func TestTransactionAlterCrash(t *testing.T) {
	cutEverywhere(t, 7, func(at int) int {
		mem := vfs.NewMem()
		fs := vfs.NewCountingFS(mem)
		var mu sync.Mutex
		n := 0
		found, left := "", ""
		var clone *vfs.MemFS
		var wants []string
		fs.SetHook(func(vfs.Op, string) {
			mu.Lock()
			defer mu.Unlock()
			if n == at {
				clone = mem.CrashClone(rand.New(rand.NewPCG(uint64(at), 1)))
				wants = []string{found, left}
			}
			n++
		})
		db := openEvolving(t, fs, Options{NoAutoCompaction: true})
		step := func(want string, do func() error) {
			mu.Lock()
			left = want
			mu.Unlock()
			must(t, do())
			mu.Lock()
			found = want
			mu.Unlock()
		}
		step("(1, 1, x)(2, 2, y)", func() error {
			_, err := db.PutBatch([][]Value{{Int(1), Int(1), String("x")}, {Int(2), Int(2), String("y")}})
			return err
		})
		step("(1, 1, x)(2, 2, y)", db.Flush)
		step("(1, 1, x)(3, 2, y)", func() error {
			_, err := db.Put([]Value{Int(3), Int(2), String("y")})
			return err
		})
		step("(1, 1, x)(3, 2, y) other ", func() error { return db.CreateTable(schemaOf("other")) })
		txn, err := db.Begin()
		must(t, err)
		must(t, txn.Alter(db, addInt("c", 9, 0, 0, 0), DropColumn{Name: "b"}))
		txnPut(t, txn, Int(4), Int(1), Int(5))
		step("(4, 1, 5)(3, 2, 9) other ", func() error {
			_, err := txn.Commit()
			return err
		})
		txn, err = db.Begin()
		must(t, err)
		must(t, txn.Alter(db, SetType{Name: "c", Type: Type{Kind: KindVarchar}}))
		step("(4, 1, 5)(3, 2, 9) other ", func() error {
			_, err := txn.Commit()
			return err
		})
		txn, err = db.Begin()
		must(t, err)
		must(t, txn.Alter(db, DropColumn{Name: "a"}))
		must(t, txn.AlterTable("other", addInt("c", 1, 0, 0, 0)))
		putInto(t, txn, "other", append(testRow(1, 1), Int(2)))
		step("(1, 5)(2, 9) other altered", func() error {
			_, err := txn.Commit()
			return err
		})
		fs.SetHook(nil)
		db.Free()
		if clone == nil {
			return n
		}
		again := openEvolving(t, clone, Options{NoAutoCompaction: true})
		defer again.Free()
		got := ""
		s, err := again.Snapshot()
		must(t, err)
		got = rowsText(t, s)
		s.Close()
		if other, err := again.OpenTable("other"); err == nil {
			schema, err := other.Schema()
			must(t, err)
			s, err := other.Snapshot()
			must(t, err)
			got += " other "
			if rows := rowsText(t, s); (rows != "") != (schema.ColumnIndex("c") >= 0) {
				t.Fatalf("power cut at operation %d: columns %v with rows %s", at, schema.Columns, rows)
			} else if rows != "" {
				got += "altered"
			}
			s.Close()
			other.Free()
		}
		if got != wants[0] && got != wants[1] {
			t.Fatalf("power cut at operation %d: %s, want %q", at, got, wants)
		}
		must(t, again.Alter(addInt("more")))
		must(t, again.Compact())
		return n
	})
}

func putInto(t testing.TB, txn *Txn, table string, vals []Value) {
	t.Helper()
	w, err := txn.NewWriteTo(table)
	must(t, err)
	defer w.Close()
	must(t, w.Put(vals))
	_, err = w.Commit()
	must(t, err)
}

// TestTransactionAlterConcurrent: writers beside transactions that alter get conflicts, and every row that they were told
// is there stays.
func TestTransactionAlterConcurrent(t *testing.T) {
	db := openEvolving(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	var wg sync.WaitGroup
	const writers, each = 3, 200
	var mu sync.Mutex
	written := map[int64]bool{}
	for i := range int64(writers) {
		wg.Go(func() {
			for k := range int64(each) {
				w, err := db.NewWrite()
				if err != nil {
					t.Error(err)
					return
				}
				vals := []Value{Int(k), Int(i*each + k)}
				for range len(w.table.schema.Columns) - 2 {
					vals = append(vals, Null())
				}
				err = w.Put(vals)
				if err == nil {
					_, err = w.Commit()
				}
				w.Close()
				if err == nil {
					mu.Lock()
					written[i*each+k] = true
					mu.Unlock()
				} else if CodeOf(err) != CodeConflict {
					t.Error(err)
				}
			}
		})
	}
	altered := 0
	for i := range int64(20) {
		txn, err := db.Begin()
		must(t, err)
		must(t, txn.Alter(db, addInt(fmt.Sprint("c", i), byte(i), 0, 0, 0)))
		s, err := txn.SchemaOf("t")
		must(t, err)
		vals := []Value{Int(0), Int(10_000 + i), Null()}
		for range len(s.Columns) - 3 {
			vals = append(vals, Null())
		}
		txnPut(t, txn, vals...)
		_, err = txn.Commit()
		must(t, err) // nobody else alters, or writes the key
		altered++
	}
	wg.Wait()
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	if rows := collect(t, it); len(rows) != len(written)+altered || len(s.Schema().Columns) != 3+altered {
		t.Fatalf("%d rows of %d columns, %d were written and %d times altered", len(rows), len(s.Schema().Columns), len(written), altered)
	}
}
