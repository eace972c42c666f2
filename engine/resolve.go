package engine

import (
	"bytes"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
)

// Resolution finds which rows of a data file are superseded by rows of a memtable: those with the same key, for
// everything in a memtable is newer than everything in files. A flush stores the answer as deletion vectors; a scan
// masks the rows for its own snapshot. Both ask here, so what scans have found, the flush need not look up again.
//
// Answers are kept per memtable and file and grow with the memtable: only keys that came since the last question are
// looked up. A file is immutable, so an answer never changes.

// resolutionCache is a memtable's answers.
type resolutionCache struct {
	mu     sync.Mutex
	byFile map[*dataFile]*resolution
}

func (c *resolutionCache) of(f *dataFile) *resolution {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byFile == nil {
		c.byFile = map[*dataFile]*resolution{}
	}
	r := c.byFile[f]
	if r == nil {
		r = &resolution{all: roaring.New()}
		c.byFile[f] = r
	}
	return r
}

// forget drops the answers about a file that left the current state.
func (c *resolutionCache) keepOnly(files []*liveFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := make(map[*dataFile]bool, len(files))
	for _, f := range files {
		keep[f.dataFile] = true
	}
	for f := range c.byFile {
		if !keep[f] {
			delete(c.byFile, f)
		}
	}
}

// resolution is the answer for one memtable and file.
type resolution struct {
	mu sync.Mutex
	// upTo is how many of the memtable's entries, in arrival order, were looked up.
	upTo int
	// hits has each superseded position with the arrival number of the entry that superseded it, for older snapshots.
	hits []hit
	// all has the positions of hits. It is replaced, never changed, once it was handed out.
	all *roaring.Bitmap
}

type hit struct {
	arrival int
	pos     uint32
}

// superseded returns the positions of rows of f that the first n entries of e supersede. The bitmap is shared: do not
// change it.
func (e *memEntry) superseded(f *liveFile, t *table, n int) (*roaring.Bitmap, error) {
	r := e.resolutions.of(f.dataFile)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.upTo {
		if err := r.extend(e, f, t, n); err != nil {
			return nil, err
		}
	}
	if n == r.upTo {
		return r.all, nil
	}
	// A snapshot older than the last question: leave out what came after it.
	older := roaring.New()
	for _, h := range r.hits {
		if h.arrival < n {
			older.Add(h.pos)
		}
	}
	return older, nil
}

type arrivedKey struct {
	key     []byte
	arrival int
}

func (r *resolution) extend(e *memEntry, f *liveFile, t *table, n int) error {
	keys := make([]arrivedKey, 0, n-r.upTo)
	i := r.upTo
	e.mt.Arrivals(r.upTo, n, func(key []byte, _ base.Seq, _ base.Op) {
		if bytes.Compare(key, f.meta.KeyMin) >= 0 && bytes.Compare(key, f.meta.KeyMax) <= 0 {
			keys = append(keys, arrivedKey{key, i})
		}
		i++
	})
	if len(keys) == 0 {
		r.upTo = n
		return nil
	}
	// Of equal keys the first arrival is kept: it is the one that superseded the row.
	slices.SortFunc(keys, func(a, b arrivedKey) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		return a.arrival - b.arrival
	})
	keys = slices.CompactFunc(keys, func(a, b arrivedKey) bool { return bytes.Equal(a.key, b.key) })
	found, err := findKeys(f, t, keys)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		all := r.all.Clone()
		for _, h := range found {
			all.Add(h.pos)
		}
		r.all = all
		r.hits = append(r.hits, found...)
	}
	r.upTo = n
	return nil
}

func findKeys(f *liveFile, t *table, keys []arrivedKey) ([]hit, error) {
	reader, err := f.open(t.schema)
	if err != nil {
		return nil, err
	}
	var found []hit
	next := 0
	err = reader.FindMany(func() ([]byte, bool) {
		if next == len(keys) {
			return nil, false
		}
		next++
		return keys[next-1].key, true
	}, func(i int, pos int64) error {
		found = append(found, hit{arrival: keys[i].arrival, pos: uint32(pos)})
		return nil
	})
	return found, err
}
