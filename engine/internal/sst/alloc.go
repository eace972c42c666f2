package sst

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
)

// readAllocator gives the library its buffers for reading a file. It refuses sizes that no honest file of this one's
// size can need, since the library takes sizes from lengths found in the file, and it reuses memory: a point get would
// else make as much garbage as the pages that it reads.
//
// Memory comes back when a column reader is closed. So what a reader yields is copied before that.
type readAllocator struct {
	path  string
	limit int
	exact bool // memory that is kept for long: no more than asked for, and not reused
}

// Buffers of 2^minClass to 2^maxClass bytes are reused.
const (
	minClass = 10
	maxClass = 20
)

var bufferPools [maxClass + 1]sync.Pool

// class returns the least power of two that holds n bytes, as its exponent.
func class(n int) int { return max(bits.Len(uint(n-1)), minClass) }

// Allocate implements memory.Allocator. The memory may hold anything.
func (a *readAllocator) Allocate(n int) []byte {
	if n < 0 || n > a.limit {
		panic(base.Errorf(base.CodeCorruption, "%s: a buffer of %d bytes is wanted, the limit is %d", a.path, n, a.limit))
	}
	c := class(n)
	if n == 0 || c > maxClass || a.exact {
		return memory.DefaultAllocator.Allocate(n)
	}
	if b, ok := bufferPools[c].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, 1<<c)[:n]
}

// Reallocate implements memory.Allocator.
func (a *readAllocator) Reallocate(n int, b []byte) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	out := a.Allocate(n)
	copy(out, b)
	a.Free(b)
	return out
}

// Free implements memory.Allocator.
func (a *readAllocator) Free(b []byte) {
	if n := cap(b); n >= 1<<minClass && n <= 1<<maxClass && n&(n-1) == 0 {
		b = b[:n]
		bufferPools[class(n)].Put(&b)
	}
}
