package sst

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// largeSource makes rows with one large value each.
type largeSource struct {
	n, at, size int
	layout      *row.Layout
	key, value  []byte
}

func (s *largeSource) payload(i int) []byte {
	return bytes.Repeat([]byte{byte('a' + i%26)}, s.size+i)
}

func (s *largeSource) Next() bool {
	if s.at++; s.at >= s.n {
		return false
	}
	s.key = binary.BigEndian.AppendUint64(s.key[:0], uint64(s.at)^1<<63)
	s.value, _ = s.layout.Append(s.value[:0], []base.Value{base.Int(int64(s.at)), base.Bytes(s.payload(s.at))})
	return true
}
func (s *largeSource) Key() []byte   { return s.key }
func (s *largeSource) Seq() base.Seq { return 1 }
func (s *largeSource) Op() base.Op   { return base.OpPut }
func (s *largeSource) Value() []byte { return s.value }
func (s *largeSource) Err() error    { return nil }

// TestLargeValues writes more than a row group's bytes in few rows: row groups must end by size, pages must stay inside
// 32 bits, and memory must not grow with the file.
func TestLargeValues(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindBigInt}, {Kind: base.KindBlob}}, true, 0)
	src := &largeSource{n: 24, at: -1, size: 12 << 20, layout: row.NewLayout(s)}
	fs := vfs.OS
	path := fs.Join(t.TempDir(), "f.parquet")
	info, err := Write(fs, path, WriterOptions{Schema: s, Level: 1}, src)
	must(t, err)
	r, err := Open(fs, path, info.Size, s, nil)
	must(t, err)
	defer r.Close()
	if len(r.groups) < 3 {
		t.Fatalf("%d row groups for %d MiB", len(r.groups), src.n*src.size>>20)
	}
	for _, i := range []int{0, 13, 23} {
		pos, found, err := r.Find(benchKey(i))
		must(t, err)
		cols, err := r.ReadRow(pos, nil)
		must(t, err)
		if !found || !bytes.Equal(cols.Cols[1].Value(0).Bytes, src.payload(i)) {
			t.Fatalf("row %d", i)
		}
	}
	it := r.NewIter(IterOptions{BatchRows: 2})
	defer it.Close()
	for n := 0; ; {
		cols, _, err := it.Next()
		must(t, err)
		if cols == nil {
			if n != src.n {
				t.Fatalf("%d rows", n)
			}
			break
		}
		for i := 0; i < cols.N; i++ {
			if !bytes.Equal(cols.Cols[1].Value(i).Bytes, src.payload(n)) {
				t.Fatalf("row %d", n)
			}
			n++
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapSys-m.HeapReleased > 1<<30 {
		t.Errorf("%d MiB of heap for row groups of 64 MiB", (m.HeapSys-m.HeapReleased)>>20)
	}
}

// TestLongKeys has keys up to the limit of their size.
func TestLongKeys(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}}, true, 0)
	var vals [][]base.Value
	for i := 0; i < 300; i++ {
		vals = append(vals, []base.Value{base.String(strings.Repeat(string(rune('a'+i%26)), 200*i) + "x")})
	}
	rows, err := ssttest.RowsOf(s, vals)
	must(t, err)
	r, _, _ := writeFile(t, WriterOptions{Schema: s}, rows, NewCache(1<<20))
	checkIter(t, r, s, rows)
	checkGets(t, r, s, rows, 1)
	must(t, r.Verify(VerifyOptions{}))
}

// TestArrowReader reads a file with the library's own Arrow reader: names, field ids, row counts and some values.
func TestArrowReader(t *testing.T) {
	types := append([]base.Type{{Kind: base.KindBigInt}}, ssttest.AllTypes...)
	s := ssttest.MakeSchema(types, true, 0)
	rows := makeRows(t, s, 2500, 5, 0)
	r, _, _ := writeFile(t, small(s, 1), rows, nil)
	fr, err := pqarrow.NewFileReader(parquetReader(t, r), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	must(t, err)
	tbl, err := fr.ReadTable(t.Context())
	must(t, err)
	defer tbl.Release()
	if tbl.NumRows() != int64(len(rows)) || int(tbl.NumCols()) != len(types)+2 {
		t.Fatalf("%d rows, %d columns", tbl.NumRows(), tbl.NumCols())
	}
	for c := range types {
		f := tbl.Schema().Field(c)
		if id, _ := f.Metadata.GetValue("PARQUET:field_id"); f.Name != s.Columns[c].Name || id != fmt.Sprint(s.Columns[c].FieldID) || f.Nullable != s.Columns[c].Nullable {
			t.Fatalf("column %d is %v (field id %s)", c, f, id)
		}
		at := 0
		for _, chunk := range tbl.Column(c).Data().Chunks() {
			for i := 0; i < chunk.Len(); i++ {
				want := rows[at].Vals[c]
				if chunk.IsNull(i) != want.Null {
					t.Fatalf("column %d, row %d: NULL is %v", c, at, chunk.IsNull(i))
				}
				switch a := chunk.(type) {
				case *array.Int64:
					if !want.Null && a.Value(i) != want.Int64() {
						t.Fatalf("column %d, row %d: %d", c, at, a.Value(i))
					}
				case *array.String:
					if types[c].Kind == base.KindVarchar && !want.Null && a.Value(i) != string(want.Bytes) {
						t.Fatalf("column %d, row %d: %q", c, at, a.Value(i))
					}
				case *array.Binary:
					if !want.Null && !bytes.Equal(a.Value(i), want.Bytes) {
						t.Fatalf("column %d, row %d: %x", c, at, a.Value(i))
					}
				case *array.Decimal128:
					if d := a.Value(i); !want.Null && types[c].Precision > 18 && (d.LowBits() != want.Lo || d.HighBits() != int64(want.Hi)) {
						t.Fatalf("column %d, row %d: %v", c, at, d)
					}
				}
				at++
			}
		}
	}
	if s := tbl.Schema().Field(len(types)); s.Name != base.SeqColumn || s.Nullable {
		t.Fatalf("hidden column %v", s)
	}
}

// peak is the most that the heap held whenever it was looked at, garbage included.
type peak struct{ bytes uint64 }

func (p *peak) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.bytes = max(p.bytes, m.HeapInuse)
}

// largeValues makes a batch of one row with a value of size bytes and a few.
func largeValues(cols *row.Columns, id, size int) {
	cols.Reset()
	cols.N = 1
	cols.Cols[0].Fixed = append(cols.Cols[0].Fixed, byte(id), 0, 0, 0)
	data := slices.Grow(cols.Cols[1].Data, size+10)[:size]
	for i := range data {
		data[i] = 'x'
	}
	cols.Cols[1].Data = append(data, strconv.Itoa(id)...)
	cols.Cols[1].Offsets = append(cols.Cols[1].Offsets, int64(len(cols.Cols[1].Data)))
	cols.Seqs = append(cols.Seqs, 1)
}

// TestChunksBeyond32Bits is case 16: a column whose values exceed 2 GiB in one file, through the writer of compactions and
// back, in bounded memory. It takes MERUTABLE_LARGE=1 to have values of 64 MiB; else they have 4 MiB.
func TestChunksBeyond32Bits(t *testing.T) {
	size, limit := 4<<20, uint64(600<<20)
	if os.Getenv("MERUTABLE_LARGE") != "" {
		size, limit = 64<<20, 1200<<20
	}
	const n = 40
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, false, 0)
	for level := range 2 {
		path := t.TempDir() + "/f.parquet"
		w, err := NewWriter(vfs.OS, path, WriterOptions{Schema: s, Level: level})
		must(t, err)
		cols := row.NewColumns(s, nil)
		debug.FreeOSMemory() // what other tests left
		var p peak
		for i := range n {
			largeValues(cols, i, size)
			must(t, w.Append(cols, 0, 1))
			p.look()
		}
		info, err := w.Finish()
		must(t, err)
		p.look()
		t.Logf("L%d: a file of %d MiB, the heap had %d MiB", level, info.Size>>20, p.bytes>>20)
		r, err := Open(vfs.OS, path, info.Size, s, nil)
		must(t, err)
		for _, o := range []IterOptions{{Hidden: true}, {ReadAhead: true}, {Reverse: true}} {
			it := r.NewIter(o)
			rows := 0
			for {
				got, first, err := it.Next()
				must(t, err)
				if got == nil {
					break
				}
				for i := range got.N {
					at := int(first) + i
					if o.Reverse {
						at = int(first) - i
					}
					v := got.Cols[1].Value(i).Bytes
					if len(v) != size+len(strconv.Itoa(at)) || string(v[size:]) != strconv.Itoa(at) {
						t.Fatalf("row %d has %d bytes", at, len(v))
					}
					rows++
				}
				p.look()
			}
			it.Close()
			if rows != n {
				t.Fatalf("%d rows", rows)
			}
		}
		must(t, r.Close())
		t.Logf("L%d: read, the heap had %d MiB, %d row groups", level, p.bytes>>20, len(r.groups))
		if p.bytes > limit {
			t.Errorf("L%d: the heap had %d MiB", level, p.bytes>>20)
		}
	}
}
