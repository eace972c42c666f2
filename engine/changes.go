package engine

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/spill"
)

// The change feed: what happened to the rows of a table from one sequence number to another, in the order in which it
// happened. The versions of rows that files and memory hold (changes_plan.go) are sorted by key; of each key those that
// follow each other, the first of them after the one in the base, are a change; the changes are sorted by sequence
// number. Both sorts work in constant memory.

// ChangesOptions say which changes a feed has.
type ChangesOptions struct {
	// Since is the sequence number before the first change; Until that of the last one, 0 for what is visible now.
	Since, Until uint64
	// Interrupt, if not nil, is asked now and then; true ends the call with CodeCancelled.
	Interrupt func() bool
	// Progress, if not nil, is told during the call how much is done, from 0 to 1.
	Progress func(done float64)
	// BatchRows is how many changes a batch has at most; the default is 2048.
	BatchRows int
}

// ChangeOp is what a change did to its row.
type ChangeOp uint8

// What a change can be.
const (
	ChangeInsert ChangeOp = iota
	ChangeUpdate
	ChangeDelete
)

func (o ChangeOp) String() string { return [...]string{"insert", "update", "delete"}[o] }

// ChangeBatch is a batch of changes, in order. Columns are those of the table; all values are NULL in the image that a
// change has not got: Before of an insert, After of a delete. Before of a delete is NULL too where nobody knows the row
// any more.
type ChangeBatch struct {
	N    int
	Seqs []uint64
	Ops  []ChangeOp
	// Keys has the columns of [KeySchema], Before and After those of [ImageSchema].
	Keys, Before, After *Columns
}

// ImageSchema returns the table's columns as the images of changes have them: they may be NULL.
func ImageSchema(s *Schema) *Schema {
	images := s.Clone()
	images.PrimaryKey = nil
	for i := range images.Columns {
		images.Columns[i].Nullable = true
	}
	return images
}

// Changes is a feed. It is for one goroutine at a time; close it.
type Changes struct {
	plan    *changePlan
	dir     *temporaryDirectory
	o       ChangesOptions
	images  *Schema
	layout  *row.Layout // of images: records are the same, and every value may be NULL
	nothing []byte      // the record that is NULL everywhere
	keys    *row.Layout
	events  *rowSorter
	count   uint64
	walk    spill.Source
	batch   ChangeBatch
}

// Changes returns the changes of the table in the order of their sequence numbers: each Since < seq ≤ Until of which there
// is a trace. Versions of a row that a flush has merged are folded into the one after them; what a change was before is
// the newest version before it that is known. CodeInvalidArgument where the changes since then are not kept any more, with
// the oldest since that is possible. The call itself gathers and sorts.
func (db *DB) Changes(o ChangesOptions) (*Changes, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.c.changes(o)
}

func (c *core) changes(o ChangesOptions) (_ *Changes, err error) {
	if o.Until != 0 && o.Until < o.Since {
		return nil, base.Errorf(base.CodeInvalidArgument, "changes until %d since %d: until comes before since", o.Until, o.Since)
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 2048
	}
	plan, err := c.planChanges(o.Since, o.Until)
	if err != nil {
		return nil, err
	}
	f := &Changes{plan: plan, o: o, dir: &temporaryDirectory{c: c}}
	done := false
	defer func() {
		if !done {
			f.Close()
		}
	}()
	schema := plan.table.schema
	f.images = ImageSchema(schema)
	f.layout, f.keys = row.NewLayout(f.images), row.NewLayout(plan.table.keySchema)
	nulls := make([]Value, len(schema.Columns))
	for i := range nulls {
		nulls[i] = base.Null()
	}
	if f.nothing, err = f.layout.Append(nil, nulls); err != nil {
		return nil, err
	}
	f.batch.Keys = row.NewColumns(plan.table.keySchema, nil)
	f.batch.Before, f.batch.After = row.NewColumns(f.images, nil), row.NewColumns(f.images, nil)
	if f.events, err = newRowSorter(c.temporaryFS(), f.dir.make); err != nil {
		return nil, err
	}
	g := newChangeGather(f, plan)
	if err := g.run(); err != nil {
		return nil, err
	}
	f.walk = f.events.sorted()
	f.walk.First()
	done = true
	return f, nil
}

// Schema returns the table's schema. Do not change it.
func (f *Changes) Schema() *Schema { return f.plan.table.schema }

// Until returns the sequence number up to which the feed is complete: the next Since.
func (f *Changes) Until() uint64 { return f.plan.until }

// Close ends the feed. A second call does nothing.
func (f *Changes) Close() {
	if f.plan == nil {
		return
	}
	if f.events != nil {
		f.events.close()
	}
	f.dir.remove()
	f.plan.close()
	f.plan = nil
}

// Detach ends the calls of Interrupt: whoever gave it may be gone when batches are asked for.
func (f *Changes) Detach() { f.o.Interrupt = nil }

func (f *Changes) interrupted() error {
	if f.o.Interrupt != nil && f.o.Interrupt() {
		return base.Errorf(base.CodeCancelled, "interrupted")
	}
	return nil
}

// Events. A change is three rows of the sorter, so that none is larger than a row of a table may be: its key, and its two
// images. Their keys are the sequence number, a number of their own that keeps changes of one sequence number in key
// order, and which of the three it is.
const (
	eventKey = iota
	eventBefore
	eventAfter
	eventKeyBytes = 17
)

// emit adds a change; before and after are nil where there is none.
func (f *Changes) emit(key []byte, seq base.Seq, op ChangeOp, before, after []byte) error {
	f.count++
	var k [eventKeyBytes]byte
	binary.BigEndian.PutUint64(k[:], seq)
	binary.BigEndian.PutUint64(k[8:], f.count)
	head := append([]byte{byte(op)}, key...)
	if err := f.events.add(k[:], head); err != nil {
		return err
	}
	for part, rec := range [][]byte{eventBefore: before, eventAfter: after} {
		if rec == nil {
			continue
		}
		k[eventKeyBytes-1] = byte(part)
		if err := f.events.add(k[:], rec); err != nil {
			return err
		}
	}
	return nil
}

// Next returns the next batch, nil at the end. It is valid until the next call; do not change it.
func (f *Changes) Next() (*ChangeBatch, error) {
	if f.plan == nil {
		return nil, base.Errorf(base.CodeClosed, "the feed is closed")
	}
	if err := f.interrupted(); err != nil {
		return nil, err
	}
	b := &f.batch
	b.N, b.Seqs, b.Ops = 0, b.Seqs[:0], b.Ops[:0]
	b.Keys.Reset()
	b.Before.Reset()
	b.After.Reset()
	var keys, before, after [][]byte
	size := 0
	for f.walk.Valid() && b.N < f.o.BatchRows && size < batchBytes {
		b.N++
		b.Seqs = append(b.Seqs, binary.BigEndian.Uint64(f.walk.Key()))
		b.Ops = append(b.Ops, ChangeOp(f.walk.Value()[0]))
		key, err := f.keyRecord(f.walk.Value()[1:])
		if err != nil {
			return nil, err
		}
		keys, before, after = append(keys, key), append(before, f.nothing), append(after, f.nothing)
		for f.walk.Next(); f.walk.Valid() && f.walk.Key()[eventKeyBytes-1] != eventKey; f.walk.Next() {
			images := before
			if f.walk.Key()[eventKeyBytes-1] == eventAfter {
				images = after
			}
			images[b.N-1] = f.walk.Value()
			size += len(f.walk.Value())
		}
	}
	if err := f.walk.Err(); err != nil {
		return nil, err
	}
	if b.N == 0 {
		return nil, nil
	}
	f.keys.AppendColumns(b.Keys, nil, keys)
	f.layout.AppendColumns(b.Before, nil, before)
	f.layout.AppendColumns(b.After, nil, after)
	return b, nil
}

// keyRecord turns an encoded key into a record of the key columns.
func (f *Changes) keyRecord(key []byte) ([]byte, error) {
	values, err := f.plan.table.codec.Decode(key)
	if err != nil {
		return nil, err
	}
	return f.keys.Append(nil, values)
}
