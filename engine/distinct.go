package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/merutable/merutable/engine/internal/sst"
)

// maxSketchedFiles is of how many files, the largest ones, sketches are united for a planner.
const maxSketchedFiles = 64

// distinctCounts keeps what sketches say of columns while the files are the same ones: planners ask for each query.
type distinctCounts struct {
	mu      sync.Mutex
	byField map[int32]int64
}

// sketchedDistinct estimates how many distinct values the files have in a column by their sketches; 0 where too few of
// them have one. Deleted rows count, those in memory do not.
func (s *Snapshot) sketchedDistinct(column int) (int64, error) {
	field := s.Schema().Columns[column].FieldID
	d := &s.state.index.distinct
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.byField[field]; ok {
		return n, nil
	}
	n, err := s.uniteSketches(column)
	if err != nil {
		return 0, err
	}
	if d.byField == nil {
		d.byField = map[int32]int64{}
	}
	d.byField[field] = n
	return n, nil
}

func (s *Snapshot) uniteSketches(column int) (int64, error) {
	files := slices.Clone(s.state.files)
	slices.SortFunc(files, func(a, b *liveFile) int { return cmp.Compare(b.meta.Rows, a.meta.Rows) })
	readers, err := s.openEach(files[:min(len(files), maxSketchedFiles)])
	if err != nil {
		return 0, err
	}
	all := sst.NewSketch()
	var sketched, rows int64
	for i, f := range files {
		rows += f.meta.Rows
		if i >= len(readers) {
			continue
		}
		one, err := readers[i].Sketch(column)
		if err != nil {
			return 0, err
		}
		if one == nil {
			continue
		}
		if err := all.Merge(one); err != nil {
			return 0, err
		}
		sketched += f.meta.Rows
	}
	if sketched == 0 || sketched < rows/2 && len(files) <= maxSketchedFiles {
		return 0, nil
	}
	n := int64(all.Estimate())
	if n > sketched/2 { // most values are there once: other rows have others
		n = int64(float64(n) * float64(rows) / float64(sketched))
	}
	return max(n, 1), nil
}
