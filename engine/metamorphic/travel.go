package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
)

// past is a version of the table with what it must show, and the sequence number up to which it goes.
type past struct {
	version int64
	seq     uint64
	state   *state
}

// maxPast bounds the versions that a run remembers.
const maxPast = 50

// remember flushes and takes note of the version that is the newest then.
func (r *run) remember() error {
	if err := r.maintain(r.db.Flush); err != nil || !r.current().hasTable {
		return err
	}
	s, err := r.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if s.MemoryRows() != 0 {
		return fmt.Errorf("%d rows are in memory after a flush", s.MemoryRows())
	}
	if r.disk.afterCut() != nil {
		return nil // the power is gone already: another commit may come to have this number
	}
	if len(r.past) == maxPast {
		r.past = slices.Delete(r.past, 0, 1)
	}
	r.past = append(r.past, past{s.Version(), s.Seq(), r.current()})
	return nil
}

// forgetPast is for a table that was dropped: its versions belong to no table any more.
func (r *run) forgetPast() {
	generation := r.current().generation
	r.past = slices.DeleteFunc(r.past, func(p past) bool { return p.state.generation != generation })
}

// travel reads a remembered version. It may be gone, unless it must be kept.
func (r *run) travel(rng *rand.Rand) error {
	r.forgetPast()
	if len(r.past) == 0 || !r.current().hasTable {
		return nil
	}
	i := rng.IntN(len(r.past))
	p := r.past[i]
	s, err := r.db.SnapshotAt(p.version)
	if engine.CodeOf(err) == engine.CodeNotFound {
		r.past = slices.Delete(r.past, i, i+1)
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	r.saw("older versions", 1)
	if err := r.checkSnapshot(s, p.state); err != nil {
		return fmt.Errorf("version %d: %w", p.version, err)
	}
	return nil
}

// changes applies the change feed since a remembered version to what that version showed: it must lead to the table of
// today, by changes each of which goes on from the row that is there.
func (r *run) changes(rng *rand.Rand) error {
	r.forgetPast()
	if len(r.past) == 0 || !r.current().hasTable {
		return nil
	}
	i := rng.IntN(len(r.past))
	p := r.past[i]
	f, err := r.db.Changes(engine.ChangesOptions{Since: p.seq, BatchRows: 1 + rng.IntN(500)})
	if engine.CodeOf(err) == engine.CodeInvalidArgument { // not kept any more
		r.past = slices.Delete(r.past, i, i+1)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r.saw("change feeds", 1)
	rows := map[int64]int64{}
	for _, id := range p.state.live() {
		rows[id], _ = p.state.get(id)
	}
	last := p.seq
	for {
		b, err := f.Next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		for i := range b.N {
			if b.Seqs[i] < last || b.Seqs[i] <= p.seq {
				return fmt.Errorf("the change with sequence number %d comes after %d", b.Seqs[i], last)
			}
			last = b.Seqs[i]
			if err := applyChange(rows, b, i); err != nil {
				return fmt.Errorf("changes since %d, at %d: %w", p.seq, last, err)
			}
		}
	}
	if !r.current().equal(rows) {
		return fmt.Errorf("the changes since %d lead to %d rows, which are not the %d of the table", p.seq, len(rows), len(r.current().live()))
	}
	return nil
}

func applyChange(rows map[int64]int64, b *engine.ChangeBatch, i int) error {
	id := b.Keys.Cols[0].Value(i).Int64()
	before, there := rows[id]
	if there != (b.Ops[i] != engine.ChangeInsert) {
		return fmt.Errorf("%s of key %d, of which there is a row: %v", b.Ops[i], id, there)
	}
	if there {
		if err := checkRow(b.Before, i, allColumns, id, before); err != nil {
			return fmt.Errorf("before: %w", err)
		}
	}
	if b.Ops[i] == engine.ChangeDelete {
		delete(rows, id)
		return nil
	}
	payload := b.After.Cols[colPayload].Value(i).Int64()
	rows[id] = payload
	return checkRow(b.After, i, allColumns, id, payload)
}
