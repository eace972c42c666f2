package keyenc

import (
	"bytes"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

func bigint(t *testing.T) *Codec {
	t.Helper()
	c, err := NewCodec(&base.Schema{TableName: "t", PrimaryKey: []int{1, 0}, Columns: []base.Column{
		{Name: "a", Type: base.Type{Kind: base.KindVarchar}, FieldID: 1}, {Name: "b", Type: base.Type{Kind: base.KindBigInt}, FieldID: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCodecAppendsInKeyOrder(t *testing.T) {
	c := bigint(t)
	got, err := c.Append([]byte("x"), []base.Value{base.Int(-1), base.String("a\x00")})
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("x\x7f\xff\xff\xff\xff\xff\xff\xffa\x00\xff\x00\x00")
	if !bytes.Equal(got, want) {
		t.Fatalf("got %x, want %x", got, want)
	}
	vals, err := c.Decode(got[1:])
	if err != nil || vals[0].Int64() != -1 || string(vals[1].Bytes) != "a\x00" {
		t.Fatalf("decoded %v, %v", vals, err)
	}
}
