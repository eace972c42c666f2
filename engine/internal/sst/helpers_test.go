package sst

import (
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

type testRow = ssttest.Row

func makeRows(t testing.TB, s *base.Schema, n int, seed int64, tombstones int) []testRow {
	t.Helper()
	rows, err := ssttest.MakeRows(s, n, seed, tombstones)
	must(t, err)
	return rows
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// small options make many pages, blocks and row groups of few rows.
func small(s *base.Schema, level int) WriterOptions {
	return WriterOptions{Schema: s, Level: level, RowGroupRows: 1000, PageBytes: 1024, KeyBlockRows: 64}
}

// writeFile writes rows to a file in memory and opens it.
func writeFile(t testing.TB, o WriterOptions, rows []testRow, cache *Cache) (*Reader, FileInfo, vfs.FS) {
	t.Helper()
	fs := vfs.NewMem()
	must(t, fs.MkdirAll("d"))
	info, err := Write(fs, "d/f.parquet", o, ssttest.NewSource(o.Schema, rows))
	must(t, err)
	r, err := Open(fs, "d/f.parquet", info.Size, o.Schema, cache)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, info, fs
}

// sameValue compares a read value with the one written.
func sameValue(a, b base.Value) bool {
	return a.Null == b.Null && (a.Null || a.Lo == b.Lo && a.Hi == b.Hi && string(a.Bytes) == string(b.Bytes))
}

// wantRow is what a reader yields of a row, where that is known: a tombstone has only the key's values, and of those the
// canonical ones.
func wantRow(s *base.Schema, r *testRow, column int) (base.Value, bool) {
	canonical := s.Columns[column].Type.Kind != base.KindInterval
	return r.Vals[column], r.Op == base.OpPut || s.IsKey(column) && canonical
}
