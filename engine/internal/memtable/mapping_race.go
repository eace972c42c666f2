//go:build race

package memtable

import "unsafe"

// The race detector sees nothing outside of Go's heap, so that is where its memory is from.
func mapAnonymous(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8+nodeAlign/8)
	p := unsafe.Pointer(unsafe.SliceData(words))
	skip := -uintptr(p) & (nodeAlign - 1)
	return unsafe.Slice((*byte)(unsafe.Add(p, skip)), size), nil
}

// unmapAnonymous destroys what is in the memory, so that a test that uses it notices. Of what nobody wrote to there is nothing
// to destroy: that is most of it, and instrumented writes to each byte took most of the time of all tests.
func unmapAnonymous(mem []byte) {
	const block = 512
	for len(mem) > 0 {
		b := mem[:min(block, len(mem))]
		if written(b) {
			for i := range b {
				b[i] = 0xff
			}
		}
		mem = mem[len(b):]
	}
}

// written looks, unknown to the detector, for anything but zeros in b, whose start is aligned.
//
//go:norace
func written(b []byte) bool {
	n := len(b) / 8
	for _, x := range unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), n) {
		if x != 0 {
			return true
		}
	}
	for _, x := range b[8*n:] {
		if x != 0 {
			return true
		}
	}
	return false
}
