package vfs

import (
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// everyOp does each operation once and returns the errors.
func everyOp(fs FS) map[Op]error {
	errs := map[Op]error{}
	note := func(op Op, err error) { errs[op] = err }
	f, err := fs.Create("/d/a")
	note(OpCreate, err)
	if f != nil {
		_, err = f.Write([]byte("abc"))
		note(OpWrite, err)
		note(OpSync, f.Sync())
		note(OpPreallocate, Preallocate(f, 10))
		_, err = f.ReadAt(make([]byte, 1), 0)
		note(OpRead, err)
		_, err = f.Size()
		note(OpSize, err)
		note(OpClose, f.Close())
	}
	_, err = fs.Open("/d/a")
	note(OpOpen, err)
	_, err = fs.OpenAppend("/d/a")
	note(OpOpenAppend, err)
	note(OpTruncate, fs.Truncate("/d/a", 1))
	_, err = fs.Stat("/d/a")
	note(OpStat, err)
	_, err = fs.LockShared("/d/a") // not released, so that there is one unlock
	note(OpLockShared, err)
	note(OpRename, fs.Rename("/d/a", "/d/b"))
	note(OpRenameExclusive, fs.RenameExclusive("/d/b", "/d/c"))
	note(OpRemove, fs.Remove("/d/c"))
	note(OpMkdirAll, fs.MkdirAll("/d/x/y"))
	note(OpRemoveAll, fs.RemoveAll("/d/x"))
	_, err = fs.List("/d")
	note(OpList, err)
	note(OpSyncDir, fs.SyncDir("/d"))
	l, err := fs.Lock("/d/LOCK", "me")
	note(OpLock, err)
	if l != nil {
		note(OpUnlock, l.Close())
	}
	_, err = fs.TryLockExclusive("/d/LOCK")
	note(OpTryLock, err)
	return errs
}

func memWithDir(t *testing.T) *MemFS {
	m := NewMem()
	must(t, m.MkdirAll("/d"))
	return m
}

func TestErrorFSSeesEverything(t *testing.T) {
	for op := range numOps {
		fs := NewErrorFS(memWithDir(t), func(o Op, path string) error {
			if path == "" {
				t.Errorf("%s without a path", o)
			}
			if o == op {
				return syscall.EIO
			}
			return nil
		})
		wantCode(t, everyOp(fs)[op], base.CodeIO, op.String(), "/d", "input/output error")
		if op.String() == "" {
			t.Errorf("operation %d has no name", op)
		}
	}
}

func TestErrorFSCodes(t *testing.T) {
	var fail error
	fs := NewErrorFS(memWithDir(t), func(op Op, _ string) error {
		if op == OpWrite || op == OpOpen {
			return fail
		}
		return nil
	})
	f, err := fs.Create("/d/a")
	must(t, err)
	own := base.Errorf(base.CodeTimeout, "slow")
	for _, c := range []struct {
		err  error
		code base.Code
		text string
	}{
		{syscall.ENOSPC, base.CodeNoSpace, "no space left"},
		{syscall.EDQUOT, base.CodeNoSpace, "quota"},
		{syscall.EROFS, base.CodeReadOnly, "read-only"},
		{syscall.EACCES, base.CodeReadOnly, "permission"},
		{syscall.EIO, base.CodeIO, "input/output"},
		{own, base.CodeTimeout, "slow"},
	} {
		fail = c.err
		n, err := f.Write([]byte("abc"))
		if n != 0 {
			t.Errorf("%d bytes written", n)
		}
		wantCode(t, err, c.code, c.text)
	}
	fail = syscall.EACCES
	_, err = fs.Open("/d/a")
	wantCode(t, err, base.CodeIO, "/d/a")
	fail = syscall.ENOENT
	_, err = fs.Open("/d/a")
	wantCode(t, err, base.CodeNotFound, "/d/a")
}

func TestErrorFSPartly(t *testing.T) {
	var fail error
	mem := memWithDir(t)
	fs := NewErrorFS(mem, func(Op, string) error { return fail })
	f, err := fs.Create("/d/a")
	must(t, err)
	fail = &ShortWrite{N: 2, Err: syscall.ENOSPC}
	n, err := f.Write([]byte("abc"))
	wantCode(t, err, base.CodeNoSpace, "/d/a", "no space left")
	if n != 2 {
		t.Errorf("%d bytes written", n)
	}
	wantCode(t, f.Sync(), base.CodeNoSpace)
	fail = &FailAfter{Err: syscall.EIO}
	n, err = f.Write([]byte("def"))
	wantCode(t, err, base.CodeIO, "/d/a")
	if n != 3 || content(t, mem, "/d/a") != "abdef" {
		t.Errorf("%d bytes written, the file has %q", n, content(t, mem, "/d/a"))
	}
	_, err = fs.Create("/d/b")
	wantCode(t, err, base.CodeIO, "/d/b")
	_, err = mem.Stat("/d/b")
	must(t, err)
	_, err = fs.Lock("/d/LOCK", "me")
	wantCode(t, err, base.CodeIO)
	_, err = fs.Open("/d/none") // its own error counts
	wantCode(t, err, base.CodeNotFound)
	fail = nil
	l, err := fs.Lock("/d/LOCK", "me") // the failed one did not keep it
	must(t, err)
	fail = syscall.EIO
	wantCode(t, l.Close(), base.CodeIO)
	wantCode(t, f.Close(), base.CodeIO)
	fail = nil
	l, err = fs.Lock("/d/LOCK", "me") // a failed unlock unlocks
	must(t, err)
	must(t, l.Close())
	if f.Close() == nil {
		t.Error("a failed close did not close")
	}
}

func TestCountingFS(t *testing.T) {
	fs := NewCountingFS(memWithDir(t))
	for op, err := range everyOp(fs) {
		if err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	counts := fs.Counts()
	for op := range numOps {
		if counts[op].Ops != 1 || fs.Count(op) != counts[op] {
			t.Errorf("%s counted %d times", op, counts[op].Ops)
		}
	}
	if fs.Count(OpWrite).Bytes != 3 || fs.Count(OpRead).Bytes != 1 {
		t.Errorf("%d bytes written, %d read", fs.Count(OpWrite).Bytes, fs.Count(OpRead).Bytes)
	}
	if fs.PathCount(OpWrite, "/d/a").Bytes != 3 || fs.PathCount(OpWrite, "/d/b").Ops != 0 || fs.PathCount(OpRename, "/d/a").Ops != 1 {
		t.Error("wrong counts of paths")
	}
	fs.Reset()
	if len(fs.Counts()) != 0 || fs.PathCount(OpWrite, "/d/a").Ops != 0 {
		t.Error("Reset left counts")
	}
}

// TestPowerCutAfterEachOp is how crash tests use the hook: a file that was renamed into place is whole or not there.
func TestPowerCutAfterEachOp(t *testing.T) {
	mem := memWithDir(t)
	must(t, mem.SyncDir("/"))
	fs := NewCountingFS(mem)
	rng := rand.New(rand.NewPCG(4, 4))
	var done atomic.Bool
	cuts := 0
	fs.SetHook(func(op Op, path string) {
		for range 20 {
			c := mem.CrashClone(rng)
			_, err := c.Stat("/d/final")
			if err == nil && content(t, c, "/d/final") != "content" {
				t.Errorf("after %s %s the file is there and is %q", op, path, content(t, c, "/d/final"))
			}
			if err != nil && done.Load() {
				t.Errorf("after %s %s the file is gone", op, path)
			}
			cuts++
		}
	})
	put(t, fs, "/d/tmp", "content")
	must(t, fs.Rename("/d/tmp", "/d/final"))
	must(t, fs.SyncDir("/d"))
	done.Store(true)
	_, err := fs.List("/d")
	must(t, err)
	fs.SetHook(nil)
	_, err = fs.List("/d")
	must(t, err)
	if cuts != 7*20 {
		t.Errorf("%d cuts", cuts)
	}
}
