package engine

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/lru"
)

// rowCache keeps rows that gets have read from files, by encoded key. Nothing ever invalidates an entry: it says where
// its row stands, and counts for a snapshot exactly if that file is in the snapshot's state and does not mark the row as
// deleted there. Files minus deletion vectors have one row a key, so such a row is the only one; rows in memory are asked
// for before. It counts only for readers of the schema of which its record is.
//
// A row that was put together of pages in the page cache is only taken once in admitEvery times: a row that is asked for
// again and again gets in soon, and one that is not costs no place.
type rowCache struct {
	*lru.Cache[rowKey, cachedRow]
	offered atomic.Uint32
}

const admitEvery = 8

// rowKey is an encoded key of a table.
type rowKey struct {
	table uint32
	key   string
}

type cachedRow struct {
	table  *table // whose layout the record has
	file   uint64 // its number
	pos    uint32
	record []byte
}

var rowCacheSeed = maphash.MakeSeed()

func newRowCache(bytes int64) *rowCache {
	const spread = 0x9e3779b97f4a7c15
	hash := func(k rowKey) uint64 { return maphash.String(rowCacheSeed, k.key) ^ uint64(k.table)*spread }
	return &rowCache{Cache: lru.New[rowKey, cachedRow](bytes, hash)}
}

// cached returns the record of a key from the row cache, where it has one that counts in this state.
func (s *readState) cached(key []byte) ([]byte, bool) {
	rows := s.core.rows
	row, ok := rows.Get(rowKey{s.core.id, unsafe.String(unsafe.SliceData(key), len(key))})
	if !ok {
		return nil, false
	}
	f := s.index.byID[row.file]
	if f == nil || row.table != s.table {
		rows.Stale()
		return nil, false
	}
	// The vector is at hand: whoever cached the row has asked it, unless this state has another one.
	dead, err := f.deleted(s.core.dir)
	if err != nil || dead.Contains(row.pos) {
		rows.Stale()
		return nil, false // an error comes back when the file is asked
	}
	return row.record, true
}

// cache offers a row to the row cache. It takes the record, which must stay as it is. cheap says that the row took no
// reading.
func (s *readState) cache(key []byte, f *liveFile, pos int64, record []byte, cheap bool) {
	rows := s.core.rows
	if !rows.Enabled() || cheap && rows.offered.Add(1)%admitEvery != 0 {
		return
	}
	rows.Put(rowKey{s.core.id, string(key)}, cachedRow{table: s.table, file: f.id, pos: uint32(pos), record: record}, len(key)+len(record))
}
