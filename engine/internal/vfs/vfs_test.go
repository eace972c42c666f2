package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

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

// put makes a file with a content, synced.
func put(t testing.TB, fs FS, name, content string) {
	t.Helper()
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}

// content returns what a file holds.
func content(t testing.TB, fs FS, name string) string {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	must(t, f.Close())
	return string(data[:n])
}

// everyFS runs a test on all implementations, in an empty directory.
func everyFS(t *testing.T, test func(t *testing.T, fs FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS, t.TempDir()) })
	mem := func() FS {
		m := NewMem()
		must(t, m.MkdirAll("/d"))
		return m
	}
	t.Run("mem", func(t *testing.T) { test(t, mem(), "/d") })
	t.Run("error", func(t *testing.T) { test(t, NewErrorFS(mem(), func(Op, string) error { return nil }), "/d") })
	t.Run("counting", func(t *testing.T) { test(t, NewCountingFS(mem()), "/d") })
}

func TestFiles(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		name := fs.Join(dir, "a")
		f, err := fs.Create(name)
		must(t, err)
		if f.Name() != name {
			t.Errorf("the name is %s", f.Name())
		}
		for _, s := range []string{"hello", "", " world"} {
			n, err := f.Write([]byte(s))
			if n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		must(t, f.Sync())
		buf := make([]byte, 8)
		if n, err := f.ReadAt(buf, 6); n != 5 || err != io.EOF || string(buf[:n]) != "world" {
			t.Fatalf("%d %v %q", n, err, buf)
		}
		if n, err := f.ReadAt(buf[:5], 6); n != 5 || err != nil && err != io.EOF {
			t.Fatal(n, err)
		}
		if n, err := f.ReadAt(buf, 100); n != 0 || err != io.EOF {
			t.Fatal(n, err)
		}
		_, err = f.ReadAt(buf, -1)
		if err == nil {
			t.Fatal("a negative offset was read")
		}
		must(t, f.Close())
		if err := f.Close(); err == nil {
			t.Fatal("closed twice")
		}
		_, err = f.Write([]byte("x"))
		wantCode(t, err, base.CodeClosed, name)

		f, err = fs.OpenAppend(name)
		must(t, err)
		_, err = f.Write([]byte("!"))
		must(t, err)
		size, err := f.Size()
		must(t, err)
		if size != 12 {
			t.Fatalf("size %d", size)
		}
		must(t, f.Close())
		f, err = fs.Open(name)
		must(t, err)
		if _, err = f.Write([]byte("x")); err == nil {
			t.Fatal("a file opened for reading was written")
		}
		must(t, f.Close())
		if s := content(t, fs, name); s != "hello world!" {
			t.Fatalf("%q", s)
		}
		f, err = fs.Create(name) // empties it
		must(t, err)
		must(t, f.Close())
		if s := content(t, fs, name); s != "" {
			t.Fatalf("%q", s)
		}
	})
}

func TestTruncateAndPreallocate(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		name := fs.Join(dir, "a")
		put(t, fs, name, "0123456789")
		must(t, fs.Truncate(name, 4))
		must(t, fs.Truncate(name, 6))
		if s := content(t, fs, name); s != "0123\x00\x00" {
			t.Fatalf("%q", s)
		}
		f, err := fs.OpenAppend(name)
		must(t, err)
		_, err = f.Write([]byte("ab"))
		must(t, err)
		err = Preallocate(f, 20)
		if base.CodeOf(err) == base.CodeUnsupported {
			t.Skip("this file system does not preallocate")
		}
		must(t, err)
		must(t, Preallocate(f, 5)) // never shrinks
		_, err = f.Write([]byte("cd"))
		must(t, err)
		must(t, f.Sync())
		must(t, f.Close())
		if s := content(t, fs, name); s != "0123\x00\x00abcd"+strings.Repeat("\x00", 10) {
			t.Fatalf("%q", s)
		}
		wantCode(t, fs.Truncate(name+"x", 1), base.CodeNotFound, name+"x")
	})
}

func TestDirectories(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		a := fs.Join(dir, "a")
		deep := fs.Join(a, "b", "c")
		must(t, fs.MkdirAll(deep))
		must(t, fs.MkdirAll(deep))
		for _, n := range []string{"z", "A", "m.n"} {
			put(t, fs, fs.Join(a, n), n)
		}
		names, err := fs.List(a)
		must(t, err)
		if !slices.Equal(names, []string{"A", "b", "m.n", "z"}) {
			t.Fatal(names)
		}
		info, err := fs.Stat(a)
		must(t, err)
		if !info.IsDir {
			t.Fatal("not a directory")
		}
		info, err = fs.Stat(fs.Join(a, "m.n"))
		must(t, err)
		if info.IsDir || info.Size != 3 || info.ModTime.IsZero() {
			t.Fatal(info)
		}
		must(t, fs.SyncDir(a))
		for _, d := range []string{deep, a, dir} {
			must(t, fs.SyncDir(d))
		}
		if fs.Remove(a) == nil {
			t.Fatal("a full directory was removed")
		}
		must(t, fs.Remove(deep))
		must(t, fs.RemoveAll(a))
		must(t, fs.RemoveAll(a))
		must(t, fs.RemoveAll(fs.Join(dir, "none", "none")))
		_, err = fs.Stat(a)
		wantCode(t, err, base.CodeNotFound, a)
		put(t, fs, a, "now a file")
		_, err = fs.Stat(fs.Join(a, "x"))
		wantCode(t, err, base.CodeNotFound)
		_, err = fs.Open(fs.Join(a, "x"))
		wantCode(t, err, base.CodeNotFound)
		_, err = fs.List(a)
		wantCode(t, err, base.CodeIO, a)
		if err := fs.MkdirAll(fs.Join(a, "x")); err == nil || !strings.Contains(err.Error(), a) {
			t.Fatal(err)
		}
	})
}

func TestMissing(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		none := fs.Join(dir, "none")
		_, errOpen := fs.Open(none)
		_, errAppend := fs.OpenAppend(none)
		_, errList := fs.List(none)
		_, errStat := fs.Stat(none)
		_, errCreate := fs.Create(fs.Join(none, "x"))
		_, errLock := fs.Lock(fs.Join(none, "x"), "me")
		for _, err := range []error{
			errOpen, errAppend, errList, errStat, errCreate, errLock, fs.Remove(none), fs.SyncDir(none),
			fs.Rename(none, none+"2"), fs.RenameExclusive(none, none+"2"),
		} {
			wantCode(t, err, base.CodeNotFound, none)
		}
	})
}

func TestRename(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		a, b := fs.Join(dir, "a"), fs.Join(dir, "sub", "b")
		must(t, fs.MkdirAll(fs.Join(dir, "sub")))
		put(t, fs, a, "new")
		put(t, fs, b, "old")
		err := fs.RenameExclusive(a, b)
		wantCode(t, err, base.CodeAlreadyExists, a, b)
		if content(t, fs, a) != "new" || content(t, fs, b) != "old" {
			t.Fatal("a refused rename did something")
		}
		must(t, fs.Rename(a, b))
		if s := content(t, fs, b); s != "new" {
			t.Fatal(s)
		}
		_, err = fs.Stat(a)
		wantCode(t, err, base.CodeNotFound)
		must(t, fs.RenameExclusive(b, a))
		if s := content(t, fs, a); s != "new" {
			t.Fatal(s)
		}
		// An open file follows its name.
		f, err := fs.OpenAppend(a)
		must(t, err)
		must(t, fs.Rename(a, b))
		_, err = f.Write([]byte("er"))
		must(t, err)
		must(t, fs.Remove(b))
		if n, _ := f.ReadAt(make([]byte, 9), 0); n != 5 {
			t.Fatalf("%d bytes in a removed file", n)
		}
		must(t, f.Close())
	})
}

// TestRenameExclusiveRace lets many want one name: one gets it.
func TestRenameExclusiveRace(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		target := fs.Join(dir, "target")
		var wg sync.WaitGroup
		won := make(chan string, 20)
		for i := range 20 {
			name := fs.Join(dir, fmt.Sprint("f", i))
			put(t, fs, name, name)
			wg.Go(func() {
				err := fs.RenameExclusive(name, target)
				if err == nil {
					won <- name
				} else if base.CodeOf(err) != base.CodeAlreadyExists {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d won", len(won))
		}
		if name := <-won; content(t, fs, target) != name {
			t.Fatal("the winner's content is not there")
		}
	})
}

func TestLinkAndRemove(t *testing.T) {
	dir := t.TempDir()
	a, b := OS.Join(dir, "a"), OS.Join(dir, "b")
	put(t, OS, a, "x")
	must(t, linkAndRemove(a, b))
	put(t, OS, a, "y")
	if err := linkAndRemove(a, b); !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if content(t, OS, a) != "y" || content(t, OS, b) != "x" {
		t.Fatal("a refused rename did something")
	}
}

func TestLock(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		name := fs.Join(dir, "LOCK")
		l, err := fs.Lock(name, "process 1")
		must(t, err)
		_, err = fs.Lock(name, "process 2")
		wantCode(t, err, base.CodeLocked, name, "process 1")
		must(t, l.Close())
		_ = l.Close()
		l2, err := fs.Lock(name, "another, with a shorter or longer name")
		must(t, err)
		_ = l.Close() // an old holder cannot release it
		_, err = fs.Lock(name, "process 3")
		wantCode(t, err, base.CodeLocked, "another, with a shorter or longer name")
		must(t, l2.Close())
		if !strings.HasPrefix(content(t, fs, name), "another") {
			t.Error("the lock file is gone")
		}
		l3, err := fs.Lock(name, strings.Repeat("long", 10000))
		must(t, err)
		_, err = fs.Lock(name, "process 4")
		wantCode(t, err, base.CodeLocked, "longlong")
		must(t, l3.Close())
	})
}

func TestSharedLocks(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		name := fs.Join(dir, "file")
		_, err := fs.LockShared(name)
		wantCode(t, err, base.CodeNotFound, name)
		_, err = fs.TryLockExclusive(name)
		wantCode(t, err, base.CodeNotFound, name)
		put(t, fs, name, "content")
		a, err := fs.LockShared(name)
		must(t, err)
		b, err := fs.LockShared(name)
		must(t, err)
		must(t, a.Close())
		_ = a.Close() // must not release what b holds
		_, err = fs.TryLockExclusive(name)
		wantCode(t, err, base.CodeLocked, name)
		must(t, b.Close())
		x, err := fs.TryLockExclusive(name)
		must(t, err)
		_, err = fs.LockShared(name)
		wantCode(t, err, base.CodeLocked, name)
		_, err = fs.TryLockExclusive(name)
		wantCode(t, err, base.CodeLocked, name)
		must(t, fs.Remove(name))
		_, err = fs.LockShared(name)
		wantCode(t, err, base.CodeNotFound, name)
		put(t, fs, name, "another file of that name")
		y, err := fs.TryLockExclusive(name)
		must(t, err)
		must(t, x.Close())
		must(t, y.Close())
		if content(t, fs, name) != "another file of that name" {
			t.Error("a lock changed the file")
		}
	})
}

// TestLockOfReplacedFile has the file replaced between the opening and the lock.
func TestLockOfReplacedFile(t *testing.T) {
	name := OS.Join(t.TempDir(), "file")
	put(t, OS, name, "old")
	f, err := os.Open(name)
	must(t, err)
	must(t, os.Remove(name))
	put(t, OS, name, "new")
	_, err = lockNamed(OpLockShared, f, name, syscall.LOCK_SH)
	wantCode(t, err, base.CodeNotFound, name)
	l, err := OS.TryLockExclusive(name)
	must(t, err)
	must(t, l.Close())
}

// TestLockDiesWithProcess has another process take the lock and be killed.
func TestLockDiesWithProcess(t *testing.T) {
	name := os.Getenv("VFS_TEST_LOCK")
	if name != "" {
		if _, err := OS.Lock(name, "the child"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		select {}
	}
	name = OS.Join(t.TempDir(), "LOCK")
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockDiesWithProcess$")
	cmd.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, 7)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "locked\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, err = OS.Lock(name, "the parent")
	wantCode(t, err, base.CodeLocked, "the child")
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	l, err := OS.Lock(name, "the parent")
	must(t, err)
	must(t, l.Close())
}

// TestOSReadOnly needs a user whom permissions bind.
func TestOSReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o555))
	_, err := OS.Create(OS.Join(dir, "x"))
	wantCode(t, err, base.CodeReadOnly, dir)
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	everyFS(t, func(t *testing.T, fs FS, dir string) {
		f, err := fs.Create(fs.Join(dir, "shared"))
		must(t, err)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				mine := fs.Join(dir, fmt.Sprint("dir", i))
				for n := range 50 {
					if err := fs.MkdirAll(mine); err != nil {
						t.Error(err)
					}
					put(t, fs, fs.Join(mine, "x"), "abc")
					_, _ = fs.List(dir)
					_, _ = f.ReadAt(make([]byte, 10), int64(n))
					_, _ = f.Size()
					if err := f.Sync(); err != nil {
						t.Error(err)
					}
					_ = fs.SyncDir(dir)
					_ = fs.RemoveAll(mine)
					if m, ok := fs.(*MemFS); ok {
						m.CrashClone(nil)
					}
				}
			})
		}
		for range 100 {
			if _, err := f.Write([]byte("0123456789")); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		must(t, f.Close())
	})
}
