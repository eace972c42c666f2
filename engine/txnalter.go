package engine

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/row"
)

// A change of the schema inside a transaction is in its own view at once, and in the database with its commit: the commit
// is that of a bulk load, whose manifest has the new schema too.
//
// Files are read with whatever schema a reader has, but records in memory have the layout of the schema with which they
// were written. So the transaction's rows are written anew, into new private memtables, and what the transaction sees of
// the database's memtables is copied into memtables of its own that stand below those, in their place. The copies are
// only read: the database flushes its memory with the old schema before the transaction commits.

// Alter changes the schema of the handle's table, as [DB.Alter] does, in what the transaction sees; all of it or, after an
// error, nothing. Writes of the table that were begun before can be committed no more. Commit fails with CodeConflict where
// somebody else has dropped, replaced or altered the table since Begin, has written rows that do not fit, or has given
// its new name to another one.
func (t *Txn) Alter(db *DB, ops ...Alteration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.of(db)
	if err != nil {
		return err
	}
	return tt.alter(ops)
}

// AlterTable is Alter for a table of that name, which may be one that only the transaction has.
func (t *Txn) AlterTable(name string, ops ...Alteration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.named(name)
	if err != nil {
		return err
	}
	return tt.alter(ops)
}

// altered reports whether the transaction has altered a table that there was before it.
func (t *txnTable) altered() bool { return t.base != nil && t.table != t.base.state.table }

// alter runs under the transaction's mu.
func (t *txnTable) alter(ops []Alteration) error {
	if err := t.c.writable(); err != nil {
		return err
	}
	next, err := alterSchema(t.table.schema, ops)
	if err != nil || next == t.table.schema {
		return err
	}
	if other := t.txn.find(next.TableName); other != nil && other != t {
		return t.txn.existing(other)
	}
	to, err := newTable(next)
	if err != nil {
		return err
	}
	s, err := t.snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.fits(next); err != nil {
		return err
	}
	if sameRecords(t.table.schema, next) {
		t.table = to
		return nil
	}
	rc, err := newRecast(t.table, to)
	if err != nil {
		return err
	}
	mems, below := memBuilder{t: t}, memBuilder{t: t}
	if err = t.recastOwn(rc, &mems); err == nil {
		err = t.recastBelow(rc, &below)
	}
	if err != nil {
		mems.drop()
		below.drop()
		return err
	}
	t.forget()
	t.table, t.mems, t.below, t.copied = to, mems.done(), below.done(), true
	t.restAll()
	return nil
}

// recastOwn writes the transaction's rows anew: the newest version of each key, for no reader sees the others.
func (t *txnTable) recastOwn(rc *recast, out *memBuilder) error {
	return t.each(func(op base.Op, key, rec []byte) error {
		return out.add(rc, key, 0, op, rec)
	})
}

// recastBelow writes what the transaction sees of rows in memory that are not its own, with their sequence numbers, in
// the order of these: the newest version of each key that it has not written itself.
func (t *txnTable) recastBelow(rc *recast, out *memBuilder) error {
	if t.base == nil {
		return nil
	}
	mems, visible, bound := t.under()
	hidden := func(above []*memEntry, key []byte) bool {
		for _, m := range t.mems {
			if _, _, _, found := m.mt.Get(key, base.Seq(m.visible)); found {
				return true
			}
		}
		return slices.ContainsFunc(above, func(e *memEntry) bool {
			_, _, _, found := e.mt.Get(key, bound)
			return found
		})
	}
	read := 0
	for i, e := range slices.Backward(mems) {
		var failed error
		e.mt.Arrivals(0, visible[i], func(key []byte, seq base.Seq, op base.Op) {
			if failed != nil || seq > bound {
				return
			}
			rec, _, newest, _ := e.mt.Get(key, bound)
			if newest != seq || hidden(mems[:i], key) {
				return
			}
			failed = out.add(rc, key, seq, op, rec)
			if read += memtable.EntryBytes(len(key), len(rec)); read >= restEvery {
				read = 0
				t.restAll()
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// under returns the memtables below the transaction's own, newest first, with what is visible of them.
func (t *txnTable) under() (mems []*memEntry, visible []int, bound base.Seq) {
	if !t.copied {
		return t.base.state.mems, t.base.visible, t.base.seq
	}
	for _, m := range slices.Backward(t.below) {
		mems, visible = append(mems, &m.memEntry), append(visible, m.visible)
	}
	return mems, visible, t.base.seq
}

// memBuilder fills private memtables.
type memBuilder struct {
	t    *txnTable
	mems []*privateMem // oldest first
	rec  []byte        // reused
}

// add adds an entry whose record is converted; sequence number 0 is the next one of its memtable.
func (b *memBuilder) add(rc *recast, key []byte, seq base.Seq, op base.Op, rec []byte) (err error) {
	b.rec = b.rec[:0]
	if op == base.OpPut {
		if b.rec, err = rc.append(b.rec, rec); err != nil {
			return err
		}
	}
	m, err := b.room(memtable.EntryBytes(len(key), len(b.rec)))
	if err != nil {
		return err
	}
	if seq == 0 {
		seq = base.Seq(m.mt.Len() + 1)
	}
	return m.mt.Add(key, seq, op, b.rec)
}

func (b *memBuilder) room(n int) (*privateMem, error) {
	size := firstPrivateBytes
	if len(b.mems) > 0 {
		last := b.mems[len(b.mems)-1]
		if last.mt.Capacity()-last.mt.Bytes() >= n {
			return last, nil
		}
		size = min(last.mt.Capacity()*privateGrowth, b.t.c.opts.MemtableBytes)
	}
	m, err := b.t.newPrivate(max(size, n))
	if err != nil {
		return nil, err
	}
	if len(b.mems) > 0 {
		b.mems[len(b.mems)-1].rest()
	}
	b.mems = append(b.mems, m)
	return m, nil
}

func (b *memBuilder) done() []*privateMem {
	for _, m := range b.mems {
		m.visible = m.mt.Len()
	}
	return b.mems
}

func (b *memBuilder) drop() { b.t.giveBack(b.mems) }

// recast converts records of one schema of a table into those of a later one.
type recast struct {
	from, to *row.Layout
	columns  []recastColumn // of the later one
	vals     []base.Value   // reused
}

type recastColumn struct {
	typ     base.Type
	at      int        // in the earlier one, -1 where it has no such column:
	initial base.Value // is the value then
	widen   row.Widen  // may be nil
}

// sameRecords reports whether records of two schemas have one layout.
func sameRecords(a, b *base.Schema) bool {
	return slices.EqualFunc(a.Columns, b.Columns, func(x, y base.Column) bool {
		return x.FieldID == y.FieldID && x.Type.Equal(y.Type)
	})
}

func newRecast(from, to *table) (*recast, error) {
	rc := &recast{from: from.layout, to: to.layout, vals: make([]base.Value, len(to.schema.Columns))}
	for i := range to.schema.Columns {
		c := &to.schema.Columns[i]
		rcc := recastColumn{typ: c.Type, at: from.schema.IndexOfField(c.FieldID), initial: base.Null()}
		switch {
		case rcc.at >= 0:
			rcc.widen = row.NewWiden(from.schema.Columns[rcc.at].Type, c.Type)
		case c.InitialDefault != nil:
			v, err := row.StorageValue(c.Type, c.InitialDefault)
			if err != nil {
				return nil, base.Wrapf(base.CodeInvalidArgument, err, "the default of column %q", c.Name)
			}
			rcc.initial = v
		}
		rc.columns = append(rc.columns, rcc)
	}
	return rc, nil
}

// append appends the converted record to dst.
func (rc *recast) append(dst, rec []byte) ([]byte, error) {
	for i := range rc.columns {
		c := &rc.columns[i]
		switch {
		case c.at < 0:
			rc.vals[i] = c.initial
		case c.widen == nil || rc.from.IsNull(rec, c.at):
			rc.vals[i] = rc.from.Value(rec, c.at)
		default:
			v, err := row.StorageValue(c.typ, c.widen(nil, rc.from.Storage(rec, c.at)))
			if err != nil {
				return dst, err
			}
			rc.vals[i] = v
		}
	}
	return rc.to.Append(dst, rc.vals)
}

// fits reports, as an error that names the column, whether the rows of the snapshot fit a new schema of the table.
func (s *Snapshot) fits(next *base.Schema) error {
	checks, err := rowChecks(s.Schema(), next, len(s.state.files) > 0 || s.MemoryRows() > 0)
	if err != nil || len(checks) == 0 {
		return err
	}
	layout := s.state.table.layout
	it := s.memIter()
	for it.First(); it.Valid(); it.Next() {
		if it.Op() != base.OpPut {
			continue
		}
		for _, check := range checks {
			if err := check.record(s.Schema(), layout, it.Value()); err != nil {
				return err
			}
		}
	}
	for i, f := range s.state.files {
		skip := func() (*roaring.Bitmap, error) { return s.hidden(i, s.deletesOf(i)) }
		if err := f.checkAll(s.Schema(), checks, skip); err != nil {
			return err
		}
	}
	return nil
}

// record checks a record.
func (check rowCheck) record(s *base.Schema, l *row.Layout, rec []byte) error {
	null := l.IsNull(rec, check.column)
	switch {
	case check.values == notNull && null:
		return holdsNull(s, check.column)
	case check.values == timestampDays && !null && !dayFits(l.Storage(rec, check.column)):
		return noTimestamp(&s.Columns[check.column])
	}
	return nil
}

// altering is what a write that brings another schema of its table knows of it.
type altering struct {
	from *table // that it changes
	// known are the files whose rows fit: those that the transaction saw when it was altered.
	known fittingFiles
}

// alterWrite starts the write that commits the schema, and the rows.
func (t *txnTable) alterWrite() (w *Write, err error) {
	from := t.base.state.table
	if w, err = t.startWrite(from); err != nil {
		return nil, err
	}
	w.alters = &altering{from: from, known: fittingFiles{}}
	for _, f := range t.base.state.files {
		w.alters.known[f.dataFile] = true
	}
	w.table, w.batch.table = t.table, t.table
	if w.load, err = newLoad(w, nil); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// checkFits looks at the rows that the table has and the transaction did not see in files, but for those that it replaces.
// It runs under writeMu, with nothing in memory.
func (l *load) checkFits(s *readState, dead map[*dataFile]*roaring.Bitmap) error {
	old, next := l.w.alters.from.schema, l.w.table.schema
	loose := next.Clone() // columns that the transaction has added read as their initial default
	var nulls, days []rowCheck
	for i := range next.Columns {
		c := &next.Columns[i]
		at := old.IndexOfField(c.FieldID)
		if !c.Nullable && (at < 0 || old.Columns[at].Nullable) && !next.IsKey(i) {
			loose.Columns[i].Nullable = true
			nulls = append(nulls, rowCheck{column: i, values: notNull})
		}
		if at >= 0 && old.Columns[at].Type.Kind == KindDate && c.Type.Kind == KindTimestamp {
			days = append(days, rowCheck{column: at, values: timestampDays})
		}
	}
	for _, f := range s.files {
		if l.w.alters.known[f.dataFile] {
			continue
		}
		skip := func() (*roaring.Bitmap, error) {
			deleted, err := f.deleted(s.core.dir)
			if err != nil || dead[f.dataFile].IsEmpty() {
				return deleted, err
			}
			return roaring.Or(deleted, dead[f.dataFile]), nil
		}
		err := f.checkAll(loose, nulls, skip)
		if err == nil {
			err = f.checkAll(old, days, skip)
		}
		if base.CodeOf(err) == base.CodeSchemaMismatch {
			return base.Wrapf(base.CodeConflict, err, "rows that do not fit the new definition of table %q were written meanwhile", next.TableName)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
