package engine

import (
	"bytes"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// An overlay of many rows is read in pieces, by several threads at a time: ranges of keys of about as many rows each,
// found by looking at some keys of the memtables.
const (
	pieceRows    = overlayBatchRows
	pieceSamples = 16 // keys looked at for each piece
	// MaxPieces is how many pieces an overlay has at most.
	MaxPieces = 256
)

// OverlayPieces returns in how many pieces the rows in memory may be read, side by side; 0 where there are none.
func (s *Snapshot) OverlayPieces() int { return len(s.pieceRanges()) }

// OverlayPiece returns the rows of one piece: all of them have each row of [Snapshot.Overlay] once, in its order.
func (s *Snapshot) OverlayPiece(i int, projection []int) (*RowIter, error) {
	pieces := s.pieceRanges()
	if i < 0 || i >= len(pieces) {
		return nil, base.Errorf(base.CodeInvalidArgument, "piece %d of %d", i, len(pieces))
	}
	it, err := s.newPieceIter(projection)
	if err == nil {
		it.addMemory(s, pieces[i])
	}
	return it, err
}

// SeqColumn is what stands for the sequence number in a projection of [Snapshot.OverlayPiece], and NumberColumn for a
// number that no other row in memory has in the same state of the table. They only stand behind the table's own columns.
func SeqColumn(s *Schema) int { return len(s.Columns) }

// NumberColumn: see [SeqColumn].
func NumberColumn(s *Schema) int { return len(s.Columns) + 1 }

// WithHiddenColumns returns the schema with the columns that [SeqColumn] and [NumberColumn] stand for. A row that is not
// committed yet has no sequence number, which is NULL.
func WithHiddenColumns(s *Schema) *Schema {
	out := *s
	bigint := Type{Kind: KindBigInt}
	out.Columns = append(slices.Clone(s.Columns), Column{Name: base.SeqColumn, Type: bigint, Nullable: true, FieldID: base.SeqFieldID},
		Column{Name: "number", Type: bigint, Nullable: true, FieldID: -1})
	return &out
}

// newPieceIter makes an iterator without sources, with hidden columns where they are asked for.
func (s *Snapshot) newPieceIter(projection []int) (*RowIter, error) {
	schema := s.Schema()
	n := len(projection)
	for n > 0 && projection[n-1] >= SeqColumn(schema) && projection[n-1] <= NumberColumn(schema) {
		n--
	}
	it, _, err := s.newRowIter(ScanOptions{Projection: projection[:n:n]}, overlayBatchRows)
	if err == nil && n < len(projection) {
		it.hidden = projection[n:]
		it.out = row.NewColumns(WithHiddenColumns(schema), projection)
	}
	return it, err
}

func (s *Snapshot) pieceRanges() []keyRange {
	s.cut.Do(func() {
		if s.MemoryRows() > 0 {
			s.pieces = cutAt(keyRange{}, s.cuts())
		}
	})
	return s.pieces
}

// cuts returns the keys between pieces, ascending.
func (s *Snapshot) cuts() [][]byte {
	rows := s.MemoryRows()
	n := min((rows+pieceRows-1)/pieceRows, MaxPieces)
	if n < 2 {
		return nil
	}
	step := max(rows/(n*pieceSamples), 1)
	sample := make([][]byte, 0, rows/step+len(s.visible))
	for i, e := range s.state.mems {
		for at := 0; at < s.visible[i]; at += step {
			e.mt.Arrivals(at, at+1, func(key []byte, _ base.Seq, _ base.Op) { sample = append(sample, key) })
		}
	}
	slices.SortFunc(sample, bytes.Compare)
	cuts := make([][]byte, 0, n)
	for i := 1; i < n; i++ {
		cuts = append(cuts, sample[i*len(sample)/n])
	}
	return slices.CompactFunc(cuts, bytes.Equal)
}

// cutAt cuts a range at the keys that lie in it.
func cutAt(r keyRange, cuts [][]byte) (out []keyRange) {
	for _, c := range cuts {
		if bytes.Compare(c, r.lower) > 0 && (r.upper == nil || bytes.Compare(c, r.upper) < 0) {
			out = append(out, keyRange{r.lower, c})
			r.lower = c
		}
	}
	return append(out, r)
}

// OverlayPieces is [Snapshot.OverlayPieces] for the part's overlay.
func (p *Part) OverlayPieces() int {
	if p.memory == 0 {
		return 0
	}
	return max(len(p.pieceRanges()), 1)
}

// OverlayPiece is [Snapshot.OverlayPiece] for the part's overlay.
func (p *Part) OverlayPiece(i int, projection []int) (*RowIter, error) {
	if n := p.OverlayPieces(); i < 0 || i >= n {
		return nil, base.Errorf(base.CodeInvalidArgument, "piece %d of %d", i, n)
	}
	ranges := p.ranges
	if pieces := p.pieceRanges(); pieces != nil {
		ranges = pieces[i : i+1]
	}
	it := p.overlay(projection, ranges)
	return it, it.err
}

// pieceRanges returns the pieces of a large overlay of one range, else nil: it is one piece.
func (p *Part) pieceRanges() []keyRange {
	p.cut.Do(func() {
		if !p.direct && len(p.ranges) == 1 && p.memory > pieceRows {
			p.pieces = cutAt(p.ranges[0], p.s.cuts())
		}
	})
	return p.pieces
}

// FileMeets reports whether the keys of a file, an index into [Snapshot.Files], meet a range. Only the bounds of o and
// how they include count.
func (s *Snapshot) FileMeets(i int, o ScanOptions) (bool, error) {
	if i < 0 || i >= len(s.state.files) {
		return false, base.Errorf(base.CodeInvalidArgument, "file %d of %d", i, len(s.state.files))
	}
	r, err := s.state.table.keyRange(o)
	if err != nil {
		return false, err
	}
	meta := s.state.files[i].meta
	return !r.empty() && r.overlaps(meta.KeyMin, meta.KeyMax), nil
}
