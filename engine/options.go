package engine

import (
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
	// RetainVersions is how many manifests are kept besides the newest. The default is 8.
	RetainVersions int
	// GCGrace is how long what a newer manifest superseded stays on disk for readers in other processes. The default
	// is 300 s; negative means none.
	GCGrace time.Duration
	// WALDir is the directory of the log, for one database alone. The default is where the log was last; of a new
	// database, wal inside its directory. It can move only after a Close.
	WALDir string

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
