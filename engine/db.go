package engine

import (
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// DB is a handle on a database directory and one of its tables: the root table, or the one that it was opened for with
// OpenTable. Where a method is about "the table", it is that one. Handles of one process on one directory share one
// engine. A DB may be used from many goroutines; Free must not run beside other calls.
type DB struct {
	dir      string
	tableID  uint32
	readOnly bool
	opts     Options // of a read-only handle, to attach it anew

	// mu guards what follows. Of a writing handle shared and c never change; a read-only one moves to another engine when
	// this process opens the directory for writing, or has closed it. What uses the engine of such a handle holds mu.
	mu     sync.RWMutex
	shared *shared
	c      *core
	// versions is the sum of the state versions of the engines it was attached to before.
	versions uint64
	closed   bool
	freed    bool
}

// Path returns the absolute path of the directory, symbolic links resolved.
func (db *DB) Path() string { return db.dir }

// ReadOnly reports whether the handle refuses writes.
func (db *DB) ReadOnly() bool { return db.readOnly }

// Closed reports whether Close was called.
func (db *DB) Closed() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.closed
}

func (db *DB) writable() error {
	switch {
	case db.readOnly:
		return base.Errorf(base.CodeReadOnly, "%s is open read-only", db.dir)
	case db.Closed():
		return base.Errorf(base.CodeClosed, "the handle on %s is closed", db.dir)
	}
	return db.c.writable()
}

// HasTable reports whether the database has a table.
func (db *DB) HasTable() bool {
	_, err := db.Schema()
	return err == nil
}

// Schema returns the table's schema, CodeNotFound where there is no table. Do not change it.
func (db *DB) Schema() (*Schema, error) {
	t, err := db.table()
	if err != nil {
		return nil, err
	}
	return t.schema, nil
}

func (db *DB) table() (*table, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	db.c.mu.Lock()
	defer db.c.mu.Unlock()
	if db.c.state == nil || db.c.state.table == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", db.dir)
	}
	return db.c.state.table, nil
}

// StateVersion returns a number that changes whenever what a new snapshot would show changes.
func (db *DB) StateVersion() uint64 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.versions + db.c.stateVersion.Load()
}

// CreateTable creates a table of the database, whatever table the handle is for: in the root of the directory, if there
// is no table there, else in a directory of its own. CodeAlreadyExists where there is a table of that name, in whatever
// case. Field ids are given to columns that have none. Durable when it returns.
func (db *DB) CreateTable(s *Schema) error {
	if err := db.writable(); err != nil {
		return err
	}
	return db.c.createTable(s)
}

// DropTable drops the table with all its rows, atomically; CodeNotFound where there is none. Snapshots held stay
// readable, and so do other tables.
func (db *DB) DropTable() error {
	if err := db.writable(); err != nil {
		return err
	}
	return db.c.dropTable(nil)
}

// Put inserts a row or replaces the row of its key, and returns its sequence number.
func (db *DB) Put(row []Value) (uint64, error) { return db.PutBatch([][]Value{row}) }

// PutBatch writes rows atomically, with one sync; of equal keys the last wins. It returns the last row's sequence
// number, the current one for no rows.
func (db *DB) PutBatch(rows [][]Value) (uint64, error) {
	w, err := db.NewWrite()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for _, r := range rows {
		if err := w.Put(r); err != nil {
			return 0, err
		}
	}
	return w.Commit()
}

// Delete deletes the row of a key, given in key order. The row need not exist; nothing is read.
func (db *DB) Delete(key []Value) (uint64, error) {
	w, err := db.NewWrite()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if err := w.Delete(key); err != nil {
		return 0, err
	}
	return w.Commit()
}

// NewWrite starts an atomic change of any size. Close it in every case.
func (db *DB) NewWrite() (*Write, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	return db.c.newWrite()
}

// Snapshot returns what a reader sees now. Close it.
func (db *DB) Snapshot() (*Snapshot, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.c.acquire()
}

// Flush writes all rows in memory, of all tables, to data files and commits them.
func (db *DB) Flush() error {
	if err := db.writable(); err != nil {
		return err
	}
	return db.c.flushTables()
}

// FlushUnless is [DB.Flush], which ends with CodeCancelled when interrupt, asked now and then, is true: the flush itself
// goes on.
func (db *DB) FlushUnless(interrupt func() bool) error {
	if err := db.writable(); err != nil {
		return err
	}
	if interrupt == nil {
		return db.c.flushTables()
	}
	return db.c.flushTablesUnless(func() error {
		if interrupt() {
			return interruptedError()
		}
		return nil
	})
}

// Refresh makes a read-only handle see what the writer committed since, and what its log holds. On a writing handle it
// does nothing. It also makes the handle join the engine that this process has opened for writing meanwhile, and leave
// one that was closed: another process may write then.
func (db *DB) Refresh() error {
	return db.upToDate(func(d *database) error { return d.refresh() })
}

// upToDate brings a handle that only reads up to date by refresh, on the engine that it belongs to by now. One that writes
// sees all that it writes.
func (db *DB) upToDate(refresh func(d *database) error) error {
	if !db.readOnly {
		return nil
	}
	if err := db.rejoin(); err != nil {
		return err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	if !db.c.readOnly {
		return nil
	}
	return refresh(db.c.database)
}

// RefreshStale is Refresh, but for a database in an object store that was brought up to date less than RefreshInterval ago:
// then it does nothing, so that reads in a row ask nothing of the store.
func (db *DB) RefreshStale() error {
	return db.upToDate(func(d *database) error {
		if !d.remote() {
			return d.refresh()
		}
		// Of those that come at a time one looks.
		d.tail.mu.Lock()
		defer d.tail.mu.Unlock()
		if d.refreshedWithin(db.refreshInterval()) {
			return nil
		}
		return d.refreshRemote()
	})
}

// refreshInterval is the handle's own: its engine may have been opened by another one.
func (db *DB) refreshInterval() time.Duration {
	if db.opts.RefreshInterval == 0 {
		return defaultRefreshInterval
	}
	return max(db.opts.RefreshInterval, 0)
}

func (db *DB) rejoin() error {
	db.mu.RLock()
	old := db.shared
	db.mu.RUnlock()
	if registry.current(old) {
		return nil
	}
	next, err := registry.attach(old.key, db.opts)
	if err != nil {
		return err
	}
	db.mu.Lock()
	if db.shared == old && next.shared != old && !db.freed {
		db.versions += db.c.stateVersion.Load() + 1
		db.shared, db.c = next.shared, next.c.byID(db.tableID)
		next.shared = old
	}
	db.mu.Unlock()
	next.shared.release()
	return nil
}

// Close flushes, makes everything durable and seals the handle: later writes give CodeClosed, reads still work. The last
// writing handle of a process also releases the directory. A second call does nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	closed := db.closed
	db.closed = true
	db.mu.Unlock()
	if closed {
		return nil
	}
	if db.readOnly {
		return nil
	}
	return db.shared.closeWriter(true)
}

// Free gives the handle up without flushing; what was acknowledged is in the log and comes back at the next open. A
// second call does nothing. Snapshots stay valid.
func (db *DB) Free() {
	db.mu.Lock()
	freed, closed := db.freed, db.closed
	db.freed, db.closed = true, true
	db.mu.Unlock()
	if freed {
		return
	}
	if !closed && !db.readOnly {
		_ = db.shared.closeWriter(false)
	}
	db.shared.release()
}
