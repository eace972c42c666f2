package wal

import (
	"bytes"
	"hash/crc32"

	"github.com/merutable/merutable/engine/internal/base"
)

// judge decides what the bytes from bad on are, where no whole frame begins: nil for the torn tail of the last log,
// CodeCorruption for damage. The rules stand in the package comment.
func (r *reader) judge(bad int64) error {
	first := int64(-1) // where the first later frame begins
	s := search{r: r, budget: 4*(r.size-bad) + 64<<20}
	for pos := bad + 1; ; {
		offset, h, found, err := s.next(pos)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		if h.synced(offset) > bad {
			return base.Errorf(base.CodeCorruption, "%s: offset %d: damaged: a whole record follows at offset %d, written when this place was durable",
				r.path, bad, offset)
		}
		if first < 0 {
			first = offset
		}
		pos = offset + FrameOverhead + h.length
	}
	if first < 0 {
		return nil
	}
	torn, err := r.torn(bad, first)
	if err == nil && !torn {
		err = base.Errorf(base.CodeCorruption, "%s: offset %d: damaged: a whole record follows at offset %d", r.path, bad, first)
	}
	return err
}

// search finds whole frames anywhere. It takes time linear in the bytes it passes: a place is looked at only where the
// log number stands, its payload only where the header's check is right too, which does not happen by chance; and for
// logs made to deceive there is a budget.
type search struct {
	r *reader
	// budget is how many bytes may still be read to check sums.
	budget int64
}

// next returns the first whole frame that begins at pos or later.
func (s *search) next(pos int64) (offset int64, h frameHeader, found bool, err error) {
	r := s.r
	number := numberBytes(r.num)
	for r.size-pos >= FrameOverhead {
		window, err := r.ahead(pos, FrameOverhead)
		if err != nil {
			return 0, h, false, err
		}
		i := bytes.Index(window[8:], number)
		if i < 0 || i+FrameOverhead > len(window) {
			// No header begins here, but for one that the window cuts.
			pos += int64(len(window) - FrameOverhead + 1)
			continue
		}
		pos += int64(i)
		h, ok := parseFrameHeader(window[i:], r.num, pos, r.size-pos)
		if ok {
			if ok, err = s.sumIsRight(pos, h); err != nil {
				return 0, h, false, err
			}
		}
		if ok {
			return pos, h, true, nil
		}
		pos++
	}
	return 0, h, false, nil
}

// sumIsRight checks a frame's CRC without holding the frame in memory.
func (s *search) sumIsRight(offset int64, h frameHeader) (bool, error) {
	if s.budget -= h.length + readBytes; s.budget < 0 {
		return false, base.Errorf(base.CodeCorruption, "%s: offset %d: damaged: too many places look like records to tell where they go on",
			s.r.path, offset)
	}
	sum := uint32(0)
	pos, end := offset+4, offset+FrameOverhead+h.length
	for pos < end {
		window, err := s.r.ahead(pos, 1)
		if err != nil {
			return false, err
		}
		window = window[:min(int64(len(window)), end-pos)]
		sum = crc32.Update(sum, castagnoli, window)
		pos += int64(len(window))
	}
	return sum == h.crc, nil
}

// torn reports whether a crash may have lost what stood at bad while a frame at next, written later, came through: some
// sector between them has zeros from bad, or from its start, to its end. A disk writes whole sectors, with what the
// kernel had of them at some time, which ends between two writes of the writer.
func (r *reader) torn(bad, next int64) (bool, error) {
	for s := bad / sectorBytes * sectorBytes; s+sectorBytes <= next; s += sectorBytes {
		from := max(s, bad)
		window, err := r.window(from, int(s+sectorBytes-from))
		if err != nil {
			return false, err
		}
		if allZero(window) {
			return true, nil
		}
	}
	return false, nil
}
