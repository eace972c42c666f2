package engine

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestTransfers moves amounts between accounts in atomic batches from several writers, while readers add the accounts up
// and memtables are flushed under them: every snapshot must show the same total and every account exactly once.
func TestTransfers(t *testing.T) {
	const accounts, writers, transfers, start = 64, 4, 150, 1000
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: minMemtableBytes, MaxImmutables: 1})
	defer db.Free()
	balance := make([]int64, accounts)
	rows := make([][]Value, accounts)
	for i := range rows {
		balance[i] = start
		rows[i] = accountRow(int64(i), start)
	}
	_, err := db.PutBatch(rows)
	must(t, err)

	var mu sync.Mutex // makes balance and the order of commits agree
	var done atomic.Bool
	var writersWG, others sync.WaitGroup
	for w := range writers {
		writersWG.Add(1)
		go func() {
			defer writersWG.Done()
			rng := rand.New(rand.NewPCG(uint64(w), 9))
			for range transfers {
				a, b, amount := rng.IntN(accounts), rng.IntN(accounts), rng.Int64N(50)
				if a == b {
					continue
				}
				mu.Lock()
				balance[a] -= amount
				balance[b] += amount
				_, err := db.PutBatch([][]Value{accountRow(int64(a), balance[a]), accountRow(int64(b), balance[b])})
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for range 2 {
		others.Add(1)
		go func() {
			defer others.Done()
			for !done.Load() {
				checkTotal(t, db, accounts, accounts*start)
			}
		}()
	}
	others.Add(1)
	go func() {
		defer others.Done()
		for !done.Load() {
			if err := db.Flush(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	writersWG.Wait()
	done.Store(true)
	others.Wait()
	checkTotal(t, db, accounts, accounts*start)
	for i, want := range balance {
		row, found, err := db.Get(testKey(int64(i)))
		must(t, err)
		if !found || row[3].Lo != Double(float64(want)).Lo {
			t.Fatalf("account %d: %v, want %d", i, row, want)
		}
	}
}

func accountRow(id, amount int64) []Value {
	r := testRow(id, 1)
	r[3] = Double(float64(amount))
	return r
}

// checkTotal reads as SQL does: files, deletes, overlay; and by a merged scan.
func checkTotal(t *testing.T, db *DB, accounts int, total float64) {
	s, err := db.Snapshot()
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	it, err := s.Scan(ScanOptions{Projection: []int{3}})
	if err != nil {
		t.Error(err)
		return
	}
	defer it.Close()
	n, sum := 0, 0.0
	for {
		c, err := it.Next()
		if err != nil {
			t.Error(err)
			return
		}
		if c == nil {
			break
		}
		for i := range c.N {
			n++
			sum += doubleOf(c.Cols[0].Value(i))
		}
	}
	if n != accounts || sum != total {
		t.Errorf("version %d, sequence %d: %d accounts with %v, want %d with %v", s.Version(), s.Seq(), n, sum, accounts, total)
	}
}
