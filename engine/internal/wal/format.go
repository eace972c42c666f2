// Package wal frames the write-ahead log: one file of records that are appended, synced and, after a crash, replayed.
//
// # Layout
//
//	file header, 20 bytes             frame header, 20 bytes, then the payload
//	 0  "MRUW"                         0  u32 CRC-32C of the frame from offset 4 to its end
//	 4  u8  format, 1                  4  u32 payload length
//	 5  3 zero bytes                   8  u32 log number, low bits
//	 8  u64 log number                12  u32 unsynced: how many bytes before this frame were not known to be
//	16  u32 CRC-32C of bytes 0..16            durable when it was written; 2^32-1 stands for any more
//	                                  16  u32 check: CRC-32C of bytes 4..16, mixed with the frame's file offset
//
// All integers are little-endian. Frames follow each other without gaps; behind the last one there may be zeros, which
// were preallocated. The log number and the offset in the check keep frames of other logs, or copies of frames inside
// payloads, from passing.
//
// # Torn or damaged
//
// A log ends at the first frame that is not whole. In the newest log that may be the trace of a crash, and the tail is
// to be cut off; or the file was damaged, and cutting would lose records that were promised. So the rest of the file is
// searched, at every byte offset, for later whole frames:
//
//   - There is none: the tail was torn (or the last record was damaged, which looks the same).
//   - One of them says that the bad place was durable before it was written: damage.
//   - All of them were written before the bad place was durable. The kernel may write pages in any order, so a crash may
//     leave a later frame without an earlier one. Then the earlier one lacks at least one disk sector, which reads as
//     zeros, as log files are never recycled: torn. Otherwise: damage.
//
// Nothing acknowledged as durable is ever cut silently, except the very last record. Older logs were completed and
// synced before the next one was begun, so there nothing but preallocated zeros may follow the last whole frame; the
// sequence numbers of what the records hold tell the engine where one became zeros.
package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
)

const (
	// HeaderBytes is the size of the file header.
	HeaderBytes = 20
	// FrameOverhead is what a frame takes besides its payload, in bytes.
	FrameOverhead = 20

	magic         = "MRUW"
	formatVersion = 1
	suffix        = ".wal"
	// sectorBytes is what a disk writes all or nothing.
	sectorBytes = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Name returns the file name of a log: the number with at least six digits, and ".wal".
func Name(num uint64) string {
	digits := strconv.FormatUint(num, 10)
	if len(digits) < 6 {
		digits = "000000"[len(digits):] + digits
	}
	return digits + suffix
}

// ParseName is the inverse of [Name].
func ParseName(name string) (num uint64, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && Name(n) == name
}

func appendFileHeader(dst []byte, num uint64) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, formatVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, num)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// checkFileHeader returns whether h is a whole file header, and an error where it is one of another kind of log.
func checkFileHeader(h []byte, path string, num uint64) (whole bool, err error) {
	if len(h) < HeaderBytes || binary.LittleEndian.Uint32(h[16:]) != crc32.Checksum(h[:16], castagnoli) {
		return false, nil
	}
	if string(h[:4]) != magic {
		return false, base.Errorf(base.CodeCorruption, "%s: offset 0: not a log: it starts with %q, not %q", path, h[:4], magic)
	}
	if h[4] != formatVersion {
		return false, base.Errorf(base.CodeUnsupported, "%s: log format %d: this version reads format %d", path, h[4], formatVersion)
	}
	if n := binary.LittleEndian.Uint64(h[8:]); n != num {
		return false, base.Errorf(base.CodeCorruption, "%s: offset 8: this is log %d, not log %d", path, n, num)
	}
	return true, nil
}

// frameHeader is a decoded frame header whose check was right.
type frameHeader struct {
	crc      uint32
	length   int64
	unsynced uint32
}

// synced returns up to where the log was known to be durable when the frame at offset was written.
func (h frameHeader) synced(offset int64) int64 {
	if h.unsynced == math.MaxUint32 {
		return 0
	}
	return max(0, offset-int64(h.unsynced))
}

// headerCheck returns the check of the header h of a frame at a file offset. Both multipliers are odd, so that no two
// offsets within 4 GiB of each other give one header the same check.
func headerCheck(h []byte, offset int64) uint32 {
	return crc32.Checksum(h[4:16], castagnoli) ^ uint32(offset)*0x9e3779b1 ^ uint32(uint64(offset)>>32)*0x85ebca77
}

// appendFrameHeader appends the header of a frame at a file offset.
func appendFrameHeader(dst []byte, num uint64, offset, unsynced int64, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(num))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(min(unsynced, math.MaxUint32)))
	dst = binary.LittleEndian.AppendUint32(dst, headerCheck(dst[start:], offset))
	crc := crc32.Update(crc32.Checksum(dst[start+4:], castagnoli), castagnoli, payload)
	binary.LittleEndian.PutUint32(dst[start:], crc)
	return dst
}

// parseFrameHeader decodes the header of a frame of log num at a file offset, if it is one. remaining is how many bytes
// the file has from there on: a length that does not fit is none.
func parseFrameHeader(h []byte, num uint64, offset, remaining int64) (frameHeader, bool) {
	if len(h) < FrameOverhead || binary.LittleEndian.Uint32(h[8:]) != uint32(num) {
		return frameHeader{}, false
	}
	f := frameHeader{
		crc:      binary.LittleEndian.Uint32(h),
		length:   int64(binary.LittleEndian.Uint32(h[4:])),
		unsynced: binary.LittleEndian.Uint32(h[12:]),
	}
	if f.length > base.MaxBatchBytes || f.length > remaining-FrameOverhead {
		return frameHeader{}, false
	}
	return f, binary.LittleEndian.Uint32(h[16:]) == headerCheck(h, offset)
}

// numberBytes is how a frame header spells the log number, which the search looks for.
func numberBytes(num uint64) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(num)) }

var zeroSector [sectorBytes]byte

func allZero(p []byte) bool {
	for len(p) > sectorBytes {
		if !bytes.Equal(p[:sectorBytes], zeroSector[:]) {
			return false
		}
		p = p[sectorBytes:]
	}
	return bytes.Equal(p, zeroSector[:len(p)])
}
