package engine

import (
	"bytes"

	"github.com/merutable/merutable/engine/internal/base"
)

// A point read asks the memtables, the newest first, then the row cache, then of each run of files the one whose key
// range holds the key: its bloom filters, its sparse key index, the pages of the key columns that cover one block, the
// deletion vector, and at last one page of every column. Of all versions in files at most one is not deleted, so the
// order of the runs does not matter to the answer.

// Get looks a key up, given in key order. It returns one row with all columns, which may be shared: do not change it.
func (s *Snapshot) Get(key []Value) (*Columns, bool, error) {
	if err := s.pin(); err != nil {
		return nil, false, err
	}
	defer s.state.unref()
	return s.state.get(key, s.seq)
}

// Get looks a key up, given in key order, in the newest state. The bytes of the row's values may be shared: do not change
// them.
func (db *DB) Get(key []Value) (row []Value, found bool, err error) {
	s, seq, err := db.pinState()
	if err != nil {
		return nil, false, err
	}
	defer s.unref()
	cols, found, err := s.get(key, seq)
	if err != nil && db.mayFollow(err) {
		cols, found, err = db.getFollowing(key)
	}
	if err != nil || !found {
		return nil, false, err
	}
	row = make([]Value, len(cols.Cols))
	for i := range row {
		row[i] = cols.Cols[i].Value(0)
	}
	return row, true, nil
}

func (db *DB) getFollowing(key []Value) (cols *Columns, found bool, err error) {
	err = db.following(func(s *readState, seq base.Seq) (err error) {
		cols, found, err = s.get(key, seq)
		return err
	})
	return cols, found, err
}

// pinState returns the current state with a reference, and the newest visible sequence number: a snapshot for one look.
func (db *DB) pinState() (*readState, base.Seq, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	c := db.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil || c.state.table == nil {
		return nil, 0, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	c.state.ref()
	return c.state, c.visible, nil
}

// get looks a key up as of a sequence number. The caller holds a reference.
func (s *readState) get(key []Value, seq base.Seq) (*Columns, bool, error) {
	var space [64]byte
	k, err := appendKey(space[:0], s.table, key)
	if err != nil {
		return nil, false, err
	}
	record, found, err := s.lookUp(k, seq)
	if err != nil || !found {
		return nil, false, err
	}
	return s.table.layout.Row(record), true, nil
}

// lookUp is find, counted as a get.
func (s *readState) lookUp(key []byte, seq base.Seq) (record []byte, found bool, err error) {
	record, found, err = s.find(key, seq)
	hits := int64(0)
	if found {
		hits = 1
	}
	s.core.reads.countGets(1, hits)
	return record, found, err
}

// find returns the record of a key, which nobody may change.
func (s *readState) find(key []byte, seq base.Seq) (record []byte, found bool, err error) {
	value, op, ok := s.findInMemory(key, seq)
	if ok {
		s.core.reads.memtableHits.Add(1)
		if op == base.OpDelete {
			return nil, false, nil
		}
		return bytes.Clone(value), true, nil // the memtable may go
	}
	if record, ok := s.cached(key); ok {
		return record, true, nil
	}
	for _, run := range s.index.runs {
		f := holding(s.files, run, key)
		if f == nil {
			continue
		}
		record, err := s.findInFile(f, key)
		if err != nil || record != nil {
			return record, record != nil, err
		}
	}
	return nil, false, nil
}

// findInMemory returns the newest version of a key in the memtables, which hold its value.
func (s *readState) findInMemory(key []byte, seq base.Seq) (value []byte, op base.Op, ok bool) {
	for i, e := range s.mems {
		if value, op, _, ok = e.mt.Get(key, s.bound(i, seq)); ok {
			return value, op, true
		}
	}
	return nil, 0, false
}

// findInFile returns the record of a key if the file has it and it is not deleted there, else nil.
func (s *readState) findInFile(f *liveFile, key []byte) ([]byte, error) {
	r, err := f.open(s.table.schema)
	if err != nil {
		return nil, err
	}
	pos, found, err := r.Find(key)
	if err != nil || !found {
		return nil, err
	}
	dead, err := f.deleted(s.core.dir)
	if err != nil || dead.Contains(uint32(pos)) {
		return nil, err
	}
	record, read, err := r.Record(s.table.layout, pos)
	if err != nil {
		return nil, err
	}
	s.cache(key, f, pos, record, !read)
	return record, nil
}

// appendKey encodes a whole key.
func appendKey(dst []byte, t *table, key []Value) ([]byte, error) {
	if len(key) != len(t.schema.PrimaryKey) {
		return nil, base.Errorf(base.CodeInvalidArgument, "the primary key of table %q has %d columns, not %d", t.schema.TableName,
			len(t.schema.PrimaryKey), len(key))
	}
	return t.codec.Append(dst, key)
}
