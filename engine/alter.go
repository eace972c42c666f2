package engine

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// A change of the schema rewrites no rows. Files are read by field id with whatever schema a reader has: columns that
// they are too old for as their initial default, columns that were dropped not at all, narrower types widened. Memtables
// and logs hold rows of one schema only, the newest, so memory is flushed before. The change itself is one manifest with the
// next schema: before it everybody sees the old schema, behind it the new one, and a crash leaves one of the two.
//
// The pointer to the table is the identity of a schema: a write that was begun with the old one fails with CodeConflict
// when it commits, for its rows are of another form, and compactions of it start over. Snapshots keep theirs, and so does
// every manifest, for time travel.

// Alter changes the schema of the table, all of it or, after an error, nothing. It needs no rewrite of rows; where they have
// to be looked at (SetNotNull, DATE to TIMESTAMP) most of that is done before writers are kept out. Durable when it
// returns. Errors: CodeNotFound for a column or table that there is not, CodeAlreadyExists for a name that is taken,
// CodeSchemaMismatch where rows do not fit the new schema, CodeUnsupported for a change that would take a rewrite,
// CodeInvalidArgument for others that cannot be.
func (db *DB) Alter(ops ...Alteration) error {
	if err := db.writable(); err != nil {
		return err
	}
	return db.c.alter(ops)
}

func (c *core) alter(ops []Alteration) error {
	checked := fittingFiles{}
	if done, err := c.prepareAlter(ops, checked); done || err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := c.writable(); err != nil {
		return err
	}
	if c.table == nil {
		return base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	next, err := alterSchema(c.table.schema, ops)
	if err != nil || next == c.table.schema {
		return err
	}
	if err := c.mayBeNamed(next.TableName); err != nil {
		return err
	}
	t, err := newTable(next)
	if err != nil {
		return err
	}
	if err := c.retireActive(); err != nil {
		return err
	}
	if err := c.waitFlushed(nil); err != nil {
		return err
	}
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	s := c.current()
	err = s.fitsRows(next, checked)
	s.unref()
	if err != nil {
		return err
	}
	m := c.nextManifest("alter")
	m.Schema = next
	return c.commitTable(m, t)
}

// prepareAlter does, without keeping writers out, what can fail and most of what takes long. done says that there is nothing
// to change.
func (c *core) prepareAlter(ops []Alteration, checked fittingFiles) (done bool, err error) {
	if err := c.flushAll(); err != nil {
		return false, err
	}
	s := c.current()
	defer s.unref()
	if s.table == nil {
		return false, base.Errorf(base.CodeNotFound, "no table in %s", c.dir)
	}
	next, err := alterSchema(s.table.schema, ops)
	if err != nil || next == s.table.schema {
		return true, err
	}
	return false, s.fitsRows(next, checked)
}

// fittingFiles are files of which every live row was found to fit a schema. They stay so, for files do not change and rows
// do not come back to life.
type fittingFiles map[*dataFile]bool

// rowCheck is what a new schema asks of the values of a column of the old one.
type rowCheck struct {
	column int // of the old schema
	values int
}

const (
	notNull       = iota
	timestampDays // days that are a TIMESTAMP, also of rows that are deleted: DuckDB converts those before it drops them
)

// fitsRows reports, as an error that names the column, whether the rows in files, all that there are, fit a new schema of
// the table. Files in checked are known to, and what is found is added.
func (s *readState) fitsRows(next *base.Schema, checked fittingFiles) error {
	checks, err := rowChecks(s.table.schema, next, len(s.files) > 0)
	if err != nil || len(checks) == 0 {
		return err
	}
	for _, f := range s.files {
		if checked[f.dataFile] {
			continue
		}
		if err := f.checkAll(s.table.schema, checks, func() (*roaring.Bitmap, error) { return f.deleted(s.core.dir) }); err != nil {
			return err
		}
		checked[f.dataFile] = true
	}
	return nil
}

// rowChecks returns what is to be asked of the rows; rows says that there may be some.
func rowChecks(old, next *base.Schema, rows bool) (checks []rowCheck, err error) {
	for i := range next.Columns {
		c := &next.Columns[i]
		at := old.IndexOfField(c.FieldID)
		if at < 0 {
			if !c.Nullable && c.InitialDefault == nil && rows {
				return nil, base.Errorf(base.CodeSchemaMismatch, "column %q is NOT NULL and has no default for the rows that table %q holds",
					c.Name, next.TableName)
			}
			continue
		}
		was := &old.Columns[at]
		if was.Nullable && !c.Nullable {
			checks = append(checks, rowCheck{column: at, values: notNull})
		}
		if was.Type.Kind == KindDate && c.Type.Kind == KindTimestamp {
			checks = append(checks, rowCheck{column: at, values: timestampDays})
		}
	}
	return checks, nil
}

func (f *liveFile) checkAll(schema *base.Schema, checks []rowCheck, skip func() (*roaring.Bitmap, error)) error {
	for _, check := range checks {
		if err := f.check(schema, check, skip); err != nil {
			return err
		}
	}
	return nil
}

// check looks at the values of a column in the file, which it reads with a schema; skip returns the rows that do not count.
func (f *liveFile) check(schema *base.Schema, check rowCheck, skip func() (*roaring.Bitmap, error)) error {
	r, err := f.open(schema)
	if err != nil {
		return err
	}
	o := sst.IterOptions{Projection: []int{check.column}}
	if check.values == notNull {
		if !r.MayHoldNull(check.column) {
			return nil
		}
		if o.Skip, err = skip(); err != nil {
			return err
		}
	}
	it := r.NewIter(o)
	defer it.Close()
	for {
		cols, _, err := it.Next()
		if err != nil || cols == nil {
			return err
		}
		col := &cols.Cols[0]
		if check.values == notNull && slices.Contains(col.Nulls, true) {
			return holdsNull(schema, check.column)
		}
		if check.values == timestampDays && !daysFit(col, cols.N) {
			return noTimestamp(&schema.Columns[check.column])
		}
	}
}

func holdsNull(s *base.Schema, column int) error {
	return base.Errorf(base.CodeSchemaMismatch, "NOT NULL constraint failed: column %q of table %q holds NULL", s.Columns[column].Name,
		s.TableName)
}

func noTimestamp(c *base.Column) error {
	return base.Errorf(base.CodeSchemaMismatch, "column %q holds a DATE that is out of the range of TIMESTAMP", c.Name)
}

func daysFit(col *row.Column, n int) bool {
	for i := range n {
		if !col.IsNull(i) && !dayFits(col.Storage(i)) {
			return false
		}
	}
	return true
}

// dayFits reports whether a DATE is a TIMESTAMP. Its infinities are.
func dayFits(storage []byte) bool {
	day := int32(binary.LittleEndian.Uint32(storage))
	return day >= base.MinTimestampDay && day <= base.MaxTimestampDay || day == math.MaxInt32 || day == -math.MaxInt32
}
