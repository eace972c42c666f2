package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
)

// A commit is one step of the log or of one manifest: rows of any number of tables are one record, as long as they are
// few; many rows of one table are a bulk load; a table that comes or goes is a manifest, with its rows. What would take
// two steps is refused by the statement that brings it.

// replacedMeanwhile is the conflict about a table as a whole.
func replacedMeanwhile(t *table) error {
	return base.Errorf(base.CodeConflict, "table %q was dropped, replaced or altered by another transaction meanwhile", t.schema.TableName)
}

// created reports whether the transaction has made the table.
func (t *txnTable) created() bool { return t.base == nil }

// changed returns the tables that a commit has something to do with: those with rows, and those that came or went. A
// table that takes the place of a dropped one of its name stands for both. It runs under mu.
func (t *Txn) changed() (changed []*txnTable) {
	for _, tt := range t.tables {
		if len(tt.mems) > 0 || tt.created() || tt.dropped && t.successor(tt) == nil {
			changed = append(changed, tt)
		}
	}
	return changed
}

// successor returns the table of the transaction's own that has the name of a dropped one.
func (t *Txn) successor(dropped *txnTable) *txnTable {
	if tt := t.find(dropped.table.schema.TableName); tt != nil && tt.created() {
		return tt
	}
	return nil
}

// predecessor returns the dropped table whose name a table of the transaction's own has.
func (t *Txn) predecessor(made *txnTable) *txnTable {
	folded := foldName(made.table.schema.TableName)
	for _, tt := range t.tables {
		if tt.dropped && foldName(tt.table.schema.TableName) == folded {
			return tt
		}
	}
	return nil
}

// mayChange returns why a table cannot be changed besides what the transaction has changed already. It runs under mu.
func (t *Txn) mayChange(next *txnTable) error {
	for _, tt := range t.changed() {
		same := tt == next || foldName(tt.table.schema.TableName) == foldName(next.table.schema.TableName)
		if !same && (tt.created() || tt.dropped || next.created() || next.dropped) {
			return base.Errorf(base.CodeUnsupported, "a transaction that creates or drops a table can change no other one: "+
				"it would change %q and %q; commit in between", tt.table.schema.TableName, next.table.schema.TableName)
		}
	}
	return nil
}

// mayGrow returns why n bytes of rows more of a table are too many. It runs under mu.
func (t *Txn) mayGrow(next *txnTable, n int) error {
	limit := int64(t.d.opts.MemtableBytes / 2)
	total, others := int64(n)+next.bytes(), false
	for _, tt := range t.changed() {
		if tt != next {
			total += tt.bytes()
			others = true
		}
	}
	if others && total > limit {
		return base.Errorf(base.CodeUnsupported, "a transaction that changes several tables can have %d bytes of rows (half of "+
			"option memtable_bytes), this one would have %d; commit in between", limit, total)
	}
	return nil
}

// write commits what the transaction has changed. It runs under mu.
func (t *Txn) write() (base.Seq, error) {
	changed := t.changed()
	switch {
	case len(changed) == 0:
		return t.d.visibleSeq(), nil
	case len(changed) > 1:
		return t.writeAll(changed)
	case changed[0].created():
		return changed[0].writeCreated()
	case changed[0].dropped:
		if err := changed[0].c.dropTable(changed[0].base.state.table); err != nil {
			return 0, err
		}
		return t.d.visibleSeq(), nil
	}
	return changed[0].writeRows()
}

// writeRows commits the rows of one table.
func (t *txnTable) writeRows() (base.Seq, error) {
	w, err := t.c.newWrite()
	if base.CodeOf(err) == base.CodeNotFound {
		return 0, replacedMeanwhile(t.table)
	}
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if w.table != t.table {
		return 0, replacedMeanwhile(t.table)
	}
	if err := w.SetSnapshot(t.base); err != nil {
		return 0, err
	}
	return t.fill(w)
}

// writeCreated commits a table that the transaction has made, with its rows.
func (t *txnTable) writeCreated() (base.Seq, error) {
	w, err := t.txn.d.newCreation(t.table)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	var expected *table
	if old := t.txn.predecessor(t); old != nil {
		expected = old.base.state.table
	}
	if w.creates.replaced != expected {
		return 0, replacedMeanwhile(t.table)
	}
	return t.fill(w)
}

// fill moves the rows to a write and commits that.
func (t *txnTable) fill(w *Write) (base.Seq, error) {
	w.SetInterrupt(t.txn.interrupt)
	if err := t.each(w.add); err != nil {
		return 0, err
	}
	return w.Commit()
}

// writeAll commits few rows of several tables.
func (t *Txn) writeAll(changed []*txnTable) (base.Seq, error) {
	batches := make([]*batch, len(changed))
	for i, tt := range changed {
		b := &batch{core: tt.c, table: tt.table, checked: true, since: tt.base.seq, base: tt.base}
		if err := tt.each(func(op base.Op, key, rec []byte) error {
			b.add(op, key, rec)
			return nil
		}); err != nil {
			return 0, err
		}
		batches[i] = b
	}
	if t.interrupt != nil && t.interrupt() {
		return 0, base.Errorf(base.CodeCancelled, "interrupted")
	}
	return t.d.applyAll(batches)
}
