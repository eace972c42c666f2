package sst

import (
	"sync"
	"testing"
)

// TestForget checks that a reader that closes leaves nothing behind, and nothing of others goes with it.
func TestForget(t *testing.T) {
	c := NewCache(1 << 20)
	for i := range 300 {
		c.put(cacheKey{reader: uint64(i % 3), column: uint32(i % 5), at: uint64(i)}, i, 100)
	}
	all := c.Stats().Bytes
	c.forget(1)
	for i := range 300 {
		if _, ok := c.get(cacheKey{reader: uint64(i % 3), column: uint32(i % 5), at: uint64(i)}); ok == (i%3 == 1) {
			t.Fatalf("entry %d of reader %d: %v", i, i%3, ok)
		}
	}
	c.forget(0)
	c.forget(2)
	if b := c.Stats().Bytes; b != 0 || all == 0 {
		t.Fatalf("%d bytes are left of readers that are closed, of %d", b, all)
	}
}

func TestNoCache(t *testing.T) {
	for _, c := range []*Cache{nil, NewCache(0), NewCache(-5)} {
		c.put(cacheKey{}, 1, 1)
		if _, ok := c.get(cacheKey{}); ok || c.Stats().Bytes != 0 || c.enabled() {
			t.Fatal("a cache without room kept an entry")
		}
		c.forget(0)
	}
}

// TestConcurrentReads runs gets, walks and scans on one reader with a cache too small for the file.
func TestConcurrentReads(t *testing.T) {
	s := bigintSchema()
	rows := makeRows(t, s, 3000, 1, 5)
	r, _, _ := writeFile(t, small(s, 1), rows, NewCache(64<<10))
	var wg sync.WaitGroup
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			switch g % 4 {
			case 0:
				it := r.NewIter(IterOptions{})
				defer it.Close()
				for n := 0; ; {
					cols, _, err := it.Next()
					if err != nil || cols == nil && n != len(rows) {
						t.Errorf("scan: %d rows, %v", n, err)
					}
					if cols == nil {
						return
					}
					n += cols.N
				}
			case 1:
				next, hits := 0, 0
				err := r.FindMany(func() ([]byte, bool) {
					if next == len(rows) {
						return nil, false
					}
					next++
					return rows[next-1].Key, true
				}, func(int, int64) error { hits++; return nil })
				if err != nil || hits != len(rows) {
					t.Errorf("walk: %d hits, %v", hits, err)
				}
			default:
				for i := g; i < len(rows); i += 7 {
					pos, found, err := r.Find(rows[i].Key)
					if err != nil || !found || pos != int64(i) {
						t.Errorf("get: %v %d %v", found, pos, err)
						return
					}
					if cols, err := r.ReadRow(pos, nil); err != nil || rows[i].Op == 1 && !sameValue(cols.Cols[1].Value(0), rows[i].Vals[1]) {
						t.Errorf("row %d: %v", i, err)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
}
