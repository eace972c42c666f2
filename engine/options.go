package engine

import (
	"runtime"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Durability says when an acknowledged write survives a power cut. A crash of the process alone loses nothing at any
// level.
type Durability int

const (
	// Sync: before the write returns. Concurrent writers share one fsync. The default.
	Sync Durability = iota
	// Interval: at most SyncInterval after the write returned.
	Interval
	// OS: when the operating system writes the log back, after some megabytes, or at the next flush.
	OS
)

// Options configure an engine. The zero value works: a field that is zero is not set, and has its default. Handles of one
// process on one directory share one engine, and the options of the first one hold.
//
// The options that describe a table's storage are stored beside it when they are given (optionsfile.go): a later open
// that does not set them takes the stored ones. Those of a process are not: ReadOnly, NoCreate, Durability, SyncInterval,
// the caches, the threads, the memory budget, WALDir, which the directory itself remembers (logdir.go), and those of
// mirrors and object stores.
type Options struct {
	// ReadOnly opens for reading: it writes nothing and does not take the writer's lock.
	ReadOnly bool
	// NoCreate makes a writing open fail with CodeNotFound where the directory does not exist.
	NoCreate bool
	// Durability of writes. The default is Sync.
	Durability Durability
	// SyncInterval is the interval of durability Interval. The default is 100 ms.
	SyncInterval time.Duration
	// MemtableBytes is the size of one memtable, 1 MiB to 4 GiB. The default is 64 MiB, or its share of the memory budget
	// where that is less.
	MemtableBytes int
	// MaxImmutables is how many full memtables may wait for their flush before writers stop. The default is 4, or 1 to 4
	// by the memory budget.
	MaxImmutables int
	// CacheBytes bounds the cache of decoded pages for point reads. The default is 64 MiB, or its share of the memory
	// budget; negative means none.
	CacheBytes int64
	// RowCacheBytes bounds the cache of rows that gets have read. The default is 16 MiB, or its share of the memory
	// budget; negative means none.
	RowCacheBytes int64
	// MemoryLimit is the budget for everything that the engine holds in memory, in bytes; memory.go says how it is split.
	// One that is less than the sizes that are set need is refused. The default is 0: the bounds of the parts hold alone.
	MemoryLimit int64
	// DefaultMemoryLimit is the budget where MemoryLimit is not set. It gives way to sizes that are set, and is never
	// refused: hosts derive it from a budget of their own.
	DefaultMemoryLimit int64
	// RetainVersions is how many superseded manifests are kept however old they are, with the files that they name. The
	// default is 0, so that space comes back when GCGrace is over; negative means 0 as well, whatever is stored.
	RetainVersions int
	// RetainFor is how long a superseded manifest is kept for reads of older versions. The default is 0: as long as
	// RetainVersions and GCGrace keep it. Negative means 0 as well, whatever is stored.
	RetainFor time.Duration
	// GCGrace is how long what a newer manifest superseded stays on disk for readers in other processes. The default
	// is 300 s; negative means none.
	GCGrace time.Duration
	// WALDir is the directory of the log, for one database alone. The default is where the log was last; of a new
	// database, wal inside its directory. It can move only after a Close.
	WALDir string

	// FlushThreads is how many memtables are written to files at a time. The default is 2, or what the memory budget has
	// room for.
	FlushThreads int
	// CompactionThreads is how many compactions run at a time. The default is half the processors, at least 1, or what
	// the memory budget has room for.
	CompactionThreads int
	// NoAutoCompaction leaves compaction to Compact.
	NoAutoCompaction bool
	// L0Files is how many files level 0 has when they are compacted. The default is 4.
	L0Files int
	// L0SlowFiles and L0StopFiles are how many files level 0 has when writers are slowed down and when they stop. The
	// defaults are 20 and 36, as far as they suit each other and L0Files.
	L0SlowFiles, L0StopFiles int
	// PendingSlowBytes and PendingStopBytes are how many bytes wait for compaction when writers are slowed down and when
	// they stop. The defaults are 64 GiB and 256 GiB, as far as they suit each other.
	PendingSlowBytes, PendingStopBytes int64
	// TargetFileBytes is the size at which compaction and bulk loads start another file. The default is 64 MiB.
	TargetFileBytes int64
	// BaseLevelBytes is the size of the first level below level 0; every level below may have LevelMultiplier times as
	// much as the one above. The defaults are 256 MiB and 10.
	BaseLevelBytes  int64
	LevelMultiplier int
	// MaxDeletedPercent is the share of deleted rows above which a file is rewritten. The default is 20.
	MaxDeletedPercent int
	// CompactionRate bounds what compaction writes, in bytes a second. The default is 0: no bound. Negative means no
	// bound as well, whatever is stored.
	CompactionRate int64

	// Mirror is where the database is copied to in the background: s3://bucket/prefix, or file:///directory. The default is
	// nowhere. docs/MIRROR.md says what it guarantees.
	Mirror string
	// MirrorParallelism is how many objects go to the mirror at a time. The default is 4.
	MirrorParallelism int
	// MaxLagAlert is how far the mirror may be behind before a warning. The default is 60 s; negative means no warnings.
	MaxLagAlert time.Duration
	// MirrorFlush is how old rows in memory become before they are flushed for the mirror's sake, which takes files only. The
	// default is 10 s; negative means that rows go when the memtable is full.
	MirrorFlush time.Duration
	// MirrorRetain is how long the mirror keeps what a newer manifest superseded, for its readers. The default is 300 s;
	// negative means none.
	MirrorRetain time.Duration
	// CommitLinger is how long a commit to a database in an object store waits for others that go with it. The default is
	// 0: those that came while the last one was under way go together. Of no meaning in a directory.
	CommitLinger time.Duration
	// ObjectCacheDir is where blocks that were read from an object store are kept: none by default, then only memory does.
	// ObjectCacheBytes bounds it, the default is 1 GiB.
	ObjectCacheDir   string
	ObjectCacheBytes int64
	// RefreshInterval is how old what a reader of an object store shows may be before the next statement looks for newer.
	// The default is 1 s; negative means none. Refresh always looks.
	RefreshInterval time.Duration
	// S3 says how the S3 of the database's and the mirror's URL is reached.
	S3 S3Config

	// autoCompaction says that NoAutoCompaction was set by its name, be it to false.
	autoCompaction bool
	// loadBufferBytes is the size of a bulk load's row buffers, 0 for the default. The memory budget sets it, and tests.
	loadBufferBytes int
	// patience is how long a commit to an object store tries to find out what became of it; 0 is the default.
	patience time.Duration
	// store is that of the database's URL, for tests.
	store objstore.Store
	// fs is the file system; nil means the operating system's. Tests set it.
	fs vfs.FS
	// mirrorTo is where the mirror goes in tests, instead of Mirror.
	mirrorTo objstore.Store
}

// S3Config says how an S3-compatible store is reached. What is empty comes from where the AWS tools take it.
type S3Config = objstore.S3Config

// UseFS makes the engine work in another file system than the operating system's. The type is this module's own: it is
// for tests.
func (o *Options) UseFS(fs vfs.FS) { o.fs = fs }

// UseMirror makes the mirror go to a store, whatever Mirror says. The type is this module's own: it is for tests.
func (o *Options) UseMirror(store objstore.Store) { o.mirrorTo = store }

const (
	minMemtableBytes = 1 << 20
	maxMemtableBytes = 1 << 32

	defaultMemtableBytes = 64 << 20
	defaultMaxImmutables = 4
	defaultFlushThreads  = 2
)

func defaultCompactionThreads() int { return max(1, runtime.NumCPU()/2) }

func (o *Options) commitPatience() time.Duration {
	if o.patience > 0 {
		return o.patience
	}
	return manifest.DefaultPatience
}

const defaultRefreshInterval = time.Second

// withFS returns the options with a file system.
func (o Options) withFS() Options {
	if o.fs == nil {
		o.fs = vfs.OS
	}
	return o
}

// withDefaults returns the options with every zero replaced.
func (o Options) withDefaults() Options {
	o = o.withFS()
	setDefault(&o.SyncInterval, 100*time.Millisecond)
	setDefault(&o.MemtableBytes, defaultMemtableBytes)
	setDefault(&o.MaxImmutables, defaultMaxImmutables)
	setDefault(&o.CacheBytes, 64<<20)
	setDefault(&o.RowCacheBytes, 16<<20)
	setDefault(&o.FlushThreads, defaultFlushThreads)
	setDefault(&o.CompactionThreads, defaultCompactionThreads())
	setDefault(&o.L0Files, notAbove(4, o.L0SlowFiles, o.L0StopFiles))
	setDefaultPair(&o.L0SlowFiles, &o.L0StopFiles, max(20, o.L0Files), max(36, o.L0Files))
	setDefaultPair(&o.PendingSlowBytes, &o.PendingStopBytes, 64<<30, 256<<30)
	setDefault(&o.TargetFileBytes, 64<<20)
	setDefault(&o.BaseLevelBytes, 256<<20)
	setDefault(&o.LevelMultiplier, 10)
	setDefault(&o.MaxDeletedPercent, 20)
	setDefault(&o.GCGrace, 300*time.Second)
	setDefault(&o.MirrorParallelism, 4)
	setDefault(&o.MaxLagAlert, time.Minute)
	setDefault(&o.MirrorFlush, 10*time.Second)
	setDefault(&o.MirrorRetain, 300*time.Second)
	setDefault(&o.ObjectCacheBytes, 1<<30)
	setDefault(&o.RefreshInterval, defaultRefreshInterval)
	return o
}

func setDefault[T int | int64 | time.Duration](dst *T, v T) {
	if *dst == 0 {
		*dst = v
	}
}

// notAbove returns a default that gives way to those bounds that are set.
func notAbove(v int, bounds ...int) int {
	for _, b := range bounds {
		if b > 0 {
			v = min(v, b)
		}
	}
	return v
}

// setDefaultPair sets two bounds of which the first must not be above the second: where one is set, the default of the
// other gives way.
func setDefaultPair[T int | int64](slow, stop *T, slowDefault, stopDefault T) {
	if *stop != 0 {
		slowDefault = min(slowDefault, *stop)
	}
	setDefault(slow, slowDefault)
	setDefault(stop, max(stopDefault, *slow))
}

// effective returns what an engine works with, from the options that are set: stored ones included, memory split,
// defaults filled in, contradictions refused.
func (o Options) effective() (Options, error) {
	if err := o.validate(); err != nil {
		return o, err
	}
	o, err := o.withinBudget()
	if err != nil {
		return o, err
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return o, err
	}
	o.CacheBytes, o.RowCacheBytes = max(o.CacheBytes, 0), max(o.RowCacheBytes, 0)
	o.RetainVersions = max(o.RetainVersions, 0)
	o.MaxLagAlert, o.MirrorFlush, o.MirrorRetain = max(o.MaxLagAlert, 0), max(o.MirrorFlush, 0), max(o.MirrorRetain, 0)
	o.CommitLinger, o.ObjectCacheBytes = max(o.CommitLinger, 0), max(o.ObjectCacheBytes, 0)
	o.RefreshInterval = max(o.RefreshInterval, 0)
	o.RetainFor, o.GCGrace, o.CompactionRate = max(o.RetainFor, 0), max(o.GCGrace, 0), max(o.CompactionRate, 0)
	return o, o.consistent()
}

// validate checks each option that is set against its bounds.
func (o Options) validate() error {
	if o.Durability < Sync || o.Durability > OS {
		return base.Errorf(base.CodeInvalidArgument, "durability %d is unknown", o.Durability)
	}
	for i := range optionTable {
		if err := optionTable[i].check(&o); err != nil {
			return err
		}
	}
	return nil
}

// consistent refuses options that contradict each other.
func (o Options) consistent() error {
	for _, p := range []struct {
		low, high string
		a, b      int64
	}{
		{"l0_files", "l0_slow_files", int64(o.L0Files), int64(o.L0SlowFiles)},
		{"l0_slow_files", "l0_stop_files", int64(o.L0SlowFiles), int64(o.L0StopFiles)},
		{"pending_slow_bytes", "pending_stop_bytes", o.PendingSlowBytes, o.PendingStopBytes},
	} {
		if p.a > p.b {
			return base.Errorf(base.CodeInvalidArgument, "option %s = %d is above %s = %d", p.low, p.a, p.high, p.b)
		}
	}
	return nil
}
