package memtable

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// An entry in the arena, aligned to 8 bytes:
//
//	 0  u64  the first 8 key bytes, big-endian, zeros where the key is shorter
//	 8  u64  sequence number << 8 | op
//	16  u32  height << 27 | key length
//	20  u32  value length
//	24  u32  next[0], next[1], … next[height-1]: where the next entry of each level is, in words; 0: there is none
//	         key, value
//
// All but the next offsets is constant once the entry is linked. The head has the same layout and only offsets.
const (
	entryHeader = 24
	// maxHeight suits 4^16 entries; the height of an entry is h with probability 3/4^h.
	maxHeight = 16
	// EntryBytes counts room for two next offsets, and one byte more, unaligned, for taller towers: they take 8 bytes more
	// with probability 1/16, 16 with 1/256 and so on, 0.53 on average.
	towerBudget = 8
	tallBudget  = 1
	headBytes   = entryHeader + 4*maxHeight

	keyLenBits = 27
	maxKeyLen  = 1<<keyLenBits - 1
	maxValLen  = 1<<32 - 1
)

// entry is the address of an entry; nil is the end of the list.
type entry = unsafe.Pointer

func entryPrefix(e entry) uint64  { return *(*uint64)(e) }
func entryTrailer(e entry) uint64 { return *(*uint64)(unsafe.Add(e, 8)) }
func entrySeq(e entry) base.Seq   { return entryTrailer(e) >> 8 }
func entryOp(e entry) base.Op     { return base.Op(entryTrailer(e)) }
func entryKeyLen(e entry) int     { return int(*(*uint32)(unsafe.Add(e, 16)) & maxKeyLen) }
func entryHeight(e entry) int     { return int(*(*uint32)(unsafe.Add(e, 16)) >> keyLenBits) }
func entryValueLen(e entry) int   { return int(*(*uint32)(unsafe.Add(e, 20))) }

// entryNext returns the place of the offset of the next entry on a level.
func entryNext(e entry, level int) *uint32 {
	return (*uint32)(unsafe.Add(e, entryHeader+4*level))
}

// loadNext is how readers follow a level: what they reach is complete.
func loadNext(e entry, level int) uint32 { return atomic.LoadUint32(entryNext(e, level)) }

func entryKey(e entry) []byte {
	n := entryKeyLen(e)
	return unsafe.Slice((*byte)(unsafe.Add(e, entryHeader+4*entryHeight(e))), n)
}

// entryValue returns the value: nil for a tombstone without one.
func entryValue(e entry) []byte {
	n := entryValueLen(e)
	if n == 0 && entryOp(e) == base.OpDelete {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(e, entryHeader+4*entryHeight(e)+entryKeyLen(e))), n)
}

// entrySize returns how many bytes an entry takes in the arena.
func entrySize(e entry) int {
	return alignWord(entryHeader + 4*entryHeight(e) + entryKeyLen(e) + entryValueLen(e))
}

func alignWord(n int) int { return (n + 7) &^ 7 }

// keyPrefix returns the first 8 bytes of a key as a number that orders as they do.
func keyPrefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// compareRest compares two keys whose prefixes are equal. Where one of them ends within the prefix, it is a prefix of the
// other (or the zeros that follow it there), so the lengths decide.
func compareRest(a, b []byte) int {
	if len(a) <= 8 || len(b) <= 8 {
		return len(a) - len(b)
	}
	return bytes.Compare(a[8:], b[8:])
}

// before reports whether entry e comes before the place of (key, seq), given that the prefixes of the keys are equal. An
// entry with the very same key and sequence number does not.
func before(e entry, key []byte, seq base.Seq) bool {
	c := compareRest(entryKey(e), key)
	return c < 0 || c == 0 && entrySeq(e) > seq
}

// sameKey reports whether two entries have one key.
func sameKey(a, b entry) bool {
	return entryPrefix(a) == entryPrefix(b) && compareRest(entryKey(a), entryKey(b)) == 0
}

// wordBytes views words as bytes.
func wordBytes(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
