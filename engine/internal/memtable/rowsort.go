package memtable

import (
	"bytes"
	"cmp"
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
		unmapAnonymous(x.mem)
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
	mem, err := mapAnonymous(2 * n * size)
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
		b.sortRun(0, b.rows, b.common)
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

// radixRows is from how many rows on a radix sort is faster than one that compares.
const radixRows = 128

// sortRun sorts rows whose keys share their first depth bytes and whose prefixes are what follows. Rows with equal keys
// come to stand in the order in which they were added. at is where run starts in the index.
func (b *RowBuffer) sortRun(at, n, depth int) {
	run := b.index.entries[at : at+n]
	if n < radixRows {
		b.sortByComparing(run, depth)
		return
	}
	radixSort(run, b.index.scratch[at:at+n])
	for from := 0; from < n; {
		to := from + 1
		for to < n && run[to].prefix == run[from].prefix {
			to++
		}
		if to-from > 1 {
			b.sortTied(at+from, to-from, depth)
		}
		from = to
	}
}

// sortTied sorts rows whose keys share their first depth bytes and the prefix that follows.
func (b *RowBuffer) sortTied(at, n, depth int) {
	run := b.index.entries[at : at+n]
	next := depth + prefixBytes
	if n < radixRows || !b.allLonger(run, next) {
		b.sortByComparing(run, depth)
		return
	}
	// Skip what all share: long keys must not take a round for each prefix of them.
	first := b.key(run[0].addr)[next:]
	more := len(first)
	for _, e := range run[1:] {
		more = sharedPrefix(first, b.key(e.addr)[next:], more)
	}
	shared := next + more
	for i := range run {
		run[i].prefix = prefixFrom(b.key(run[i].addr), shared)
	}
	b.sortRun(at, n, shared)
}

func (b *RowBuffer) allLonger(run []sortEntry, n int) bool {
	for _, e := range run {
		if len(b.key(e.addr)) <= n {
			return false
		}
	}
	return true
}

// sortByComparing compares the prefixes, then the rest of the keys, then when they were added.
func (b *RowBuffer) sortByComparing(run []sortEntry, depth int) {
	slices.SortFunc(run, func(x, y sortEntry) int {
		if x.prefix != y.prefix {
			return cmp.Compare(x.prefix, y.prefix)
		}
		if c := compareFrom(b.key(x.addr), b.key(y.addr), depth); c != 0 {
			return c
		}
		return cmp.Compare(x.addr, y.addr)
	})
}

// radixSort sorts by prefix, byte by byte from the last one, and is stable. Bytes that are the same in all rows cost
// nothing more than counting them.
func radixSort(run, scratch []sortEntry) {
	var counts [8][256]uint32
	for i := range run {
		p := run[i].prefix
		for k := range 8 {
			counts[k][byte(p>>(8*k))]++
		}
	}
	from, to := run, scratch
	for k := range 8 {
		c, shift := &counts[k], 8*k
		if c[byte(from[0].prefix>>shift)] == uint32(len(run)) {
			continue
		}
		sum := uint32(0)
		for i := range c {
			c[i], sum = sum, sum+c[i]
		}
		for i := range from {
			e := from[i]
			digit := byte(e.prefix >> shift)
			to[c[digit]] = e
			c[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &run[0] {
		copy(run, from)
	}
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
