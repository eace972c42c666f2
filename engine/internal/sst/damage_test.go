package sst

import (
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// damagedFile has every encoding: packed integers, dictionaries, plain values, both codecs by level.
func damagedFile(t testing.TB, level int) ([]byte, *base.Schema, []testRow) {
	s := ssttest.MakeSchema([]base.Type{
		{Kind: base.KindBigInt},
		{Kind: base.KindVarchar},
		{Kind: base.KindDouble},
		{Kind: base.KindInteger},
		{Kind: base.KindVarchar},
		{Kind: base.KindBoolean},
		{Kind: base.KindEnum, Labels: []string{"a", "b"}},
		{Kind: base.KindUUID},
	}, true, 0)
	rows, err := ssttest.MakeRows(s, 400, 7, 5)
	must(t, err)
	fs := vfs.NewMem()
	o := small(s, level)
	o.RowGroupRows = 250
	info, err := Write(fs, "f.parquet", o, ssttest.NewSource(s, rows))
	must(t, err)
	f, err := fs.Open("f.parquet")
	must(t, err)
	defer f.Close()
	data := make([]byte, info.Size)
	_, err = f.ReadAt(data, 0)
	must(t, err)
	return data, s, rows
}

func storeFile(t testing.TB, data []byte) vfs.FS {
	fs := vfs.NewMem()
	f, err := fs.Create("dir-x.parquet")
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Close())
	return fs
}

// readAll uses every way of reading and returns the first error.
func readAll(data []byte, s *base.Schema, rows []testRow, fs vfs.FS) error {
	r, err := Open(fs, "dir-x.parquet", int64(len(data)), s, NewCache(1<<20))
	if err != nil {
		return err
	}
	defer r.Close()
	it := r.NewIter(IterOptions{Hidden: true})
	defer it.Close()
	for {
		cols, _, err := it.Next()
		if err != nil {
			return err
		}
		if cols == nil {
			break
		}
	}
	for i := 0; i < len(rows); i += 23 {
		if _, _, err := r.Find(rows[i].Key); err != nil {
			return err
		}
		if int64(i) < r.Rows() {
			if _, err := r.ReadRow(int64(i), nil); err != nil {
				return err
			}
			if _, _, err := r.ReadVersion(int64(i)); err != nil {
				return err
			}
		}
	}
	next := 0
	err = r.FindMany(func() ([]byte, bool) {
		if next == len(rows) {
			return nil, false
		}
		next++
		return rows[next-1].Key, true
	}, func(int, int64) error { return nil })
	if err != nil {
		return err
	}
	return r.Verify(VerifyOptions{})
}

// acceptable checks that an error of reading damage says what it must.
func acceptable(t testing.TB, err error, what string) {
	t.Helper()
	switch base.CodeOf(err) {
	case base.CodeCorruption, base.CodeParquet, base.CodeSchemaMismatch, base.CodeUnsupported:
	default:
		t.Fatalf("%s: error %v has code %d", what, err, base.CodeOf(err))
	}
	if !strings.Contains(err.Error(), "dir-x.parquet") {
		t.Fatalf("%s: error %q does not name the file", what, err)
	}
}

// damageSeed starts the random damage; MERUTABLE_SEED gives another one.
func damageSeed() int64 {
	seed, _ := strconv.ParseInt(os.Getenv("MERUTABLE_SEED"), 10, 64)
	return seed
}

// TestDamage flips, cuts and overwrites bytes everywhere: there must be an error that names the file, or the data must
// read; never a panic, never memory beyond what the file could need.
func TestDamage(t *testing.T) {
	for level := 0; level < 2; level++ {
		data, s, rows := damagedFile(t, level)
		rng := rand.New(rand.NewSource(damageSeed() + int64(level)))
		must(t, readAll(data, s, rows, storeFile(t, data)))
		if reseal(data); readAll(data, s, rows, storeFile(t, data)) == nil {
			t.Fatal("the sum of what is before the footer is not checked")
		}
		data, _, _ = damagedFile(t, level)
		rounds := 1200
		if testing.Short() {
			rounds = 300
		}
		undetected := 0
		for i := 0; i < rounds; i++ {
			bad := append([]byte(nil), data...)
			mutate(rng, bad)
			switch {
			case i%10 == 0:
				bad = bad[:rng.Intn(len(bad))]
			case i%2 == 0:
				reseal(bad) // as if the writer had been wrong: nothing but the checks behind the checksum helps
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readAll(bad, s, rows, storeFile(t, bad))
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 256<<20 {
				t.Fatalf("round %d: %d bytes were allocated for a file of %d: %v", i, got, len(bad), err)
			}
			if err != nil {
				acceptable(t, err, "damage")
			} else if i%2 == 1 && string(bad) != string(data) {
				undetected++
			}
		}
		if undetected > 0 {
			t.Errorf("level %d: %d of %d damaged files read without an error", level, undetected, rounds/2)
		}
	}
}

// reseal makes the checksum of a damaged tail right again.
func reseal(b []byte) {
	footer, err := footerOf(b)
	if err != nil {
		return
	}
	if at := tailAt(footer); at >= 0 {
		copy(footer[at:], tailBlank)
		_ = sealTail(b) // the sum before the footer is then wrong, which only Verify looks at
	}
}

func mutate(rng *rand.Rand, b []byte) {
	for n := 1 + rng.Intn(3); n > 0; n-- {
		at := rng.Intn(len(b))
		if rng.Intn(2) == 0 {
			at = len(b) - 1 - rng.Intn(min(len(b), 6000)) // the footer and the page index
		}
		switch rng.Intn(4) {
		case 0:
			b[at] ^= 1 << rng.Intn(8)
		case 1:
			b[at] = byte(rng.Intn(256))
		case 2:
			for i := at; i < len(b) && i < at+1+rng.Intn(64); i++ {
				b[i] = 0
			}
		case 3:
			copy(b[at:], b[rng.Intn(len(b)):])
		}
	}
}

func FuzzOpen(f *testing.F) {
	data, s, rows := damagedFile(f, 1)
	f.Add(data)
	f.Add(data[len(data)/2:])
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readAll(b, s, rows, storeFile(t, b)); err != nil {
			acceptable(t, err, "fuzz")
		}
	})
}

func TestOpenWrongFile(t *testing.T) {
	data, s, _ := damagedFile(t, 1)
	fs := storeFile(t, data)
	if _, err := Open(fs, "none.parquet", 5, s, nil); base.CodeOf(err) != base.CodeNotFound {
		t.Fatalf("a missing file: %v", err)
	}
	if _, err := Open(fs, "dir-x.parquet", int64(len(data))+1, s, nil); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a file of another size: %v", err)
	}
	other := ssttest.MakeSchema([]base.Type{{Kind: base.KindVarchar}, {Kind: base.KindVarchar}}, true, 0)
	if _, err := Open(fs, "dir-x.parquet", int64(len(data)), other, nil); base.CodeOf(err) != base.CodeSchemaMismatch {
		t.Fatalf("a file of another table: %v", err)
	}
}

// TestOlderFile reads a file with a schema that has gained columns since and lost one.
func TestOlderFile(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindBigInt}, {Kind: base.KindVarchar}, {Kind: base.KindDouble}}, true, 0)
	rows := makeRows(t, s, 500, 1, 0)
	_, info, fs := writeFile(t, small(s, 1), rows, nil)
	younger := s.Clone()
	younger.Columns = append(younger.Columns[:1], younger.Columns[2:]...)
	younger.Columns = append(younger.Columns,
		base.Column{Name: "null", Type: base.Type{Kind: base.KindVarchar}, Nullable: true},
		base.Column{Name: "seven", Type: base.Type{Kind: base.KindInteger}, InitialDefault: []byte{7, 0, 0, 0}},
		base.Column{Name: "text", Type: base.Type{Kind: base.KindVarchar}, Nullable: true, InitialDefault: []byte("dflt")})
	younger.AssignFieldIDs()
	r, err := Open(fs, "d/f.parquet", info.Size, younger, nil)
	must(t, err)
	defer r.Close()
	it := r.NewIter(IterOptions{})
	cols, _, err := it.Next()
	must(t, err)
	one, err := r.ReadRow(3, []int{4, 3, 2, 1})
	must(t, err)
	for i := 0; i < cols.N; i++ {
		if !sameValue(cols.Cols[1].Value(i), rows[i].Vals[2]) || !cols.Cols[2].Value(i).Null || cols.Cols[3].Value(i).Int64() != 7 ||
			string(cols.Cols[4].Value(i).Bytes) != "dflt" {
			t.Fatalf("row %d of an older file", i)
		}
	}
	if string(one.Cols[0].Value(0).Bytes) != "dflt" || one.Cols[1].Value(0).Int64() != 7 || !one.Cols[2].Value(0).Null || !sameValue(one.Cols[3].Value(0), rows[3].Vals[2]) {
		t.Fatal("one row of an older file")
	}
	it.Close()
	younger.Columns[3].InitialDefault = nil
	if _, err := Open(fs, "d/f.parquet", info.Size, younger, nil); base.CodeOf(err) != base.CodeSchemaMismatch {
		t.Fatalf("a NOT NULL column without a default: %v", err)
	}
}

// TestWriteErrors fails every operation of a write in turn: the code and the path come through and no file stays.
func TestWriteErrors(t *testing.T) {
	s := bigintSchema()
	rows := makeRows(t, s, 3000, 1, 3)
	for _, cause := range []struct {
		err  error
		code base.Code
	}{{syscall.ENOSPC, base.CodeNoSpace}, {syscall.EIO, base.CodeIO}} {
		for fail := 0; ; fail++ {
			mem := vfs.NewMem()
			n := 0
			fs := vfs.NewErrorFS(mem, func(op vfs.Op, path string) error {
				if op == vfs.OpRemove {
					return nil
				}
				if n++; n == fail+1 {
					return cause.err
				}
				return nil
			})
			_, err := Write(fs, "f.parquet", small(s, 1), ssttest.NewSource(s, rows))
			if err == nil {
				if fail < 3 {
					t.Fatalf("only %d operations", fail)
				}
				break
			}
			if base.CodeOf(err) != cause.code || !strings.Contains(err.Error(), "f.parquet") {
				t.Fatalf("operation %d: %v has code %d", fail, err, base.CodeOf(err))
			}
			if _, err := mem.Stat("f.parquet"); base.CodeOf(err) != base.CodeNotFound {
				t.Fatalf("operation %d: the file stays: %v", fail, err)
			}
		}
	}
}

// TestReadErrors fails every read in turn.
func TestReadErrors(t *testing.T) {
	data, s, rows := damagedFile(t, 1)
	for fail := 0; ; fail++ {
		n := 0
		fs := vfs.NewErrorFS(storeFile(t, data), func(op vfs.Op, path string) error {
			if op == vfs.OpRead {
				if n++; n == fail+1 {
					return syscall.EIO
				}
			}
			return nil
		})
		err := readAll(data, s, rows, fs)
		if err == nil {
			if fail < 10 {
				t.Fatalf("only %d reads", fail)
			}
			return
		}
		if base.CodeOf(err) != base.CodeIO || !strings.Contains(err.Error(), "dir-x.parquet") {
			t.Fatalf("read %d: %v has code %d", fail, err, base.CodeOf(err))
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	s := bigintSchema()
	rows := makeRows(t, s, 10, 1, 0)
	fs := vfs.NewMem()
	if _, err := Write(fs, "f.parquet", small(s, 1), ssttest.NewSource(s, nil)); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("no rows: %v", err)
	}
	rows[3], rows[4] = rows[4], rows[3]
	if _, err := Write(fs, "f.parquet", small(s, 1), ssttest.NewSource(s, rows)); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("rows out of order: %v", err)
	}
	rows[3] = rows[4]
	if _, err := Write(fs, "f.parquet", small(s, 1), ssttest.NewSource(s, rows)); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("a key twice: %v", err)
	}
	if names, _ := fs.List("."); len(names) != 0 {
		t.Fatalf("files stay: %v", names)
	}
}
