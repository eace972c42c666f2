package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	testNum = 7
	testDir = "/wal"
)

var testPath = "/wal/" + Name(testNum)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code base.Code, parts ...string) {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("error %v has code %d, want %d", err, base.CodeOf(err), code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not say %q", err, p)
		}
	}
}

func newDir(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	must(t, fs.MkdirAll(testDir))
	must(t, fs.SyncDir("/"))
	return fs
}

func create(t testing.TB, fs vfs.FS) *Writer {
	t.Helper()
	w, err := Create(fs, testDir, testNum)
	must(t, err)
	return w
}

// payloadOf returns record i of the tests: of a length and content of its own, with runs of zeros.
func payloadOf(i int) []byte {
	p := fmt.Appendf(nil, "record %d ", i)
	p = append(p, make([]byte, i%13)...)
	return append(p, bytes.Repeat([]byte{byte(i)}, i*7%31)...)
}

// replayAll returns the payloads and offsets that Replay gives.
func replayAll(fs vfs.FS, last bool) (payloads [][]byte, offsets []int64, valid int64, err error) {
	valid, err = Replay(fs, testPath, testNum, last, func(offset int64, p []byte) error {
		payloads = append(payloads, bytes.Clone(p))
		offsets = append(offsets, offset)
		return nil
	})
	return payloads, offsets, valid, err
}

func checkPrefix(t testing.TB, got [][]byte, n int, payload func(int) []byte) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i, p := range got {
		if !bytes.Equal(p, payload(i)) {
			t.Fatalf("record %d is %.60q, want %.60q", i, p, payload(i))
		}
	}
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	data := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(data, 0)
		must(t, err)
	}
	must(t, f.Close())
	return data
}

func writeFile(t testing.TB, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path)
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Close())
}

func TestNames(t *testing.T) {
	for num, name := range map[uint64]string{1: "000001.wal", 999999: "999999.wal", 1000000: "1000000.wal", 1<<64 - 1: "18446744073709551615.wal"} {
		if Name(num) != name {
			t.Errorf("Name(%d) = %s", num, Name(num))
		}
		if got, ok := ParseName(name); !ok || got != num {
			t.Errorf("ParseName(%s) = %d, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", ".wal", "1.wal", "000000.wal", "0000001.wal", "000001.log", "-00001.wal", "00000a.wal", "18446744073709551616.wal"} {
		if _, ok := ParseName(name); ok {
			t.Errorf("ParseName(%q) took it", name)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	sizes := []int{
		0, 1, 100, bufferBytes - FrameOverhead - 1, bufferBytes - FrameOverhead, bufferBytes - FrameOverhead + 1,
		bufferBytes, 3*bufferBytes + 77, 5, readBytes + 1, 0,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var payloads [][]byte
	for _, n := range sizes {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		payloads = append(payloads, p)
	}
	for _, group := range []bool{false, true} {
		fs := newDir(t)
		w := create(t, fs)
		if group {
			must(t, w.AppendGroup(payloads))
		} else {
			for _, p := range payloads {
				must(t, w.Append(p))
			}
		}
		must(t, w.Sync())
		size := w.Size()
		for _, last := range []bool{true, false} {
			got, offsets, valid, err := replayAll(fs, last)
			must(t, err)
			checkPrefix(t, got, len(payloads), func(i int) []byte { return payloads[i] })
			if valid != size || offsets[0] != HeaderBytes || offsets[1] != HeaderBytes+FrameOverhead {
				t.Fatalf("valid %d, want %d; offsets %v", valid, size, offsets)
			}
		}
		must(t, w.Close())
	}
}

// TestWriteCalls holds the writer to one write call for a record or a group, two for a large record.
func TestWriteCalls(t *testing.T) {
	mem := newDir(t)
	fs := vfs.NewCountingFS(mem)
	w := create(t, fs)
	count := func(want int64, f func() error) {
		t.Helper()
		before := fs.Count(vfs.OpWrite).Ops
		must(t, f())
		if got := fs.Count(vfs.OpWrite).Ops - before; got != want {
			t.Errorf("%d write calls, want %d", got, want)
		}
	}
	count(1, func() error { return w.Append(make([]byte, 200<<10)) })
	count(1, func() error { return w.AppendGroup([][]byte{payloadOf(1), payloadOf(2), payloadOf(3)}) })
	count(2, func() error { return w.Append(make([]byte, 5<<20)) })
	if n := fs.Count(vfs.OpPreallocate).Ops; n > 3 {
		t.Errorf("%d preallocations", n)
	}
}

func TestForeignFiles(t *testing.T) {
	fs := newDir(t)
	w := create(t, fs)
	must(t, w.Append(payloadOf(0)))
	must(t, w.Close())
	whole := readFile(t, fs, testPath)

	_, err := Replay(fs, testPath, testNum+1, true, nil)
	wantCode(t, err, base.CodeCorruption, testPath, "log 7")
	_, err = Replay(fs, "/wal/none", testNum, true, nil)
	wantCode(t, err, base.CodeNotFound, "/wal/none")

	reheaded := func(change func(h []byte)) {
		h := bytes.Clone(whole[:16])
		change(h)
		sum := appendFileHeader(nil, 0)[:0]
		sum = append(sum, h...)
		writeFile(t, fs, testPath, append(appendSum(sum), whole[HeaderBytes:]...))
	}
	reheaded(func(h []byte) { h[4] = 2 })
	_, err = Replay(fs, testPath, testNum, true, nil)
	wantCode(t, err, base.CodeUnsupported, testPath, "format 2")
	reheaded(func(h []byte) { h[0] = 'X' })
	_, err = Replay(fs, testPath, testNum, true, nil)
	wantCode(t, err, base.CodeCorruption, testPath, "not a log")

	// Empty, or with a torn header: nothing in it, but only as the newest.
	for n := range HeaderBytes {
		writeFile(t, fs, testPath, whole[:n])
		if valid, err := Replay(fs, testPath, testNum, true, nil); err != nil || valid != 0 {
			t.Fatalf("%d bytes of a header: valid %d, %v", n, valid, err)
		}
		_, err = Replay(fs, testPath, testNum, false, nil)
		wantCode(t, err, base.CodeCorruption, testPath, "offset 0")
	}
}

func TestReplayStopsOnError(t *testing.T) {
	fs := newDir(t)
	w := create(t, fs)
	for i := range 3 {
		must(t, w.Append(payloadOf(i)))
	}
	stop := base.Errorf(base.CodeCancelled, "enough")
	n := 0
	_, err := Replay(fs, testPath, testNum, true, func(int64, []byte) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if err != stop || n != 2 {
		t.Fatalf("%v after %d records", err, n)
	}
}

func TestCreate(t *testing.T) {
	fs := newDir(t)
	w := create(t, fs)
	must(t, w.Append(payloadOf(0)))
	_, err := Create(fs, testDir, testNum)
	wantCode(t, err, base.CodeAlreadyExists, testPath)
	_, err = Create(fs, testDir, 0)
	wantCode(t, err, base.CodeInvalidArgument)
	_, err = Create(fs, "/nowhere", testNum)
	wantCode(t, err, base.CodeNotFound, "/nowhere")

	// A Create that failed leaves nothing that stands in the way of the next.
	for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpSyncDir} {
		fail := true
		efs := vfs.NewErrorFS(newDir(t), func(o vfs.Op, _ string) error {
			if fail && (o == op || o == vfs.OpRemove) {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := Create(efs, testDir, testNum)
		wantCode(t, err, base.CodeNoSpace)
		fail = false
		must(t, create(t, efs).Append(payloadOf(0)))
	}
}
