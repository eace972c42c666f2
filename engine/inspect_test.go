package engine

import (
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func TestKeyText(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		v    Value
		want string
	}{
		{Type{Kind: KindBigInt}, Int(-5), "-5"},
		{Type{Kind: KindVarchar}, String("a, b"), "a, b"},
		{Type{Kind: KindHugeInt}, Int(-1), "-1"},
		{Type{Kind: KindHugeInt}, Value{Hi: 1, Lo: 0}, "18446744073709551616"},
		{Type{Kind: KindUHugeInt}, Value{Hi: 1 << 63, Lo: 0}, "170141183460469231731687303715884105728"},
		{Type{Kind: KindDecimal, Precision: 9, Scale: 2}, Int(-123), "-1.23"},
		{Type{Kind: KindDate}, Int(1), "1970-01-02"},
		{Type{Kind: KindDouble}, Double(1.5), "1.5"},
		{Type{Kind: KindBlob}, Bytes([]byte{0, 255}), "00ff"},
		{Type{Kind: KindUUID}, Value{Hi: 0x0011223344556677, Lo: 0x8899aabbccddeeff}, "00112233-4455-6677-8899-aabbccddeeff"},
		{Type{Kind: KindInterval}, Value{Hi: 1 << 32, Lo: 7}, "1 months 0 days 7 us"},
		{Type{Kind: KindEnum, Labels: []string{"low", "high"}}, Uint(1), "high"},
	} {
		s := &Schema{TableName: "t", Columns: []Column{{Name: "k", Type: c.typ}, {Name: "n", Type: Type{Kind: KindInteger}}}, PrimaryKey: []int{1, 0}}
		table, err := prepareTable(s)
		must(t, err)
		key, err := table.codec.Append(nil, []Value{Int(9), c.v})
		must(t, err)
		text, err := table.keyText(key)
		must(t, err)
		if text != "9, "+c.want {
			t.Errorf("%v: %q, want %q", c.typ.Kind, text, "9, "+c.want)
		}
		if _, err := table.keyText(key[:len(key)-1]); err == nil {
			t.Errorf("%v: a key cut short has a text", c.typ.Kind)
		}
	}
}

func TestVersionsAndOptions(t *testing.T) {
	db := openMem(t, vfs.NewMem(), Options{MemtableBytes: 2 << 20, NoAutoCompaction: true})
	defer db.Free()
	_, err := db.PutBatch([][]Value{testRow(1, 1), testRow(2, 2)})
	must(t, err)
	must(t, db.Flush())
	_, err = db.Delete(testKey(1))
	must(t, err)
	must(t, db.Flush())
	versions, err := db.Versions()
	must(t, err)
	var got []string
	for i, v := range versions {
		got = append(got, v.Job)
		if v.Version != int64(i+1) || v.Committed.IsZero() {
			t.Errorf("%+v", v)
		}
	}
	last := versions[len(versions)-1]
	if strings.Join(got, " ") != "create flush flush" || last.Rows != 1 || last.Files != 2 || last.Bytes == 0 || last.Seq != 3 {
		t.Errorf("%v, %+v", got, last)
	}
	for _, o := range db.Options() {
		if o.Name == "memtable_bytes" && (o.Value != "2097152" || !o.Sticks) || o.Name == "durability" && (o.Value != "sync" || o.Sticks) {
			t.Errorf("%+v", o)
		}
	}
}
