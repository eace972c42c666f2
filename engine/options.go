package engine

import (
	"runtime"
	"strconv"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
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
	// OS: when the operating system writes the log back, or at the next flush.
	OS
)

// Options configure an engine. The zero value works; handles of one process on one directory share one engine, and the
// options of the first one hold.
type Options struct {
	// ReadOnly opens for reading: takes no lock and writes nothing.
	ReadOnly bool
	// NoCreate makes a writing open fail with CodeNotFound where the directory does not exist.
	NoCreate bool
	// Durability of writes. The default is Sync.
	Durability Durability
	// SyncInterval is the interval of durability Interval. The default is 100 ms.
	SyncInterval time.Duration
	// MemtableBytes is the size of one memtable. The default is 64 MiB; 1 MiB to 4 GiB.
	MemtableBytes int
	// MaxImmutables is how many full memtables may wait for their flush before writers stop. The default is 4.
	MaxImmutables int
	// CacheBytes bounds the cache of decoded pages for point reads. The default is 64 MiB; negative means none.
	CacheBytes int64
	// RowCacheBytes bounds the cache of rows that gets have read. The default is 16 MiB; negative means none.
	RowCacheBytes int64
	// MemoryLimit is the budget for everything that the engine holds in memory, in bytes: memtables, caches and jobs get
	// their sizes from it where they are not set. 0 means no budget beyond their own bounds.
	MemoryLimit int64
	// RetainVersions is how many manifests are kept besides the newest. The default is 8.
	RetainVersions int
	// RetainFor is how long a manifest that was superseded is kept for reads of older versions. The default is 0: as
	// long as RetainVersions and GCGrace keep it.
	RetainFor time.Duration
	// GCGrace is how long what a newer manifest superseded stays on disk for readers in other processes. The default
	// is 300 s; negative means none.
	GCGrace time.Duration
	// WALDir is the directory of the log, for one database alone. The default is where the log was last; of a new
	// database, wal inside its directory. It can move only after a Close.
	WALDir string

	// FlushThreads is how many memtables are written to files at a time. The default is 2.
	FlushThreads int
	// CompactionThreads is how many compactions run at a time. The default is half the processors, at least 1.
	CompactionThreads int
	// NoAutoCompaction leaves compaction to Compact.
	NoAutoCompaction bool
	// L0Files is how many files level 0 has when they are compacted. The default is 4.
	L0Files int
	// L0SlowFiles and L0StopFiles are how many files level 0 has when writers are slowed down and when they stop. The
	// defaults are 20 and 36.
	L0SlowFiles, L0StopFiles int
	// PendingSlowBytes and PendingStopBytes are how many bytes wait for compaction when writers are slowed down and when
	// they stop. The defaults are 64 GiB and 256 GiB.
	PendingSlowBytes, PendingStopBytes int64
	// TargetFileBytes is the size at which compaction and bulk loads start another file. The default is 64 MiB.
	TargetFileBytes int64
	// BaseLevelBytes is the size of the first level below level 0; every level below may have LevelMultiplier times as
	// much as the one above. The defaults are 256 MiB and 10.
	BaseLevelBytes  int64
	LevelMultiplier int
	// MaxDeletedPercent is the share of deleted rows above which a file is rewritten. The default is 20.
	MaxDeletedPercent int
	// CompactionRate bounds what compaction writes, in bytes a second. The default is 0: no bound.
	CompactionRate int64

	// fs is the file system; nil means the operating system's. Tests set it.
	fs vfs.FS
}

const (
	minMemtableBytes = 1 << 20
	maxMemtableBytes = 1 << 32
)

func (o Options) withDefaults() Options {
	if o.SyncInterval == 0 {
		o.SyncInterval = 100 * time.Millisecond
	}
	if o.MemtableBytes == 0 {
		o.MemtableBytes = 64 << 20
	}
	if o.MaxImmutables == 0 {
		o.MaxImmutables = 4
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.RowCacheBytes == 0 {
		o.RowCacheBytes = 16 << 20
	}
	setDefault(&o.FlushThreads, 2)
	setDefault(&o.CompactionThreads, max(1, runtime.NumCPU()/2))
	setDefault(&o.L0Files, 4)
	setDefault(&o.L0SlowFiles, 20)
	setDefault(&o.L0StopFiles, 36)
	setDefault(&o.PendingSlowBytes, 64<<30)
	setDefault(&o.PendingStopBytes, 256<<30)
	setDefault(&o.TargetFileBytes, 64<<20)
	setDefault(&o.BaseLevelBytes, 256<<20)
	setDefault(&o.LevelMultiplier, 10)
	setDefault(&o.MaxDeletedPercent, 20)
	if o.RetainVersions == 0 {
		o.RetainVersions = 8
	}
	if o.GCGrace == 0 {
		o.GCGrace = 300 * time.Second
	}
	if o.fs == nil {
		o.fs = vfs.OS
	}
	return o
}

func setDefault[T int | int64](dst *T, v T) {
	if *dst == 0 {
		*dst = v
	}
}

func (o Options) validate() error {
	switch {
	case o.Durability < Sync || o.Durability > OS:
		return base.Errorf(base.CodeInvalidArgument, "durability %d is unknown", o.Durability)
	case o.SyncInterval < time.Millisecond || o.SyncInterval > time.Minute:
		return base.Errorf(base.CodeInvalidArgument, "sync interval %s is not in 1ms..1m", o.SyncInterval)
	case o.MemtableBytes < minMemtableBytes || o.MemtableBytes > maxMemtableBytes:
		return base.Errorf(base.CodeInvalidArgument, "memtable of %d bytes: %d to %d are allowed", o.MemtableBytes, minMemtableBytes, int64(maxMemtableBytes))
	case o.MaxImmutables < 1 || o.MaxImmutables > 64:
		return base.Errorf(base.CodeInvalidArgument, "max_immutables %d is not in 1..64", o.MaxImmutables)
	case o.RetainVersions < 0 || o.RetainVersions > 1_000_000:
		return base.Errorf(base.CodeInvalidArgument, "retain_versions %d is not in 1..1000000", o.RetainVersions)
	}
	return nil
}

// Set sets an option by its name in the C interface and in ATTACH. The error names the option and what it accepts.
func (o *Options) Set(key, value string) error {
	switch key {
	case "read_only":
		return setBool(key, value, &o.ReadOnly)
	case "create_if_missing":
		create := !o.NoCreate
		err := setBool(key, value, &create)
		o.NoCreate = !create
		return err
	case "durability":
		return o.setDurability(value)
	case "sync_interval_ms":
		n, err := parseInt(key, value, 1, 60_000)
		o.SyncInterval = time.Duration(n) * time.Millisecond
		return err
	case "memtable_bytes":
		n, err := parseInt(key, value, minMemtableBytes, maxMemtableBytes)
		o.MemtableBytes = int(n)
		return err
	case "max_immutables":
		n, err := parseInt(key, value, 1, 64)
		o.MaxImmutables = int(n)
		return err
	case "cache_bytes":
		n, err := parseInt(key, value, 0, 1<<40)
		if o.CacheBytes = n; n == 0 {
			o.CacheBytes = -1
		}
		return err
	case "retain_versions":
		n, err := parseInt(key, value, 1, 1_000_000)
		o.RetainVersions = int(n)
		return err
	case "gc_grace_secs":
		n, err := parseInt(key, value, 0, 604_800)
		if o.GCGrace = time.Duration(n) * time.Second; n == 0 {
			o.GCGrace = -1
		}
		return err
	case "wal_dir":
		o.WALDir = value
		return nil
	}
	return base.Errorf(base.CodeInvalidArgument, "unknown option %q; the options are read_only, create_if_missing, durability, "+
		"sync_interval_ms, memtable_bytes, max_immutables, cache_bytes, retain_versions, gc_grace_secs, wal_dir", key)
}

func (o *Options) setDurability(value string) error {
	switch value {
	case "sync":
		o.Durability = Sync
	case "interval":
		o.Durability = Interval
	case "os":
		o.Durability = OS
	default:
		return base.Errorf(base.CodeInvalidArgument, "option durability = %q: sync, interval or os", value)
	}
	return nil
}

func setBool(key, value string, dst *bool) error {
	switch value {
	case "true", "1":
		*dst = true
	case "false", "0":
		*dst = false
	default:
		return base.Errorf(base.CodeInvalidArgument, "option %s = %q: true or false", key, value)
	}
	return nil
}

func parseInt(key, value string, lo, hi int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < lo || n > hi {
		return lo, base.Errorf(base.CodeInvalidArgument, "option %s = %q: an integer from %d to %d", key, value, lo, hi)
	}
	return n, nil
}
