package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/merutable/merutable/engine"
)

// Config is a configuration that histories run under.
type Config struct {
	Name    string
	Options engine.Options
}

const (
	none = -1      // the setting of options whose 0 is the default
	tiny = 1 << 20 // the smallest memtable
	// smallFile and smallLevel make a table of a few hundred kilobytes have several levels.
	smallFile, smallLevel = 8 << 10, 16 << 10
)

// Configs are the configurations that every history is run under.
func Configs() []Config {
	return []Config{
		{"default", engine.Options{}},
		{"tiny", engine.Options{
			MemtableBytes: tiny, MaxImmutables: 1, L0Files: 2, TargetFileBytes: smallFile, BaseLevelBytes: smallLevel,
			LevelMultiplier: 2, GCGrace: none,
		}},
		{"tiny-interval", engine.Options{
			MemtableBytes: tiny, Durability: engine.Interval, SyncInterval: 1e6, L0Files: 2, TargetFileBytes: smallFile,
			BaseLevelBytes: smallLevel, LevelMultiplier: 2, FlushThreads: 4, CompactionThreads: 4,
		}},
		{"tiny-os", engine.Options{
			MemtableBytes: tiny, Durability: engine.OS, MaxImmutables: 2, L0Files: 2, L0SlowFiles: 3, L0StopFiles: 4,
			TargetFileBytes: smallFile, BaseLevelBytes: smallLevel, LevelMultiplier: 3, MaxDeletedPercent: 1, RetainVersions: 1,
			GCGrace: none,
		}},
		{"manual", engine.Options{MemtableBytes: tiny, NoAutoCompaction: true, RetainVersions: 20}},
		{"no-caches", engine.Options{
			MemtableBytes: tiny, CacheBytes: none, RowCacheBytes: none, L0Files: 2, CompactionThreads: 3, GCGrace: none,
		}},
		{"small-caches", engine.Options{CacheBytes: tiny, RowCacheBytes: 1 << 16, FlushThreads: 3, MaxDeletedPercent: 100}},
	}
}

// ConfigByName returns a configuration of [Configs], or the one that random-SEED stands for.
func ConfigByName(name string) (Config, error) {
	for _, c := range Configs() {
		if c.Name == name {
			return c, nil
		}
	}
	var seed uint64
	if _, err := fmt.Sscanf(strings.TrimSpace(name), "random-%d", &seed); err != nil {
		return Config{}, fmt.Errorf("configuration %q is unknown", name)
	}
	return RandomConfig(seed), nil
}

// RandomConfig returns the configuration random-SEED.
func RandomConfig(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 7))
	pick := func(values ...int) int { return values[rng.IntN(len(values))] }
	o := engine.Options{
		Durability:        engine.Durability(rng.IntN(3)),
		SyncInterval:      1e6, // a millisecond
		MemtableBytes:     pick(tiny, tiny, 2*tiny, 0),
		MaxImmutables:     pick(1, 2, 0),
		CacheBytes:        int64(pick(none, tiny, 0)),
		RowCacheBytes:     int64(pick(none, 1<<16, 0)),
		RetainVersions:    pick(1, 2, 0),
		GCGrace:           none,
		FlushThreads:      1 + rng.IntN(4),
		CompactionThreads: 1 + rng.IntN(4),
		NoAutoCompaction:  rng.IntN(5) == 0,
		L0Files:           pick(1, 2, 3, 0),
		TargetFileBytes:   int64(pick(smallFile/2, smallFile, tiny, 0)),
		BaseLevelBytes:    int64(pick(smallLevel, 4*smallLevel, tiny, 0)),
		LevelMultiplier:   pick(2, 4, 0),
		MaxDeletedPercent: pick(1, 10, 50, 100, 0),
	}
	if rng.IntN(2) == 0 {
		o.GCGrace = 0
	}
	if rng.IntN(3) == 0 {
		o.L0SlowFiles, o.L0StopFiles = 4, 6
	}
	return Config{Name: fmt.Sprintf("random-%d", seed), Options: o}
}
