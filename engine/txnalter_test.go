package engine

import (
	"fmt"
	"math/rand/v2"
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

// TestTransactionAlterRandom does the same things to a table at once and to one through a transaction.
func TestTransactionAlterRandom(t *testing.T) {
	for seed := range uint64(unlessShort(15, 3)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fs := vfs.NewMem()
		o := Options{NoAutoCompaction: true, MemtableBytes: minMemtableBytes}
		one, db := openEvolving(t, vfs.NewMem(), o), openEvolving(t, fs, o)
		both := func(fn func(db *DB) error) {
			must(t, fn(one))
			must(t, fn(db))
		}
		n := int64(30)
		if seed%10 == 0 {
			n = 1_000
		}
		types := []Kind{KindInteger, KindBigInt, KindHugeInt}
		wide := 0
		columns := []string{"a", "id", "b"}
		row := func(id int64) []Value {
			vals := make([]Value, len(columns))
			for i, c := range columns {
				switch {
				case c == "id":
					vals[i] = Int(id)
				case rng.IntN(4) == 0:
					vals[i] = Null()
				case c == "b":
					vals[i] = String(fmt.Sprint("text ", rng.IntN(1000)))
				default:
					vals[i] = Int(rng.Int64N(1000))
				}
			}
			return vals
		}
		change := func(apply ...func(fn func(w *Write) error)) {
			var rows [][]Value
			for range rng.Int64N(n) + 1 {
				rows = append(rows, row(rng.Int64N(n)))
			}
			deleted := rng.IntN(3) == 0
			for _, a := range apply {
				a(func(w *Write) error {
					for _, r := range rows {
						var err error
						if deleted {
							for i, c := range columns {
								if c == "id" {
									err = w.Delete([]Value{r[i]})
								}
							}
						} else {
							err = w.Put(r)
						}
						if err != nil {
							return err
						}
					}
					_, err := w.Commit()
					return err
				})
			}
		}
		auto := func(db *DB) func(fn func(w *Write) error) {
			return func(fn func(w *Write) error) {
				w, err := db.NewWrite()
				must(t, err)
				defer w.Close()
				must(t, fn(w))
			}
		}
		for range 4 {
			change(auto(one), auto(db))
			if rng.IntN(3) == 0 {
				both((*DB).Flush)
			}
		}
		txn, err := db.Begin()
		must(t, err)
		inTxn := func(fn func(w *Write) error) {
			w, err := txn.NewWrite(db)
			must(t, err)
			defer w.Close()
			must(t, fn(w))
		}
		compare := func() {
			s, err := one.Snapshot()
			must(t, err)
			want := rowsText(t, s)
			s.Close()
			wantTxnRows(t, txn, want)
		}
		for step := range 10 {
			var op Alteration
			switch rng.IntN(6) {
			case 0:
				name := fmt.Sprint("n", step)
				op = addInt(name)
				if rng.IntN(2) == 0 {
					op = addInt(name, byte(step), 0, 0, 0)
				}
				columns = append(columns, name)
			case 1:
				if i := rng.IntN(len(columns)); columns[i] != "id" && columns[i] != "a" && columns[i] != "b" {
					op = DropColumn{Name: columns[i]}
					columns = append(columns[:i:i], columns[i+1:]...)
				}
			case 2:
				if wide < 2 {
					wide++
					op = SetType{Name: "a", Type: Type{Kind: types[wide]}}
				}
			case 3:
				op = SetDefault{Name: "b", SQL: fmt.Sprint(step)}
			default:
				change(auto(one), inTxn)
			}
			if op != nil {
				must(t, one.Alter(op))
				must(t, txn.Alter(db, op))
			}
			if n < 100 || step == 9 {
				compare()
			}
		}
		_, err = txn.Commit()
		must(t, err)
		s, err := one.Snapshot()
		must(t, err)
		wantRowsAlways(t, db, fs, rowsText(t, s))
		s.Close()
		one.Free()
		db.Free()
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
