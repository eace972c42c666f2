package engine

import (
	"bytes"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/row"
)

// Block is rows made ready for a [Write]: encoding is most of the work of a large change, and blocks can be made by
// several goroutines at once. It takes memory until it is appended or freed.
type Block struct {
	table *table
	spare *spareBuffers // of its write
	n     int
	// memBytes is about what the rows take in a memtable.
	memBytes int
	// ascending says that the rows are puts whose keys ascend strictly, from first to last.
	ascending   bool
	first, last []byte
	// One of these holds the rows, in the order in which they came. Columns go to a file as they are, as long as all that
	// a change brings ascends; of few rows they are less work than a buffer.
	cols *Columns
	rows *memtable.RowBuffer
}

// maxBlockBuffer is no bound: whoever makes a block bounds it.
const maxBlockBuffer = 1 << 40

// blockRowOverhead is what a row takes in memory besides its bytes, about.
const blockRowOverhead = 48

// Prepare makes a block of a batch of rows, with all columns of the table in order; it copies them. It may be called by
// any number of goroutines, whatever else the write is doing. [Write.Append] takes the block; if that is not to happen,
// Free it.
func (w *Write) Prepare(c *Columns) (*Block, error) {
	if len(c.Cols) != len(w.table.schema.Columns) {
		return nil, base.Errorf(base.CodeSchemaMismatch, "a batch has %d columns, table %q has %d", len(c.Cols),
			w.table.schema.TableName, len(w.table.schema.Columns))
	}
	b := &Block{table: w.table, spare: &w.spare, n: c.N}
	if small := c.N < smallColumns; c.N > 0 && (small || !w.disordered.Load()) {
		if b.ascending = b.ascends(c); b.ascending || small {
			b.copyColumns(c)
			return b, nil
		}
	}
	return b, b.encode(c)
}

// PrepareDelete makes a block of deletions: the key columns, in key order. As Prepare otherwise.
func (w *Write) PrepareDelete(keys *Columns) (*Block, error) {
	if len(keys.Cols) != len(w.table.schema.PrimaryKey) {
		return nil, base.Errorf(base.CodeSchemaMismatch, "a batch of keys has %d columns, the primary key of table %q has %d",
			len(keys.Cols), w.table.schema.TableName, len(w.table.schema.PrimaryKey))
	}
	b := &Block{table: w.table, spare: &w.spare, n: keys.N}
	order := w.table.keySchema.PrimaryKey
	return b, b.fill(keys.N, func(i int, key, _ []byte) ([]byte, []byte) {
		return keys.AppendKey(key, order, i), nil
	}, base.OpDelete)
}

// ascends reports whether the keys of rows ascend, and takes note of the first and the last.
func (b *Block) ascends(c *Columns) bool {
	key, last := []byte(nil), []byte(nil)
	for i := range c.N {
		key = c.AppendKey(key[:0], b.table.schema.PrimaryKey, i)
		switch {
		case i == 0:
			b.first = bytes.Clone(key)
		case bytes.Compare(last, key) >= 0:
			return false
		}
		key, last = last, key
	}
	b.last = last
	return true
}

func (b *Block) copyColumns(c *Columns) {
	b.cols = row.NewColumns(b.table.schema, nil)
	b.cols.AppendRange(c, 0, c.N)
	b.memBytes = c.N * (len(b.first) + blockRowOverhead)
	for i := range b.cols.Cols {
		b.memBytes += len(b.cols.Cols[i].Fixed) + len(b.cols.Cols[i].Data)
	}
}

// encode fills the block with a batch of rows.
func (b *Block) encode(c *Columns) error {
	return b.fill(c.N, func(i int, key, rec []byte) ([]byte, []byte) {
		return c.AppendKey(key, b.table.schema.PrimaryKey, i), c.AppendRecord(rec, b.table.layout, i)
	}, base.OpPut)
}

// fill encodes n rows.
func (b *Block) fill(n int, encode func(i int, key, rec []byte) (k, r []byte), op base.Op) error {
	rows, err := b.spare.get()
	if err != nil {
		return err
	}
	b.rows, b.cols, b.ascending, b.memBytes = rows, nil, false, 0
	var key, rec []byte
	for i := range n {
		key, rec = encode(i, key[:0], rec[:0])
		if i == 0 {
			// Most batches have rows of about one size.
			if err := rows.Reserve(n, memtable.RowBytes(len(key), len(rec)+len(rec)/16)); err != nil {
				b.Free()
				return err
			}
		}
		if err := b.add(op, key, rec); err != nil {
			b.Free()
			return err
		}
	}
	return nil
}

// newRowBlock makes a block for single rows.
func newRowBlock(w *Write) (*Block, error) {
	rows, err := w.spare.get()
	if err != nil {
		return nil, err
	}
	return &Block{table: w.table, spare: &w.spare, rows: rows, ascending: true}, nil
}

// addRow adds a row to a block for single rows.
func (b *Block) addRow(op base.Op, key, rec []byte) error {
	if err := b.add(op, key, rec); err != nil {
		return err
	}
	if b.n++; b.n == 1 {
		b.first = bytes.Clone(key)
	}
	if b.ascending = b.ascending && op == base.OpPut && b.rows.Ascending(); b.ascending {
		b.last = append(b.last[:0], key...)
	}
	return nil
}

// add adds a row to a block that holds a row buffer.
func (b *Block) add(op base.Op, key, rec []byte) error {
	if err := b.rows.Add(key, op, rec); err != nil {
		return err
	}
	b.memBytes += memtable.EntryBytes(len(key), len(rec))
	return nil
}

// Rows returns how many rows the block has.
func (b *Block) Rows() int { return b.n }

// Bytes returns about how much memory the block takes.
func (b *Block) Bytes() int { return b.memBytes }

// Free drops the rows of a block that was not appended. A second call, or one after Append, does nothing.
func (b *Block) Free() {
	if b.rows != nil {
		b.spare.put(b.rows)
	}
	b.rows, b.cols, b.n = nil, nil, 0
}

// spareBuffers keeps a few row buffers of blocks for the next ones: memory that is fresh from the system costs more than
// filling it.
type spareBuffers struct {
	mu     sync.Mutex
	free   []*memtable.RowBuffer
	closed bool
}

const (
	maxSpareBuffers = 4
	// maxSpareBytes is the largest buffer that is kept.
	maxSpareBytes = 8 << 20
)

func (s *spareBuffers) get() (*memtable.RowBuffer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b, nil
	}
	return memtable.NewRowBuffer(maxBlockBuffer)
}

func (s *spareBuffers) put(b *memtable.RowBuffer) {
	small := b.Bytes() <= maxSpareBytes
	b.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !small || len(s.free) == maxSpareBuffers {
		b.Close()
		return
	}
	s.free = append(s.free, b)
}

func (s *spareBuffers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, b := range s.free {
		b.Close()
	}
	s.free = nil
}

// each calls fn with every row in the order in which they came. The slices are valid during the call, and as long as the
// block if it holds a row buffer.
func (b *Block) each(fn func(key []byte, op base.Op, rec []byte) error) error {
	if b.cols == nil {
		if b.rows == nil {
			return nil
		}
		return b.rows.Each(fn)
	}
	var key, rec []byte
	for i := range b.cols.N {
		key = b.cols.AppendKey(key[:0], b.table.schema.PrimaryKey, i)
		rec = b.cols.AppendRecord(rec[:0], b.table.layout, i)
		if err := fn(key, base.OpPut, rec); err != nil {
			return err
		}
	}
	return nil
}

// toRows makes a block of columns one of encoded rows.
func (b *Block) toRows() error {
	if b.cols == nil {
		return nil
	}
	return b.encode(b.cols)
}
