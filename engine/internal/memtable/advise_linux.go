package memtable

import "golang.org/x/sys/unix"

const hugePage = 2 << 20

// adviseHuge asks for huge pages: a search in a large arena touches pages at random and would miss the TLB at every
// step. The first 2 MiB keep small pages, so that a nearly empty memtable takes only what it uses.
func adviseHuge(mem []byte) {
	if len(mem) >= 2*hugePage {
		_ = unix.Madvise(mem[hugePage:], unix.MADV_HUGEPAGE) // a hint: a kernel without huge pages refuses it
	}
}
