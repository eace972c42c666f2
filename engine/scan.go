package engine

import (
	"bytes"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/row"
)

// ScanOptions bound a scan. The zero value is the whole table with all columns, in key order.
type ScanOptions struct {
	// Lower and Upper are prefixes of the key's columns; empty is open. A prefix stands for all keys that start with it:
	// an inclusive Upper takes them all, an exclusive Lower skips them all.
	Lower, Upper                   []Value
	LowerExclusive, UpperExclusive bool
	// Reverse returns the rows in descending order of their keys; the bounds mean the same.
	Reverse bool
	// Projection has column indices, in the order wanted; nil means all columns.
	Projection []int
	// Limit is how many rows to return at most; 0 means all.
	Limit int64
	// BatchRows is how many rows a batch has at most; the default is 8192.
	BatchRows int
}

// keyRange is a half-open range of encoded keys; nil is an open end.
type keyRange struct{ lower, upper []byte }

func (t *table) keyRange(o ScanOptions) (r keyRange, err error) {
	if len(o.Lower) > 0 {
		if r.lower, err = t.keyPrefix(o.Lower); err != nil {
			return r, err
		}
		if o.LowerExclusive {
			r.lower = prefixEnd(r.lower)
		}
	}
	if len(o.Upper) > 0 {
		if r.upper, err = t.keyPrefix(o.Upper); err != nil {
			return r, err
		}
		if !o.UpperExclusive {
			r.upper = prefixEnd(r.upper)
		}
	}
	return r, nil
}

// keyPrefix encodes the first columns of a key.
func (t *table) keyPrefix(vals []Value) ([]byte, error) {
	if len(vals) > len(t.schema.PrimaryKey) {
		return nil, base.Errorf(base.CodeInvalidArgument, "a bound has %d values, the primary key of table %q only %d columns",
			len(vals), t.schema.TableName, len(t.schema.PrimaryKey))
	}
	if len(vals) == len(t.schema.PrimaryKey) {
		return t.codec.Append(nil, vals)
	}
	var out []byte
	for i, v := range vals {
		c := t.schema.Columns[t.schema.PrimaryKey[i]]
		if v.Null {
			return nil, base.Errorf(base.CodeInvalidArgument, "a bound is NULL in key column %q", c.Name)
		}
		out = keyenc.AppendValue(out, c.Type, v)
	}
	return out, nil
}

// prefixEnd returns the smallest byte string greater than all that start with p, nil where there is none. Encoded key
// columns are self-delimiting, so byte prefixes are column prefixes.
func prefixEnd(p []byte) []byte {
	end := bytes.Clone(p)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

func (r keyRange) empty() bool {
	return r.upper != nil && r.lower != nil && bytes.Compare(r.lower, r.upper) >= 0
}

// overlaps reports whether keys from lo to hi, both inclusive, meet the range.
func (r keyRange) overlaps(lo, hi []byte) bool {
	return (r.upper == nil || bytes.Compare(lo, r.upper) < 0) && (r.lower == nil || bytes.Compare(hi, r.lower) >= 0)
}

const (
	overlayBatchRows = 16_384
	scanBatchRows    = 8_192
	// batchBytes ends a batch before it has all its rows: batches of large rows would outgrow memory, and the 2 GiB that
	// a column of an Arrow array can hold. It may be passed by one run of rows.
	batchBytes = 32 << 20
)

// Overlay returns the live rows that are only in memory.
func (s *Snapshot) Overlay(projection []int) *RowIter {
	it, err := s.OverlayRange(ScanOptions{Projection: projection})
	if err != nil {
		return &RowIter{err: err}
	}
	return it
}

// OverlayRange returns the live rows of a key range that are only in memory.
func (s *Snapshot) OverlayRange(o ScanOptions) (*RowIter, error) {
	it, r, err := s.newRowIter(o, overlayBatchRows)
	if err == nil && !r.empty() {
		it.addMemory(s, r)
	}
	return it, err
}

// Scan returns the rows of a key range. It reads nothing before the first Next, and opens a file when its turn comes.
func (s *Snapshot) Scan(o ScanOptions) (*RowIter, error) {
	it, r, err := s.newRowIter(o, scanBatchRows)
	if err != nil {
		return nil, err
	}
	s.state.core.reads.scans.Add(1)
	if r.empty() {
		return it, nil
	}
	it.addMemory(s, r)
	it.addFiles(r, false)
	return it, nil
}

// newRowIter makes an iterator without sources.
func (s *Snapshot) newRowIter(o ScanOptions, batchRows int) (*RowIter, keyRange, error) {
	schema := s.Schema()
	for _, c := range o.Projection {
		if c < 0 || c >= len(schema.Columns) {
			return nil, keyRange{}, base.Errorf(base.CodeInvalidArgument, "column index %d of %d", c, len(schema.Columns))
		}
	}
	if o.Limit < 0 {
		return nil, keyRange{}, base.Errorf(base.CodeInvalidArgument, "limit %d is negative", o.Limit)
	}
	r, err := s.state.table.keyRange(o)
	if err != nil {
		return nil, r, err
	}
	if err := s.pin(); err != nil {
		return nil, r, err
	}
	if o.BatchRows > 0 {
		batchRows = o.BatchRows
	}
	batchRows = min(batchRows, row.ArrowRows(schema, o.Projection))
	return newRowIter(s.state, o, batchRows), r, nil
}
