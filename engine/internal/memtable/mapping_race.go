//go:build race

package memtable

import "unsafe"

// Under the race detector memory comes from Go's heap, since the detector watches nothing else.

func mapAnonymous(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8+nodeAlign/8)
	p := unsafe.Pointer(unsafe.SliceData(words))
	skip := -uintptr(p) & (nodeAlign - 1)
	return unsafe.Slice((*byte)(unsafe.Add(p, skip)), size), nil
}

// unmapAnonymous destroys what is in the memory, so that a test that uses it notices.
func unmapAnonymous(mem []byte) {
	for i := range mem {
		mem[i] = 0xff
	}
}
