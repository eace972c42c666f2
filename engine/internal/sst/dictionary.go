package sst

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// sampleRows is how many rows, spread over the first row group, decide whether a column gets a dictionary.
const sampleRows = 2048

// wantsDictionary says whether the values of a column repeat so much that a dictionary makes the file smaller and the
// scan faster. With many distinct values it costs more than the values themselves, in size and in time.
func wantsDictionary(t *colType, col *row.Column, n int) bool {
	switch t.typ.Kind {
	case base.KindBoolean:
		return false
	case base.KindEnum:
		return true
	}
	seen := make(map[string]struct{}, sampleRows)
	step := max(1, n/sampleRows)
	sampled, bytes := 0, 0
	for i := 0; i < n; i += step {
		if col.IsNull(i) {
			continue
		}
		v := col.Storage(i)
		sampled++
		if _, dup := seen[string(v)]; dup {
			continue
		}
		if bytes += len(v); bytes > maxDictionaryBytes/2 {
			return false
		}
		seen[string(v)] = struct{}{}
	}
	return sampled == 0 || len(seen) <= max(1, sampled/3)
}
