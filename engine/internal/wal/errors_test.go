package wal

import (
	"encoding/binary"
	"hash/crc32"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func appendSum(h []byte) []byte {
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// failing is a file system whose log fails in one operation while err is set.
type failing struct {
	*vfs.ErrorFS
	op  vfs.Op
	err error
}

func newFailing(t *testing.T) (*failing, *vfs.MemFS) {
	mem := newDir(t)
	f := &failing{}
	f.ErrorFS = vfs.NewErrorFS(mem, func(op vfs.Op, _ string) error {
		if op == f.op {
			return f.err
		}
		return nil
	})
	return f, mem
}

func (f *failing) set(op vfs.Op, err error) { f.op, f.err = op, err }

// TestPoisoned holds a writer to its first error.
func TestPoisoned(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		fs, _ := newFailing(t)
		w := create(t, fs)
		must(t, w.Append(payloadOf(0)))
		must(t, w.Sync())
		fs.set(op, syscall.EIO)
		err := w.Append(payloadOf(1))
		if err == nil {
			err = w.Sync()
		}
		wantCode(t, err, base.CodeIO, testPath, "input/output error")
		fs.set(op, nil)
		for range 2 {
			if e := w.Append(payloadOf(2)); e != err {
				t.Fatalf("append after a failed %s: %v", op, e)
			}
			if e := w.Sync(); e != err {
				t.Fatalf("sync after a failed %s: %v", op, e)
			}
		}
		if e := w.Close(); e != err {
			t.Fatalf("close after a failed %s: %v", op, e)
		}
		wantCode(t, w.Append(nil), base.CodeClosed, testPath)
		wantCode(t, w.Close(), base.CodeClosed, testPath)
	}
}

// TestRewind is a full disk: the failed record is taken back, and when there is room again the writer goes on.
func TestRewind(t *testing.T) {
	for _, short := range []int{0, 1, FrameOverhead, FrameOverhead + 3, 1 << 20} {
		fs, _ := newFailing(t)
		w := create(t, fs)
		for i := range 3 {
			must(t, w.Append(payloadOf(i)))
		}
		must(t, w.Sync())
		mark := w.Size()
		must(t, w.Append([]byte("of the group that fails")))
		fs.set(vfs.OpWrite, &vfs.ShortWrite{N: short, Err: syscall.ENOSPC})
		err := w.Append(payloadOf(9))
		wantCode(t, err, base.CodeNoSpace, testPath, "no space left")
		if w.Size() <= mark {
			t.Fatal("the size forgot the record before")
		}
		fs.set(vfs.OpWrite, nil)
		must(t, w.Rewind(mark))
		got, _, valid, err := replayAll(fs, false)
		must(t, err)
		checkPrefix(t, got, 3, payloadOf)
		if valid != mark {
			t.Fatalf("valid %d, want %d", valid, mark)
		}
		must(t, w.Append(payloadOf(3)))
		must(t, w.Sync())
		wantCode(t, w.Rewind(mark), base.CodeInvalidArgument) // it is durable now
		must(t, w.Close())
		got, _, _, err = replayAll(fs, false)
		must(t, err)
		checkPrefix(t, got, 4, payloadOf)
	}
}

func TestRewindFails(t *testing.T) {
	fs, _ := newFailing(t)
	w := create(t, fs)
	mark := w.Size()
	must(t, w.Append(payloadOf(0)))
	fs.set(vfs.OpTruncate, syscall.EIO)
	err := w.Rewind(mark)
	wantCode(t, err, base.CodeIO)
	fs.set(vfs.OpTruncate, nil)
	if e := w.Rewind(mark); e != err {
		t.Fatalf("a second rewind: %v", e)
	}
	if e := w.Append(payloadOf(0)); e != err {
		t.Fatalf("append after a failed rewind: %v", e)
	}

	fs, _ = newFailing(t)
	w = create(t, fs)
	mark = w.Size()
	must(t, w.Append(payloadOf(0)))
	fs.set(vfs.OpSync, syscall.EIO)
	err = w.Sync()
	wantCode(t, err, base.CodeIO)
	if e := w.Rewind(mark); e != err {
		t.Fatalf("rewind after a failed sync: %v", e)
	}
}

// TestNoPreallocation: where there is none, or no room for it, records are still written.
func TestNoPreallocation(t *testing.T) {
	fs, _ := newFailing(t)
	fs.set(vfs.OpPreallocate, syscall.ENOSPC)
	w := create(t, fs)
	for i := range 5 {
		must(t, w.Append(payloadOf(i)))
		must(t, w.Sync())
	}
	must(t, w.Close())
	got, _, _, err := replayAll(fs, false)
	must(t, err)
	checkPrefix(t, got, 5, payloadOf)
}

func TestTooLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an address space of 1 GiB")
	}
	w := create(t, newDir(t))
	huge := make([]byte, base.MaxBatchBytes+1) // never touched: costs no memory
	wantCode(t, w.Append(huge), base.CodeInvalidArgument, testPath, "limit")
	must(t, w.Append(payloadOf(0)))
}

// TestReplayReadError: an I/O error is that, not the end of the log.
func TestReplayReadError(t *testing.T) {
	fs, _ := newFailing(t)
	w := create(t, fs)
	must(t, w.Append(payloadOf(0)))
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpSize, vfs.OpRead} {
		fs.set(op, syscall.EIO)
		_, _, _, err := replayAll(fs, true)
		wantCode(t, err, base.CodeIO, testPath)
		_, err = ReplayFrom(fs, testPath, testNum, Position{}, nil)
		wantCode(t, err, base.CodeIO, testPath)
	}
}
