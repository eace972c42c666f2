package engine

import (
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
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
	txn *Txn
	// c is the table's, or of a table that the transaction has made one that has nothing.
	c       *core
	base    *Snapshot // nil of a table that the transaction has made
	table   *table
	dropped bool
	mems    []*privateMem // oldest first
	// below are the memtables that stand in the place of the base's, once copied is set: see txnalter.go.
	below  []*privateMem // oldest first
	copied bool
}

// privateMem is a memtable of a transaction.
type privateMem struct {
	memEntry
	size int // what it takes of memory or disk
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

// restAll gives back the pages of all memtables but the newest, which readers have brought in.
func (t *txnTable) restAll() {
	for i := range len(t.mems) - 1 {
		t.mems[i].rest()
	}
	for _, m := range t.below {
		m.rest()
	}
}

// room returns the memtable that takes n bytes of entries more.
func (t *txnTable) room(n int) (*privateMem, error) {
	b := memBuilder{t: t, mems: t.mems}
	m, err := b.room(n)
	t.mems = b.mems
	return m, err
}

// apply adds the rows of a statement.
func (t *txnTable) apply(b *batch) error {
	t.txn.mu.Lock()
	defer t.txn.mu.Unlock()
	if err := t.accepts(b.table); err != nil {
		return err
	}
	if err := t.enter(); err != nil || b.n == 0 {
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

// accepts returns why rows of a statement that was begun with a schema of the table cannot be added to the transaction.
func (t *txnTable) accepts(as *table) error {
	if err := t.txn.usable(); err != nil {
		return err
	}
	if as != t.table {
		return base.Errorf(base.CodeConflict, "table %q was altered while rows for it were on their way", t.table.schema.TableName)
	}
	if t.dropped {
		return base.Errorf(base.CodeConflict, "table %q was dropped while rows for it were on their way", t.table.schema.TableName)
	}
	return nil
}

// take adds memtables that a statement has filled.
func (t *txnTable) take(as *table, mems []*privateMem) error {
	t.txn.mu.Lock()
	defer t.txn.mu.Unlock()
	n := 0
	for _, m := range mems {
		n += m.mt.Bytes()
	}
	if err := t.accepts(as); err != nil {
		return err
	}
	if err := t.enter(); err != nil {
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
	if len(t.mems) == 0 && t.base != nil && !t.altered() {
		return t.base.clone()
	}
	t.restAll()
	var mems []*memEntry
	var visible []int
	var bounds []base.Seq
	for _, m := range slices.Backward(t.mems) {
		mems, visible = append(mems, &m.memEntry), append(visible, m.visible)
		bounds = append(bounds, base.Seq(m.visible))
	}
	if t.base == nil {
		state := t.c.newState(nil, nil, t.table, mems)
		state.bounds, state.private = bounds, len(t.mems)
		return &Snapshot{state: state, visible: visible}, nil
	}
	below, seen, bound := t.under()
	for range below {
		bounds = append(bounds, bound)
	}
	state := t.c.newState(t.base.state, t.base.state.manifest, t.table, append(mems, below...))
	state.bounds, state.private = bounds, len(t.mems)
	return &Snapshot{state: state, seq: t.base.seq, visible: append(visible, seen...)}, nil
}

func (t *txnTable) bytes() (n int64) {
	for _, m := range t.mems {
		n += int64(m.mt.Bytes())
	}
	for _, m := range t.below {
		n += int64(m.mt.Bytes())
	}
	return n
}

// each calls fn with the newest version of each key that the transaction has written, in key order.
func (t *txnTable) each(fn func(op base.Op, key, rec []byte) error) error {
	iters := make([]*memtable.Iter, 0, len(t.mems))
	for _, m := range slices.Backward(t.mems) {
		iters = append(iters, m.mt.NewIter(base.Seq(m.visible)))
	}
	read := 0
	it := memtable.NewMergeIter(iters...)
	for it.First(); it.Valid(); it.Next() {
		if err := fn(it.Op(), it.Key(), it.Value()); err != nil {
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

// forget gives back what was written.
func (t *txnTable) forget() {
	t.giveBack(t.mems)
	t.giveBack(t.below)
	t.mems, t.below = nil, nil
}

func (t *txnTable) giveBack(mems []*privateMem) {
	for _, m := range mems {
		if m.mapping == nil {
			t.txn.anonymous -= m.size
		}
		m.mt.Unref()
	}
}

// close gives everything back.
func (t *txnTable) close() {
	t.forget()
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
	if err := r.t.take(r.w.table, r.mems); err != nil {
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
