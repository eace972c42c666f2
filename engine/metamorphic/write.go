package metamorphic

import (
	"fmt"
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// edits makes n puts and deletes. Their keys are anywhere, or close together, or ascending.
func (r *run) edits(n int, rng *rand.Rand) []edit {
	width := r.keys
	if rng.IntN(3) == 0 {
		width = 1 + rng.Int64N(r.keys)
	}
	from := rng.Int64N(r.keys - width + 1)
	ascending, deletes := rng.IntN(3) == 0, rng.IntN(3)
	out := make([]edit, n)
	for i := range out {
		id := from + rng.Int64N(width)
		if ascending {
			id = from + int64(i)%width
		}
		out[i] = edit{id: id, payload: rng.Int64N(1 << 30), del: rng.IntN(8) < deletes}
	}
	return out
}

func (r *run) single(op Op, rng *rand.Rand) error {
	for range op.N {
		e := edit{id: rng.Int64N(r.keys), payload: rng.Int64N(1 << 30), del: op.Kind == OpDelete}
		if err := r.change([]edit{e}, nil, nil); err != nil {
			return err
		}
		if r.disk.afterCut() != nil {
			return nil
		}
	}
	return nil
}

// guarded changes rows as somebody would who decided in a held snapshot.
func (r *run) guarded(op Op, rng *rand.Rand) error {
	if len(r.held) == 0 {
		return nil
	}
	h := r.held[rng.IntN(len(r.held))]
	if h.state.generation != r.current().generation || h.state.alters != r.current().alters || h.opening != r.opening {
		return nil
	}
	return r.change(r.edits(op.N, rng), &h, nil)
}

// cancelled interrupts a change somewhere; it may be through by then.
func (r *run) cancelled(op Op, rng *rand.Rand) error {
	patience := rng.IntN(3)
	return r.change(r.edits(op.N, rng), nil, func() bool {
		patience--
		return patience < 0
	})
}

// change makes one atomic change and compares how it ends with what the model says.
func (r *run) change(edits []edit, guard *held, interrupt func() bool) error {
	cur := r.current()
	w, err := r.db.NewWrite()
	if !cur.hasTable {
		if engine.CodeOf(err) != engine.CodeNotFound {
			return fmt.Errorf("a write without a table: %w, not CodeNotFound", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	w.SetInterrupt(interrupt)
	var must, may bool
	if guard != nil {
		must, may = cur.conflicts(guard.state, edits)
		if err := w.SetSnapshot(guard.s); err != nil {
			return err
		}
	}
	r.begin(cur.with(edits))
	err = r.write(w, cur, edits)
	code := engine.CodeOf(err)
	switch {
	case err == nil && must:
		return fmt.Errorf("a change that a held snapshot led to did not fail, though its rows were changed since")
	case err == nil:
		r.succeeded(false)
		return nil
	}
	_, syncFailed := r.disk.trouble()
	r.failed(syncFailed)
	switch {
	case code == engine.CodeConflict && may:
		r.saw("conflicts", 1)
		return nil
	case code == engine.CodeCancelled && interrupt != nil:
		r.saw("interrupts", 1)
		return nil
	}
	return err
}

func (r *run) write(w *engine.Write, to *state, edits []edit) error {
	for _, e := range edits {
		if r.hooks.lose != nil && r.hooks.lose(e) {
			continue
		}
		var err error
		if e.del {
			err = w.Delete(keyOf(e.id))
		} else {
			err = w.Put(to.newRow(e.id, e.payload))
		}
		if err != nil {
			return err
		}
	}
	seq, err := w.Commit()
	if err != nil {
		return err
	}
	if seq < r.seq {
		return fmt.Errorf("sequence number %d after %d", seq, r.seq)
	}
	r.seq = seq
	return nil
}

func (r *run) create() error {
	r.begin(r.current().created())
	err := r.db.CreateTable(schema())
	return r.definition(err)
}

// drop drops the table and makes it anew if again is set.
func (r *run) drop(again bool) error {
	if r.current().hasTable {
		r.begin(r.current().dropped())
		if err := r.definition(r.db.DropTable()); err != nil {
			return err
		}
	}
	if !again {
		return nil
	}
	return r.create()
}

// replace makes a table with rows in one step, in place of the one that there is.
func (r *run) replace(op Op, rng *rand.Rand) error {
	replace := rng.IntN(4) > 0
	w, err := r.db.NewTableWrite(schema(), replace)
	if !replace && r.current().hasTable {
		if engine.CodeOf(err) != engine.CodeAlreadyExists {
			return fmt.Errorf("a table in place of another: %w, not CodeAlreadyExists", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	edits := r.edits(op.N, rng)
	created := r.current().created()
	r.begin(created.with(edits))
	return r.definition(r.write(w, created, edits))
}

func (r *run) definition(err error) error {
	if err != nil {
		_, syncFailed := r.disk.trouble()
		r.failed(syncFailed)
		return err
	}
	r.succeeded(true)
	return nil
}
