package row

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// boolBytes views bools as bytes 0 and 1, which is how Go stores them.
func boolBytes(b []bool) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

// packBits writes the lowest bit of every byte of src, XOR flip (0 or 1), to dst as a bitmap, lowest bit first, and
// returns how many bits it set. dst has (len(src)+7)/8 bytes; its spare bits become 0.
func packBits(dst, src []byte, flip byte) (set int) {
	const ones, gather = 0x0101010101010101, 0x0102040810204080
	flips := uint64(flip) * ones
	for ; len(src) >= 8; src, dst = src[8:], dst[1:] {
		// The product moves byte i's bit to bit 56+i; no two terms meet there or below with a carry.
		dst[0] = byte((binary.LittleEndian.Uint64(src)&ones ^ flips) * gather >> 56)
		set += bits.OnesCount8(dst[0])
	}
	if len(src) > 0 {
		var b byte
		for i, x := range src {
			b |= (x&1 ^ flip) << i
		}
		dst[0] = b
		set += bits.OnesCount8(b)
	}
	return set
}

// unpackBits writes n bits of a bitmap from bit off on, XOR flip (0 or 1), to dst as bytes 0 and 1.
func unpackBits(dst, bitmap []byte, off, n int, flip byte) {
	const ones = 0x0101010101010101
	dst = dst[:n]
	i := 0
	for ; i < n && (off+i)&7 != 0; i++ {
		dst[i] = bitAt(bitmap, off+i) ^ flip
	}
	flips := uint64(flip) * ones
	for ; n-i >= 8; i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], spread[bitmap[(off+i)>>3]]^flips)
	}
	for ; i < n; i++ {
		dst[i] = bitAt(bitmap, off+i) ^ flip
	}
}

func bitAt(bitmap []byte, i int) byte { return bitmap[i>>3] >> (i & 7) & 1 }

// spread has for each byte its bits as eight bytes, lowest bit first.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := 0; i < 8; i++ {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return t
}()

// countBits returns how many of the n bits from bit off on are set.
func countBits(bitmap []byte, off, n int) (set int) {
	i := 0
	for ; i < n && (off+i)&63 != 0; i++ {
		set += int(bitAt(bitmap, off+i))
	}
	for ; n-i >= 64; i += 64 {
		set += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap[(off+i)>>3:]))
	}
	for ; i < n; i++ {
		set += int(bitAt(bitmap, off+i))
	}
	return set
}

// isASCII reports whether no byte is above 0x7f.
func isASCII(b []byte) bool {
	const high = 0x8080808080808080
	le := binary.LittleEndian
	for ; len(b) >= 32; b = b[32:] {
		if (le.Uint64(b)|le.Uint64(b[8:])|le.Uint64(b[16:])|le.Uint64(b[24:]))&high != 0 {
			return false
		}
	}
	for _, x := range b {
		if x >= 0x80 {
			return false
		}
	}
	return true
}
