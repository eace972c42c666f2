package engine

import "github.com/merutable/merutable/engine/internal/base"

// nanTracker finds the FLOAT and DOUBLE columns that hold a NaN. Parquet's bounds leave NaN out, but it is greater than
// every number: a file that holds one has no bounds for the column, or readers would skip rows.
type nanTracker struct {
	t    *table
	mask []bool // by column
}

// newNaNTracker returns nil for a table without such columns.
func newNaNTracker(t *table) *nanTracker {
	for _, c := range t.schema.Columns {
		if c.Type.Kind == base.KindFloat || c.Type.Kind == base.KindDouble {
			return &nanTracker{t: t, mask: make([]bool, len(t.schema.Columns))}
		}
	}
	return nil
}

// see looks at one row.
func (n *nanTracker) see(rec []byte) { n.t.layout.MarkNaN(rec, n.mask) }

// columns returns the columns in which a NaN was seen.
func (n *nanTracker) columns() []int {
	var out []int
	for i, seen := range n.mask {
		if seen {
			out = append(out, i)
		}
	}
	return out
}
