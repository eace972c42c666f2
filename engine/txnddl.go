package engine

import (
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
)

// Tables that come and go inside a transaction are in its own view at once, and in the database with its commit.

// TableNames returns the names of the tables that the transaction sees.
func (t *Txn) TableNames() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, tt := range t.tables {
		if !t.done && !tt.dropped {
			names = append(names, tt.table.schema.TableName)
		}
	}
	slices.Sort(names)
	return names
}

// CreateTable adds a table without rows to what the transaction sees; CodeAlreadyExists where it sees one of that name.
// The commit fails with CodeConflict where somebody else has created one meanwhile.
func (t *Txn) CreateTable(s *Schema) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.prepare(s, false)
	if err != nil {
		return err
	}
	return tt.enter()
}

// NewTableWrite starts a statement that adds a table with its rows, when it is committed; where there is one of that
// name, it is replaced if replace is set. Close it in every case.
func (t *Txn) NewTableWrite(s *Schema, replace bool) (*Write, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.prepare(s, replace)
	if err != nil {
		return nil, err
	}
	return newWriteOf(tt.c, tt.table, tt), nil
}

// prepare makes a table that the transaction does not see yet. It runs under mu.
func (t *Txn) prepare(s *Schema, replace bool) (*txnTable, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if err := t.d.writable(); err != nil {
		return nil, err
	}
	made, err := prepareTable(s)
	if err != nil {
		return nil, err
	}
	tt := &txnTable{txn: t, c: newCore(t.d, 0), table: made}
	if old := t.find(made.schema.TableName); old != nil && !replace {
		return nil, t.existing(old)
	}
	return tt, nil
}

func (t *Txn) existing(tt *txnTable) error {
	return base.Errorf(base.CodeAlreadyExists, "%s holds table %q already", t.d.root, tt.table.schema.TableName)
}

// enter makes a table that the transaction has made one that it sees, in the place of that of its name, if it was none
// so far. It runs under mu.
func (t *txnTable) enter() error {
	if !t.created() || slices.Contains(t.txn.tables, t) {
		return nil
	}
	if old := t.txn.find(t.table.schema.TableName); old != nil {
		t.txn.remove(old)
	}
	t.txn.tables = append(t.txn.tables, t)
	return nil
}

// DropTable takes a table with all its rows out of what the transaction sees; CodeNotFound where there is none. The
// commit fails with CodeConflict where somebody else has dropped, replaced or altered it meanwhile; rows that others have
// written go with it.
func (t *Txn) DropTable(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.named(name)
	if err != nil {
		return err
	}
	if err := t.d.writable(); err != nil {
		return err
	}
	t.remove(tt)
	return nil
}

// remove drops a table. It runs under mu.
func (t *Txn) remove(tt *txnTable) {
	tt.forget()
	tt.dropped = true
	if tt.created() {
		t.tables = slices.DeleteFunc(t.tables, func(o *txnTable) bool { return o == tt })
	}
}
