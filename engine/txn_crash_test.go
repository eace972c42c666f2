package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestTransactionCrash cuts the power after every system call of small and large transactions: one that was not
// committed leaves nothing, one whose commit was under way is there whole or not at all.
func TestTransactionCrash(t *testing.T) {
	cutEverywhere(t, 7, func(at int) int {
		return crashRun(t, at, rand.New(rand.NewPCG(uint64(at), 13)), transactionHistory)
	})
}

func transactionHistory(t *testing.T, fs vfs.FS, p *progress) {
	o := Options{MemtableBytes: minMemtableBytes, RetainVersions: 1, GCGrace: -1}
	db := openMem(t, fs, o)
	rng := rand.New(rand.NewPCG(1, 2))
	statement := func(txn *Txn, next model, n int) {
		w, err := txn.NewWrite(db)
		must(t, err)
		defer w.Close()
		for range n {
			id := rng.Int64N(60)
			if n > 100 {
				id = rng.Int64N(3000)
			}
			if rng.IntN(4) == 0 {
				must(t, w.Delete(testKey(id)))
				delete(next, id)
			} else {
				payload := rng.Int64N(1000)
				must(t, w.Put(testRow(id, payload)))
				next[id] = payload
			}
		}
		_, err = w.Commit()
		must(t, err)
	}
	run := func(commit bool, sizes ...int) {
		txn, err := db.Begin()
		must(t, err)
		defer txn.Rollback()
		next := maps.Clone(p.acked)
		for _, n := range sizes {
			statement(txn, next, n)
		}
		if !commit {
			return
		}
		p.begin(next)
		_, err = txn.Commit()
		must(t, err)
		p.end()
	}
	run(true, 5, 3)
	run(false, 4)
	must(t, db.Flush())
	run(true, 2, 5000, 2)
	run(false, 5000)
	run(true, 1)
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, o)
	run(true, 3, 3)
	db.Free()
}

// TestTransactionFiles: what a transaction holds beyond its share of memory is in files that have no name and take their
// space from the disk when the rows come.
func TestTransactionFiles(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir+"/db", Options{MemtableBytes: minMemtableBytes})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	txn, err := db.Begin()
	must(t, err)
	defer txn.Rollback()
	m := model{}
	for part := range int64(3) { // large statements, and many small ones
		w, err := txn.NewWrite(db)
		must(t, err)
		for i := range int64(20_000) {
			id := part*10_000 + i
			must(t, w.Put(testRow(id, id+part)))
			m[id] = id + part
		}
		_, err = w.Commit()
		must(t, err)
	}
	for id := range int64(20_000) {
		w, err := txn.NewWrite(db)
		must(t, err)
		must(t, w.Put(testRow(id*3, 7)))
		_, err = w.Commit()
		must(t, err)
		m[id*3] = 7
	}
	st := db.Stats()
	if st.TransactionFileBytes < 4<<20 || st.TransactionMemory > minMemtableBytes/txnMemoryShare {
		t.Fatalf("%d bytes in files, %d in memory", st.TransactionFileBytes, st.TransactionMemory)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "db", temporaryDir)); err != nil || len(names) > 0 {
		t.Fatalf("the temporary directory holds %v, %v", names, err)
	}
	s, err := txn.Snapshot(db)
	must(t, err)
	defer s.Close()
	checkSnapshot(t, s, m)
	check(t, db, model{})
	_, err = txn.Commit()
	must(t, err)
	check(t, db, m)
	checkSnapshot(t, s, m) // it outlives the transaction
	if st := db.Stats(); st.TransactionFileBytes == 0 || st.OpenTransactions != 0 {
		t.Fatalf("a snapshot is still open: %+v", st.TxnStats)
	}
	s.Close()
	if st := db.Stats(); st.TransactionFileBytes != 0 || st.TransactionMemory != 0 {
		t.Fatalf("nothing is open any more: %+v", st.TxnStats)
	}
}

// TestTransactionManyHoldMemory: however many transactions are open, they have one memtable's size of memory.
func TestTransactionManyHoldMemory(t *testing.T) {
	db, err := Open(t.TempDir()+"/db", Options{MemtableBytes: minMemtableBytes})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	for i := range int64(100) {
		txn, err := db.Begin()
		must(t, err)
		defer txn.Rollback()
		w, err := txn.NewWrite(db)
		must(t, err)
		must(t, w.Put(testRow(i, i)))
		_, err = w.Commit()
		must(t, err)
	}
	st := db.Stats()
	if st.OpenTransactions != 100 || st.TransactionMemory > 2*minMemtableBytes || st.TransactionFileBytes == 0 {
		t.Fatalf("%+v", st.TxnStats)
	}
}

// TestTransactionScanMemory: scanning a transaction that is in files, in many pieces, keeps little of it in memory.
func TestTransactionScanMemory(t *testing.T) {
	resident := func() (pages, bytes int64) {
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip(err)
		}
		_, err = fmt.Sscan(string(text), &pages, &bytes)
		must(t, err)
		return pages, bytes * int64(os.Getpagesize())
	}
	db, err := Open(t.TempDir()+"/db", Options{MemtableBytes: 4 << 20})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	txn, err := db.Begin()
	must(t, err)
	defer txn.Rollback()
	w, err := txn.NewWrite(db)
	must(t, err)
	defer w.Close()
	const rows, piece = 150_000, 5_000
	for id := range int64(rows) {
		row := testRow(id, id)
		row[2] = String(strings.Repeat("x", 1000))
		must(t, w.Put(row))
	}
	_, err = w.Commit()
	must(t, err)
	s, err := txn.Snapshot(db)
	must(t, err)
	defer s.Close()
	_, before := resident()
	n, most := 0, int64(0)
	for from := int64(0); from < rows; from += piece {
		it, err := s.OverlayRange(ScanOptions{Lower: []Value{Int(from)}, Upper: []Value{Int(from + piece - 1)}, Projection: []int{1}})
		must(t, err)
		n += len(collect(t, it))
		_, now := resident()
		most = max(most, now-before)
	}
	if n != rows || most > 100<<20 { // of 160 MB
		t.Fatalf("%d rows, %d MB in memory", n, most>>20)
	}
}

// TestTransactionNoSpace: a statement for whose rows there is no space fails, and takes nothing of the transaction along.
func TestTransactionNoSpace(t *testing.T) {
	var full atomic.Bool // the collector works beside the test
	fs := vfs.NewErrorFS(vfs.OS, func(op vfs.Op, path string) error {
		if full.Load() && op == vfs.OpCreate && strings.Contains(path, "/"+temporaryDir+"/") {
			return base.Errorf(base.CodeNoSpace, "%s: no space left", path)
		}
		return nil
	})
	db, err := Open(t.TempDir()+"/db", Options{MemtableBytes: minMemtableBytes, fs: fs})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	txnNoSpace(t, db, full.Store)
}

// TestTransactionSmallDisk is the same on a real file system that is full, if this process may mount one.
func TestTransactionSmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("no file system to fill: mount: %v", err)
	}
	defer func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	db, err := Open(dir+"/db", Options{MemtableBytes: minMemtableBytes})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	txnNoSpace(t, db, func(on bool) {
		if !on {
			must(t, os.Remove(dir+"/filler"))
			return
		}
		f, err := os.Create(dir + "/filler")
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 64<<10))
		}
		must(t, f.Close())
	})
}

func txnNoSpace(t *testing.T, db *DB, fill func(on bool)) {
	txn, err := db.Begin()
	must(t, err)
	defer txn.Rollback()
	m := model{}
	statement := func(from, n int64) error {
		w, err := txn.NewWrite(db)
		must(t, err)
		defer w.Close()
		for id := from; id < from+n; id++ {
			if err := w.Put(testRow(id, id)); err != nil {
				return err
			}
		}
		if _, err := w.Commit(); err != nil {
			return err
		}
		for id := from; id < from+n; id++ {
			m[id] = id
		}
		return nil
	}
	must(t, statement(0, 10))
	fill(true)
	wantCode(t, statement(1000, 20_000), CodeNoSpace)
	s, err := txn.Snapshot(db)
	must(t, err)
	checkSnapshot(t, s, m)
	s.Close()
	fill(false)
	must(t, statement(5000, 20_000))
	_, err = txn.Commit()
	must(t, err)
	check(t, db, m)
}

// TestTransactionInterrupted: a large commit that is interrupted leaves nothing, wherever that is.
func TestTransactionInterrupted(t *testing.T) {
	for stop := 1; ; stop *= 2 {
		fs := vfs.NewMem()
		db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes})
		txn, err := db.Begin()
		must(t, err)
		w, err := txn.NewWrite(db)
		must(t, err)
		m := model{}
		for id := range int64(30_000) {
			must(t, w.Put(testRow(id, id)))
			m[id] = id
		}
		_, err = w.Commit()
		must(t, err)
		asked := 0
		txn.SetInterrupt(func() bool { asked++; return asked >= stop })
		_, err = txn.Commit()
		if asked < stop {
			must(t, err)
			check(t, db, m)
			db.Free()
			if stop < 8 {
				t.Fatalf("it was asked %d times", asked)
			}
			return
		}
		wantCode(t, err, CodeCancelled)
		check(t, db, model{})
		if files := listTree(t, fs); files != "" {
			t.Fatalf("interrupted at %d, it leaves %s", stop, files)
		}
		txn.Rollback()
		db.Free()
	}
}

// TestTransactionErrors: the wrong use of a transaction is an error and does no harm.
func TestTransactionErrors(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes})
	defer db.Free()
	other := openMem(t, vfs.NewMem(), Options{})
	defer other.Free()
	txn, err := db.Begin()
	must(t, err)
	_, err = txn.Snapshot(other)
	wantCode(t, err, CodeInvalidArgument)
	_, err = txn.NewWrite(other)
	wantCode(t, err, CodeInvalidArgument)
	open, err := txn.NewWrite(db)
	must(t, err)
	defer open.Close()
	must(t, open.Put(testRow(1, 1)))
	large, err := txn.NewWrite(db)
	must(t, err)
	defer large.Close()
	for id := range int64(20_000) {
		must(t, large.Put(testRow(id, id)))
	}
	s, err := txn.Snapshot(db)
	must(t, err)
	defer s.Close()
	outside, err := db.NewWrite()
	must(t, err)
	defer outside.Close()
	must(t, outside.SetSnapshot(s)) // the transaction has written nothing yet
	txn.Rollback()
	txn.Rollback()
	for _, w := range []*Write{open, large} {
		_, err = w.Commit()
		wantCode(t, err, CodeClosed)
	}
	_, err = txn.NewWrite(db)
	wantCode(t, err, CodeClosed)
	_, err = txn.Snapshot(db)
	wantCode(t, err, CodeClosed)
	_, err = txn.Commit()
	wantCode(t, err, CodeClosed)
	checkSnapshot(t, s, model{})
	check(t, db, model{})
	if st := db.Stats(); st.TransactionMemory != 0 || st.OpenTransactions != 0 {
		t.Fatalf("%+v", st.TxnStats)
	}
}

// TestTransactionTableReplaced: a transaction whose table was dropped reads on, and cannot commit what it wrote.
func TestTransactionTableReplaced(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{})
	defer db.Free()
	_, err := db.Put(testRow(1, 1))
	must(t, err)
	txn, err := db.Begin()
	must(t, err)
	must(t, db.DropTable())
	must(t, db.CreateTable(testSchema()))
	w, err := txn.NewWrite(db)
	must(t, err)
	defer w.Close()
	must(t, w.Put(testRow(2, 2)))
	_, err = w.Commit()
	must(t, err)
	s, err := txn.Snapshot(db)
	must(t, err)
	checkSnapshot(t, s, model{1: 1, 2: 2})
	s.Close()
	_, err = txn.Commit()
	wantCode(t, err, CodeConflict)
	check(t, db, model{})
}
