package engine

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
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
	// last is the window that was sorted last, if it is small: the next question is about the same keys in another file.
	last *keyWindow
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

// known returns how many of the memtable's entries were looked up in a file, and which rows they supersede.
func (c *resolutionCache) known(f *dataFile) (upTo int, hits []hit) {
	c.mu.Lock()
	r := c.byFile[f]
	c.mu.Unlock()
	if r == nil {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.upTo, r.hits
}

// put notes the answer about a file that nobody asked about yet.
func (c *resolutionCache) put(f *dataFile, r *resolution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byFile == nil {
		c.byFile = map[*dataFile]*resolution{}
	}
	c.byFile[f] = r
}

// keepOnly drops the answers about files that left the current state.
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
	// hits has each superseded position once, with the arrival number of the entry that superseded it first, for older
	// snapshots.
	hits []hit
	// all has the positions of hits. It is replaced, never changed, once it was handed out.
	all *roaring.Bitmap
}

type hit struct{ arrival, pos uint32 }

// superseded returns the positions of rows of f that the first n entries of e supersede. The bitmap is shared: do not
// change it. held, if not nil, keeps the sorted keys from one file to the next.
func (e *memEntry) superseded(f *liveFile, t *table, n int, held **keyWindow) (*roaring.Bitmap, error) {
	r := e.resolutions.of(f.dataFile)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.upTo {
		if err := r.extend(e, f, t, n, held); err != nil {
			return nil, err
		}
	}
	if n == r.upTo {
		return r.all, nil
	}
	// A snapshot older than the last question: leave out what came after it.
	older := roaring.New()
	for _, h := range r.hits {
		if int(h.arrival) < n {
			older.Add(h.pos)
		}
	}
	return older, nil
}

func (r *resolution) extend(e *memEntry, f *liveFile, t *table, n int, held **keyWindow) error {
	keys := e.window(r.upTo, n, held).between(f.meta.KeyMin, f.meta.KeyMax)
	if len(keys) == 0 {
		r.upTo = n
		return nil
	}
	found, err := findKeys(f, t, keys)
	if err != nil {
		return err
	}
	var all *roaring.Bitmap
	for _, h := range found {
		if r.all.Contains(h.pos) {
			continue
		}
		if all == nil {
			all = r.all.Clone()
		}
		all.Add(h.pos)
		r.hits = append(r.hits, h)
	}
	if all != nil {
		r.all = all
	}
	r.upTo = n
	return nil
}

// keyWindow has the keys of a memtable's entries from one arrival number to another, ascending, each once with its first
// arrival there: that is the one that superseded a row. The keys alias the memtable.
type keyWindow struct {
	from, to int
	keys     []arrivedKey
}

type arrivedKey struct {
	key     []byte
	arrival uint32
}

// smallWindow is how many keys a window has at most that is kept between questions.
const smallWindow = 32 << 10

// window sorts the keys of entries from to to-1.
func (e *memEntry) window(from, to int, held **keyWindow) *keyWindow {
	is := func(w *keyWindow) bool { return w != nil && w.from == from && w.to == to }
	if held != nil && is(*held) {
		return *held
	}
	c := &e.resolutions
	c.mu.Lock()
	w := c.last
	c.mu.Unlock()
	if is(w) {
		return w
	}
	w = &keyWindow{from: from, to: to}
	if to-from >= e.mt.Len()/4 {
		w.keys = e.walkKeys(from, to)
	} else {
		w.keys = e.sortKeys(from, to)
	}
	if held != nil {
		*held = w
	} else if to-from <= smallWindow {
		c.mu.Lock()
		c.last = w
		c.mu.Unlock()
	}
	return w
}

func (e *memEntry) sortKeys(from, to int) []arrivedKey {
	keys := make([]arrivedKey, 0, to-from)
	e.mt.Arrivals(from, to, func(key []byte, _ base.Seq, _ base.Op) {
		keys = append(keys, arrivedKey{key, uint32(from + len(keys))})
	})
	slices.SortFunc(keys, func(a, b arrivedKey) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.arrival, b.arrival)
	})
	return slices.CompactFunc(keys, func(a, b arrivedKey) bool { return bytes.Equal(a.key, b.key) })
}

// walkKeys takes the keys in the memtable's own order. The sequence numbers of its entries have no gaps, so they tell the
// arrival.
func (e *memEntry) walkKeys(from, to int) []arrivedKey {
	var first base.Seq
	e.mt.Arrivals(0, 1, func(_ []byte, seq base.Seq, _ base.Op) { first = seq })
	keys := make([]arrivedKey, 0, to-from)
	it := e.mt.NewAllIter()
	for it.First(); it.Valid(); it.Next() {
		arrival := it.Seq() - first
		if arrival < uint64(from) || arrival >= uint64(to) {
			continue
		}
		k := arrivedKey{it.Key(), uint32(arrival)}
		if n := len(keys); n > 0 && bytes.Equal(keys[n-1].key, k.key) {
			keys[n-1] = k // versions come newest first
		} else {
			keys = append(keys, k)
		}
	}
	return keys
}

// between returns the keys of a range, both ends inclusive.
func (w *keyWindow) between(lo, hi []byte) []arrivedKey {
	i := sort.Search(len(w.keys), func(i int) bool { return bytes.Compare(w.keys[i].key, lo) >= 0 })
	j := i + sort.Search(len(w.keys)-i, func(j int) bool { return bytes.Compare(w.keys[i+j].key, hi) > 0 })
	return w.keys[i:j]
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
