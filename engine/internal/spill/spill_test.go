package spill

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

type testRow struct {
	key, value string
	op         base.Op
}

func makeRows(r *rand.Rand, n int) []testRow {
	rows := make([]testRow, n)
	for i := range rows {
		rows[i] = testRow{key: fmt.Sprintf("%08d", i*2), value: strings.Repeat("v", r.IntN(500)), op: base.OpPut}
		switch r.IntN(20) {
		case 0:
			rows[i] = testRow{key: rows[i].key, op: base.OpDelete}
		case 1:
			rows[i].value = ""
		}
	}
	return rows
}

func writeRows(t *testing.T, fs vfs.FS, rows []testRow) *Run {
	t.Helper()
	w, err := Create(fs, "/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		var value []byte
		if r.op == base.OpPut {
			value = []byte(r.value)
		}
		if err := w.Add([]byte(r.key), r.op, value); err != nil {
			t.Fatal(err)
		}
	}
	run, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	w.Abort() // does nothing
	return run
}

func (r testRow) is(it *Iter) bool {
	return it.Valid() && string(it.Key()) == r.key && it.Op() == r.op && string(it.Value()) == r.value &&
		(it.Value() == nil) == (r.op == base.OpDelete)
}

func TestRun(t *testing.T) {
	for _, n := range []int{1, 100, 20_000} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		fs := vfs.NewMem()
		rows := makeRows(r, n)
		run := writeRows(t, fs, rows)
		if run.Rows() != int64(n) || n == 20_000 && run.Blocks() < 10 {
			t.Fatalf("%d rows, want %d; %d blocks", run.Rows(), n, run.Blocks())
		}
		it := run.NewIter()
		it.First()
		held, want := it.Key(), bytes.Clone(it.Key())
		for i := range rows {
			if !rows[i].is(it) {
				t.Fatalf("row %d: %q", i, it.Key())
			}
			it.Next()
		}
		if it.Valid() || it.Err() != nil {
			t.Fatal("rows behind the last one", it.Err())
		}
		if !bytes.Equal(held, want) {
			t.Fatal("a key that was held changed")
		}
		for range 50 {
			i := r.IntN(2*n + 1)
			it.SeekGE(fmt.Appendf(nil, "%08d", i))
			if at := (i + 1) / 2; at >= n && it.Valid() || at < n && !rows[at].is(it) {
				t.Fatalf("seek %d of %d rows: valid %v, %q", i, n, it.Valid(), it.Key())
			}
		}
		if err := run.Remove(); err != nil {
			t.Fatal(err)
		}
		if err := run.Remove(); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat("/run"); base.CodeOf(err) != base.CodeNotFound {
			t.Fatal("the file is still there")
		}
	}
}

// TestDamage changes each byte of a file in turn: whoever reads gets the error, never other rows.
func TestDamage(t *testing.T) {
	fs := vfs.NewMem()
	rows := makeRows(rand.New(rand.NewPCG(1, 2)), 10)
	run := writeRows(t, fs, rows)
	whole := make([]byte, run.Bytes())
	if _, err := run.file.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x40
		f, err := fs.Create("/run")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(damaged); err != nil {
			t.Fatal(err)
		}
		run.file = f
		it := run.NewIter()
		it.First()
		if it.Valid() || base.CodeOf(it.Err()) != base.CodeCorruption || !strings.Contains(it.Err().Error(), "/run") {
			t.Fatalf("byte %d: valid %v, %v", at, it.Valid(), it.Err())
		}
	}
}

// TestFails fails every operation on the file in turn: an error comes back and no file is left.
func TestFails(t *testing.T) {
	rows := makeRows(rand.New(rand.NewPCG(1, 3)), 5000)
	for at := 0; ; at++ {
		mem, n := vfs.NewMem(), 0
		fs := vfs.NewErrorFS(mem, func(op vfs.Op, path string) error {
			if op == vfs.OpRemove {
				return nil
			}
			if n++; n == at+1 {
				return base.Errorf(base.CodeNoSpace, "%s %s: no space left on device", op, path)
			}
			return nil
		})
		err := func() error {
			w, err := Create(fs, "/run")
			if err != nil {
				return err
			}
			defer w.Abort()
			for _, r := range rows {
				if err := w.Add([]byte(r.key), r.op, []byte(r.value)); err != nil {
					return err
				}
			}
			run, err := w.Finish()
			if err != nil {
				return err
			}
			it := run.NewIter()
			for it.First(); it.Valid(); it.Next() {
			}
			if err := run.Remove(); it.Err() == nil {
				return err
			}
			return it.Err()
		}()
		if _, e := mem.Stat("/run"); base.CodeOf(e) != base.CodeNotFound {
			t.Fatalf("operation %d failed (%v): the file is still there", at, err)
		}
		if n <= at {
			break // nothing failed any more
		}
		if base.CodeOf(err) != base.CodeNoSpace {
			t.Fatalf("operation %d failed: %v", at, err)
		}
	}
}
