//go:build unix && !race

package memtable

import (
	"golang.org/x/sys/unix"

	"github.com/merutable/merutable/engine/internal/base"
)

// mapAnonymous returns size bytes of zeroed memory outside of Go's heap. Pages take memory once they are written to.
func mapAnonymous(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, base.Wrapf(base.CodeIO, err, "map %d bytes of memory", size)
	}
	adviseHuge(mem)
	return mem, nil
}

// unmapAnonymous gives memory of mapAnonymous back to the system.
func unmapAnonymous(mem []byte) {
	_ = unix.Munmap(mem) // fails only for what is no mapping
}
