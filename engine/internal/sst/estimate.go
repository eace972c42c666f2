package sst

// sample is an estimate of how many bytes of a file one byte of rows takes, made from rows of the first row group.
type sample struct {
	rows  int // that it was made from; 0: there is none yet
	ratio float64
}

// A sample is made anew when there are so many times the rows that the last one was made from.
const resample = 4

// tailBytesPerRow is about what the key index, the page index and the footer take for a row.
const tailBytesPerRow = 0.5

// EstimatedBytes estimates how large the file would be if it was finished now, so that the caller can end it at a size
// of its choice. It is good to a tenth or so: before the first row group is encoded by sampling the rows, thereafter by
// what the row groups before took. It is cheap enough for every batch.
func (w *Writer) EstimatedBytes() int64 {
	if w.closed {
		return w.info.Size
	}
	s := &w.groups
	s.poll()
	gathered := s.open.bytes
	if s.busy != nil {
		gathered += s.busy.bytes
	}
	ratio := 1.0
	switch {
	case s.raw > 0:
		ratio = float64(s.file) / float64(s.raw)
	case s.busy != nil:
		ratio = s.sampled(s.busy)
	case s.open.rows > 0:
		ratio = s.sampled(s.open)
	}
	return s.file + int64(float64(gathered)*ratio+float64(w.info.Rows)*tailBytesPerRow)
}

// sampled returns the ratio for a row group that is not encoded yet. Another goroutine may be encoding it.
func (s *groups) sampled(g *group) float64 {
	if s.sample.rows > 0 && g.rows < resample*s.sample.rows {
		return s.sample.ratio
	}
	ratio, err := s.enc.storedRatio(g)
	if err != nil {
		return 1 // encoding the row group fails likewise, and says so
	}
	s.sample = sample{rows: g.rows, ratio: ratio}
	return ratio
}

// storedRatio plans the columns of a row group to see how many bytes of the file a byte of them takes.
func (w *encoder) storedRatio(g *group) (float64, error) {
	cols := g.builder.Columns()
	stored := 2 * g.rows // the hidden columns
	for i := range cols.Cols {
		p, err := planColumn(w.types[i], &cols.Cols[i], cols.N, w.isKey[i], w.o.codec())
		if err != nil {
			return 0, err
		}
		stored += p.stored
		if w.isKey[i] && w.types[i].bloom {
			stored += p.distinct * bloomBits / 8
		}
	}
	return float64(stored) / float64(max(g.bytes, 1)), nil
}
