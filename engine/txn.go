package engine

import (
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
)

// Txn is a transaction of any number of statements. It reads one state of the database, that of its begin, together with
// what it has written itself; others see nothing of it before Commit, and all of it then. Two transactions that are open
// at the same time must not change the same key: the one that commits later fails with CodeConflict (snapshot isolation:
// what was only read is not checked).
//
// A statement is a [Write] of [Txn.NewWrite]. Its Commit adds its rows to the transaction, whole; until then they are
// not seen by the transaction itself. The rows are in memtables of the transaction's own (txntable.go), above those of
// the state that it reads; what is more than fits in memory is in files without a name.
//
// As long as it is open, a transaction keeps the files and memtables of its begin. It may be used from many goroutines;
// which of two writes counts for a key is decided by the order of their commits.
type Txn struct {
	d    *database
	root *core // of the handle that it was begun with

	mu        sync.Mutex
	interrupt func() bool
	done      bool
	err       error       // of a change that is there by half
	tables    []*txnTable // those of its begin, dropped ones included, then those that it has made
	// anonymous is how many bytes of memory it has that no file backs.
	anonymous int
}

// txnStats count the transactions of a core and what they hold.
type txnStats struct {
	open, committed, rolledBack, conflicts atomic.Int64
	// anonymous and mapped are bytes of private memtables.
	anonymous, mapped atomic.Int64
}

// TxnStats are figures about transactions of several statements.
type TxnStats struct {
	OpenTransactions       int64 `json:"transactions_open"`
	TransactionMemory      int64 `json:"transactions_memory_bytes"` // that open ones hold in memory
	TransactionFileBytes   int64 `json:"transactions_file_bytes"`   // that they hold in temporary files
	TransactionsCommitted  int64 `json:"transactions_committed"`
	TransactionsRolledBack int64 `json:"transactions_rolled_back"` // failed commits included
	TransactionConflicts   int64 `json:"transaction_conflicts"`    // commits that failed for a row or table that another one had changed
}

func (s *txnStats) stats() TxnStats {
	return TxnStats{
		OpenTransactions: s.open.Load(), TransactionMemory: s.anonymous.Load(), TransactionFileBytes: s.mapped.Load(),
		TransactionsCommitted: s.committed.Load(), TransactionsRolledBack: s.rolledBack.Load(),
		TransactionConflicts: s.conflicts.Load(),
	}
}

// Begin starts a transaction that sees the newest state of all tables of the database. End it with Commit or Rollback in
// every case.
func (db *DB) Begin() (*Txn, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	all, err := db.c.acquireAll()
	if err != nil {
		return nil, err
	}
	t := &Txn{d: db.c.database, root: db.c}
	for _, s := range all {
		t.tables = append(t.tables, &txnTable{txn: t, c: s.state.core, base: s, table: s.state.table})
	}
	t.d.txns.open.Add(1)
	return t, nil
}

// SetInterrupt makes Commit ask fn now and then, on the caller's goroutine; true stops it with CodeCancelled, and the
// transaction comes to nothing.
func (t *Txn) SetInterrupt(fn func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interrupt = fn
}

// usable runs under mu.
func (t *Txn) usable() error {
	if t.done {
		return base.Errorf(base.CodeClosed, "the transaction was committed or rolled back")
	}
	return t.err
}

// of returns what the transaction knows of the handle's table. It runs under mu.
func (t *Txn) of(db *DB) (*txnTable, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if db.readOnly {
		return nil, base.Errorf(base.CodeReadOnly, "the handle on %s is read-only", db.dir)
	}
	if db.c.database != t.d {
		return nil, base.Errorf(base.CodeInvalidArgument, "the transaction is of the database in %s, the handle of that in %s",
			t.d.root, db.dir)
	}
	return t.ofCore(db.c)
}

func (t *Txn) ofCore(c *core) (*txnTable, error) {
	for _, tt := range t.tables {
		if tt.c == c && !tt.dropped {
			return tt, nil
		}
	}
	return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
}

// find returns the table of a name, in whatever case, nil where the transaction sees none. It runs under mu.
func (t *Txn) find(name string) *txnTable {
	folded := foldName(name)
	for _, tt := range t.tables {
		if !tt.dropped && foldName(tt.table.schema.TableName) == folded {
			return tt
		}
	}
	return nil
}

// named is find with an error; "" is the table of the handle that it was begun with.
func (t *Txn) named(name string) (*txnTable, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if name == "" {
		return t.ofCore(t.root)
	}
	if tt := t.find(name); tt != nil {
		return tt, nil
	}
	return nil, base.Errorf(base.CodeNotFound, "no table %q in %s", name, t.d.root)
}

// Snapshot returns what the transaction sees now of the handle's table: writes that it commits later are not in it. Close
// it; it may outlive the transaction.
func (t *Txn) Snapshot(db *DB) (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.of(db)
	if err != nil {
		return nil, err
	}
	return tt.snapshot()
}

// SnapshotOf is Snapshot for a table of that name, which may be one that only the transaction has.
func (t *Txn) SnapshotOf(table string) (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.named(table)
	if err != nil {
		return nil, err
	}
	return tt.snapshot()
}

// SchemaOf returns the schema that a table has in the transaction. Do not change it.
func (t *Txn) SchemaOf(table string) (*Schema, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.named(table)
	if err != nil {
		return nil, err
	}
	return tt.table.schema, nil
}

// NewWrite starts a statement of the transaction that changes the handle's table. Its Commit makes it a part of the
// transaction and returns 0; Close without it leaves nothing. Close it in every case.
func (t *Txn) NewWrite(db *DB) (*Write, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.of(db)
	if err != nil {
		return nil, err
	}
	return tt.newWrite()
}

// NewWriteTo is NewWrite for a table of that name.
func (t *Txn) NewWriteTo(table string) (*Write, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt, err := t.named(table)
	if err != nil {
		return nil, err
	}
	return tt.newWrite()
}

// Bytes returns how much memory, and how much of the disk, the rows of the transaction take.
func (t *Txn) Bytes() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tt := range t.tables {
		n += tt.bytes()
	}
	return n
}

// Commit makes all changes of the transaction durable and visible at once, and returns their last sequence number. It
// ends the transaction in every case: after an error nothing of it is there. CodeConflict says that a row or the table
// was changed by somebody else since Begin.
func (t *Txn) Commit() (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return 0, t.usable()
	}
	err, seq := t.err, base.Seq(0)
	if err == nil {
		seq, err = t.write()
	}
	if base.CodeOf(err) == base.CodeConflict {
		t.d.txns.conflicts.Add(1)
	}
	t.end(err == nil)
	return seq, err
}

// Rollback ends the transaction; nothing of it stays. After Commit, or a second time, it does nothing.
func (t *Txn) Rollback() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done {
		t.end(false)
	}
}

// end gives back what the transaction holds. It runs under mu.
func (t *Txn) end(committed bool) {
	t.done = true
	for _, tt := range t.tables {
		tt.close()
	}
	stats := &t.d.txns
	stats.open.Add(-1)
	if committed {
		stats.committed.Add(1)
	} else {
		stats.rolledBack.Add(1)
	}
}
