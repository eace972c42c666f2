// Package lru holds the cache behind the engine's caches: the entries used last, bounded in bytes.
package lru

import (
	"sync"
	"sync/atomic"
)

// shards splits the lock. A power of two, for shardShift.
const (
	shards     = 16
	shardShift = 60
)

// EntryOverhead is about what the cache itself spends on an entry, in bytes: it counts against the capacity.
const EntryOverhead = 160

// Cache keeps the values used last. Values are shared: nobody writes to them. A nil *Cache and one of too few bytes hold
// nothing. Its methods may be called from any goroutine.
type Cache[K comparable, V any] struct {
	capacity     int64
	hash         func(K) uint64
	hits, misses atomic.Int64
	shards       [shards]shard[K, V]
}

// Stats says how a cache is used: bytes, and lookups since it was made.
type Stats struct {
	Capacity, Bytes, Hits, Misses int64
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*entry[K, V]
	root    entry[K, V] // of the ring of entries: root.next is the one used last
	bytes   int64
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	size       int64
	prev, next *entry[K, V]
}

// New makes a cache of that many bytes. The upper bits of hash choose an entry's shard: they must be spread well.
func New[K comparable, V any](bytes int64, hash func(K) uint64) *Cache[K, V] {
	c := &Cache[K, V]{capacity: max(bytes, 0), hash: hash}
	for i := range c.shards {
		s := &c.shards[i]
		s.entries = map[K]*entry[K, V]{}
		s.root.next, s.root.prev = &s.root, &s.root
	}
	return c
}

// Stats returns the counters.
func (c *Cache[K, V]) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	st := Stats{Capacity: c.capacity, Hits: c.hits.Load(), Misses: c.misses.Load()}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Bytes += s.bytes
		s.mu.Unlock()
	}
	return st
}

// Enabled reports whether anything can be cached.
func (c *Cache[K, V]) Enabled() bool { return c != nil && c.capacity >= shards*EntryOverhead }

func (c *Cache[K, V]) shard(k K) *shard[K, V] { return &c.shards[c.hash(k)>>shardShift] }

// Get returns what is cached under a key and counts the lookup.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	v, ok := c.Use(k)
	switch {
	case ok:
		c.hits.Add(1)
	case c.Enabled():
		c.misses.Add(1)
	}
	return v, ok
}

// Use is Get without counting.
func (c *Cache[K, V]) Use(k K) (v V, ok bool) {
	if !c.Enabled() {
		return v, false
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[k]
	if e == nil {
		return v, false
	}
	if s.root.next != e {
		e.unlink()
		e.linkBehind(&s.root)
	}
	return e.value, true
}

// Stale takes the last hit back: the value that Get returned was of no use to its caller.
func (c *Cache[K, V]) Stale() {
	c.hits.Add(-1)
	c.misses.Add(1)
}

// Put caches a value of about size bytes in place of what was there. What is larger than a shard's part is not kept, which
// Put then says.
func (c *Cache[K, V]) Put(k K, v V, size int) (kept bool) {
	if c == nil || int64(size)+EntryOverhead > c.capacity/shards {
		return false
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[k]; e != nil {
		s.drop(e)
	}
	e := &entry[K, V]{key: k, value: v, size: int64(size) + EntryOverhead}
	s.entries[k] = e
	e.linkBehind(&s.root)
	s.bytes += e.size
	for s.bytes > c.capacity/shards {
		s.drop(s.root.prev)
	}
	return true
}

// Forget drops every entry whose key fn says yes to.
func (c *Cache[K, V]) Forget(fn func(K) bool) {
	if c == nil {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for k, e := range s.entries {
			if fn(k) {
				s.drop(e)
			}
		}
		s.mu.Unlock()
	}
}

func (s *shard[K, V]) drop(e *entry[K, V]) {
	e.unlink()
	delete(s.entries, e.key)
	s.bytes -= e.size
}

func (e *entry[K, V]) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

func (e *entry[K, V]) linkBehind(at *entry[K, V]) {
	e.prev, e.next = at, at.next
	at.next.prev = e
	at.next = e
}
