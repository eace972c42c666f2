package wal

import (
	"io"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Position is how far [ReplayFrom] has read a log. The zero value is the log's beginning.
type Position struct {
	Offset int64 // in the file
	// lastAt is where the record before Offset begins, 0 where there is none, and last its header, which has the checksum.
	lastAt int64
	last   [FrameOverhead]byte
}

// ReplayFrom is for those who follow a log that another process writes: it reads on where the last call stopped, the zero
// Position being the beginning, and returns where it stopped itself: before the first record that is not, or not yet,
// whole.
//
// It fails with CodeConflict where the log does not go on there: the writer may have taken unsynced records back (see
// Writer.Rewind), so the caller must forget what it read of this log and begin again. Damage is CodeCorruption,
// as in Replay, but a gap that reads as zeros is only looked at for a short way: the writer preallocates, and its own
// Replay looks through everything.
func ReplayFrom(fs vfs.FS, path string, num uint64, from Position, fn func(offset int64, payload []byte) error) (next Position, err error) {
	if from.Offset < 0 {
		return Position{}, base.Errorf(base.CodeInvalidArgument, "%s: replay from offset %d", path, from.Offset)
	}
	r, err := openReader(fs, path, num)
	if err != nil {
		return from, err
	}
	defer r.close()
	conflict := base.Errorf(base.CodeConflict, "%s: the log does not go on at offset %d: it was cut back, or is damaged", path, from.Offset)
	if same, err := r.follows(from); err != nil || !same {
		if err == nil {
			err = conflict
		}
		return from, err
	}
	refused := false
	end, err := r.replay(from.Offset, func(offset int64, payload []byte) error {
		err := fn(offset, payload)
		refused = err != nil
		return err
	})
	next = Position{Offset: end, lastAt: r.lastAt, last: r.last}
	if refused || err == nil && end >= r.size {
		return next, err
	}
	if err == nil {
		err = r.judgeTail(end)
	}
	switch {
	case r.cut && base.CodeOf(err) == base.CodeIO:
		return next, nil // the writer closed the log, giving back what it had preallocated; the rest comes with the next call
	case base.CodeOf(err) == base.CodeCorruption && end == from.Offset && end > 0:
		return next, conflict
	}
	return next, err
}

// follows reports whether the log still has the record that ended at a position: the writer may have taken it back and
// put others in its place, even of the same length.
func (r *reader) follows(from Position) (bool, error) {
	r.lastAt, r.last = from.lastAt, from.last
	if from.lastAt == 0 || r.size < from.Offset {
		return r.size >= from.Offset, nil
	}
	var now [FrameOverhead]byte
	n, err := r.f.ReadAt(now[:], from.lastAt)
	if err == io.EOF {
		err = nil
	}
	return n == len(now) && now == from.last, err
}

// judgeTail is judge for a log that may be written to at this moment.
func (r *reader) judgeTail(bad int64) error {
	head, err := r.window(bad, int(min(tailGap, r.size-bad)))
	if err != nil || allZero(head) {
		return err
	}
	damage := r.judge(bad)
	if base.CodeOf(damage) != base.CodeCorruption {
		return damage
	}
	// A later record may be found because both were written while this looked. Then the earlier one is whole now.
	r.discard()
	if whole, err := r.wholeAt(bad); err != nil || whole {
		return err
	}
	return damage
}

// tailGap is how far ReplayFrom looks into zeros, in bytes.
const tailGap = 64 << 10
