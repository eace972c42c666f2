package engine

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// Resolution finds which rows of a data file are superseded by rows of a memtable: those with the same key, for
// everything in a memtable is newer than everything in files. A flush stores the answer as deletion vectors; a scan
// masks the rows for its own snapshot. Both ask here, so what scans have found, the flush need not look up again.
//
// Answers are kept per memtable and file and grow with the memtable: only keys that came since the last question are
// looked up, in one walk over both. A file is immutable, so an answer never changes.

// The bounds of what resolution keeps in memory for a memtable, besides bitmaps. Tests lower them.
var (
	// maxSorted is how many keys are sorted; more are taken from the memtable in its own order.
	maxSorted = 64 << 10
	// maxHits is of how many entries hits are kept for snapshots that are older than the last question. Snapshots that
	// see more have them looked up anew.
	maxHits = 4 << 20
)

// resolutionCache is a memtable's answers.
type resolutionCache struct {
	mu     sync.Mutex
	byFile map[*dataFile]*resolution
	// last is the window that was sorted last: the next question is mostly about the same keys in another file.
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

// known returns for how many of the memtable's entries it is known which rows of a file they supersede, and which.
func (c *resolutionCache) known(f *dataFile) (upTo int, hits []hit) {
	c.mu.Lock()
	r := c.byFile[f]
	c.mu.Unlock()
	if r == nil {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(r.upTo, maxHits), r.hits
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
	// snapshots: those with a number below maxHits.
	hits []hit
	// all has the positions of hits. It is replaced, never changed, once it was handed out.
	all *roaring.Bitmap
}

type hit struct{ arrival, pos uint32 }

// superseded returns the positions of rows of f, a file of state s, that the first n entries of e supersede; rows that
// the file's deletion vector marks already may be left out. The bitmap is shared: do not change it.
func (e *memEntry) superseded(s *readState, f *liveFile, n int) (*roaring.Bitmap, error) {
	r := e.resolutions.of(f.dataFile)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.upTo {
		if err := r.extend(e, s, f, n); err != nil {
			return nil, err
		}
	}
	if n == r.upTo {
		return r.all, nil
	}
	// A snapshot older than the last question: leave out what came after it.
	older, hits := roaring.New(), r.hits
	if n > maxHits {
		var err error
		if hits, err = e.find(s, f, 0, n); err != nil {
			return nil, err
		}
	}
	for _, h := range hits {
		if int(h.arrival) < n {
			older.Add(h.pos)
		}
	}
	return older, nil
}

func (r *resolution) extend(e *memEntry, s *readState, f *liveFile, n int) error {
	found, err := e.find(s, f, r.upTo, n)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		r.upTo = n
		return nil
	}
	dead, err := e.markedBefore(s, f)
	if err != nil {
		return err
	}
	var all *roaring.Bitmap
	for _, h := range found {
		if r.all.Contains(h.pos) || dead.Contains(h.pos) {
			continue
		}
		if all == nil {
			all = r.all.Clone()
		}
		all.Add(h.pos)
		if int(h.arrival) < maxHits {
			r.hits = append(r.hits, h)
		}
	}
	if all != nil {
		r.all = all
	}
	r.upTo = n
	return nil
}

// markedBefore returns rows of f that need no mark: what superseded them is older than e, so whoever sees e's rows finds
// them marked in the deletion vector or by another memtable. So all answers for a memtable have no more positions than it
// has keys. A follower of another process's log cannot tell whether e itself was flushed.
func (e *memEntry) markedBefore(s *readState, f *liveFile) (*roaring.Bitmap, error) {
	if s.core.readOnly {
		return roaring.New(), nil
	}
	return f.deleted(s.core.dir)
}

// find looks the keys of entries from to to-1 up in f.
func (e *memEntry) find(s *readState, f *liveFile, from, to int) ([]hit, error) {
	keys := e.keys(from, to, f.meta.KeyMin, f.meta.KeyMax)
	key, ok := keys.next()
	if !ok {
		return nil, nil
	}
	reader, err := f.open(s.table.schema)
	if err != nil {
		return nil, err
	}
	var found []hit
	first := true
	err = reader.FindMany(func() ([]byte, bool) {
		if first {
			first = false
			return key, true
		}
		return keys.next()
	}, func(_ int, pos int64) error {
		found = append(found, hit{arrival: keys.arrival(), pos: uint32(pos)})
		return nil
	})
	return found, err
}

// keySource yields keys, ascending, each once.
type keySource interface {
	// next returns the next key, which aliases the memtable.
	next() ([]byte, bool)
	// arrival returns when the key that next returned last arrived first: that is the entry that superseded a row.
	arrival() uint32
}

// keys yields the keys of entries from to to-1 between lo and hi, both inclusive.
func (e *memEntry) keys(from, to int, lo, hi []byte) keySource {
	const walkShare = 8 // a walk takes a step for every entry in the range, a sort some for each key
	if n := to - from; n <= maxSorted && n <= e.mt.Len()/walkShare {
		return e.window(from, to).between(lo, hi)
	}
	return newMemtableKeys(e, from, to, lo, hi)
}

// memtableKeys takes the keys in the memtable's own order. What arrived together has sequence numbers without gaps, so runs
// of them tell the arrival.
type memtableKeys struct {
	it   *memtable.Iter
	hi   []byte
	runs []seqRun // of entries from to to-1, ascending
	last uint32
}

// seqRun are n entries that arrived one after the other, from arrival number at on, with ascending sequence numbers from
// first on.
type seqRun struct {
	first base.Seq
	at, n uint32
}

func newMemtableKeys(e *memEntry, from, to int, lo, hi []byte) *memtableKeys {
	k := &memtableKeys{it: e.mt.NewAllIter(), hi: hi, runs: e.seqRuns(from, to)}
	k.it.SeekGE(lo)
	return k
}

// seqRuns returns the runs of entries from to to-1. Rows of other tables take sequence numbers in between.
func (e *memEntry) seqRuns(from, to int) []seqRun {
	if from >= to {
		return nil
	}
	seqAt := func(i int) (seq base.Seq) {
		e.mt.Arrivals(i, i+1, func(_ []byte, s base.Seq, _ base.Op) { seq = s })
		return seq
	}
	if n := to - from; seqAt(to-1)-seqAt(from) == base.Seq(n-1) {
		return []seqRun{{first: seqAt(from), at: uint32(from), n: uint32(n)}}
	}
	var runs []seqRun
	at := uint32(from)
	e.mt.Arrivals(from, to, func(_ []byte, seq base.Seq, _ base.Op) {
		if n := len(runs); n > 0 && runs[n-1].first+base.Seq(runs[n-1].n) == seq {
			runs[n-1].n++
		} else {
			runs = append(runs, seqRun{first: seq, at: at, n: 1})
		}
		at++
	})
	return runs
}

// arrivalOf returns the arrival number of an entry, if it is one of the runs'.
func (k *memtableKeys) arrivalOf(seq base.Seq) (at uint32, ok bool) {
	i := sort.Search(len(k.runs), func(i int) bool { return k.runs[i].first > seq }) - 1
	if i < 0 || seq-k.runs[i].first >= base.Seq(k.runs[i].n) {
		return 0, false
	}
	return k.runs[i].at + uint32(seq-k.runs[i].first), true
}

func (k *memtableKeys) next() ([]byte, bool) {
	for k.it.Valid() {
		key := k.it.Key()
		if bytes.Compare(key, k.hi) > 0 {
			return nil, false
		}
		found := false
		for ; k.it.Valid() && bytes.Equal(k.it.Key(), key); k.it.Next() { // newest first
			if a, ok := k.arrivalOf(k.it.Seq()); ok {
				k.last, found = a, true
			}
		}
		if found {
			return key, true
		}
	}
	return nil, false
}

func (k *memtableKeys) arrival() uint32 { return k.last }

// keyWindow has the keys of a memtable's entries from one arrival number to another, ascending, each once with its first
// arrival there. The keys alias the memtable.
type keyWindow struct {
	from, to int
	keys     []arrivedKey
}

type arrivedKey struct {
	key []byte
	at  uint32
}

// window sorts the keys of entries from to to-1.
func (e *memEntry) window(from, to int) *keyWindow {
	c := &e.resolutions
	c.mu.Lock()
	w := c.last
	c.mu.Unlock()
	if w != nil && w.from == from && w.to == to {
		return w
	}
	w = &keyWindow{from: from, to: to, keys: make([]arrivedKey, 0, to-from)}
	e.mt.Arrivals(from, to, func(key []byte, _ base.Seq, _ base.Op) {
		w.keys = append(w.keys, arrivedKey{key, uint32(from + len(w.keys))})
	})
	slices.SortFunc(w.keys, func(a, b arrivedKey) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
	w.keys = slices.CompactFunc(w.keys, func(a, b arrivedKey) bool { return bytes.Equal(a.key, b.key) })
	c.mu.Lock()
	c.last = w
	c.mu.Unlock()
	return w
}

// between returns the keys of a range, both ends inclusive.
func (w *keyWindow) between(lo, hi []byte) *windowRange {
	i := sort.Search(len(w.keys), func(i int) bool { return bytes.Compare(w.keys[i].key, lo) >= 0 })
	j := i + sort.Search(len(w.keys)-i, func(j int) bool { return bytes.Compare(w.keys[i+j].key, hi) > 0 })
	return &windowRange{rest: w.keys[i:j]}
}

type windowRange struct {
	rest []arrivedKey
	last uint32
}

func (r *windowRange) next() ([]byte, bool) {
	if len(r.rest) == 0 {
		return nil, false
	}
	k := r.rest[0]
	r.rest, r.last = r.rest[1:], k.at
	return k.key, true
}

func (r *windowRange) arrival() uint32 { return r.last }
