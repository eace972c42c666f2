package memtable

import (
	"bytes"
	"slices"
	"unsafe"
)

// sortEntry is a row in the sort index: the 8 key bytes that are being sorted by, and where the row is.
type sortEntry struct {
	prefix uint64
	addr   rowAddr
}

// minIndexRows is what the first index has room for.
const minIndexRows = 4096

// sortIndex is the rows of a buffer in key order, each key once, outside of Go's heap. It has scratch space of its size.
type sortIndex struct {
	mem     []byte
	entries []sortEntry // as many as the mapping holds
	scratch []sortEntry
	n       int
}

func (x *sortIndex) free() {
	if x.mem != nil {
		unmapMemory(x.mem)
	}
	*x = sortIndex{}
}

// reserve makes room for n rows. Memory is taken only when sorting writes to it.
func (x *sortIndex) reserve(n int) error {
	if n <= len(x.entries) {
		return nil
	}
	n = max(n, 2*len(x.entries), minIndexRows)
	const size = int(unsafe.Sizeof(sortEntry{}))
	mem, err := mapMemory(2 * n * size)
	if err != nil {
		return err
	}
	x.free()
	x.mem = mem
	x.entries = unsafe.Slice((*sortEntry)(unsafe.Pointer(&mem[0])), n)
	x.scratch = unsafe.Slice((*sortEntry)(unsafe.Pointer(&mem[n*size])), n)
	return nil
}

// Sort orders the rows by key and drops all but the last added of equal keys. It does nothing where the keys came in
// ascending order, or where it was called already.
func (b *RowBuffer) Sort() {
	if b.sorted {
		return
	}
	if !b.ascending {
		b.fillIndex()
		b.sortRun(b.index.entries[:b.rows], b.common)
		b.dropShadowed()
	}
	b.sorted = true
}

func (b *RowBuffer) fillIndex() {
	i := 0
	for c := range b.chunks {
		for at := 0; at < b.chunks[c].used; {
			addr := rowAddr(c)<<32 | rowAddr(at)
			p := b.row(addr)
			b.index.entries[i] = sortEntry{prefixFrom(rowKey(p), b.common), addr}
			at += rowSize(p)
			i++
		}
	}
}

// sortRun sorts rows whose keys are equal up to depth.
func (b *RowBuffer) sortRun(run []sortEntry, depth int) {
	slices.SortFunc(run, func(x, y sortEntry) int {
		if x.prefix != y.prefix {
			if x.prefix < y.prefix {
				return -1
			}
			return 1
		}
		if c := compareFrom(b.key(x.addr), b.key(y.addr), depth); c != 0 {
			return c
		}
		if x.addr < y.addr {
			return -1
		}
		return 1
	})
}

// dropShadowed keeps the last of each group of equal keys.
func (b *RowBuffer) dropShadowed() {
	entries := b.index.entries[:b.rows]
	n := 0
	for i, e := range entries {
		if i+1 < len(entries) && entries[i+1].prefix == e.prefix && bytes.Equal(b.key(entries[i+1].addr), b.key(e.addr)) {
			continue
		}
		entries[n] = e
		n++
	}
	b.index.n = n
}

// compareFrom compares two keys that share their first depth bytes.
func compareFrom(a, b []byte, depth int) int {
	return bytes.Compare(a[min(depth, len(a)):], b[min(depth, len(b)):])
}
