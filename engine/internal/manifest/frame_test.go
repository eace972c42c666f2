package manifest

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

func sample() *Manifest {
	return &Manifest{
		Version: 7, TableUUID: "u", UpdatedMS: 5, MinLog: 3, FlushedSeq: 99, Properties: map[string]string{PropJob: "flush"},
		Schema: &base.Schema{
			TableName: "t", PrimaryKey: []int{1, 0}, LastColumnID: 4, SchemaID: 2, Checks: []string{"(e <> 'q')"},
			Columns: []base.Column{
				{Name: "a", Type: base.Type{Kind: base.KindVarchar}, FieldID: 1},
				{Name: "b", Type: base.Type{Kind: base.KindDecimal, Precision: 30, Scale: 4}, FieldID: 4},
				{Name: "e", Type: base.Type{Kind: base.KindEnum, Labels: []string{"p", "q'"}}, FieldID: 3, Nullable: true, DefaultSQL: "'p'"},
			},
		},
		Files: []*File{{
			Path: "data/L0/x.parquet", Size: 10, Rows: 5, Deleted: 2, SeqMin: 1, SeqMax: 9, KeyMin: []byte{1}, KeyMax: []byte{2},
			DVPath: "data/L0/x.dv-7.puffin", DVOffset: 4, DVLength: 30, SeqInherited: true, NaNFieldIDs: []int32{3},
		}},
	}
}

func TestRoundTrip(t *testing.T) {
	m := sample()
	data, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode("m", data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, m) {
		t.Fatalf("got %+v, want %+v", got, m)
	}
}

// TestDamage flips every bit, cuts at every length and adds bytes: each must be an error that names the file.
func TestDamage(t *testing.T) {
	data, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	bad := func(d []byte, what string, at int) {
		_, err := Decode("some-file", d)
		if code := base.CodeOf(err); code != base.CodeCorruption && code != base.CodeUnsupported {
			t.Fatalf("%s at %d: error %v", what, at, err)
		}
		if !bytes.Contains([]byte(err.Error()), []byte("some-file")) {
			t.Fatalf("%s at %d: error %v does not name the file", what, at, err)
		}
	}
	for i := range data {
		d := bytes.Clone(data)
		d[i] ^= 1 << (i % 8)
		bad(d, "flip", i)
		bad(data[:i], "cut", i)
	}
	bad(append(bytes.Clone(data), 0), "append", len(data))
}

func TestPathsOutside(t *testing.T) {
	for _, p := range []string{"", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "..", "a\x00b", `a\b`} {
		m := sample()
		m.Files[0].Path = p
		data, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode("m", data); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("path %q: %v", p, err)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]int64{"v1.manifest.bin": 1, "v120.manifest.bin": 120} {
		if v, ok := ParseFileName(name); !ok || v != want {
			t.Fatalf("%s: %d %v", name, v, ok)
		}
	}
	for _, name := range []string{"v0.manifest.bin", "v01.manifest.bin", "v-1.manifest.bin", "v1.manifest.bin.tmp", "1.manifest.bin", "v.manifest.bin"} {
		if _, ok := ParseFileName(name); ok {
			t.Fatalf("%s was taken for a manifest", name)
		}
	}
	if !IsTemporary("v3.manifest.bin.tmp") || IsTemporary("v3.manifest.bin") {
		t.Fatal("IsTemporary")
	}
}

func FuzzDecode(f *testing.F) {
	data, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, d []byte) {
		m, err := Decode("m", d)
		if err != nil {
			return
		}
		if _, err := Encode(m); err != nil {
			t.Fatal(err)
		}
	})
}
