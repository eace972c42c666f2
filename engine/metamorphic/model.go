package metamorphic

import (
	"maps"
	"slices"
	"sync"
)

// state is what the table must hold after some number of changes. It is immutable: each change makes another one, and a
// held snapshot is a pointer to one.
type state struct {
	changes int
	// generation counts creations of the table; hasTable is false between a drop and the next one.
	generation int
	hasTable   bool
	cells      map[int64]cell
	// extras are the columns besides those of the schema, alters how often it was changed.
	extras []extra
	alters int

	once sync.Once
	ids  []int64
}

// cell is what is known about a key that was ever written.
type cell struct {
	payload int64
	live    bool
	// changed is the change that gave the key this payload or took its row away; touched may be a later one, which
	// deleted what was not there.
	changed, touched int
}

// edit is a put or a deletion inside a change.
type edit struct {
	id, payload int64
	del         bool
}

// with applies a change: of several edits of a key the last one counts.
func (s *state) with(edits []edit) *state {
	next := &state{
		changes: s.changes + 1, generation: s.generation, hasTable: s.hasTable, cells: maps.Clone(s.cells),
		extras: s.extras, alters: s.alters,
	}
	last := map[int64]edit{}
	for _, e := range edits {
		last[e.id] = e
	}
	for id, e := range last {
		c := next.cells[id]
		c.touched = next.changes
		if !e.del || c.live {
			c.payload, c.live, c.changed = e.payload, !e.del, next.changes
		}
		next.cells[id] = c
	}
	return next
}

func (s *state) dropped() *state {
	return &state{changes: s.changes + 1, generation: s.generation, cells: map[int64]cell{}, alters: s.alters}
}

func (s *state) created() *state {
	return &state{
		changes: s.changes + 1, generation: s.generation + 1, hasTable: true, cells: map[int64]cell{}, alters: s.alters,
	}
}

func (s *state) get(id int64) (payload int64, found bool) {
	c := s.cells[id]
	return c.payload, c.live
}

// live returns the keys that have a row, ascending.
func (s *state) live() []int64 {
	s.once.Do(func() {
		for id, c := range s.cells {
			if c.live {
				s.ids = append(s.ids, id)
			}
		}
		slices.Sort(s.ids)
	})
	return s.ids
}

// conflicts reports whether a change that was decided on in old must fail in s, and whether it may.
func (s *state) conflicts(old *state, edits []edit) (must, may bool) {
	for _, e := range edits {
		c := s.cells[e.id]
		must = must || c.changed > old.changes
		may = may || c.touched > old.changes
	}
	return must, may
}

// equal compares rows, not history.
func (s *state) equal(rows map[int64]int64) bool {
	if len(rows) != len(s.live()) {
		return false
	}
	for id, payload := range rows {
		if p, found := s.get(id); !found || p != payload {
			return false
		}
	}
	return true
}
