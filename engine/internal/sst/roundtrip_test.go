package sst

import (
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
)

// checkIter reads the whole file and compares every value, sequence number and operation.
func checkIter(t *testing.T, r *Reader, s *base.Schema, rows []testRow) {
	t.Helper()
	it := r.NewIter(IterOptions{Hidden: true, BatchRows: 300})
	defer it.Close()
	at := 0
	for {
		cols, first, err := it.Next()
		must(t, err)
		if cols == nil {
			break
		}
		if int(first) != at {
			t.Fatalf("a batch starts at row %d, not %d", first, at)
		}
		for i := 0; i < cols.N; i++ {
			want := &rows[at]
			for c := range s.Columns {
				if v, known := wantRow(s, want, c); known && !sameValue(cols.Cols[c].Value(i), v) {
					t.Fatalf("row %d, column %d (%s): read %+v, wrote %+v", at, c, s.Columns[c].Type, cols.Cols[c].Value(i), v)
				}
			}
			if cols.Seqs[i] != want.Seq || cols.Ops[i] != want.Op {
				t.Fatalf("row %d: sequence %d op %d, wrote %d and %d", at, cols.Seqs[i], cols.Ops[i], want.Seq, want.Op)
			}
			at++
		}
	}
	if at != len(rows) {
		t.Fatalf("read %d rows of %d", at, len(rows))
	}
}

func checkGets(t *testing.T, r *Reader, s *base.Schema, rows []testRow, step int) {
	t.Helper()
	for i := 0; i < len(rows); i += step {
		pos, found, err := r.Find(rows[i].Key)
		must(t, err)
		if !found || pos != int64(i) {
			t.Fatalf("key of row %d: found %v at %d", i, found, pos)
		}
		cols, err := r.ReadRow(pos, nil)
		must(t, err)
		for c := range s.Columns {
			if v, known := wantRow(s, &rows[i], c); known && !sameValue(cols.Cols[c].Value(0), v) {
				t.Fatalf("row %d, column %d: read %+v, wrote %+v", i, c, cols.Cols[c].Value(0), v)
			}
		}
		seq, op, err := r.ReadVersion(pos)
		must(t, err)
		if seq != rows[i].Seq || op != rows[i].Op {
			t.Fatalf("row %d: version %d %d", i, seq, op)
		}
	}
}

// unlessShort is how many rows a test has.
func unlessShort(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// TestEveryType round-trips every type as a value, nullable and not, at every level's compression.
func TestEveryType(t *testing.T) {
	for _, nullable := range []bool{false, true} {
		for level := 0; level < 2; level++ {
			types := append([]base.Type{{Kind: base.KindBigInt}}, ssttest.AllTypes...)
			s := ssttest.MakeSchema(types, nullable, 0)
			rows := makeRows(t, s, unlessShort(2500, 1000), int64(level), 5)
			for _, cache := range []*Cache{nil, NewCache(1 << 20)} {
				r, info, _ := writeFile(t, small(s, level), rows, cache)
				if info.Rows != int64(len(rows)) || string(info.KeyMin) != string(rows[0].Key) || string(info.KeyMax) != string(rows[len(rows)-1].Key) {
					t.Fatalf("file info %+v", info)
				}
				for i, row := range rows {
					if info.Tombstones.Contains(uint32(i)) != (row.Op == base.OpDelete) {
						t.Fatalf("tombstone of row %d", i)
					}
				}
				checkIter(t, r, s, rows)
				checkGets(t, r, s, rows, 37)
			}
		}
	}
}

// TestEveryKeyType finds every key of every type, and no other.
func TestEveryKeyType(t *testing.T) {
	for i, typ := range ssttest.ScalarTypes {
		s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, typ}, true, 1)
		rows := makeRows(t, s, 3000, int64(i), 5)
		absent := makeRows(t, s, 500, int64(i)+1000, 0)
		r, _, _ := writeFile(t, small(s, 1), rows, NewCache(1<<20))
		t.Run(typ.String(), func(t *testing.T) {
			checkGets(t, r, s, rows, 1+len(rows)/300)
			checkAbsent(t, r, rows, absent)
		})
	}
}

func checkAbsent(t *testing.T, r *Reader, rows, absent []testRow) {
	t.Helper()
	present := map[string]bool{}
	for _, row := range rows {
		present[string(row.Key)] = true
	}
	for _, row := range absent {
		_, found, err := r.Find(row.Key)
		must(t, err)
		if found != present[string(row.Key)] {
			t.Fatalf("key %x: found %v", row.Key, found)
		}
	}
}

// TestCompositeKey has a key of several types whose declared order is not the order of the columns.
func TestCompositeKey(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, {Kind: base.KindBigInt}, {Kind: base.KindUUID}, {Kind: base.KindBoolean}}, true, 2, 0, 3)
	rows := makeRows(t, s, 3000, 1, 5)
	r, _, _ := writeFile(t, small(s, 0), rows, nil)
	checkIter(t, r, s, rows)
	checkGets(t, r, s, rows, 11)
	checkAbsent(t, r, rows, makeRows(t, s, 500, 2, 0))
}
