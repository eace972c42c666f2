package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// walk is a scan that is read while the history goes on.
type walk struct {
	it    *engine.RowIter
	state *state
	ids   []int64 // to come
}

// walk begins a scan, or reads on in one.
func (r *run) walk(op Op, rng *rand.Rand) error {
	const most = 3
	if op.Kind == OpStep || len(r.walks) == most {
		if len(r.walks) == 0 {
			return nil
		}
		return r.stepWalk(rng.IntN(len(r.walks)), op.N)
	}
	s, err := r.db.Snapshot()
	if engine.CodeOf(err) == engine.CodeNotFound && !r.current().hasTable {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	reverse := rng.IntN(2) == 0
	it, err := s.Scan(engine.ScanOptions{BatchRows: op.N, Reverse: reverse})
	if err != nil {
		return err
	}
	ids := r.current().live()
	if reverse {
		ids = slices.Clone(ids)
		slices.Reverse(ids)
	}
	r.walks = append(r.walks, &walk{it, r.current(), ids})
	return nil
}

// stepWalk reads some batches, all if batches is 0. A scan that came to its end is given up.
func (r *run) stepWalk(i, batches int) error {
	w := r.walks[i]
	for n := 0; batches == 0 || n < batches; n++ {
		c, err := w.it.Next()
		if err == nil {
			err = w.compare(c)
		}
		if err != nil {
			later := r.current().changes - w.state.changes
			return fmt.Errorf("a scan of change %d, %d changes later: %w", w.state.changes, later, err)
		}
		if c == nil {
			w.it.Close()
			r.walks = slices.Delete(r.walks, i, i+1)
			return nil
		}
	}
	return nil
}

// compare takes what a batch has off what is to come; nil is the end.
func (w *walk) compare(c *engine.Columns) error {
	if c == nil {
		if len(w.ids) > 0 {
			return fmt.Errorf("%d rows are missing, the first is key %d", len(w.ids), w.ids[0])
		}
		return nil
	}
	if c.N > len(w.ids) {
		return fmt.Errorf("%d rows more than there are", c.N-len(w.ids))
	}
	for i := range c.N {
		if err := w.state.checkRow(c, i, w.state.projection(), w.ids[i]); err != nil {
			return err
		}
	}
	w.ids = w.ids[c.N:]
	return nil
}
