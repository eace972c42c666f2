package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/merutable/merutable/engine"
)

// cacheBytes is what both engines may cache.
const cacheBytes = 256 << 20

// store is what is measured.
type store interface {
	// putOne and put are durable when they return.
	putOne(r *rowSet, i int)
	put(r *rowSet)
	// load brings rows without a log; they are durable when finish returns.
	load(r *rowSet)
	finish()
	flush()
	get(key int64) bool
	// scanMemory reads the rows that are only in memory and returns how many there are.
	scanMemory() int
	// scan reads all rows and returns how many there are.
	scan() int
	// compact merges everything into files that do not overlap.
	compact()
	// kill ends it without a flush.
	kill()
}

// options are those in which the figures differ from the engines' defaults.
type options struct {
	memtable int   // bytes
	cache    int64 // bytes; 0: cacheBytes; negative: none
	file     int64 // target size of data files in bytes; 0: the default
}

func (o options) cacheBytes() int64 {
	if o.cache == 0 {
		return cacheBytes
	}
	return o.cache
}

// merutable is our engine.
type merutable struct {
	db   *engine.DB
	bulk *engine.Write
}

func openMerutable(dir string, o options) store {
	db, err := engine.Open(dir, engine.Options{
		MemtableBytes: o.memtable, CacheBytes: o.cacheBytes(), RowCacheBytes: min(o.cache, 0), TargetFileBytes: o.file,
		NoAutoCompaction: true,
	})
	check(err)
	if !db.HasTable() {
		check(db.CreateTable(schema()))
	}
	return &merutable{db: db}
}

func (m *merutable) putOne(r *rowSet, i int) {
	_, err := m.db.Put(r.row(i))
	check(err)
}

func (m *merutable) put(r *rowSet) {
	w, err := m.db.NewWrite()
	check(err)
	defer w.Close()
	check(w.PutColumns(r.columns))
	_, err = w.Commit()
	check(err)
}

func (m *merutable) load(r *rowSet) {
	if m.bulk == nil {
		w, err := m.db.NewWrite()
		check(err)
		m.bulk = w
	}
	check(m.bulk.PutColumns(r.columns))
}

func (m *merutable) finish() {
	_, err := m.bulk.Commit()
	check(err)
	m.bulk = nil
}

func (m *merutable) flush() { check(m.db.Flush()) }

func (m *merutable) get(key int64) bool {
	_, found, err := m.db.Get([]engine.Value{engine.Int(key)})
	check(err)
	return found
}

func (m *merutable) scanMemory() int {
	s, err := m.db.Snapshot()
	check(err)
	defer s.Close()
	it := s.Overlay(nil)
	defer it.Close()
	n := 0
	for {
		c, err := it.Next()
		check(err)
		if c == nil {
			return n
		}
		n += c.N
	}
}

// scan makes the Arrow batches of meru_scan_arrow, in memory that is used again as malloc would.
func (m *merutable) scan() int {
	s, err := m.db.Snapshot()
	check(err)
	defer s.Close()
	it, err := s.Scan(engine.ScanOptions{BatchRows: 65_536})
	check(err)
	defer it.Close()
	mem := &recycler{}
	n := 0
	for {
		c, err := it.Next()
		check(err)
		if c == nil {
			return n
		}
		batch, err := engine.ToArrow(c, s.Schema(), nil, mem)
		check(err)
		n += int(batch.NumRows())
		batch.Release()
	}
}

func (m *merutable) compact() { check(m.db.Compact()) }

// recycler is an allocator that keeps the buffers that come back.
type recycler struct{ free [][]byte }

func (r *recycler) Allocate(size int) []byte {
	for i, b := range r.free {
		if cap(b) >= size {
			r.free = append(r.free[:i], r.free[i+1:]...)
			return b[:size]
		}
	}
	return make([]byte, size, size+size/8)
}

func (r *recycler) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	return append(r.Allocate(size)[:0], b...)[:size]
}

func (r *recycler) Free(b []byte) {
	if len(r.free) < 32 {
		r.free = append(r.free, b)
	}
}

func (m *merutable) kill() { m.db.Free() }

// peer is Pebble, with a memtable and a cache of the same size.
type peer struct {
	db *pebble.DB
}

func openPeer(dir string, o options) store {
	cache := pebble.NewCache(max(o.cacheBytes(), 0))
	defer cache.Unref()
	opts := &pebble.Options{
		MemTableSize: uint64(o.memtable), MemTableStopWritesThreshold: 5, Cache: cache, Logger: silent{},
	}
	for i := range opts.TargetFileSizes {
		opts.TargetFileSizes[i] = o.file // 0 is its default
	}
	db, err := pebble.Open(dir, opts)
	check(err)
	return &peer{db: db}
}

func pebbleKey(dst []byte, id int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(id)) }

func (p *peer) putOne(r *rowSet, i int) {
	check(p.db.Set(pebbleKey(nil, r.ids[i]), r.value(i), pebble.Sync))
}

func (p *peer) put(r *rowSet) { p.write(r, pebble.Sync) }

func (p *peer) load(r *rowSet) { p.write(r, pebble.NoSync) }

func (p *peer) write(r *rowSet, o *pebble.WriteOptions) {
	b := p.db.NewBatch()
	defer func() { _ = b.Close() }() // nothing is left to fail after the commit
	var key [8]byte
	for i, id := range r.ids {
		check(b.Set(pebbleKey(key[:0], id), r.value(i), nil))
	}
	check(b.Commit(o))
}

func (p *peer) finish() { p.flush() }

func (p *peer) flush() { check(p.db.Flush()) }

func (p *peer) get(key int64) bool {
	v, closer, err := p.db.Get(pebbleKey(nil, key))
	if err == pebble.ErrNotFound {
		return false
	}
	check(err)
	if len(v) != valueBytes {
		panic(fmt.Sprintf("a value of %d bytes", len(v)))
	}
	check(closer.Close())
	return true
}

func (p *peer) compact() {
	check(p.db.Compact(context.Background(), pebbleKey(nil, 0), pebbleKey(nil, 1<<62), false))
}

func (p *peer) scan() int { return p.scanMemory() }

func (p *peer) scanMemory() int {
	it, err := p.db.NewIter(nil)
	check(err)
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if len(it.Value()) == valueBytes {
			n++
		}
	}
	check(it.Close())
	return n
}

func (p *peer) kill() { check(p.db.Close()) } // which does not flush either

// silent keeps Pebble's news out of the table.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
