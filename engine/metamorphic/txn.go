package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// openTxn is a transaction under way: the state of its begin, what it must see, and what it has written.
type openTxn struct {
	t     *engine.Txn
	began *state
	sees  *state
	edits []edit
	// steps are what it has done, and alters says that it has changed the schema.
	steps  []func(*state) *state
	alters bool
}

// did takes note of what a transaction has done.
func (o *openTxn) did(step func(*state) *state) {
	o.steps = append(o.steps, step)
	o.sees = step(o.sees)
}

// after returns the state that the transaction makes of one.
func (o *openTxn) after(s *state) *state {
	for _, step := range o.steps {
		s = step(s)
	}
	return s
}

// mostTxns is how many transactions are open at most.
const mostTxns = 4

func (r *run) transaction(op Op, rng *rand.Rand) error {
	if op.Kind == OpTxnBegin {
		return r.beginTxn()
	}
	if len(r.txns) == 0 {
		return nil
	}
	i := rng.IntN(len(r.txns))
	o := r.txns[i]
	switch op.Kind {
	case OpTxnWrite:
		return r.writeTxn(o, op, rng)
	case OpTxnRead:
		return r.readTxn(o, rng)
	}
	r.txns = slices.Delete(r.txns, i, i+1)
	defer o.t.Rollback()
	if op.N == 0 {
		o.t.Rollback()
		return nil
	}
	return r.commitTxn(o)
}

func (r *run) beginTxn() error {
	if !r.current().hasTable {
		return nil
	}
	if len(r.txns) == mostTxns {
		r.txns[0].t.Rollback()
		r.txns = slices.Delete(r.txns, 0, 1)
	}
	t, err := r.db.Begin()
	if err != nil {
		return err
	}
	r.txns = append(r.txns, &openTxn{t: t, began: r.current(), sees: r.current()})
	return nil
}

// writeTxn runs a statement, which is given up now and then.
func (r *run) writeTxn(o *openTxn, op Op, rng *rand.Rand) error {
	w, err := o.t.NewWrite(r.db)
	if err != nil {
		return err
	}
	defer w.Close()
	edits := r.edits(op.N, rng)
	for _, e := range edits {
		if e.del {
			err = w.Delete(keyOf(e.id))
		} else {
			err = w.Put(o.sees.newRow(e.id, e.payload))
		}
		if err != nil {
			return err
		}
	}
	if rng.IntN(8) == 0 {
		return nil
	}
	if _, err := w.Commit(); err != nil {
		return err
	}
	o.edits = append(o.edits, edits...)
	o.did(func(s *state) *state { return s.with(edits) })
	return nil
}

// readTxn compares what a transaction sees with what it must see.
func (r *run) readTxn(o *openTxn, rng *rand.Rand) error {
	s, err := o.t.Snapshot(r.db)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := r.scan(s, o.sees, rng); err != nil {
		return err
	}
	if err := r.multiGet(s, o.sees, 20, rng); err != nil {
		return err
	}
	return checkGet(s, o.sees, rng.Int64N(r.keys+1))
}

// commitTxn commits a transaction, which must fail where a row that it wrote was changed since its begin.
func (r *run) commitTxn(o *openTxn) error {
	cur := r.current()
	must, may := o.conflicts(cur)
	if !must {
		r.begin(o.after(cur))
	}
	_, err := o.t.Commit()
	switch {
	case err == nil && must:
		return fmt.Errorf("a transaction was committed whose rows were changed since its begin")
	case err == nil && len(o.edits) == 0 && !o.alters:
		r.failed(false) // nothing has changed
		return nil
	case err == nil:
		r.succeeded(o.alters)
		r.saw("transactions", 1)
		if o.alters {
			r.saw("transactions that changed the schema", 1)
		}
		return nil
	}
	_, syncFailed := r.disk.trouble()
	r.failed(syncFailed)
	if engine.CodeOf(err) == engine.CodeConflict && may {
		r.saw("transaction conflicts", 1)
		return nil
	}
	return err
}

// conflicts reports whether the commit must fail in a state, and whether it may: of a key that was and is absent nobody
// may know any more that it came and went.
func (o *openTxn) conflicts(cur *state) (must, may bool) {
	if len(o.edits) == 0 && !o.alters {
		return false, false
	}
	if cur.generation != o.began.generation || cur.alters != o.began.alters || !cur.hasTable {
		return true, true
	}
	for _, e := range o.edits {
		_, was := o.began.get(e.id)
		c := cur.cells[e.id]
		must = must || c.changed > o.began.changes && (was || c.live)
		may = may || c.touched > o.began.changes
	}
	return must, may
}

// endTxns rolls all back: the engine that they are of ends.
func (r *run) endTxns() {
	for _, o := range r.txns {
		o.t.Rollback()
	}
	r.txns = nil
}
