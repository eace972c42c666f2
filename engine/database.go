package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
	"github.com/merutable/merutable/engine/internal/wal"
)

// database is what the tables of one directory have in common: its lock, one log, one series of sequence numbers, and
// the budget of memory.
//
// Locks, in the order in which they are taken: writeMu (the log, the active memtables, sequence numbers), commitMu of a
// table (its manifest), mu (what readers start from). mu is never held across I/O.
type database struct {
	root    string // the database directory, absolute, symlinks resolved
	walDir  string
	fs      vfs.FS
	objects *objfs.FS // where that is fs, in an object store; nil in a directory
	// apart says that each table is as of a commit of its own, as at a mirror, rather than all of one moment.
	apart    bool
	opts     Options
	readOnly bool
	cache    *sst.Cache
	rows     *rowCache
	stats    counters
	reads    readCounters
	txns     txnStats
	dirLock  interface{ Close() error }

	// writeMu is held by whoever assigns sequence numbers or changes the log, or the active memtable or definition of a
	// table.
	writeMu sync.Mutex
	lastSeq base.Seq
	log     *wal.Writer // nil until the first write
	// unsynced is how much was written since the sync loop was woken, at other durabilities than Sync.
	unsynced int
	nextLog  uint64
	// prevLog is the newest log, 0 for none, and loggedSeq the last sequence number in it.
	prevLog   uint64
	loggedSeq base.Seq
	// actives are the tables with an active memtable.
	actives map[*core]struct{}
	// logDirReady says that walDir is there and known to be this database's.
	logDirReady bool
	// nextID is the id of the next table that does not go to the root.
	nextID uint32

	// catalog and tables, which are by id, change under writeMu and mu. The root table's core is always there, whether
	// there is a table or not. leaving are dropped tables whose files are not all gone; it is guarded by mu.
	catalog *catalog
	main    *core
	tables  map[uint32]*core
	leaving map[*core]struct{}

	queueMu sync.Mutex
	queue   []*commitRequest
	leading bool
	crowd   bool // the last group was of several writers

	mu          sync.Mutex
	visible     base.Seq
	logFloor    uint64 // logs from here on are not removed, whether they have rows or not
	failure     error  // why the database takes no more writes
	sealed      bool
	heapCounted bool      // its budget counts (memory.go)
	flushDone   sync.Cond // on mu: a flush ended or failed, files were committed, or the database closes

	flushWork chan struct{}
	stop      chan struct{}
	stopOnce  sync.Once
	workers   sync.WaitGroup
	// compactSlots bounds the compactions in the background of all tables.
	compactSlots chan struct{}
	limiter      *rate.Limiter // of what compactions write; nil: no bound
	// logGC is held while obsolete logs are removed.
	logGC sync.Mutex

	pace   pace
	stalls stallCounters
	dirs   sync.Map // directories that are known to be durable
	// clock is what tests set back and forth; nil: the time as it is.
	clock atomic.Pointer[func() time.Time]

	logDirty atomic.Bool
	syncWork chan struct{} // wakes the sync loop
	// mirror is nil where there is none. It is set before anything else runs.
	mirror *mirroring
	// refreshed is when a read-only database in an object store was brought up to date last, in Unix nanoseconds.
	refreshed atomic.Int64
	tail      logTail // read-only databases: how far the writer's log was read
}

// now is the time by the database's clock.
func (d *database) now() time.Time {
	if clock := d.clock.Load(); clock != nil {
		return (*clock)()
	}
	return time.Now()
}
