package row

import (
	"bytes"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/keyenc"
)

func TestRecordsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for i := 0; i < 200; i++ {
		s := randomSchema(rng)
		if i == 0 {
			s = everyKind()
		}
		codec, err := keyenc.NewCodec(s)
		if err != nil {
			t.Fatal(err)
		}
		l, recs, rows := randomRecords(t, rng, s, 20)
		for r, rec := range recs {
			if err := l.Check(rec); err != nil {
				t.Fatal(err)
			}
			var key []base.Value
			for c := range s.Columns {
				if got := l.Value(rec, c); !sameValue(s.Columns[c].Type, got, rows[r][c]) {
					t.Fatalf("%s: got %v, want %v", s.Columns[c].Type, got, rows[r][c])
				}
			}
			for _, k := range s.PrimaryKey {
				key = append(key, rows[r][k])
			}
			want, err := codec.Append(nil, key)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := KeyFromRecord(nil, l, rec); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("key %x, %v; want %x", got, err, want)
			}
		}
	}
}

func TestAppendExtendsDst(t *testing.T) {
	s := everyKind()
	l, recs, rows := randomRecords(t, rand.New(rand.NewSource(2)), s, 2)
	dst := append(bytes.Repeat([]byte{0xaa}, 1000), recs[0]...)
	got, err := l.Append(dst[:7], rows[1]) // over bytes that are not zero
	if err != nil || !bytes.Equal(got[7:], recs[1]) {
		t.Fatalf("%x, %v", got, err)
	}
}

func TestTransposition(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for i := 0; i < 100; i++ {
		s := randomSchema(rng)
		n := rng.Intn(700) // more than a block now and then
		l, recs, _ := randomRecords(t, rng, s, n)
		seqs, ops := make([]base.Seq, n), make([]base.Op, n)
		projection := rng.Perm(len(s.Columns))[:rng.Intn(len(s.Columns)+1)]
		if i%2 == 0 {
			projection = nil
		}
		one, many := NewBuilder(s, projection), NewBuilder(s, projection)
		cut := 0
		for round := 0; round < 2; round++ { // the second after a Reset
			one.Reset()
			many.Reset()
			for r, rec := range recs {
				seqs[r], ops[r] = base.Seq(rng.Int63()), base.Op(rng.Intn(2))
				one.AppendRecord(rec, seqs[r], ops[r])
			}
			cut = rng.Intn(n + 1)
			many.AppendRecords(recs[:cut], seqs[:cut], ops[:cut])
			many.AppendRecords(recs[cut:], seqs[cut:], ops[cut:])
		}
		if one.Len() != n || many.Len() != n || one.Bytes() != many.Bytes() {
			t.Fatalf("%d and %d rows of %d, %d and %d bytes", one.Len(), many.Len(), n, one.Bytes(), many.Bytes())
		}
		c := many.Columns()
		sameColumns(t, c, one.Columns())
		if projection == nil {
			plain := NewColumns(s, nil)
			l.AppendColumns(plain, nil, recs[:cut])
			l.AppendColumns(plain, nil, recs[cut:])
			sameColumns(t, plain, c)
		}
		for r := range recs {
			if c.Seqs[r] != seqs[r] || c.Ops[r] != ops[r] || one.Columns().Seqs[r] != seqs[r] {
				t.Fatalf("row %d: sequence %d, op %d", r, c.Seqs[r], c.Ops[r])
			}
			if projection == nil {
				if got := c.AppendRecord([]byte{1, 2}, l, r); !bytes.Equal(got[2:], recs[r]) {
					t.Fatalf("row %d: record %x, want %x", r, got[2:], recs[r])
				}
				want, _ := KeyFromRecord(nil, l, recs[r])
				if got := c.AppendKey(nil, s.PrimaryKey, r); !bytes.Equal(got, want) {
					t.Fatalf("row %d: key %x, want %x", r, got, want)
				}
			}
		}
	}
}

func TestAppendRange(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for i := 0; i < 50; i++ {
		s := randomSchema(rng)
		_, recs, _ := randomRecords(t, rng, s, 60)
		src := buildColumns(s, recs)
		dst := NewColumns(s, nil)
		if i%2 == 0 {
			dst.Seqs, dst.Ops = []base.Seq{}, []base.Op{}
		}
		for round := 0; round < 2; round++ {
			dst.Reset()
			var want [][]byte
			for k := 0; k < 6; k++ {
				from := rng.Intn(61)
				to := from + rng.Intn(61-from)
				dst.AppendRange(src, from, to)
				want = append(want, recs[from:to]...)
			}
			sameColumns(t, dst, buildColumns(s, want))
			if len(dst.Seqs) != len(dst.Ops) || dst.Seqs != nil && len(dst.Seqs) != dst.N {
				t.Fatalf("%d sequence numbers and %d ops for %d rows", len(dst.Seqs), len(dst.Ops), dst.N)
			}
		}
	}
}

func TestTombstones(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for i := 0; i < 100; i++ {
		s := randomSchema(rng)
		codec, err := keyenc.NewCodec(s)
		if err != nil {
			t.Fatal(err)
		}
		l, recs, _ := randomRecords(t, rng, s, 3)
		a, b := NewBuilder(s, nil), NewBuilder(s, nil)
		var keys [][]byte
		for _, rec := range recs {
			key, _ := KeyFromRecord(nil, l, rec)
			vals, err := codec.Decode(key)
			if err != nil {
				t.Fatal(err)
			}
			a.AppendTombstone(vals, 7)
			if err := b.AppendTombstoneKey(key, 7); err != nil {
				t.Fatal(err)
			}
			if err := b.AppendTombstoneKey(append(key, 1), 7); base.CodeOf(err) != base.CodeCorruption {
				t.Fatalf("a key with a byte too many: %v", err)
			}
			keys = append(keys, key)
		}
		c := b.Columns()
		sameColumns(t, a.Columns(), c)
		for r := range keys {
			if got := c.AppendKey(nil, s.PrimaryKey, r); !bytes.Equal(got, keys[r]) || c.Ops[r] != base.OpDelete || c.Seqs[r] != 7 {
				t.Fatalf("key %x, op %d, sequence %d; want %x", got, c.Ops[r], c.Seqs[r], keys[r])
			}
			if err := l.Check(c.AppendRecord(nil, l, r)); err != nil {
				t.Fatal(err)
			}
			for j, col := range s.Columns {
				if !s.IsKey(j) && c.Cols[j].IsNull(r) != col.Nullable {
					t.Fatalf("column %q is NULL: %v", col.Name, c.Cols[j].IsNull(r))
				}
			}
		}
	}
}

func oneColumn(t base.Type, nullable bool) *base.Schema {
	s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{
		{Name: "id", Type: base.Type{Kind: base.KindInteger}}, {Name: "the column", Type: t, Nullable: nullable},
	}}
	s.AssignFieldIDs()
	return s
}

func kind(k base.Kind) base.Type { return base.Type{Kind: k} }

func TestAppendRefuses(t *testing.T) {
	dec := func(p uint8) base.Type { return base.Type{Kind: base.KindDecimal, Precision: p} }
	for _, c := range []struct {
		t    base.Type
		v    base.Value
		want string
	}{
		{kind(base.KindVarchar), base.Null(), "NOT NULL"},
		{kind(base.KindVarchar), base.String("a\xff"), "UTF-8"},
		{kind(base.KindBoolean), base.Int(2), "range"},
		{kind(base.KindTinyInt), base.Int(128), "range"},
		{kind(base.KindSmallInt), base.Int(-32769), "range"},
		{kind(base.KindInteger), base.Int(1 << 31), "range"},
		{kind(base.KindDate), base.Int(-1<<31 - 1), "range"},
		{kind(base.KindUTinyInt), base.Int(-1), "range"},
		{kind(base.KindUSmallInt), base.Uint(1 << 16), "range"},
		{kind(base.KindUInteger), base.Uint(1 << 32), "range"},
		{kind(base.KindTime), base.Int(keyenc.MaxTime + 1), "TIME"},
		{kind(base.KindTime), base.Int(-1), "TIME"},
		{kind(base.KindTimestampS), base.Int(keyenc.MaxTimestampS + 1), "microseconds"},
		{kind(base.KindTimestampS), base.Int(math.MinInt64), "microseconds"},
		{kind(base.KindTimestampMS), base.Int(-keyenc.MaxTimestampMS - 1), "microseconds"},
		{dec(4), base.Int(10_000), "digits"},
		{dec(4), base.Int(-10_000), "digits"},
		{dec(18), base.Int(math.MinInt64), "digits"},
		{dec(38), base.Value{Hi: 1 << 63}, "digits"},
		{dec(19), base.Value{Lo: 10_000_000_000_000_000_000}, "digits"},
		{base.Type{Kind: base.KindEnum, Labels: []string{"a"}}, base.Uint(1), "label"},
		{base.Type{Kind: base.KindFixedBinary, Width: 3}, base.String("ab"), "FIXED_BINARY(3)"},
		{kind(base.KindBit), base.Bytes(nil), "padding"},
		{kind(base.KindBit), base.Bytes([]byte{8, 0xff}), "padding"},
		{kind(base.KindBit), base.Bytes([]byte{3}), "padding"},
		{kind(base.KindBit), base.Bytes([]byte{3, 0xc0}), "padding"},
	} {
		l := NewLayout(oneColumn(c.t, false))
		dst, err := l.Append([]byte{9}, []base.Value{base.Int(1), c.v})
		if base.CodeOf(err) != base.CodeInvalidArgument || len(dst) != 1 || !strings.Contains(err.Error(), `"the column"`) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.t, c.v, err)
		}
	}
}

func TestAppendRefusesSizesAndKeys(t *testing.T) {
	s := oneColumn(kind(base.KindBlob), true)
	l := NewLayout(s)
	if _, err := l.Append(nil, []base.Value{base.Int(1)}); err == nil || !strings.Contains(err.Error(), "2 columns, not 1") {
		t.Error(err)
	}
	big := make([]byte, base.MaxValueBytes)
	if _, err := l.Append(nil, []base.Value{base.Int(1), base.Bytes(big)}); err == nil || !strings.Contains(err.Error(), `"the column"`) {
		t.Error(err)
	}
	s.Columns[0].Nullable = true // a key column is never NULL, whatever the schema says
	if _, err := NewLayout(s).Append(nil, []base.Value{base.Null(), base.Null()}); err == nil || !strings.Contains(err.Error(), `key column "id"`) {
		t.Error(err)
	}
	s = oneColumn(kind(base.KindBlob), false)
	s.PrimaryKey = []int{1}
	l = NewLayout(s)
	rec, err := l.Append(nil, []base.Value{base.Int(1), base.Bytes(make([]byte, base.MaxKeyBytes/2))})
	if err != nil {
		t.Fatal(err)
	}
	if key, err := KeyFromRecord([]byte{1}, l, rec); err == nil || len(key) != 1 || !strings.Contains(err.Error(), `"the column"`) {
		t.Errorf("%d bytes, %v", len(key), err)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	s := everyKind()
	l, recs, _ := randomRecords(t, rand.New(rand.NewSource(6)), s, 1)
	rec := recs[0]
	for n := range rec {
		if err := l.Check(rec[:n]); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(rec), err)
		}
	}
	if err := l.Check(append(bytes.Clone(rec), 0)); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a byte too many: %v", err)
	}
	rng := rand.New(rand.NewSource(7))
	tries := 20_000
	if testing.Short() {
		tries = 2000
	}
	for range tries { // whatever passes can be read
		bad := bytes.Clone(rec)
		for k := 1 + rng.Intn(3); k > 0; k-- {
			bad[rng.Intn(len(bad))] ^= 1 << rng.Intn(8)
		}
		useRecord(t, s, l, bad)
	}
}

// useRecord checks a record and, where it passes, does with it all that the engine does.
func useRecord(t *testing.T, s *base.Schema, l *Layout, rec []byte) {
	err := l.Check(rec)
	if err != nil {
		if base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("%d: %v", base.CodeOf(err), err)
		}
		return
	}
	vals := make([]base.Value, len(s.Columns))
	for c := range vals {
		vals[c] = l.Value(rec, c)
	}
	if again, err := l.Append(nil, vals); err != nil || !bytes.Equal(again, rec) {
		t.Fatalf("a record that passed: %v\n%x\n%x", err, rec, again)
	}
	b := NewBuilder(s, nil)
	b.AppendRecord(rec, 1, base.OpPut)
	if got := b.Columns().AppendRecord(nil, l, 0); !bytes.Equal(got, rec) {
		t.Fatalf("a record that passed: %x became %x", rec, got)
	}
	if _, err := b.Columns().ToArrow(s, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func FuzzCheck(f *testing.F) {
	s := everyKind()
	l, recs, _ := randomRecords(f, rand.New(rand.NewSource(8)), s, 5)
	for _, rec := range recs {
		f.Add(rec)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, rec []byte) { useRecord(t, s, l, rec) })
}

func TestFileForm(t *testing.T) {
	rng := rand.New(rand.NewSource(9))
	for _, typ := range allTypes() {
		var storage, want []byte
		for i := 0; i < 10; i++ {
			s := keyenc.AppendValueStorage(nil, typ, randomValue(rng, typ))
			storage, want = append(storage, s...), AppendFileForm(want, typ.Kind, s)
			if typ.Kind == base.KindHugeInt || typ.Kind == base.KindUHugeInt {
				if key := keyenc.AppendStorage(nil, typ, s); !bytes.Equal(key, want[i*16:]) {
					t.Fatalf("%s: file form %x, key %x", typ, want[i*16:], key)
				}
			}
		}
		file := AppendFileForm([]byte{1}, typ.Kind, storage)
		if !bytes.Equal(file[1:], want) {
			t.Fatalf("%s: many at once differ from one by one", typ)
		}
		if back := AppendStorageFromFileForm([]byte{2}, typ.Kind, want); !bytes.Equal(back[1:], storage) {
			t.Fatalf("%s: %x came back as %x", typ, storage, back[1:])
		}
	}
	interval := keyenc.AppendValueStorage(nil, kind(base.KindInterval), base.Value{Hi: 1<<32 | 0xfffffffd, Lo: 5})
	if got := AppendFileForm(nil, base.KindInterval, interval); !bytes.Equal(got, []byte{0x80, 0, 0, 1, 0x7f, 0xff, 0xff, 0xfd, 0x80, 0, 0, 0, 0, 0, 0, 5}) {
		t.Errorf("1 month -3 days 5 microseconds: %x", got)
	}
}

func TestStorageValue(t *testing.T) {
	rng := rand.New(rand.NewSource(10))
	for _, typ := range allTypes() {
		v := randomValue(rng, typ)
		b, err := AppendStorage(nil, typ, v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := StorageValue(typ, b); err != nil || !sameValue(typ, got, v) {
			t.Errorf("%s: %v came back as %v, %v", typ, v, got, err)
		}
		if !typ.IsVariable() {
			if _, err := StorageValue(typ, append(b, 0)); base.CodeOf(err) != base.CodeCorruption {
				t.Errorf("%s with a byte too many: %v", typ, err)
			}
		}
	}
	if _, err := AppendStorage(nil, kind(base.KindDate), base.Null()); err == nil {
		t.Error("NULL was taken")
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	s := everyKind()
	s.PrimaryKey = []int{0, 2, 4, 40}
	l, recs, _ := randomRecords(t, rand.New(rand.NewSource(11)), s, 300)
	c := buildColumns(s, recs)
	buf := make([]byte, 0, 1<<16)
	b := NewBuilder(s, nil)
	seqs, ops := make([]base.Seq, 300), make([]base.Op, 300)
	b.AppendRecords(recs, seqs, ops)
	for name, fn := range map[string]func(){
		"AppendKey":     func() { buf = c.AppendKey(buf[:0], s.PrimaryKey, 3) },
		"AppendRecord":  func() { buf = c.AppendRecord(buf[:0], l, 3) },
		"KeyFromRecord": func() { buf, _ = KeyFromRecord(buf[:0], l, recs[3]) },
		"Check":         func() { _ = l.Check(recs[3]) },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
