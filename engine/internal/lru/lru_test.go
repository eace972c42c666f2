package lru

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func spread(k int) uint64 { return uint64(k) * 0x9e3779b97f4a7c15 }

func TestBounds(t *testing.T) {
	const capacity = 1 << 20
	c := New[int, int](capacity, spread)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		k := rng.IntN(7500)
		if v, ok := c.Get(k); ok {
			if v != k {
				t.Fatalf("%d yields %d", k, v)
			}
			continue
		}
		c.Put(k, k, rng.IntN(10_000))
		if b := c.Stats().Bytes; b > capacity {
			t.Fatalf("%d bytes of %d", b, capacity)
		}
	}
	st := c.Stats()
	if st.Hits == 0 || st.Misses == 0 || st.Hits+st.Misses != 20_000 || st.Bytes < capacity/2 {
		t.Fatalf("%+v", st)
	}
	c.Put(1<<40, 0, capacity)
	if _, ok := c.Get(1 << 40); ok {
		t.Fatal("an entry as large as the cache was kept")
	}
	c.Forget(func(k int) bool { return k%2 == 0 })
	c.Forget(func(k int) bool { return k%2 == 1 })
	if b := c.Stats().Bytes; b != 0 {
		t.Fatalf("%d bytes are left after everything was forgotten", b)
	}
}

func TestPutReplaces(t *testing.T) {
	c := New[int, string](1<<20, spread)
	c.Put(1, "old", 1000)
	c.Put(1, "new", 10)
	if v, ok := c.Get(1); !ok || v != "new" {
		t.Fatalf("%q %v", v, ok)
	}
	if b := c.Stats().Bytes; b != 10+EntryOverhead {
		t.Fatalf("%d bytes after the larger value was replaced", b)
	}
}

func TestKeepsWhatIsUsed(t *testing.T) {
	c := New[int, string](shards*16*(1000+EntryOverhead), spread)
	c.Put(-1, "hot", 1000)
	for i := range 5000 {
		c.Put(i, "cold", 1000)
		if _, ok := c.Get(-1); !ok {
			t.Fatalf("the entry in use was dropped after %d others", i)
		}
	}
}

func TestWithoutRoom(t *testing.T) {
	for _, c := range []*Cache[int, int]{nil, New[int, int](0, spread), New[int, int](-5, spread)} {
		c.Put(1, 1, 1)
		if _, ok := c.Get(1); ok || c.Stats().Bytes != 0 || c.Enabled() {
			t.Fatal("a cache without room kept an entry")
		}
		c.Forget(func(int) bool { return true })
	}
}

// TestConcurrent puts, gets and forgets at once; the race detector and the sum of bytes judge.
func TestConcurrent(t *testing.T) {
	c := New[int, int](64<<10, spread)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 5000 {
				k := (i*7 + g) % 700
				if v, ok := c.Get(k); ok && v != k {
					t.Errorf("%d yields %d", k, v)
				}
				c.Put(k, k, 100)
				if i%1000 == 0 {
					c.Forget(func(k int) bool { return k%3 == g%3 })
				}
			}
		}()
	}
	wg.Wait()
	c.Forget(func(int) bool { return true })
	if b := c.Stats().Bytes; b != 0 {
		t.Fatalf("%d bytes are left", b)
	}
}
