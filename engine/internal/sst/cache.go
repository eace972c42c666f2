package sst

import "github.com/merutable/merutable/engine/internal/lru"

// Kinds of cache entries.
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

func (k cacheKey) hash() uint64 {
	h := k.reader*0x9e3779b97f4a7c15 ^ uint64(k.column)<<56 ^ uint64(k.kind)<<52 ^ k.at
	return h * 0xff51afd7ed558ccd
}

// Cache holds decoded pages and bloom filters of many readers, the most recently used ones, bounded in bytes. A nil
// *Cache and one of 0 bytes hold nothing. Its methods may be called from any goroutine.
type Cache struct {
	lru *lru.Cache[cacheKey, any]
}

// CacheStats says how a cache is used: bytes, and lookups since it was made.
type CacheStats = lru.Stats

// NewCache makes a cache of that many bytes.
func NewCache(bytes int64) *Cache { return &Cache{lru: lru.New[cacheKey, any](bytes, cacheKey.hash)} }

// entries returns the cache below, nil for a nil Cache.
func (c *Cache) entries() *lru.Cache[cacheKey, any] {
	if c == nil {
		return nil
	}
	return c.lru
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats { return c.entries().Stats() }

// enabled reports whether anything can be cached.
func (c *Cache) enabled() bool { return c.entries().Enabled() }

// get returns what is cached under a key. Cached values are shared: nobody writes to them.
func (c *Cache) get(k cacheKey) (any, bool) { return c.entries().Get(k) }

// put caches a value of about size bytes.
func (c *Cache) put(k cacheKey, v any, size int) { c.entries().Put(k, v, size) }

// forget drops everything of a reader.
func (c *Cache) forget(reader uint64) {
	c.entries().Forget(func(k cacheKey) bool { return k.reader == reader })
}
