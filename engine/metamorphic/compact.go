package metamorphic

import (
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// compact runs the maintenance that moves rows between files and removes files.
func (r *run) compact(op Op, rng *rand.Rand) error {
	return nil
}

// multiGet looks many keys up at once, some of them twice.
func (r *run) multiGet(s *engine.Snapshot, want *state, n int, rng *rand.Rand) error {
	return nil
}

// maintainOnce does one thing of what must not change any answer.
func maintainOnce(db *engine.DB, rng *rand.Rand) error {
	return db.Flush()
}
