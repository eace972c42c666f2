package sst

import (
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/lru"
)

// Kinds of cache entries.
const (
	cachedPage = iota
	cachedBloom
	cachedLibrary
)

// cacheKey names what is cached of a file: open files have numbers of their own, so that no entry is ever stale. It has
// nothing of the schema but the type of a page's values, so that readers of several schemas share the rest.
type cacheKey struct {
	reader uint64
	kind   uint8
	as     pageType // of a page
	column uint32   // of the file
	at     uint64   // the first row, or the number of the row group
}

func (k cacheKey) hash() uint64 {
	h := k.reader*0x9e3779b97f4a7c15 ^ uint64(k.column)<<56 ^ uint64(k.kind)<<52 ^ uint64(k.as.kind)<<44 ^ k.at
	return h * 0xff51afd7ed558ccd
}

// Cache holds decoded pages, bloom filters and footers of many readers, the most recently used ones, bounded in bytes,
// and the files that they read, bounded in number. A nil *Cache and one of 0 bytes hold no pages, and then each reader
// has its own footer; each reader with a nil Cache has its own open file. Its methods may be called from any goroutine.
type Cache struct {
	lru   *lru.Cache[cacheKey, any]
	table *fileTable
	types atomic.Pointer[schemaTypes] // of the schema seen last
}

// schemaTypes are the column types of a schema, which readers share.
type schemaTypes struct {
	schema *base.Schema
	types  []*colType
}

// typesOf returns the types of a schema's columns, then those of the hidden ones.
func (c *Cache) typesOf(s *base.Schema) []*colType {
	if c != nil {
		if t := c.types.Load(); t != nil && t.schema == s {
			return t.types
		}
	}
	types := columnTypes(s)
	if c != nil {
		c.types.Store(&schemaTypes{schema: s, types: types})
	}
	return types
}

// CacheStats says how a cache is used: bytes, and lookups since it was made.
type CacheStats = lru.Stats

// NewCache makes a cache of that many bytes.
func NewCache(bytes int64) *Cache {
	return &Cache{lru: lru.New[cacheKey, any](bytes, cacheKey.hash), table: newFileTable(maxOpenFiles)}
}

// files returns the table of open files.
func (c *Cache) files() *fileTable {
	if c == nil {
		return newFileTable(1)
	}
	return c.table
}

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

// use is get without counting: what is looked up besides is no measure of the cache.
func (c *Cache) use(k cacheKey) (any, bool) { return c.entries().Use(k) }

// put caches a value of about size bytes and reports whether it did.
func (c *Cache) put(k cacheKey, v any, size int) bool { return c.entries().Put(k, v, size) }

// forget drops everything of a reader.
func (c *Cache) forget(reader uint64) {
	c.entries().Forget(func(k cacheKey) bool { return k.reader == reader })
}
