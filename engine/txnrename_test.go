package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func renameIn(t *testing.T, txn *Txn, from, to string) {
	t.Helper()
	must(t, txn.AlterTable(from, RenameTable{NewName: to}))
}

// threeTables has tables t, in the root, u and v, some of their rows in files.
func threeTables(t *testing.T, fs vfs.FS) (*DB, map[string]model) {
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, GCGrace: -1})
	want := map[string]model{"t": {}}
	for _, name := range []string{"u", "v"} {
		must(t, db.CreateTable(schemaOf(name)))
		want[name] = model{}
	}
	for i, name := range []string{"t", "u", "v"} {
		txn, err := db.Begin()
		must(t, err)
		putIn(t, txn, name, want[name], int64(i), int64(10+i))
		_, err = txn.Commit()
		must(t, err)
		if i == 0 {
			must(t, db.Flush())
		}
	}
	return db, want
}

// TestTransactionRename: tables take other names in the transaction at once, and in the database with its commit: free
// ones, those that others leave or that go, those of each other; or never.
func TestTransactionRename(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, txn *Txn, want map[string]model){
		"free name": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "t", "x")
			_, err := txn.SnapshotOf("t")
			wantCode(t, err, CodeNotFound)
			checkTxn(t, txn, "x", want["t"])
			wantCode(t, txn.AlterTable("x", RenameTable{NewName: "U"}), CodeAlreadyExists)
			want["x"] = want["t"]
			delete(want, "t")
			putIn(t, txn, "x", want["x"], 7)
		},
		"other case": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "u", "U")
			want["U"] = want["u"]
			delete(want, "u")
		},
		"there and back": func(t *testing.T, txn *Txn, _ map[string]model) {
			renameIn(t, txn, "u", "x")
			renameIn(t, txn, "x", "u")
		},
		"of a dropped one": func(t *testing.T, txn *Txn, want map[string]model) {
			must(t, txn.DropTable("t"))
			renameIn(t, txn, "u", "t")
			want["t"] = want["u"]
			delete(want, "u")
		},
		"round": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "t", "x")
			renameIn(t, txn, "u", "t")
			renameIn(t, txn, "v", "u")
			renameIn(t, txn, "x", "v")
			want["t"], want["u"], want["v"] = want["u"], want["v"], want["t"]
			putIn(t, txn, "u", want["u"], 8)
		},
		"made in its place": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "t", "x")
			must(t, txn.CreateTable(schemaOf("t")))
			want["x"], want["t"] = want["t"], model{}
			putIn(t, txn, "t", want["t"], 9)
			putIn(t, txn, "x", want["x"], 9)
		},
		"then dropped": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "t", "x")
			must(t, txn.DropTable("x"))
			must(t, txn.CreateTable(schemaOf("x")))
			want["x"] = model{}
			delete(want, "t")
		},
		"then dropped and made": func(t *testing.T, txn *Txn, want map[string]model) {
			renameIn(t, txn, "t", "x")
			must(t, txn.DropTable("x"))
			must(t, txn.CreateTable(schemaOf("t")))
			want["t"] = model{}
			putIn(t, txn, "t", want["t"], 1)
		},
		"one that it made": func(t *testing.T, txn *Txn, want map[string]model) {
			must(t, txn.DropTable("v"))
			must(t, txn.CreateTable(schemaOf("x")))
			want["v"] = model{}
			putIn(t, txn, "x", want["v"], 5)
			renameIn(t, txn, "x", "v")
		},
	} {
		for _, commit := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", commit), func(t *testing.T) {
				fs := vfs.NewMem()
				db, before := threeTables(t, fs)
				txn, err := db.Begin()
				must(t, err)
				want := map[string]model{}
				for name, m := range before {
					want[name] = maps.Clone(m)
				}
				run(t, txn, want)
				for name, m := range want {
					checkTxn(t, txn, name, m)
				}
				checkTables(t, db, before)
				if commit {
					_, err = txn.Commit()
					must(t, err)
				} else {
					txn.Rollback()
					want = before
				}
				checkTables(t, db, want)
				killed(db)
				db, err = Open("/db", Options{fs: fs})
				must(t, err)
				checkTables(t, db, want)
				db.Free()
			})
		}
	}
}

// TestTransactionRenameMeanwhile: others take the name, or the table, before the commit.
func TestTransactionRenameMeanwhile(t *testing.T) {
	for name, do := range map[string]func(db *DB) error{
		"made":    func(db *DB) error { return db.CreateTable(schemaOf("X")) },
		"renamed": func(db *DB) error { return openTable(t, db, "v").RenameTable("x") },
		"itself":  func(db *DB) error { return openTable(t, db, "u").RenameTable("y") },
		"dropped": func(db *DB) error { return openTable(t, db, "u").DropTable() },
	} {
		for _, more := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", more), func(t *testing.T) {
				db, want := threeTables(t, vfs.NewMem())
				defer db.Free()
				txn, err := db.Begin()
				must(t, err)
				renameIn(t, txn, "u", "x")
				if more {
					putIn(t, txn, "t", maps.Clone(want["t"]), 3)
				}
				must(t, do(db))
				_, err = txn.Commit()
				wantCode(t, err, CodeConflict)
				check(t, openTable(t, db, "t"), want["t"])
			})
		}
	}
}

// TestTransactionRenameCrash cuts the power after each system call of a transaction in which two tables take each other's
// name: it is there as a whole, or not at all, to readers in other processes too.
func TestTransactionRenameCrash(t *testing.T) {
	swapped := 0
	for step := 1; ; step++ {
		mem := vfs.NewMem()
		fs := newFaultyFS(mem)
		db, want := threeTables(t, fs)
		txn, err := db.Begin()
		must(t, err)
		renameIn(t, txn, "t", "x")
		renameIn(t, txn, "u", "t")
		renameIn(t, txn, "x", "u")
		after := maps.Clone(want)
		after["t"], after["u"] = maps.Clone(want["u"]), want["t"]
		putIn(t, txn, "t", after["t"], 4)
		cut := cutPower(fs, mem, step, rand.New(rand.NewPCG(uint64(step), 8)))
		_, err = txn.Commit()
		fs.set(nil)
		killed(db)
		left := cut.disk()
		if left == nil {
			must(t, err)
			if step < 30 || swapped == 0 || swapped == step-1 {
				t.Fatalf("%d steps, after %d of them the names were swapped", step, swapped)
			}
			return
		}
		isAfter := func(db *DB) bool { return matches(t, openTable(t, db, "t"), after["t"]) }
		reader := otherProcess(t, left)
		shown := isAfter(reader)
		reader.c.release()
		reader.c.drop()
		db, err = Open("/db", Options{fs: left})
		must(t, err)
		found := isAfter(db)
		if shown && !found {
			t.Fatalf("step %d: a reader shows what is not there", step)
		}
		if found {
			swapped++
			want = after
		}
		checkTables(t, db, want)
		db.Free()
	}
}

// transaction does some things to tables in a transaction, which is committed or not.
func (h *tablesHistory) transaction() {
	txn, err := h.db.Begin()
	must(h.t, err)
	defer txn.Rollback()
	before := h.want
	h.want = map[string]model{}
	for name, m := range before {
		h.want[name] = maps.Clone(m)
	}
	for range 1 + h.rng.IntN(8) {
		name, next := h.pick(), fmt.Sprintf("n%d", h.rng.IntN(12))
		_, taken := h.want[next]
		switch k := h.rng.IntN(8); {
		case name != "" && k < 3:
			h.log = append(h.log, "put in "+name)
			putIn(h.t, txn, name, h.want[name], h.rng.Int64N(400), h.rng.Int64N(400))
		case name != "" && k < 6 && !taken:
			h.log = append(h.log, "rename "+name+" to "+next)
			renameIn(h.t, txn, name, next)
			h.want[next] = h.want[name]
			delete(h.want, name)
		case name != "" && k == 6:
			h.log = append(h.log, "drop "+name)
			must(h.t, txn.DropTable(name))
			delete(h.want, name)
		case !taken:
			h.log = append(h.log, "create "+next)
			must(h.t, txn.CreateTable(schemaOf(next)))
			h.want[next] = model{}
		}
	}
	if h.rng.IntN(4) == 0 {
		h.log = append(h.log, "rolled back")
		h.want = before
		return
	}
	_, err = txn.Commit()
	must(h.t, err)
}
