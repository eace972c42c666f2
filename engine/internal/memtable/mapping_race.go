//go:build race

package memtable

// Under the race detector memory comes from Go's heap, since the detector watches nothing else.

func mapMemory(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8) // aligned as a mapping is, at least to 8 bytes
	return wordBytes(words)[:size], nil
}

func unmapMemory(mem []byte) { clear(mem) }
