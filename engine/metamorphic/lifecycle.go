package metamorphic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// open opens the database on the current disk.
func (r *run) open() (err error) {
	o := r.config.Options
	o.UseFS(r.disk.fs)
	r.db, err = engine.Open(dir, o)
	r.seq, r.version = 0, 0
	r.opening++
	return err
}

// end gives everything up.
func (r *run) end() {
	r.releaseAll()
	if r.db != nil {
		r.leave()
	}
}

func (r *run) releaseAll() {
	r.endTxns()
	for _, h := range r.held {
		h.s.Close()
	}
	for _, rd := range r.readers {
		rd.db.Free()
	}
	for _, w := range r.walks {
		w.it.Close()
	}
	r.held, r.walks, r.readers = nil, nil, nil
}

// reopen closes the database, or ends it as the death of its process would, and opens it again. No power is cut, so
// that nothing is lost at any durability.
func (r *run) reopen(orderly bool) error {
	if orderly {
		err := r.db.Close()
		full, syncFailed := r.disk.trouble()
		if err != nil && !full && !syncFailed {
			return fmt.Errorf("close: %w", err)
		}
	}
	return r.restart()
}

// restart opens the database anew on a disk without failures.
func (r *run) restart() error {
	r.endTxns()
	r.leave()
	if r.disk.afterCut() != nil {
		return nil
	}
	r.disk.repair()
	if err := r.open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	r.mu.Lock()
	candidates := []*state{r.current()}
	if r.maybe != nil {
		candidates = append(candidates, r.maybe)
	}
	r.mu.Unlock()
	if err := r.settle(candidates, false); err != nil {
		return err
	}
	return r.checkAll()
}

// recover opens what a power cut left.
func (r *run) recover() error {
	r.releaseAll()
	if r.db != nil {
		r.leave()
	}
	r.mu.Lock()
	candidates := r.atCut
	r.atCut = nil
	r.mu.Unlock()
	r.newDisk(r.disk.afterCut())
	if err := r.open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := r.settle(candidates, true); err != nil {
		return err
	}
	return r.checkAll()
}

// settle finds out which of the possible states the database came back in. Opening makes what it finds durable.
func (r *run) settle(candidates []*state, afterCut bool) error {
	rows, shape, hasTable, err := r.rows()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight, r.maybe = nil, nil
	for _, s := range slices.Backward(candidates) {
		if s.hasTable != hasTable || s.shape() != shape || !s.equal(rows) {
			continue
		}
		if afterCut {
			r.sawCut(s)
		}
		r.since = []*state{s}
		return nil
	}
	return fmt.Errorf("it came back in none of %d possible states, the newest of which differs so: %s", len(candidates),
		difference(candidates[len(candidates)-1], rows, shape, hasTable))
}

// sawCut tells what kind of power cut it was that left s.
func (r *run) sawCut(s *state) {
	r.saw("power cuts", 1)
	switch {
	case s == r.current():
	case slices.Contains(r.since, s):
		r.saw("power cuts that lost changes", 1)
	default:
		r.saw("power cuts that left the change under way", 1)
	}
}

// leave gives the database up.
func (r *run) leave() {
	st := r.db.Stats()
	r.saw("flushes", st.Flushes)
	r.saw("bulk loads", st.Loads)
	r.saw("stalls", st.WriteStalls)
	r.saw("compactions", st.Compactions)
	r.saw("files moved between levels", st.CompactionMoves)
	r.saw("files dropped by compaction", st.CompactionDrops)
	r.db.Free()
	r.db = nil
}

// rows reads the whole table.
func (r *run) rows() (rows map[int64]int64, shape string, hasTable bool, err error) {
	s, err := r.db.Snapshot()
	if engine.CodeOf(err) == engine.CodeNotFound {
		return nil, "", false, nil
	}
	if err != nil {
		return nil, "", false, err
	}
	defer s.Close()
	rows, shape = map[int64]int64{}, shapeOfSchema(s.Schema())
	it, err := s.Scan(engine.ScanOptions{Projection: []int{colID, colPayload}})
	if err != nil {
		return nil, "", false, err
	}
	defer it.Close()
	for {
		c, err := it.Next()
		if err != nil || c == nil {
			return rows, shape, true, err
		}
		for i := range c.N {
			rows[c.Cols[0].Value(i).Int64()] = c.Cols[1].Value(i).Int64()
		}
	}
}

// difference says how a table differs from a state.
func difference(want *state, rows map[int64]int64, shape string, hasTable bool) string {
	if want.hasTable != hasTable {
		return fmt.Sprintf("there is a table: %v", hasTable)
	}
	if want.shape() != shape {
		return fmt.Sprintf("columns %s instead of %s", shape, want.shape())
	}
	text := fmt.Sprintf("%d rows instead of %d", len(rows), len(want.live()))
	ids := slices.Sorted(maps.Keys(rows))
	const most = 5
	n := 0
	for _, id := range slices.Compact(slices.Sorted(slices.Values(append(ids, want.live()...)))) {
		payload, found := want.get(id)
		got, there := rows[id]
		if found == there && payload == got {
			continue
		}
		if n++; n > most {
			return text + ", …"
		}
		text += fmt.Sprintf("; key %d: %v %d instead of %v %d", id, there, got, found, payload)
	}
	return text
}

// relieve ends the failures of the disk: what failed before must work from now on. Only a sync that failed is remedied
// by opening the database again.
func (r *run) relieve() error {
	full, syncFailed := r.disk.trouble()
	if syncFailed {
		return r.restart()
	}
	r.disk.repair()
	if !full {
		return nil
	}
	return r.change([]edit{{id: 0, payload: 7}}, nil, nil)
}

// maintain does what must not change any answer.
func (r *run) maintain(fn func() error) error {
	err := fn()
	if !r.current().hasTable && engine.CodeOf(err) == engine.CodeNotFound {
		return nil
	}
	if err == nil && r.disk.afterCut() == nil {
		r.durable()
	}
	return err
}

func (r *run) hold() error {
	s, err := r.db.Snapshot()
	if !r.current().hasTable {
		if engine.CodeOf(err) != engine.CodeNotFound {
			return fmt.Errorf("a snapshot without a table: %w, not CodeNotFound", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	const most = 20
	if len(r.held) == most {
		r.held[0].s.Close()
		r.held = r.held[1:]
	}
	r.held = append(r.held, held{s, r.current(), r.opening})
	return nil
}

// readHeld compares a held snapshot with the state of its time.
func (r *run) readHeld(release bool, rng *rand.Rand) error {
	if len(r.held) == 0 {
		return nil
	}
	i := rng.IntN(len(r.held))
	h := r.held[i]
	if err := r.checkSnapshot(h.s, h.state); err != nil {
		later := r.current().changes - h.state.changes
		return fmt.Errorf("the snapshot of change %d, %d changes later: %w", h.state.changes, later, err)
	}
	if release {
		h.s.Close()
		r.held = slices.Delete(r.held, i, i+1)
	}
	return nil
}
