package wal

import (
	"hash/crc32"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Replay reads log num from its beginning and calls fn with the file offset and the payload of each record, in order;
// the payload is valid until fn returns, and an error of fn ends the replay as it is. last says that no later log exists.
//
// It returns the length of the valid part: where the last whole record ends, 0 where not even the file header is whole.
// What follows in the last log was torn by a crash, or only preallocated, and is to be cut off before a later log is
// begun. In an earlier log nothing but zeros may follow, which were preallocated; records that became zeros are missed by
// the caller, whose sequence has a gap then. Damage (see the package) is CodeCorruption, naming file and offset; fn may have seen the records before it.
//
// Memory is bounded by the largest record that the file really holds.
func Replay(fs vfs.FS, path string, num uint64, last bool, fn func(offset int64, payload []byte) error) (valid int64, err error) {
	r, err := openReader(fs, path, num)
	if err != nil {
		return 0, err
	}
	defer r.close()
	valid, err = r.replay(0, fn)
	if err != nil || valid == r.size && (last || valid > 0) {
		return valid, err
	}
	if last {
		return valid, r.judge(valid)
	}
	zeros := false
	if valid > 0 {
		zeros, err = r.zerosFrom(valid)
	}
	if err == nil && !zeros {
		err = base.Errorf(base.CodeCorruption,
			"%s: offset %d: no whole record, and %d bytes are left: only the newest log may end so", path, valid, r.size-valid)
	}
	return valid, err
}

// zerosFrom reports whether the file has nothing but zeros from an offset on.
func (r *reader) zerosFrom(offset int64) (bool, error) {
	for offset < r.size {
		n := min(tailGap, r.size-offset)
		p, err := r.window(offset, int(n))
		if err != nil || !allZero(p) {
			return false, err
		}
		offset += n
	}
	return true, nil
}

// replay calls fn for the whole records from offset on and returns where they end.
func (r *reader) replay(offset int64, fn func(offset int64, payload []byte) error) (int64, error) {
	if offset == 0 {
		h, err := r.window(0, int(min(HeaderBytes, r.size)))
		if err != nil {
			return 0, err
		}
		whole, err := checkFileHeader(h, r.path, r.num)
		if err != nil || !whole {
			return 0, err
		}
		offset = HeaderBytes
	}
	for {
		payload, ok, err := r.frame(offset)
		if err != nil || !ok {
			return offset, err
		}
		if err := fn(offset, payload); err != nil {
			return offset, err
		}
		r.lastAt, r.last = offset, [FrameOverhead]byte(r.buf[offset-r.start:])
		offset += FrameOverhead + int64(len(payload))
	}
}

// frame returns the payload of the frame at offset, if there is a whole one.
func (r *reader) frame(offset int64) (payload []byte, ok bool, err error) {
	if r.size-offset < FrameOverhead {
		return nil, false, nil
	}
	head, err := r.window(offset, FrameOverhead)
	if err != nil {
		return nil, false, err
	}
	h, ok := parseFrameHeader(head, r.num, offset, r.size-offset)
	if !ok {
		return nil, false, nil
	}
	frame, err := r.window(offset, FrameOverhead+int(h.length))
	if err != nil {
		return nil, false, err
	}
	if crc32.Checksum(frame[4:], castagnoli) != h.crc {
		return nil, false, nil
	}
	return frame[FrameOverhead:], true, nil
}

// wholeAt reports whether there is a whole frame, or at 0 a whole file header, at offset.
func (r *reader) wholeAt(offset int64) (bool, error) {
	if offset > 0 {
		_, ok, err := r.frame(offset)
		return ok, err
	}
	h, err := r.window(0, int(min(HeaderBytes, r.size)))
	if err != nil {
		return false, err
	}
	return checkFileHeader(h, r.path, r.num)
}
