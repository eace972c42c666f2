package sst

import "bytes"

// EstimateRows returns how many rows lie between two encoded keys or prefixes of keys, lower included, upper not; nil for
// no bound. It counts whole blocks of the key index, so it is too large by two blocks at most, and never too small.
// Nothing is read.
func (r *Reader) EstimateRows(lower, upper []byte) int64 {
	first, last := r.KeyRange()
	if lower != nil && bytes.Compare(lower, last) > 0 || upper != nil && bytes.Compare(upper, first) <= 0 {
		return 0
	}
	from, to := 0, r.index.blocks()
	if lower != nil {
		from = max(0, r.index.find(lower))
	}
	if upper != nil && bytes.Compare(upper, last) <= 0 {
		to = r.index.find(upper) + 1
	}
	return r.index.rows[to] - r.index.rows[from]
}
