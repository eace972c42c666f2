//go:build !race

package memtable

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/merutable/merutable/engine/internal/base"
)

func mincore(mem, vec []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)),
		uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
	return errno
}

func residentPages(t *testing.T, mem []byte) int {
	t.Helper()
	vec := make([]byte, (len(mem)+os.Getpagesize()-1)/os.Getpagesize())
	if errno := mincore(mem, vec); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, v := range vec {
		n += int(v & 1)
	}
	return n
}

// TestMemory checks that memory is taken as rows come and given back with the last reference.
func TestMemory(t *testing.T) {
	m, err := New(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(10) {
		if err := m.Add(benchKey(nil, i), i+1, base.OpPut, []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	mem := m.mem
	if n := residentPages(t, mem); n > 8 {
		t.Fatalf("a memtable with ten rows takes %d pages", n)
	}
	m.Ref()
	m.Unref()
	if _, _, _, ok := m.Get(benchKey(nil, 3), base.MaxSeq); !ok {
		t.Fatal("a memtable that is referenced lost its rows")
	}
	m.Unref()
	if errno := mincore(mem[:os.Getpagesize()], make([]byte, 1)); errno != unix.ENOMEM {
		t.Fatalf("the memory is still mapped: %v", errno)
	}

	b := newRowBuffer(t, 1<<30)
	if err := b.Add([]byte("key"), base.OpPut, []byte("value")); err != nil {
		t.Fatal(err)
	}
	if len(b.chunks) != 1 || len(b.chunks[0].mem) > firstChunkBytes {
		t.Fatal("a row buffer with one row maps more than its first chunk")
	}
	b.Close()
	b.Close()
}
