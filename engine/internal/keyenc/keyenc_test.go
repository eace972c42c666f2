package keyenc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// orderedTypes has every kind, and the kinds with parameters in several widths.
func orderedTypes() []base.Type {
	types := []base.Type{
		{Kind: base.KindDecimal, Precision: 4, Scale: 1},
		{Kind: base.KindDecimal, Precision: 18},
		{Kind: base.KindDecimal, Precision: 38},
		{Kind: base.KindEnum, Labels: []string{"z", "y", "x", "a"}},
		{Kind: base.KindFixedBinary, Width: 3},
	}
	for k := base.KindBoolean; k < base.KindFixedBinary; k++ {
		if k != base.KindDecimal && k != base.KindEnum {
			types = append(types, base.Type{Kind: k})
		}
	}
	return types
}

// valueFrom makes a valid value of a type out of 16 bytes and a string, so that a fuzzer can steer it.
func valueFrom(t base.Type, hi, lo uint64, text []byte) base.Value {
	switch t.Kind {
	case base.KindBoolean:
		return base.Uint(lo & 1)
	case base.KindTinyInt:
		return base.Int(int64(int8(lo)))
	case base.KindSmallInt:
		return base.Int(int64(int16(lo)))
	case base.KindInteger, base.KindDate:
		return base.Int(int64(int32(lo)))
	case base.KindUTinyInt:
		return base.Uint(lo & math.MaxUint8)
	case base.KindUSmallInt:
		return base.Uint(lo & math.MaxUint16)
	case base.KindUInteger, base.KindFloat:
		return base.Uint(lo & math.MaxUint32)
	case base.KindEnum:
		return base.Uint(lo % uint64(len(t.Labels)))
	case base.KindTime:
		return base.Uint(lo % (MaxTime + 1))
	case base.KindTimestampS:
		return base.Int(int64(lo) % (MaxTimestampS + 1))
	case base.KindTimestampMS:
		return base.Int(int64(lo) % (MaxTimestampMS + 1))
	case base.KindDecimal:
		v := base.Value{Hi: hi, Lo: lo}
		if t.FixedSize() < 16 {
			v = base.Int(int64(lo))
		}
		for CheckValue(t, v) != nil {
			v.Lo = v.Lo>>1 | v.Hi<<63
			v.Hi = uint64(int64(v.Hi) >> 1)
		}
		return v
	case base.KindVarchar:
		return base.Bytes(bytes.ToValidUTF8(text, []byte{0}))
	case base.KindBlob:
		return base.Bytes(text)
	case base.KindBit:
		b := append([]byte{byte(lo & 7), byte(hi)}, text...)
		b[1] |= byte(uint(0xff00) >> b[0])
		return base.Bytes(b)
	case base.KindFixedBinary:
		return base.Bytes(binary.LittleEndian.AppendUint64(nil, lo)[:t.Width])
	}
	return base.Value{Hi: hi, Lo: lo}
}

// compareValues is the order that keys must have, written from the types' meaning and not from their encoding.
func compareValues(t base.Type, a, b base.Value) int {
	switch t.Kind {
	case base.KindFloat:
		return compareFloats(float64(math.Float32frombits(uint32(a.Lo))), float64(math.Float32frombits(uint32(b.Lo))))
	case base.KindDouble:
		return compareFloats(math.Float64frombits(a.Lo), math.Float64frombits(b.Lo))
	case base.KindVarchar, base.KindBlob, base.KindBit, base.KindFixedBinary:
		return bytes.Compare(a.Bytes, b.Bytes)
	case base.KindInterval:
		return intervalBig(a).Cmp(intervalBig(b))
	case base.KindHugeInt:
		return bigOf(a, true).Cmp(bigOf(b, true))
	case base.KindUHugeInt, base.KindUUID:
		return bigOf(a, false).Cmp(bigOf(b, false))
	case base.KindDecimal:
		if t.FixedSize() == 16 {
			return bigOf(a, true).Cmp(bigOf(b, true))
		}
	case base.KindUBigInt:
		return new(big.Int).SetUint64(a.Lo).Cmp(new(big.Int).SetUint64(b.Lo))
	}
	return big.NewInt(a.Int64()).Cmp(big.NewInt(b.Int64()))
}

func compareFloats(a, b float64) int {
	switch {
	case a == b || a != a && b != b:
		return 0
	case a < b || b != b:
		return -1
	}
	return 1
}

func bigOf(v base.Value, signed bool) *big.Int {
	hi := new(big.Int).SetUint64(v.Hi)
	if signed {
		hi = big.NewInt(int64(v.Hi))
	}
	return hi.Lsh(hi, 64).Add(hi, new(big.Int).SetUint64(v.Lo))
}

func intervalBig(v base.Value) *big.Int {
	total := new(big.Int).Mul(big.NewInt(int64(int32(v.Hi>>32))), big.NewInt(30))
	total.Add(total, big.NewInt(int64(int32(v.Hi))))
	total.Mul(total, big.NewInt(86_400_000_000))
	return total.Add(total, big.NewInt(v.Int64()))
}

// checkPair checks all that two keys of one type must satisfy.
func checkPair(t *testing.T, typ base.Type, a, b base.Value) {
	t.Helper()
	ka, kb := AppendValue(nil, typ, a), AppendValue(nil, typ, b)
	if got, want := bytes.Compare(ka, kb), compareValues(typ, a, b); got != want {
		t.Fatalf("%s: %v and %v compare as %d, their keys %x and %x as %d", typ, a, b, want, ka, kb, got)
	}
	if !bytes.Equal(ka, kb) && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
		t.Fatalf("%s: one of the keys %x and %x starts with the other", typ, ka, kb)
	}
	for _, v := range []base.Value{a, b} {
		if err := CheckValue(typ, v); err != nil {
			t.Fatal(err)
		}
		storage := AppendValueStorage(nil, typ, v)
		key := AppendStorage([]byte{1}, typ, storage)
		if !bytes.Equal(key[1:], AppendValue(nil, typ, v)) {
			t.Fatalf("%s: %v encodes as %x by value, %x from storage", typ, v, AppendValue(nil, typ, v), key[1:])
		}
		if typ.IsVariable() && len(key)-1 > MaxEscaped(len(storage)) {
			t.Fatalf("%s: %d bytes for %d", typ, len(key)-1, len(storage))
		}
		got, rest, err := DecodeValue(typ, append(key[1:], 7, 7))
		if err != nil || len(rest) != 2 || compareValues(typ, got, v) != 0 || CheckValue(typ, got) != nil {
			t.Fatalf("%s: %v came back as %v with %x left: %v", typ, v, got, rest, err)
		}
		out, rest, err := DecodeStorage([]byte{3}, typ, append(key[1:], 7))
		if err != nil || len(rest) != 1 || !bytes.Equal(out[1:], AppendValueStorage(nil, typ, got)) {
			t.Fatalf("%s: the storage form of %v came back as %x: %v", typ, v, out[1:], err)
		}
	}
}

func randomWord(rng *rand.Rand) uint64 {
	edges := []uint64{
		0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 1 << 31, 1<<31 - 1, 1 << 32, 1 << 15, 1 << 7, 0x7ff0000000000000, 0xfff0000000000000,
		0x7ff8000000000000, 0xfff8000000000001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x80000001, 86_400_000_000, 3,
	}
	switch rng.Intn(3) {
	case 0:
		return edges[rng.Intn(len(edges))]
	case 1:
		return uint64(int64(rng.Uint64()) >> rng.Intn(64))
	}
	return rng.Uint64()
}

func randomText(rng *rand.Rand) []byte {
	b := make([]byte, rng.Intn(6))
	for i := range b {
		b[i] = []byte{0, 0, 0xff, 1, 'a', 'b'}[rng.Intn(6)]
	}
	return b
}

func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, typ := range orderedTypes() {
		for i := 0; i < 3000; i++ {
			a := valueFrom(typ, randomWord(rng), randomWord(rng), randomText(rng))
			b := valueFrom(typ, randomWord(rng), randomWord(rng), randomText(rng))
			checkPair(t, typ, a, b)
		}
	}
}

func FuzzOrder(f *testing.F) {
	types := orderedTypes()
	for i := range types {
		f.Add(uint8(i), uint64(1), uint64(2), uint64(3), uint64(math.MaxUint64), []byte("a\x00"), []byte("a\x00\xff"))
	}
	f.Fuzz(func(t *testing.T, k uint8, hi1, lo1, hi2, lo2 uint64, text1, text2 []byte) {
		typ := types[int(k)%len(types)]
		checkPair(t, typ, valueFrom(typ, hi1, lo1, text1), valueFrom(typ, hi2, lo2, text2))
	})
}

// FuzzDecode holds that bytes which decode are the one encoding of what they decode to.
func FuzzDecode(f *testing.F) {
	types := orderedTypes()
	for i, typ := range types {
		f.Add(uint8(i), AppendValue(nil, typ, valueFrom(typ, 5, 6, []byte("a\x00b"))))
	}
	f.Fuzz(func(t *testing.T, k uint8, key []byte) {
		typ := types[int(k)%len(types)]
		v, rest, err := DecodeValue(typ, key)
		if err != nil {
			if base.CodeOf(err) != base.CodeCorruption {
				t.Fatal(err)
			}
			return
		}
		if again := AppendValue(nil, typ, v); !bytes.Equal(append(again, rest...), key) {
			t.Fatalf("%s: %x decodes to %v, which encodes to %x", typ, key, v, again)
		}
	})
}

// The composite of two strings: the boundary between them counts.
func FuzzComposite(f *testing.F) {
	c, err := NewCodec(keySchema(base.Type{Kind: base.KindVarchar}, base.Type{Kind: base.KindBlob}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a", []byte("b"), "ab", []byte(""))
	f.Add("a\x00", []byte("\xff"), "a", []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, a1 string, a2 []byte, b1 string, b2 []byte) {
		a1, b1 = strings.ToValidUTF8(a1, "?"), strings.ToValidUTF8(b1, "?")
		want := strings.Compare(a1, b1)
		if want == 0 {
			want = bytes.Compare(a2, b2)
		}
		ka, err1 := c.Append(nil, []base.Value{base.String(a1), base.Bytes(a2)})
		kb, err2 := c.Append(nil, []base.Value{base.String(b1), base.Bytes(b2)})
		if err1 != nil || err2 != nil {
			t.Skip() // too long
		}
		if got := bytes.Compare(ka, kb); got != want {
			t.Fatalf("(%q, %q) and (%q, %q) compare as %d, their keys as %d", a1, a2, b1, b2, want, got)
		}
		back, err := c.Decode(ka)
		if err != nil || string(back[0].Bytes) != a1 || !bytes.Equal(back[1].Bytes, a2) {
			t.Fatalf("(%q, %q) came back as %v, %v", a1, a2, back, err)
		}
	})
}

// keySchema has columns k0, k1, … which are the key in reverse order.
func keySchema(types ...base.Type) *base.Schema {
	s := &base.Schema{TableName: "t"}
	for i, typ := range types {
		s.Columns = append(s.Columns, base.Column{Name: "k" + string(rune('0'+i)), Type: typ})
		s.PrimaryKey = append(s.PrimaryKey, len(types)-1-i)
	}
	s.AssignFieldIDs()
	return s
}

func TestRandomComposites(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	types := orderedTypes()
	for i := 0; i < 2000; i++ {
		cols := make([]base.Type, 1+rng.Intn(4))
		for k := range cols {
			cols[k] = types[rng.Intn(len(types))]
		}
		s := keySchema(cols...)
		c, err := NewCodec(s)
		if err != nil {
			t.Fatal(err)
		}
		a, b := make([]base.Value, len(cols)), make([]base.Value, len(cols))
		want := 0
		for k, p := range s.PrimaryKey {
			a[k] = valueFrom(cols[p], randomWord(rng), randomWord(rng), randomText(rng))
			b[k] = a[k]
			if rng.Intn(2) == 0 {
				b[k] = valueFrom(cols[p], randomWord(rng), randomWord(rng), randomText(rng))
			}
			if want == 0 {
				want = compareValues(cols[p], a[k], b[k])
			}
		}
		ka, err1 := c.Append(nil, a)
		kb, err2 := c.Append(nil, b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if got := bytes.Compare(ka, kb); got != want {
			t.Fatalf("%v: %v and %v compare as %d, their keys as %d", cols, a, b, want, got)
		}
		back, err := c.Decode(ka)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.Append(nil, back); err != nil || !bytes.Equal(again, ka) {
			t.Fatalf("%x decodes to %v, which encodes to %x, %v", ka, back, again, err)
		}
		if _, err := c.Decode(append(ka, 0)); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("a byte too many: %v", err)
		}
	}
}

func TestEncodings(t *testing.T) {
	const maxDays = 1<<31 - 1
	for _, c := range []struct {
		kind base.Kind
		v    base.Value
		want string
	}{
		{base.KindBoolean, base.Bool(true), "\x01"},
		{base.KindTinyInt, base.Int(-128), "\x00"},
		{base.KindSmallInt, base.Int(1), "\x80\x01"},
		{base.KindInteger, base.Int(-1), "\x7f\xff\xff\xff"},
		{base.KindBigInt, base.Int(0), "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{base.KindUBigInt, base.Uint(1), "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{base.KindHugeInt, base.Int(-2), "\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"},
		{base.KindUHugeInt, base.Value{Hi: 1, Lo: 2}, "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02"},
		{base.KindUUID, base.Value{Hi: 1 << 63, Lo: 2}, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"},
		{base.KindFloat, base.Float(1), "\xbf\x80\x00\x00"},
		{base.KindDouble, base.Double(-1), "\x40\x0f\xff\xff\xff\xff\xff\xff"},
		{base.KindDouble, base.Double(math.Copysign(0, -1)), "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{base.KindDouble, base.Uint(0xfff8000000000001), "\xff\xf8\x00\x00\x00\x00\x00\x00"},
		{base.KindFloat, base.Uint(0x7f800001), "\xff\xc0\x00\x00"},
		{base.KindVarchar, base.String("a\x00b"), "a\x00\xffb\x00\x00"},
		{base.KindBit, base.Bytes([]byte{0}), "\x00\xff\x00\x00"},
		{base.KindInterval, base.Value{Hi: 1 << 32}, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x5b\x7f\x3d\x40\x00"},
		{base.KindInterval, base.Value{Hi: 29, Lo: 86_400_000_000}, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x5b\x7f\x3d\x40\x00"},
	} {
		typ := base.Type{Kind: c.kind}
		if got := AppendValue(nil, typ, c.v); string(got) != c.want {
			t.Errorf("%s %v: %x, want %x", c.kind, c.v, got, c.want)
		}
	}
	for _, v := range []base.Value{
		{Hi: 0x7fffffff<<32 | maxDays, Lo: math.MaxInt64}, {Hi: 0x80000000<<32 | 0x80000000, Lo: 1 << 63}, {Hi: 0x7fffffff << 32, Lo: 1 << 63}, {},
	} {
		checkPair(t, base.Type{Kind: base.KindInterval}, v, base.Value{Hi: 1})
	}
}

func TestCodecRefuses(t *testing.T) {
	c, err := NewCodec(keySchema(base.Type{Kind: base.KindBlob}, base.Type{Kind: base.KindFixedBinary, Width: 4}))
	if err != nil {
		t.Fatal(err)
	}
	ok := base.String("1234")
	for _, k := range []struct {
		key  []base.Value
		want string
	}{
		{[]base.Value{ok}, "2 columns, not 1"},
		{[]base.Value{base.Null(), base.String("x")}, `key column "k1" is NULL`},
		{[]base.Value{ok, base.Null()}, `key column "k0" is NULL`},
		{[]base.Value{base.String("123"), base.String("x")}, `"k1"`},
		{[]base.Value{ok, base.Bytes(bytes.Repeat([]byte{1}, base.MaxKeyBytes-5))}, `"k0"`},
		{[]base.Value{ok, base.Bytes(make([]byte, base.MaxKeyBytes/2))}, `"k0"`},
	} {
		dst, err := c.Append([]byte{1}, k.key)
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), k.want) || len(dst) != 1 {
			t.Errorf("%.40q: %v", k.want, err)
		}
	}
	if _, err := c.Append(nil, []base.Value{ok, base.Bytes(bytes.Repeat([]byte{1}, base.MaxKeyBytes-6))}); err != nil {
		t.Errorf("a key of exactly the limit: %v", err)
	}
	for _, s := range []*base.Schema{{}, {PrimaryKey: []int{1}, Columns: make([]base.Column, 1)}, keySchema(base.Type{Kind: 99})} {
		if _, err := NewCodec(s); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestCodecDoesNotAllocate(t *testing.T) {
	for _, typ := range orderedTypes() {
		c, err := NewCodec(keySchema(typ))
		if err != nil {
			t.Fatal(err)
		}
		key := []base.Value{valueFrom(typ, 1, 2, []byte("a\x00b"))}
		buf := make([]byte, 0, 100)
		if n := testing.AllocsPerRun(50, func() { buf, _ = c.Append(buf[:0], key) }); n != 0 {
			t.Errorf("%s: %v allocations", typ, n)
		}
		out := make([]byte, 0, 100)
		if n := testing.AllocsPerRun(50, func() { out, _, _ = DecodeStorage(out[:0], typ, buf) }); n != 0 {
			t.Errorf("%s: %v allocations to decode", typ, n)
		}
	}
}

func BenchmarkAppendStorage(b *testing.B) {
	for _, typ := range []base.Type{{Kind: base.KindBigInt}, {Kind: base.KindVarchar}, {Kind: base.KindInterval}} {
		b.Run(typ.String(), func(b *testing.B) {
			storage := AppendValueStorage(nil, typ, valueFrom(typ, 1, 2, []byte("0123456789abcdef")))
			buf := make([]byte, 0, 100)
			for i := 0; i < b.N; i++ {
				buf = AppendStorage(buf[:0], typ, storage)
			}
		})
	}
}
