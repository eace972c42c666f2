package sst

import (
	"math/rand"
	"sync"
	"testing"
)

func TestCacheBounds(t *testing.T) {
	const capacity = 1 << 20
	c := NewCache(capacity)
	rng := rand.New(rand.NewSource(1))
	for i := 0; i < 20_000; i++ {
		k := cacheKey{reader: uint64(rng.Intn(3)), column: uint32(rng.Intn(5)), at: uint64(rng.Intn(500))}
		if v, ok := c.get(k); ok {
			if v.(cacheKey) != k {
				t.Fatalf("%+v yields %+v", k, v)
			}
			continue
		}
		c.put(k, k, rng.Intn(10_000))
		if b := c.Stats().Bytes; b > capacity {
			t.Fatalf("%d bytes of %d", b, capacity)
		}
	}
	st := c.Stats()
	if st.Hits == 0 || st.Misses == 0 || st.Hits+st.Misses != 20_000 || st.Bytes < capacity/2 {
		t.Fatalf("%+v", st)
	}
	c.put(cacheKey{at: 1 << 40}, 0, capacity)
	if _, ok := c.get(cacheKey{at: 1 << 40}); ok {
		t.Fatal("an entry as large as the cache was kept")
	}
	for reader := uint64(0); reader < 3; reader++ {
		c.forget(reader)
	}
	if b := c.Stats().Bytes; b != 0 {
		t.Fatalf("%d bytes are left of readers that are closed", b)
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := NewCache(16 * 16 * (1000 + entryOverhead))
	hot := cacheKey{reader: 1, at: 7}
	c.put(hot, "hot", 1000)
	for i := 0; i < 5000; i++ {
		c.put(cacheKey{reader: 2, at: uint64(i)}, i, 1000)
		if _, ok := c.get(hot); !ok {
			t.Fatalf("the entry in use was dropped after %d others", i)
		}
	}
}

func TestNoCache(t *testing.T) {
	for _, c := range []*Cache{nil, NewCache(0), NewCache(-5)} {
		c.put(cacheKey{}, 1, 1)
		if _, ok := c.get(cacheKey{}); ok || c.Stats().Bytes != 0 {
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
