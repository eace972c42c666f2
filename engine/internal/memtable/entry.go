package memtable

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/merutable/merutable/engine/internal/base"
)

// An entry in the arena, aligned to 8 bytes, constant once it is in the tree:
//
//	 0  u64  sequence number << 8 | op
//	 8  u32  key length
//	12  u32  value length
//	16       key, value
const (
	entryHeader = 16
	maxEntryLen = 1<<32 - 1 // of a key or a value
	prefixBytes = 8         // what is compared as one number
)

// entry is the address of an entry; nil is the end.
type entry = unsafe.Pointer

func entryTrailer(e entry) uint64 { return *(*uint64)(e) }
func entrySeq(e entry) base.Seq   { return entryTrailer(e) >> 8 }
func entryOp(e entry) base.Op     { return base.Op(entryTrailer(e)) }
func entryKeyLen(e entry) int     { return int(*(*uint32)(unsafe.Add(e, 8))) }
func entryValueLen(e entry) int   { return int(*(*uint32)(unsafe.Add(e, 12))) }

func entryKey(e entry) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(e, entryHeader)), entryKeyLen(e))
}

// entryValue returns the value: nil for a tombstone without one.
func entryValue(e entry) []byte {
	n := entryValueLen(e)
	if n == 0 && entryOp(e) == base.OpDelete {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(e, entryHeader+entryKeyLen(e))), n)
}

// entrySize returns how many bytes an entry takes in the arena.
func entrySize(keyLen, valueLen int) int { return alignWord(entryHeader + keyLen + valueLen) }

func alignWord(n int) int { return (n + 7) &^ 7 }

// writeEntry fills an entry.
func writeEntry(e entry, key []byte, seq base.Seq, op base.Op, value []byte) {
	*(*uint64)(e) = seq<<8 | uint64(op)
	*(*uint32)(unsafe.Add(e, 8)) = uint32(len(key))
	*(*uint32)(unsafe.Add(e, 12)) = uint32(len(value))
	data := unsafe.Slice((*byte)(unsafe.Add(e, entryHeader)), len(key)+len(value))
	copy(data[copy(data, key):], value)
}

// keyPrefix returns the first 8 bytes of a key as a number that orders as they do, zeros where the key is shorter.
func keyPrefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// prefixFrom is keyPrefix of what follows the first depth bytes.
func prefixFrom(key []byte, depth int) uint64 {
	if len(key) >= depth+8 {
		return binary.BigEndian.Uint64(key[depth:])
	}
	return keyPrefix(key[depth:])
}

// compareRest compares two keys whose prefixes are equal. Where one of them ends within the prefix, the other one has
// only zeros up to the prefix's end, so the lengths decide.
func compareRest(a, b []byte) int {
	if len(a) <= 8 || len(b) <= 8 {
		return len(a) - len(b)
	}
	return bytes.Compare(a[8:], b[8:])
}

// sharedPrefix returns how many of the first n bytes two keys share.
func sharedPrefix(a, b []byte, n int) int {
	n = min(n, len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// sameKey reports whether two entries have one key.
func sameKey(a, b entry) bool { return bytes.Equal(entryKey(a), entryKey(b)) }

// target is a place that is looked for: the first entry with this key and at most this sequence number, or else the
// first one with a greater key.
type target struct {
	key    []byte
	prefix uint64
	seq    base.Seq
}

func newTarget(key []byte, seq base.Seq) target { return target{key, keyPrefix(key), seq} }

// prefixFrom returns the prefix of what follows the first depth bytes of the key.
func (t *target) prefixFrom(depth int) uint64 {
	if depth == 0 {
		return t.prefix
	}
	return prefixFrom(t.key, depth)
}

// tieAfter reports whether the target is after entry e, given that the keys share their first depth bytes and the prefix
// that follows.
func (t *target) tieAfter(e entry, depth int) bool {
	c := compareRest(entryKey(e)[depth:], t.key[depth:])
	return c < 0 || c == 0 && entrySeq(e) > t.seq
}

// after reports whether the target is after entry e.
func (t *target) after(e entry) bool {
	if p := keyPrefix(entryKey(e)); p != t.prefix {
		return p < t.prefix
	}
	return t.tieAfter(e, 0)
}
