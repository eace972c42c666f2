package objfs

import (
	"hash/maphash"
	"sync"

	"github.com/merutable/merutable/engine/internal/lru"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Sizes of requests. A block is what a point read fetches of a column; a request of several blocks, what a scan does.
const (
	blockBytes = 256 << 10
	// maxRun is how many blocks one request reads at most, where there is memory enough.
	maxRun = 16
	// tailRun is how many blocks are read where a file's last one is asked for: its footer, page index and filters.
	tailRun = 4
	// maxRequests is how many requests run at a time, and so bounds the memory that they take: half of what the cache has.
	maxRequests = 8
	// maxAhead is how many requests ahead of readers run at a time.
	maxAhead = 4
	// minMemory is the least that the cache in memory has: less would not hold what is read ahead.
	minMemory = 2 * maxRequests * minRun * blockBytes
	minRun    = 2
)

// blockID names a block of an object that is never replaced.
type blockID struct {
	key   string
	size  int64 // of the object, unknownSize where nobody said
	index int64
}

const unknownSize = -1

var seed = maphash.MakeSeed()

func (b blockID) hash() uint64 {
	return maphash.Comparable(seed, b)
}

// blocks are the blocks of a store's objects: cached ones, and those that are being read.
type blocks struct {
	store    objstore.Store
	root     string
	identity string
	run      int // how many blocks one request reads at most
	memory   *lru.Cache[blockID, []byte]
	disk     *DiskCache
	requests chan struct{} // a place for each request under way
	ahead    chan struct{} // a place for each request ahead of readers

	mu      sync.Mutex
	flights map[blockID]*flight

	stats counters
}

// flight is a block that somebody is reading. data and err are set when done is closed.
type flight struct {
	done chan struct{}
	data []byte
	err  error
}

func newBlocks(store objstore.Store, o Options) *blocks {
	bytes := max(o.MemoryBytes, minMemory)
	return &blocks{
		run:   int(min(bytes/(2*maxRequests*blockBytes), maxRun)),
		store: store, root: o.Root, identity: o.Identity + "\n" + o.Root, disk: o.Disk,
		memory:   lru.New[blockID, []byte](bytes, blockID.hash),
		requests: make(chan struct{}, maxRequests), ahead: make(chan struct{}, maxAhead),
		flights: map[blockID]*flight{},
	}
}

// claim is what a reader finds of the blocks that it wants: those that it has to read itself, for everybody, and those
// that somebody is reading.
type claim struct {
	data    [][]byte  // by place, nil where not there yet
	flights []*flight // by place, nil where data is there
	mine    []int     // places of the flights that are the reader's own, ascending
}

// claimBlocks looks n blocks from first on up.
func (b *blocks) claimBlocks(first blockID, n int) *claim {
	c := &claim{data: make([][]byte, n), flights: make([]*flight, n)}
	missing := 0
	for i := range n {
		id := first
		id.index += int64(i)
		if data, ok := b.memory.Get(id); ok {
			c.data[i] = data
		} else {
			missing++
		}
	}
	if missing == 0 {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		if c.data[i] != nil {
			continue
		}
		id := first
		id.index += int64(i)
		if f := b.flights[id]; f != nil {
			c.flights[i] = f
			continue
		}
		if data, ok := b.memory.Use(id); ok { // its flight ended just now
			c.data[i] = data
			continue
		}
		f := &flight{done: make(chan struct{})}
		b.flights[id], c.flights[i] = f, f
		c.mine = append(c.mine, i)
	}
	return c
}

// land ends a flight.
func (b *blocks) land(id blockID, f *flight, data []byte, err error) {
	if f.data, f.err = data, err; err == nil {
		b.memory.Put(id, data, len(data))
	}
	b.mu.Lock()
	delete(b.flights, id)
	b.mu.Unlock()
	close(f.done)
}
