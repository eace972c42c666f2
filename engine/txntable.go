package engine

import (
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// txnTable is one table in a transaction: the state that it reads, and what it has written. All of it is guarded by the
// transaction's mu.
//
// The rows are in private memtables, which to readers are more memtables above those of the base, so that everything
// that holds of memtables holds of them: gets ask them first, scans merge them, and the rows of files that they
// supersede are found by the same lookups (resolve.go). Their sequence numbers count from 1 in each, in the order of
// arrival, so what a snapshot sees of one is bounded by how many rows it had. They have nothing to do with those of the
// database, which the rows get as the transaction commits.
type txnTable struct {
	txn   *Txn
	c     *core
	base  *Snapshot     // nil where there was no table
	table *table        // nil where there is none
	mems  []*privateMem // oldest first
}

// privateMem is a memtable of a transaction.
type privateMem struct {
	memEntry
	size    int          // what it takes of memory or disk
	mapping *vfs.Mapping // nil: in memory
}

// The sizes of private memtables: small at first, since most transactions are, and each of several times the size of the
// one before, so that there are few.
const (
	firstPrivateBytes = 64 << 10
	privateGrowth     = 4
	// txnMemoryShare is the part of a memtable's size that one transaction has in memory at most; all of them have one
	// memtable's size. What is more goes to files.
	txnMemoryShare = 4
)

func (t *txnTable) newWrite() (*Write, error) {
	if err := t.c.writable(); err != nil {
		return nil, err
	}
	if t.table == nil {
		return nil, t.txn.noTable("")
	}
	return newWriteOf(t.c, t.table, t), nil
}

// newPrivate makes a private memtable for entries of capacity bytes. It is in memory if the budget allows for it.
func (t *txnTable) newPrivate(capacity int) (*privateMem, error) {
	m := new(privateMem)
	limit := t.c.opts.MemtableBytes
	file := t.txn.anonymous+capacity > limit/txnMemoryShare || int(t.c.txns.anonymous.Load())+capacity > limit
	stats := &t.c.txns
	mt, err := memtable.NewIn(capacity, func(size int) ([]byte, func(), error) {
		m.size = size
		if file {
			mapping, err := t.c.mapTemporary(size)
			if err == nil {
				m.mapping = mapping
				stats.mapped.Add(int64(size))
				return mapping.Mem, func() {
					mapping.Close()
					stats.mapped.Add(-int64(size))
				}, nil
			}
			if base.CodeOf(err) != base.CodeUnsupported {
				return nil, nil, err
			}
		}
		mem, unmap, err := memtable.Anonymous(size)
		if err != nil {
			return nil, nil, err
		}
		stats.anonymous.Add(int64(size))
		return mem, func() {
			unmap()
			stats.anonymous.Add(-int64(size))
		}, nil
	})
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "memory for the rows of a transaction")
	}
	if m.mapping == nil {
		t.txn.anonymous += m.size
	}
	m.mt = mt
	return m, nil
}

// mapTemporary maps memory that a file of the database's temporary directory backs.
func (c *core) mapTemporary(size int) (*vfs.Mapping, error) {
	dir := c.fs.Join(c.dir, temporaryDir)
	if err := c.mkdir(dir); err != nil {
		return nil, err
	}
	return vfs.MapTemporary(c.fs, dir, size)
}

// rest gives the pages of a memtable back that no more rows go to.
func (m *privateMem) rest() {
	if m.mapping != nil {
		m.mapping.Drop()
	}
}

// restAll gives back the pages of all memtables but the newest, which readers have brought in.
func (t *txnTable) restAll() {
	for i := range len(t.mems) - 1 {
		t.mems[i].rest()
	}
}

// room returns the memtable that takes n bytes of entries more.
func (t *txnTable) room(n int) (*privateMem, error) {
	size := firstPrivateBytes
	if len(t.mems) > 0 {
		last := t.mems[len(t.mems)-1]
		if last.mt.Capacity()-last.mt.Bytes() >= n {
			return last, nil
		}
		size = min(last.mt.Capacity()*privateGrowth, t.c.opts.MemtableBytes)
	}
	m, err := t.newPrivate(max(size, n))
	if err != nil {
		return nil, err
	}
	if len(t.mems) > 0 {
		t.mems[len(t.mems)-1].rest()
	}
	t.mems = append(t.mems, m)
	return m, nil
}

// apply adds the rows of a statement.
func (t *txnTable) apply(b *batch) error {
	t.txn.mu.Lock()
	defer t.txn.mu.Unlock()
	if err := t.accepts(b.table); err != nil || b.n == 0 {
		return err
	}
	m, err := t.room(b.memBytes)
	if err != nil {
		return err
	}
	seq := base.Seq(m.mt.Len())
	records := batchReader{rest: b.data[batchHeader:], n: b.n}
	for range b.n {
		op, key, value, err := records.next()
		seq++
		if err == nil {
			err = m.mt.Add(key, seq, op, value)
		}
		if err != nil {
			t.txn.err = err // a part of the statement is there
			return err
		}
	}
	m.visible = m.mt.Len()
	return nil
}

// accepts returns why rows of a statement cannot be added to the transaction.
func (t *txnTable) accepts(rows *table) error {
	if err := t.txn.usable(); err != nil {
		return err
	}
	if rows != t.table {
		return base.Errorf(base.CodeConflict, "the table in %s was dropped or replaced while rows for it were on their way", t.c.dir)
	}
	return nil
}

// take adds memtables that a statement has filled.
func (t *txnTable) take(mems []*privateMem, rows *table) error {
	t.txn.mu.Lock()
	defer t.txn.mu.Unlock()
	if err := t.accepts(rows); err != nil {
		return err
	}
	for _, m := range mems {
		m.visible = m.mt.Len()
	}
	t.mems = append(t.mems, mems...)
	t.restAll()
	return nil
}

// owns returns an error where a snapshot does not come from the transaction's own table.
func (t *txnTable) owns(s *Snapshot) error {
	if s.state.core != t.c {
		return base.Errorf(base.CodeInvalidArgument, "the snapshot is not of the transaction")
	}
	return nil
}

// snapshot composes what the transaction sees now.
func (t *txnTable) snapshot() (*Snapshot, error) {
	if t.table == nil {
		return nil, t.txn.noTable("")
	}
	if len(t.mems) == 0 && t.base != nil && t.base.state.table == t.table {
		return t.base.clone()
	}
	t.restAll()
	below := new(Snapshot) // a table that the transaction has made has nothing below
	if t.base != nil && t.base.state.table == t.table {
		below = t.base
	}
	var mems []*memEntry
	var visible []int
	var bounds []base.Seq
	for _, m := range slices.Backward(t.mems) {
		mems, visible = append(mems, &m.memEntry), append(visible, m.visible)
		bounds = append(bounds, base.Seq(m.visible))
	}
	s := &Snapshot{seq: below.seq}
	if below.state != nil {
		mems, visible = append(mems, below.state.mems...), append(visible, below.visible...)
		for range below.state.mems {
			bounds = append(bounds, below.seq)
		}
		s.state = t.c.newState(below.state, below.state.manifest, t.table, mems)
	} else {
		s.state = t.c.newState(nil, nil, t.table, mems)
	}
	s.state.bounds, s.visible = bounds, visible
	return s, nil
}

func (t *txnTable) bytes() (n int64) {
	for _, m := range t.mems {
		n += int64(m.mt.Bytes())
	}
	return n
}

// commit writes what the transaction has changed.
func (t *txnTable) commit(interrupt func() bool) (base.Seq, error) {
	if len(t.mems) == 0 {
		return t.c.visibleSeq(), nil
	}
	w, err := t.c.newWrite()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	w.SetInterrupt(interrupt)
	if w.table != t.table {
		return 0, base.Errorf(base.CodeConflict, "table %q was dropped or replaced by another transaction meanwhile",
			t.table.schema.TableName)
	}
	if err := w.SetSnapshot(t.base); err != nil {
		return 0, err
	}
	if err := t.addTo(w); err != nil {
		return 0, err
	}
	return w.Commit()
}

// addTo adds the newest version of each key that the transaction has written, in key order.
func (t *txnTable) addTo(w *Write) error {
	const restEvery = 32 << 20 // bytes of rows after which the pages that were read are given back
	iters := make([]*memtable.Iter, 0, len(t.mems))
	for _, m := range slices.Backward(t.mems) {
		iters = append(iters, m.mt.NewIter(base.Seq(m.visible)))
	}
	read := 0
	it := memtable.NewMergeIter(iters...)
	for it.First(); it.Valid(); it.Next() {
		if err := w.add(it.Op(), it.Key(), it.Value()); err != nil {
			return err
		}
		if read += memtable.EntryBytes(len(it.Key()), len(it.Value())); read >= restEvery {
			read = 0
			for _, m := range t.mems {
				m.rest()
			}
		}
	}
	return nil
}

// close gives everything back.
func (t *txnTable) close() {
	for _, m := range t.mems {
		m.mt.Unref()
	}
	t.mems = nil
	if t.base != nil {
		t.base.Close()
		t.base = nil
	}
}

// txnRows takes the rows of a statement inside a transaction that are too many for a batch: they go to private
// memtables at once, which the transaction takes when the statement commits.
type txnRows struct {
	w    *Write
	t    *txnTable
	mems []*privateMem
}

func newTxnRows(w *Write, blocks []*Block) (*txnRows, error) {
	r := &txnRows{w: w, t: w.txn}
	w.disordered.Store(true) // rows are wanted, not columns
	for i, b := range blocks {
		if err := r.add(b); err != nil {
			for _, rest := range blocks[i:] {
				rest.Free()
			}
			return r, err
		}
	}
	return r, nil
}

func (r *txnRows) add(b *Block) error {
	defer b.Free()
	return b.each(func(key []byte, op base.Op, rec []byte) error {
		m, err := r.room(memtable.EntryBytes(len(key), len(rec)))
		if err != nil {
			return err
		}
		return m.mt.Add(key, base.Seq(m.mt.Len()+1), op, rec)
	})
}

// room returns the memtable that takes an entry of n bytes.
func (r *txnRows) room(n int) (*privateMem, error) {
	if len(r.mems) > 0 {
		last := r.mems[len(r.mems)-1]
		if last.mt.Capacity()-last.mt.Bytes() >= n {
			return last, nil
		}
		last.rest()
	}
	r.t.txn.mu.Lock()
	defer r.t.txn.mu.Unlock()
	if err := r.t.txn.usable(); err != nil {
		return nil, err
	}
	m, err := r.t.newPrivate(max(n, r.t.c.opts.MemtableBytes))
	if err != nil {
		return nil, err
	}
	r.mems = append(r.mems, m)
	return m, nil
}

func (r *txnRows) commit() (base.Seq, error) {
	if err := r.t.take(r.mems, r.w.table); err != nil {
		return 0, err
	}
	r.mems = nil
	return 0, nil
}

func (r *txnRows) close() {
	r.t.txn.mu.Lock()
	defer r.t.txn.mu.Unlock()
	for _, m := range r.mems {
		if m.mapping == nil {
			r.t.txn.anonymous -= m.size
		}
		m.mt.Unref()
	}
	r.mems = nil
}
