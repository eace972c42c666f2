// Package dv reads and writes deletion vectors: the set of row positions of one data file that are not live. They are
// stored as the Iceberg v3 specification says, as deletion-vector-v1 blobs in Puffin files, so that other engines read
// them as they are.
package dv

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
)

// A blob is
//
//	u32 BE  length of magic and vector
//	magic   D1 D3 39 64
//	vector  64-bit roaring bitmap in the portable format: u64 LE count, then per upper half a u32 LE and a 32-bit bitmap
//	u32 BE  CRC-32 of magic and vector
//
// Positions of our files fit 32 bits: the count is 0 or 1 and the one upper half is 0.
const (
	blobOverhead   = 12
	vectorOverhead = 12
)

var blobMagic = [4]byte{0xd1, 0xd3, 0x39, 0x64}

func appendBlob(dst []byte, positions *roaring.Bitmap) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = append(dst, blobMagic[:]...)
	var count uint64
	if !positions.IsEmpty() {
		count = 1
	}
	dst = binary.LittleEndian.AppendUint64(dst, count)
	if count > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, 0)
		buf := bytes.NewBuffer(dst)
		if _, err := positions.WriteTo(buf); err != nil {
			return nil, base.Wrapf(base.CodeUnknown, err, "deletion vector of %d positions", positions.GetCardinality())
		}
		dst = buf.Bytes()
	}
	payload := dst[start+4:]
	binary.BigEndian.PutUint32(dst[start:], uint32(len(payload)))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(payload)), nil
}

// decodeBlob checks everything; maxRows bounds the positions. Errors carry no path: the caller knows it.
func decodeBlob(blob []byte, maxRows int64) (*roaring.Bitmap, error) {
	bad := func(format string, args ...any) error { return base.Errorf(base.CodeCorruption, format, args...) }
	if len(blob) < blobOverhead+8 {
		return nil, bad("a deletion vector of %d bytes is too short", len(blob))
	}
	if n := binary.BigEndian.Uint32(blob); uint64(n) != uint64(len(blob)-8) {
		return nil, bad("length %d in a deletion vector of %d bytes", n, len(blob))
	}
	payload, sum := blob[4:len(blob)-4], binary.BigEndian.Uint32(blob[len(blob)-4:])
	if !bytes.Equal(payload[:4], blobMagic[:]) {
		return nil, bad("no deletion vector (magic bytes missing)")
	}
	if got := crc32.ChecksumIEEE(payload); got != sum {
		return nil, bad("checksum mismatch in a deletion vector of %d bytes", len(blob))
	}
	vector := payload[4:]
	bm := roaring.New()
	switch count := binary.LittleEndian.Uint64(vector); count {
	case 0:
		return bm, nil
	case 1:
	default:
		return nil, bad("a deletion vector for %d times 2^32 rows", count)
	}
	if len(vector) < vectorOverhead || binary.LittleEndian.Uint32(vector[8:]) != 0 {
		return nil, bad("a deletion vector marks rows beyond 2^32")
	}
	if err := readBitmap(bm, vector[vectorOverhead:]); err != nil {
		return nil, err
	}
	if !bm.IsEmpty() && int64(bm.Maximum()) >= maxRows {
		return nil, bad("a deletion vector marks row %d of %d", bm.Maximum(), maxRows)
	}
	return bm, nil
}

// readBitmap copies out of data, all of which must be the bitmap.
func readBitmap(bm *roaring.Bitmap, data []byte) (err error) {
	defer func() { // the library trusts container sizes
		if r := recover(); r != nil {
			err = base.Errorf(base.CodeCorruption, "deletion vector bitmap: %v", r)
		}
	}()
	n, err := bm.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return base.Wrapf(base.CodeCorruption, err, "deletion vector bitmap")
	}
	if n != int64(len(data)) {
		return base.Errorf(base.CodeCorruption, "deletion vector bitmap: %d of %d bytes used", n, len(data))
	}
	if err := bm.Validate(); err != nil {
		return base.Wrapf(base.CodeCorruption, err, "deletion vector bitmap")
	}
	return nil
}
