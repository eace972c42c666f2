package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
)

// A commit is one step of the log or of one manifest where it can be: rows of any number of tables are one record, as long
// as they are few; many rows of one table are a bulk load; a table that comes or goes is a manifest, with its rows. What
// takes several manifests is staged, and counts with a record of the log (together.go).

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
		changes := len(tt.mems) > 0 || tt.created() || tt.altered()
		if tt.dropped { // whatever was done to it before
			changes = t.successor(tt) == nil
		}
		if changes {
			changed = append(changed, tt)
		}
	}
	return changed
}

// successor returns the table of the transaction's own that has the name of a dropped one, which that had at the begin.
func (t *Txn) successor(dropped *txnTable) *txnTable {
	if tt := t.find(dropped.firstName()); tt != nil && tt.created() {
		return tt
	}
	return nil
}

// firstNamed returns the table that had a name at the begin.
func (t *Txn) firstNamed(name string) *txnTable {
	folded := foldName(name)
	for _, tt := range t.tables {
		if !tt.created() && foldName(tt.firstName()) == folded {
			return tt
		}
	}
	return nil
}

// firstName is the name that a table had at the begin, which the transaction has not made.
func (t *txnTable) firstName() string { return t.base.state.table.schema.TableName }

// renamed reports whether the transaction has given the table another name, in more than its case.
func (t *txnTable) renamed() bool {
	return t.altered() && foldName(t.firstName()) != foldName(t.table.schema.TableName)
}

// write commits what the transaction has changed. It runs under mu.
func (t *Txn) write() (base.Seq, error) {
	changed := t.changed()
	switch {
	case len(changed) == 0:
		return t.d.visibleSeq(), nil
	case len(changed) > 1 && t.few(changed):
		return t.writeAll(changed)
	case len(changed) > 1:
		return t.writeTogether(changed)
	case changed[0].created():
		return changed[0].commitRows(changed[0].creation(false))
	case changed[0].dropped:
		if err := changed[0].c.dropTable(changed[0].base.state.table); err != nil {
			return 0, err
		}
		return t.d.visibleSeq(), nil
	}
	return changed[0].commitRows(changed[0].rowsWrite())
}

// commitRows fills a write that was just started with the rows, and commits it.
func (t *txnTable) commitRows(w *Write, err error) (base.Seq, error) {
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if err := t.fill(w); err != nil {
		return 0, err
	}
	return w.Commit()
}

// rowsWrite starts the write that commits the rows, and the schema if it is another one.
func (t *txnTable) rowsWrite() (*Write, error) {
	if t.altered() {
		return t.alterWrite()
	}
	return t.startWrite(t.table)
}

// startWrite starts a write that conflicts with what came since the begin; the table must still be the one expected.
func (t *txnTable) startWrite(expected *table) (*Write, error) {
	w, err := t.c.newWrite()
	if base.CodeOf(err) == base.CodeNotFound {
		return nil, replacedMeanwhile(t.table)
	}
	if err != nil {
		return nil, err
	}
	if w.table != expected {
		err = replacedMeanwhile(t.table)
	} else {
		err = w.SetSnapshot(t.base)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// creation starts the write that commits the table; apart keeps it out of the root of the directory.
func (t *txnTable) creation(apart bool) (*Write, error) {
	var leaves, expected *table // the table that has the name before the commit, and that whose place is taken
	switch old := t.txn.firstNamed(t.table.schema.TableName); {
	case old == nil:
	case old.dropped:
		expected = old.base.state.table
	case old.renamed():
		leaves = old.base.state.table
	}
	w, err := t.txn.d.newCreation(t.table, apart, leaves)
	if err != nil {
		return nil, err
	}
	if w.creates.replaced != expected {
		w.Close()
		return nil, replacedMeanwhile(t.table)
	}
	return w, nil
}

// fill moves the rows to a write.
func (t *txnTable) fill(w *Write) error {
	w.SetInterrupt(t.txn.interrupt)
	return t.each(w.add)
}

// few reports whether rows of several tables are few enough for one record of the log, and all that there is.
func (t *Txn) few(changed []*txnTable) bool {
	total := int64(0)
	for _, tt := range changed {
		if tt.created() || tt.dropped || tt.altered() {
			return false
		}
		total += tt.bytes()
	}
	return total <= int64(t.d.opts.MemtableBytes/logShare)
}

// writeTogether commits what takes several manifests.
func (t *Txn) writeTogether(changed []*txnTable) (base.Seq, error) {
	var writes []*Write
	var drops []droppedTable
	defer func() {
		for _, w := range writes {
			w.Close()
		}
	}()
	apart := false // only one can be created in the root
	for _, tt := range changed {
		if tt.dropped {
			drops = append(drops, droppedTable{tt.c, tt.base.state.table})
			continue
		}
		var w *Write
		var err error
		if tt.created() {
			w, err = tt.creation(apart)
		} else {
			w, err = tt.rowsWrite()
		}
		if err != nil {
			return 0, err
		}
		writes = append(writes, w)
		apart = apart || tt.created() && w.c.id == 0
		if err := tt.fill(w); err != nil {
			return 0, err
		}
	}
	return t.d.commitTogether(writes, drops...)
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
