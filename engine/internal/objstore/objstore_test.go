package objstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/objstoretest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code base.Code, part string) {
	t.Helper()
	if base.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		t.Fatalf("error %v has code %d, want %d and %q", err, base.CodeOf(err), code, part)
	}
}

func TestMem(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) func() objstore.Store {
		s := objstore.NewMem()
		return func() objstore.Store { return s }
	})
}

func TestDir(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) func() objstore.Store {
		root := vfs.OS.Join(t.TempDir(), "not", "yet")
		return func() objstore.Store { return objstore.NewDir(vfs.OS, root) }
	})
}

func TestDirInMemory(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) func() objstore.Store {
		fs := vfs.NewMem()
		return func() objstore.Store { return objstore.NewDir(fs, "/root") }
	})
}

func TestFaultyWithoutFaults(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) func() objstore.Store {
		s := objstore.NewFaulty(objstore.NewMem(), func(objstore.Op, string) error { return nil })
		return func() objstore.Store { return s }
	})
}

// TestDirCrash cuts the power after every operation of a commit: the object is whole or not there, and there once the
// call returned, also where it returned that another one was faster.
func TestDirCrash(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mem := vfs.NewMem()
		fs := vfs.NewCountingFS(mem)
		s := objstore.NewDir(fs, "/db/mirror")
		acked := map[string]string{}
		value := func(key string) string { return strings.Repeat(key, 300) }
		fs.SetHook(func(op vfs.Op, path string) {
			after := objstore.NewDir(mem.CrashClone(rng), "/db/mirror")
			must(t, objstore.ListAll(ctx, after, "", func(i objstore.Info) error {
				got, err := objstore.ReadAll(ctx, after, i.Key, 1<<20)
				if err == nil && string(got) != value(i.Key) {
					err = fmt.Errorf("after %s %s: %s holds %d bytes", op, path, i.Key, len(got))
				}
				return err
			}))
			for key := range acked {
				if _, err := after.Head(ctx, key); err != nil {
					t.Fatalf("after %s %s: %v", op, path, err)
				}
			}
		})
		// The root's parent must be durable for anything to be.
		must(t, mem.MkdirAll("/db"))
		must(t, mem.SyncDir("/"))
		for i := range 4 {
			for _, key := range []string{fmt.Sprint("metadata/v", i), fmt.Sprint("data/L0/", i)} {
				put := s.PutIfAbsent
				if i%2 == 0 {
					put = s.Put
				}
				_, err := put(ctx, key, objstore.Bytes([]byte(value(key))))
				must(t, err)
				acked[key] = ""
				_, err = s.PutIfAbsent(ctx, key, objstore.Bytes(nil))
				wantCode(t, err, base.CodeAlreadyExists, key)
			}
		}
	}
}

// TestDirFaults makes every operation fail: the error has the store's code, and nothing is left half done.
func TestDirFaults(t *testing.T) {
	for _, op := range []vfs.Op{
		vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpRenameExclusive, vfs.OpSyncDir,
		vfs.OpMkdirAll, vfs.OpClose, vfs.OpStat,
	} {
		var fail error
		mem := vfs.NewMem()
		s := objstore.NewDir(vfs.NewErrorFS(mem, func(o vfs.Op, _ string) error {
			if o == op {
				return fail
			}
			return nil
		}), "/root")
		for _, put := range []func(context.Context, string, objstore.Body) (objstore.Info, error){s.Put, s.PutIfAbsent} {
			fail = syscall.ENOSPC
			_, err := put(ctx, "a/b", objstore.Bytes([]byte("x")))
			if err != nil {
				wantCode(t, err, base.CodeNoSpace, "no space left")
				wantCode(t, err, base.CodeNoSpace, "a/b")
			}
			_ = mem.Remove("/root/a/b")
			fail = syscall.EIO
			if _, err = put(ctx, "a/b", objstore.Bytes([]byte("x"))); err != nil {
				wantCode(t, err, base.CodeObjectStore, "a/b")
			}
			fail = nil
			names, err := mem.List("/root/.tmp")
			if base.CodeOf(err) != base.CodeNotFound && (err != nil || len(names) > 0) {
				t.Errorf("%s failed: %v left behind (%v)", op, names, err)
			}
			must(t, s.Delete(ctx, "a/b"))
			_, err = put(ctx, "a/b", objstore.Bytes([]byte("x")))
			must(t, err)
			must(t, s.Delete(ctx, "a/b"))
		}
	}
}

// TestDirSweep removes what a crashed writer left a day ago, and nothing younger.
func TestDirSweep(t *testing.T) {
	root := t.TempDir()
	tmp := vfs.OS.Join(root, ".tmp")
	must(t, os.Mkdir(tmp, 0o777))
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		file := vfs.OS.Join(tmp, name)
		must(t, os.WriteFile(file, nil, 0o666))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(file, at, at))
	}
	_, err := objstore.NewDir(vfs.OS, root).Put(ctx, "k", objstore.Bytes(nil))
	must(t, err)
	names, err := vfs.OS.List(tmp)
	must(t, err)
	if len(names) != 1 || names[0] != "young" {
		t.Errorf("left: %v", names)
	}
}

func TestFaulty(t *testing.T) {
	var fail error
	var seen []string
	inner := objstore.NewMem()
	s := objstore.NewFaulty(inner, func(op objstore.Op, key string) error {
		seen = append(seen, string(op)+" "+key)
		return fail
	})
	all := func() []error {
		_, errPut := s.Put(ctx, "a", objstore.Bytes([]byte("x")))
		_, errAbsent := s.PutIfAbsent(ctx, "b", objstore.Bytes([]byte("x")))
		_, errRead := s.ReadAt(ctx, "a", make([]byte, 1), 0)
		_, errHead := s.Head(ctx, "a")
		_, errList := s.List(ctx, "p", "", 1)
		return []error{errPut, errAbsent, errRead, errHead, errList, s.Delete(ctx, "a")}
	}
	fail = syscall.ECONNRESET
	for _, err := range all() {
		wantCode(t, err, base.CodeObjectStore, "reset")
	}
	if got := strings.Join(seen, ", "); got != "put a, put if absent b, read a, head a, list p, delete a" {
		t.Error(got)
	}
	if page, err := inner.List(ctx, "", "", 1); err != nil || len(page) > 0 {
		t.Error(page, err)
	}
	fail = &objstore.AnswerLost{Err: base.Errorf(base.CodeTimeout, "slow")}
	for _, err := range all() {
		wantCode(t, err, base.CodeTimeout, "slow")
	}
	_, err := inner.Head(ctx, "b")
	must(t, err)
	_, err = s.PutIfAbsent(ctx, "b", objstore.Bytes(nil)) // its own error counts
	wantCode(t, err, base.CodeAlreadyExists, "b")
}
