package engine

import (
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
)

// Write is one atomic change of any size. What fits a part of a memtable goes through the log as one batch; what is
// larger is sorted and written to data files, which one manifest commit makes visible. Later rows win over earlier ones
// of the same key. A Write is used by one goroutine at a time, but for Prepare and PrepareDelete.
type Write struct {
	c     *core
	table *table
	// Rows go to the batch until there is a block, then to blocks, and to the load once all of them are too many.
	batch      batch
	open       *Block // takes single rows
	blocks     []*Block
	blockBytes int
	load       bulk
	txn        *txnTable // of a write inside a transaction
	base       *Snapshot // what SetSnapshot was given, pinned
	// disordered says that keys did not ascend somewhere, so that blocks of columns are of no use.
	disordered atomic.Bool
	creates    *creation // of a write that brings its own table
	alters     *altering // of one that brings another schema of it
	spare      spareBuffers
	interrupt  func() bool
	err        error
	done       bool
	key, rec   []byte // reused
	keyVals    []Value
	sinceAsk   int
	once       sync.Once
}

// batchBuffers keeps the buffers of batches, which grow to hundreds of kilobytes, for later ones.
var batchBuffers sync.Pool

// maxPooledBytes bounds what the pool keeps of one batch.
const maxPooledBytes = 4 << 20

// smallColumns is how many rows are not worth a block of their own.
const smallColumns = 4096

// openBlockBytes is about the size of a block of single rows.
const openBlockBytes = 2 << 20

// logShare is the part of a memtable that one change may take; larger ones are bulk loads.
const logShare = 4

func (c *core) newWrite() (*Write, error) {
	if err := c.writable(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	t := c.table
	c.mu.Unlock()
	if t == nil {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	return newWriteOf(c, t, nil), nil
}

// newWriteOf starts a change of a table; txn may be nil.
func newWriteOf(c *core, t *table, txn *txnTable) *Write {
	w := &Write{c: c, table: t, txn: txn, batch: batch{core: c, table: t}}
	if buf, ok := batchBuffers.Get().(*[]byte); ok {
		w.batch.data = (*buf)[:0]
	}
	return w
}

// SetInterrupt makes long calls ask fn now and then, on the caller's goroutine; true stops the call with CodeCancelled
// and the change comes to nothing.
func (w *Write) SetInterrupt(fn func() bool) { w.interrupt = fn }

// Put adds a row: a value for every column, in column order.
func (w *Write) Put(vals []Value) error {
	if err := w.usable(); err != nil {
		return err
	}
	return w.keepErr(w.put(vals))
}

func (w *Write) put(vals []Value) (err error) {
	if w.rec, err = w.table.layout.Append(w.rec[:0], vals); err != nil {
		return err
	}
	w.keyVals = w.keyVals[:0]
	for _, c := range w.table.schema.PrimaryKey {
		w.keyVals = append(w.keyVals, vals[c])
	}
	if w.key, err = w.table.codec.Append(w.key[:0], w.keyVals); err != nil {
		return err
	}
	return w.add(base.OpPut, w.key, w.rec)
}

// Delete adds a deletion: a value for every key column, in key order. The row need not exist.
func (w *Write) Delete(key []Value) error {
	if err := w.usable(); err != nil {
		return err
	}
	k, err := appendKey(nil, w.table, key)
	if err != nil {
		return w.keepErr(err)
	}
	return w.keepErr(w.add(base.OpDelete, k, nil))
}

// PutColumns adds a batch of rows, with all columns of the table in order; it copies them.
func (w *Write) PutColumns(c *Columns) error {
	if err := w.usable(); err != nil {
		return err
	}
	if c.N >= smallColumns {
		return w.appendPrepared(w.Prepare(c))
	}
	if len(c.Cols) != len(w.table.schema.Columns) {
		return w.keepErr(base.Errorf(base.CodeSchemaMismatch, "a batch has %d columns, table %q has %d", len(c.Cols),
			w.table.schema.TableName, len(w.table.schema.Columns)))
	}
	for i := range c.N {
		w.key = c.AppendKey(w.key[:0], w.table.schema.PrimaryKey, i)
		w.rec = c.AppendRecord(w.rec[:0], w.table.layout, i)
		if err := w.add(base.OpPut, w.key, w.rec); err != nil {
			return w.keepErr(err)
		}
	}
	return nil
}

// DeleteColumns adds a batch of deletions: the key columns, in key order.
func (w *Write) DeleteColumns(keys *Columns) error {
	if err := w.usable(); err != nil {
		return err
	}
	if keys.N >= smallColumns {
		return w.appendPrepared(w.PrepareDelete(keys))
	}
	if len(keys.Cols) != len(w.table.schema.PrimaryKey) {
		return w.keepErr(base.Errorf(base.CodeSchemaMismatch, "a batch of keys has %d columns, the primary key of table %q has %d",
			len(keys.Cols), w.table.schema.TableName, len(w.table.schema.PrimaryKey)))
	}
	order := w.table.keySchema.PrimaryKey
	for i := range keys.N {
		w.key = keys.AppendKey(w.key[:0], order, i)
		if err := w.add(base.OpDelete, w.key, nil); err != nil {
			return w.keepErr(err)
		}
	}
	return nil
}

func (w *Write) appendPrepared(b *Block, err error) error {
	if err != nil {
		return w.keepErr(err)
	}
	return w.Append(b)
}

// Append adds the rows of a block that Prepare or PrepareDelete of this write made, behind all that was added before. It
// takes the block in every case.
func (w *Write) Append(b *Block) error {
	defer b.Free()
	if err := w.usable(); err != nil {
		return err
	}
	if b.n == 0 {
		return nil
	}
	if b.table != w.table {
		return w.keepErr(base.Errorf(base.CodeInvalidArgument, "the block was made for another write"))
	}
	return w.keepErr(w.appendBlock(b))
}

func (w *Write) appendBlock(b *Block) error {
	if err := w.interrupted(); err != nil {
		return err
	}
	if err := w.closeOpen(); err != nil {
		return err
	}
	return w.handOn(b)
}

// handOn takes a block's rows: into the load, or to those that may become one.
func (w *Write) handOn(b *Block) error {
	if w.load != nil {
		return w.load.add(b)
	}
	moved := *b
	*b = Block{}
	w.blocks = append(w.blocks, &moved)
	w.blockBytes += moved.memBytes
	return w.startLoad()
}

// add adds a row.
func (w *Write) add(op base.Op, key, rec []byte) error {
	if len(key) > base.MaxKeyBytes {
		return base.Errorf(base.CodeInvalidArgument, "a key of %d bytes in table %q: the limit is %d", len(key),
			w.table.schema.TableName, base.MaxKeyBytes)
	}
	if len(rec) > base.MaxValueBytes {
		return base.Errorf(base.CodeInvalidArgument, "a row of %d bytes in table %q: the limit is %d", len(rec),
			w.table.schema.TableName, base.MaxValueBytes)
	}
	const askEvery = 8192
	if w.sinceAsk++; w.sinceAsk >= askEvery {
		w.sinceAsk = 0
		if err := w.interrupted(); err != nil {
			return err
		}
	}
	if w.load == nil && len(w.blocks) == 0 && w.open == nil {
		w.batch.add(op, key, rec)
		return w.startLoad()
	}
	return w.addOpen(op, key, rec)
}

// addOpen adds a row to the block that is open.
func (w *Write) addOpen(op base.Op, key, rec []byte) (err error) {
	if w.open == nil {
		if w.open, err = newRowBlock(w); err != nil {
			return err
		}
	}
	if err := w.open.addRow(op, key, rec); err != nil {
		return err
	}
	if w.open.memBytes < min(openBlockBytes, w.c.opts.loadBufferSize()/2) {
		return nil
	}
	return w.closeOpen()
}

// closeOpen hands the block of single rows on.
func (w *Write) closeOpen() error {
	b := w.open
	if b == nil {
		return nil
	}
	w.open = nil
	defer b.Free()
	return w.handOn(b)
}

// startLoad turns the change into a bulk load, with the rows so far, if they are too many for a batch.
func (w *Write) startLoad() (err error) {
	if w.batch.memBytes+w.blockBytes <= w.c.opts.MemtableBytes/logShare {
		return nil
	}
	blocks, err := w.takeBlocks()
	if err != nil {
		return err
	}
	if w.txn != nil {
		w.load, err = newTxnRows(w, blocks)
		return err
	}
	w.load, err = newLoad(w, blocks)
	return err
}

// bulk takes the rows of a change that are too many for a batch.
type bulk interface {
	// add takes the rows of a block.
	add(b *Block) error
	commit() (base.Seq, error)
	// close gives up what was not committed.
	close()
}

// takeBlocks returns all rows so far as blocks, in order, for the caller to free; the write has none after it.
func (w *Write) takeBlocks() ([]*Block, error) {
	blocks := w.blocks
	w.blocks, w.blockBytes = nil, 0
	if w.batch.n == 0 {
		return blocks, nil
	}
	first, err := w.batchBlock()
	if err != nil {
		for _, b := range blocks {
			b.Free()
		}
		return nil, err
	}
	return append([]*Block{first}, blocks...), nil
}

// batchBlock moves the rows of the batch into a block.
func (w *Write) batchBlock() (*Block, error) {
	w.batch.seal(1)
	r, err := readBatch(w.batch.data)
	if err != nil {
		return nil, err
	}
	b, err := newRowBlock(w)
	if err != nil {
		return nil, err
	}
	for range r.n {
		op, key, value, err := r.next()
		if err == nil {
			err = b.addRow(op, key, value)
		}
		if err != nil {
			b.Free()
			return nil, err
		}
	}
	w.batch = batch{core: w.c, table: w.table, checked: w.batch.checked, since: w.batch.since}
	return b, nil
}

// drainBlocks moves the rows of blocks that are too few for a load into the batch.
func (w *Write) drainBlocks() error {
	for _, b := range w.blocks {
		err := b.each(func(key []byte, op base.Op, rec []byte) error {
			w.batch.add(op, key, rec)
			return nil
		})
		b.Free()
		if err != nil {
			return err
		}
	}
	w.blocks = nil
	return nil
}

func (w *Write) interrupted() error {
	if w.interrupt != nil && w.interrupt() {
		return base.Errorf(base.CodeCancelled, "interrupted")
	}
	return nil
}

// Commit makes the change durable and visible and returns its last sequence number. After an error nothing was written.
// Of a write of a transaction it makes the change a part of that, and returns 0.
func (w *Write) Commit() (uint64, error) {
	if err := w.usable(); err != nil {
		return 0, err
	}
	defer w.Close()
	if err := w.interrupted(); err != nil {
		return 0, err
	}
	if err := w.closeOpen(); err != nil {
		return 0, err
	}
	if w.load != nil {
		return w.load.commit()
	}
	if err := w.drainBlocks(); err != nil {
		return 0, err
	}
	if w.txn != nil {
		return 0, w.txn.apply(&w.batch)
	}
	w.batch.interrupt = w.interrupt
	return w.c.apply(&w.batch)
}

// Close drops what was not committed. A second call does nothing.
func (w *Write) Close() {
	w.once.Do(func() {
		w.done = true
		if w.load != nil {
			w.load.close()
		}
		w.dropSnapshot()
		for _, b := range w.blocks {
			b.Free()
		}
		if w.open != nil {
			w.open.Free()
		}
		w.blocks, w.open = nil, nil
		w.spare.close()
		if n := cap(w.batch.data); n > 0 && n <= maxPooledBytes {
			buf := w.batch.data[:0]
			batchBuffers.Put(&buf)
		}
		w.batch = batch{}
	})
}

func (w *Write) usable() error {
	switch {
	case w.done:
		return base.Errorf(base.CodeClosed, "the write was committed or closed")
	case w.err != nil:
		return w.err
	}
	return nil
}

// keepErr makes a write that failed once fail for ever: it may hold half of what the caller meant.
func (w *Write) keepErr(err error) error {
	if err != nil {
		w.err = err
	}
	return err
}
