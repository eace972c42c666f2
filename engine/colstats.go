package engine

import (
	"cmp"
	"math"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst"
)

// ColumnStats is what a snapshot's metadata says of a column. Query planners drop filters by it, so it is true of every
// row, or not there.
type ColumnStats struct {
	// HasBounds says that all values that are not NULL lie between Min and Max, both inclusive.
	HasBounds bool
	Min, Max  Value
	// HasNull says that there may be NULLs.
	HasNull bool
	// Distinct is about how many distinct values there are, within some percent where it is from sketches; 0: not known.
	Distinct int64
}

const (
	// maxStatsFiles is of how many files statistics are read for a planner.
	maxStatsFiles = 64
	// maxStatsRows is how many entries in memory are looked at for it.
	maxStatsRows = 2_048
)

// ColumnStats returns the statistics of a column.
func (s *Snapshot) ColumnStats(column int) (st ColumnStats, err error) {
	schema := s.Schema()
	if column < 0 || column >= len(schema.Columns) {
		return st, base.Errorf(base.CodeInvalidArgument, "column index %d of %d", column, len(schema.Columns))
	}
	if err := s.pin(); err != nil {
		return st, err
	}
	defer s.state.unref()
	col := &schema.Columns[column]
	b := sst.Bounds{HasNull: col.Nullable}
	switch {
	case !sst.Bounded(col.Type):
	case column == schema.PrimaryKey[0]:
		b, err = s.keyBounds()
	default:
		b, err = s.valueBounds(column)
	}
	st = columnStats(b, col)
	if err == nil {
		st.Distinct, err = s.distinct(column, st)
	}
	return st, err
}

// distinct estimates the number of distinct values from what is known without looking at them.
func (s *Snapshot) distinct(column int, st ColumnStats) (int64, error) {
	schema := s.Schema()
	rows := s.LiveRows()
	if len(schema.PrimaryKey) == 1 && column == schema.PrimaryKey[0] {
		return rows, nil
	}
	t := schema.Columns[column].Type
	switch t.Kind {
	case base.KindEnum:
		return min(rows, int64(len(t.Labels))), nil
	case base.KindBoolean:
		return min(rows, 2), nil
	}
	n, err := s.sketchedDistinct(column)
	n = min(n, rows)
	if err != nil || !st.HasBounds || t.Kind == base.KindFloat || t.Kind == base.KindDouble {
		return n, err
	}
	if span := st.Max.Lo - st.Min.Lo; span < math.MaxInt64-1 && int64(span)+1 < rows && (n == 0 || int64(span)+1 < n) {
		return int64(span) + 1, nil
	}
	return n, nil
}

// keyBounds returns the bounds of the first key column, which stand in the manifest and at the ends of the memtables.
func (s *Snapshot) keyBounds() (sst.Bounds, error) {
	schema := s.Schema()
	t := schema.Columns[schema.PrimaryKey[0]].Type
	all := sst.Bounds{Known: true, Empty: true}
	add := func(key []byte) error {
		vals, err := s.state.table.codec.Decode(key)
		if err == nil {
			all.Add(t, boundsOf(t, vals[0]))
		}
		return err
	}
	for _, f := range s.state.files {
		if err := add(f.meta.KeyMin); err != nil {
			return all, err
		}
		if err := add(f.meta.KeyMax); err != nil {
			return all, err
		}
	}
	if s.MemoryRows() > 0 {
		it := s.memIter()
		if it.First(); it.Valid() {
			if err := add(it.Key()); err != nil {
				return all, err
			}
		}
		if it.Last(); it.Valid() {
			if err := add(it.Key()); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func boundsOf(t Type, v Value) sst.Bounds {
	if v.Null {
		return sst.Bounds{Known: true, Empty: true, HasNull: true}
	}
	return sst.Bounds{Known: !sst.IsNaN(t, v), Min: v, Max: v}
}

// valueBounds returns the bounds of a column from the footers of files and the rows in memory, if these are few.
func (s *Snapshot) valueBounds(column int) (sst.Bounds, error) {
	unknown := sst.Bounds{HasNull: true}
	if len(s.state.files) > maxStatsFiles || s.MemoryRows() > maxStatsRows {
		return unknown, nil
	}
	t := s.Schema().Columns[column].Type
	all := sst.Bounds{Known: true, Empty: true}
	readers, err := s.openEach(s.state.files)
	if err != nil {
		return unknown, err
	}
	for _, r := range readers {
		all.Add(t, r.Bounds(column))
	}
	if s.MemoryRows() == 0 {
		return all, nil
	}
	it := s.memIter()
	for it.First(); it.Valid(); it.Next() {
		if it.Op() != base.OpDelete {
			all.Add(t, boundsOf(t, s.state.table.layout.Value(it.Value(), column)))
		}
	}
	return all, nil
}

// filesAtATime is how many files are opened beside each other for their statistics: in an object store each costs a round
// trip.
const filesAtATime = 16

// openEach opens files, several at a time.
func (s *Snapshot) openEach(files []*liveFile) ([]*sst.Reader, error) {
	readers := make([]*sst.Reader, len(files))
	errs := base.Each(len(files), filesAtATime, func(i int) (err error) {
		readers[i], err = files[i].open(s.state.table.schema)
		return err
	})
	return readers, cmp.Or(errs...)
}

// FileStats returns the statistics of a column in some data files, as places in [Snapshot.Files]: of all their rows, deleted
// ones included. Distinct is not known. A file is opened for it when it is first asked for, and its answer is kept.
func (s *Snapshot) FileStats(column int, files []int) ([]ColumnStats, error) {
	schema := s.Schema()
	if column < 0 || column >= len(schema.Columns) {
		return nil, base.Errorf(base.CodeInvalidArgument, "column index %d of %d", column, len(schema.Columns))
	}
	if err := s.pin(); err != nil {
		return nil, err
	}
	defer s.state.unref()
	asked := make([]*liveFile, len(files))
	for i, at := range files {
		if at < 0 || at >= len(s.state.files) {
			return nil, base.Errorf(base.CodeInvalidArgument, "file index %d of %d", at, len(s.state.files))
		}
		asked[i] = s.state.files[at]
	}
	col := &schema.Columns[column]
	out := make([]ColumnStats, len(files))
	if !sst.Bounded(col.Type) {
		for i := range out {
			out[i].HasNull = col.Nullable
		}
		return out, nil
	}
	readers, err := s.openEach(asked)
	if err != nil {
		return nil, err
	}
	for i, r := range readers {
		out[i] = columnStats(r.Bounds(column), col)
	}
	return out, nil
}

// columnStats are what bounds say of a column.
func columnStats(b sst.Bounds, col *base.Column) ColumnStats {
	return ColumnStats{HasBounds: b.Known && !b.Empty, Min: b.Min, Max: b.Max, HasNull: b.HasNull && col.Nullable}
}

// ExactBounds is [Snapshot.ColumnStats] with bounds that are values of rows, or none. The first key column has them: its
// first and last row are looked up. Others have them where no row was ever superseded or deleted.
func (s *Snapshot) ExactBounds(column int) (ColumnStats, error) {
	st, err := s.ColumnStats(column)
	if err != nil || !st.HasBounds {
		return st, err
	}
	schema := s.Schema()
	switch kind := schema.Columns[column].Type.Kind; {
	case kind == base.KindFloat || kind == base.KindDouble: // a bound of 0 may be one of −0
		st.HasBounds = false
	case column == schema.PrimaryKey[0]:
		if st.Min, st.HasBounds, err = s.endOfKeys(column, false); err == nil && st.HasBounds {
			st.Max, st.HasBounds, err = s.endOfKeys(column, true)
		}
	case s.MemoryRows() > 0 || s.deletedRows() > 0:
		st.HasBounds = false
	}
	return st, err
}

func (s *Snapshot) deletedRows() (n int64) {
	for _, f := range s.state.files {
		n += f.meta.Deleted
	}
	return n
}

// endOfKeys returns the first key column of the first row, or of the last one.
func (s *Snapshot) endOfKeys(column int, last bool) (v Value, found bool, err error) {
	it, err := s.Scan(ScanOptions{Projection: []int{column}, Limit: 1, Reverse: last})
	if err != nil {
		return v, false, err
	}
	defer it.Close()
	cols, err := it.Next()
	if err != nil || cols == nil {
		return v, false, err
	}
	return cols.Cols[0].Value(0), true, nil
}
