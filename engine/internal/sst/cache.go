package sst

import (
	"sync"
	"sync/atomic"
)

// cacheShards splits the cache's lock.
const cacheShards = 16

// Kinds of cache entries, in the upper bits of a key's part.
const (
	cachedPage = iota
	cachedBloom
)

// cacheKey names what is cached of a file: readers have numbers of their own, so that no entry is ever stale.
type cacheKey struct {
	reader uint64
	kind   uint8
	column uint32
	at     uint64 // the first row, or the number of the row group
}

func (k cacheKey) shard() uint64 {
	h := k.reader*0x9e3779b97f4a7c15 ^ uint64(k.column)<<56 ^ uint64(k.kind)<<52 ^ k.at
	h *= 0xff51afd7ed558ccd
	return h >> 60
}

// Cache holds decoded pages and bloom filters of many readers, the most recently used ones, bounded in
// bytes. A nil *Cache and one of 0 bytes hold nothing. Its methods may be called from any goroutine.
type Cache struct {
	capacity     int64
	hits, misses atomic.Int64
	shards       [cacheShards]cacheShard
}

// CacheStats says how a cache is used: bytes, and lookups since it was made.
type CacheStats struct {
	Capacity, Bytes, Hits, Misses int64
}

type cacheShard struct {
	mu      sync.Mutex
	entries map[cacheKey]*cacheEntry
	root    cacheEntry // of the ring of entries: root.next is the one used last
	bytes   int64
}

type cacheEntry struct {
	key        cacheKey
	value      any
	size       int64
	prev, next *cacheEntry
}

// entryOverhead is about what the cache itself spends on an entry.
const entryOverhead = 160

// NewCache makes a cache of that many bytes.
func NewCache(bytes int64) *Cache {
	c := &Cache{capacity: max(bytes, 0)}
	for i := range c.shards {
		s := &c.shards[i]
		s.entries = map[cacheKey]*cacheEntry{}
		s.root.next, s.root.prev = &s.root, &s.root
	}
	return c
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	st := CacheStats{Capacity: c.capacity, Hits: c.hits.Load(), Misses: c.misses.Load()}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		st.Bytes += s.bytes
		s.mu.Unlock()
	}
	return st
}

// enabled reports whether anything can be cached.
func (c *Cache) enabled() bool { return c != nil && c.capacity >= cacheShards*entryOverhead }

// get returns what is cached under a key. Cached values are shared: nobody writes to them.
func (c *Cache) get(k cacheKey) (any, bool) {
	if !c.enabled() {
		return nil, false
	}
	s := &c.shards[k.shard()]
	s.mu.Lock()
	e := s.entries[k]
	if e == nil {
		s.mu.Unlock()
		c.misses.Add(1)
		return nil, false
	}
	e.unlink()
	e.linkBehind(&s.root)
	v := e.value
	s.mu.Unlock()
	c.hits.Add(1)
	return v, true
}

// put caches a value of about size bytes. What is larger than a shard's part is not kept.
func (c *Cache) put(k cacheKey, v any, size int) {
	if c == nil || int64(size)+entryOverhead > c.capacity/cacheShards {
		return
	}
	s := &c.shards[k.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[k]; e != nil { // two goroutines missed at a time
		return
	}
	e := &cacheEntry{key: k, value: v, size: int64(size) + entryOverhead}
	s.entries[k] = e
	e.linkBehind(&s.root)
	s.bytes += e.size
	for s.bytes > c.capacity/cacheShards {
		s.drop(s.root.prev)
	}
}

// forget drops everything of a reader.
func (c *Cache) forget(reader uint64) {
	if c == nil {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for k, e := range s.entries {
			if k.reader == reader {
				s.drop(e)
			}
		}
		s.mu.Unlock()
	}
}

func (s *cacheShard) drop(e *cacheEntry) {
	e.unlink()
	delete(s.entries, e.key)
	s.bytes -= e.size
}

func (e *cacheEntry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

func (e *cacheEntry) linkBehind(at *cacheEntry) {
	e.prev, e.next = at, at.next
	at.next.prev = e
	at.next = e
}
