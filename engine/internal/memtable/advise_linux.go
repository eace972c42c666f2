package memtable

import "golang.org/x/sys/unix"

const hugePage = 2 << 20

// adviseHuge asks for huge pages: a search in a large arena touches pages at random and would miss the TLB at every
// step. The ends keep small pages, so that a nearly empty memtable takes only what it uses.
func adviseHuge(mem []byte) {
	if n := len(mem) &^ (hugePage - 1); n > 2*hugePage {
		_ = unix.Madvise(mem[hugePage:n-hugePage], unix.MADV_HUGEPAGE) // a hint: a kernel without huge pages refuses it
	}
}
