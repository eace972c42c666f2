package spill

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestMerge merges runs with keys in common: the row of the last run that has a key wins.
func TestMerge(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		fs := vfs.NewMem()
		want := map[string]testRow{}
		var sources []Source
		for n := range 1 + r.IntN(5) {
			w, err := Create(fs, fmt.Sprint("/run", n))
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for i := range 3000 {
				if r.IntN(3) > 0 && rows > 0 {
					continue
				}
				row := testRow{key: fmt.Sprintf("%05d", i) + strings.Repeat("k", i%3*4), value: fmt.Sprint(n), op: base.OpPut}
				if r.IntN(9) == 0 {
					row = testRow{key: row.key, op: base.OpDelete}
				}
				if err := w.Add([]byte(row.key), row.op, []byte(row.value)); err != nil {
					t.Fatal(err)
				}
				want[row.key] = row
				rows++
			}
			run, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, run.NewIter())
		}
		m := NewMerge(sources...)
		from := fmt.Sprintf("%05d", r.IntN(3000))
		for _, start := range []string{"", from} {
			if m.First(); start != "" {
				m.SeekGE([]byte(start))
			}
			n, last := 0, ""
			for ; m.Valid(); m.Next() {
				row, ok := want[string(m.Key())]
				if !ok || row.key <= last || row.op != m.Op() || row.value != string(m.Value()) {
					t.Fatalf("key %q after %q: %q", m.Key(), last, m.Value())
				}
				last = row.key
				n++
			}
			for k := range want {
				if k >= start {
					n--
				}
			}
			if n != 0 || m.Err() != nil {
				t.Fatalf("%d rows too many, %v", n, m.Err())
			}
		}
	}
}

// TestMergeFails: what ends one source ends the merge, with its error.
func TestMergeFails(t *testing.T) {
	mem := vfs.NewMem()
	reads := 0
	fs := vfs.NewErrorFS(mem, func(op vfs.Op, path string) error {
		if op == vfs.OpRead {
			if reads++; reads == 3 {
				return base.Errorf(base.CodeIO, "read %s: input/output error", path)
			}
		}
		return nil
	})
	rows := makeRows(rand.New(rand.NewPCG(1, 5)), 5000)
	a, b := writeRows(t, fs, rows), writeRows(t, vfs.NewMem(), rows[:1])
	m := NewMerge(a.NewIter(), b.NewIter())
	n := 0
	for m.First(); m.Valid(); m.Next() {
		n++
	}
	if base.CodeOf(m.Err()) != base.CodeIO || n == 0 || n == len(rows) {
		t.Fatalf("%d rows, %v", n, m.Err())
	}
}
