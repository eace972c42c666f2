package dv

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func samples() []*roaring.Bitmap {
	rng := rand.New(rand.NewPCG(1, 2))
	dense, sparse, runs := roaring.New(), roaring.New(), roaring.New()
	for i := range uint32(200_000) {
		if rng.IntN(3) == 0 {
			dense.Add(i)
		}
	}
	for range 500 {
		sparse.Add(rng.Uint32())
	}
	runs.AddRange(10, 70_000)
	runs.RunOptimize()
	return []*roaring.Bitmap{roaring.New(), roaring.BitmapOf(0), dense, sparse, runs}
}

func writeAll(fs vfs.FS, path string, blobs []Blob) ([]Ref, error) {
	w, err := NewWriter(fs, path)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, b := range blobs {
		ref, err := w.Add(b)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, w.Finish()
}

func TestRoundTrip(t *testing.T) {
	fs := vfs.NewMem()
	var blobs []Blob
	for _, b := range samples() {
		blobs = append(blobs, Blob{Bitmap: b, ReferencedDataFile: "data/L0/x.parquet", SnapshotID: 3, Sequence: 3})
	}
	refs, err := writeAll(fs, "/x.puffin", blobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range refs {
		got, err := Read(fs, "/x.puffin", r.Offset, r.Length, 1<<32)
		if err != nil || !got.Equals(blobs[i].Bitmap) {
			t.Fatalf("blob %d: %v", i, err)
		}
	}
	last := refs[len(refs)-1]
	_, err = Read(fs, "/x.puffin", last.Offset, last.Length, 69_999)
	if base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a position beyond the file's rows: %v", err)
	}
}

// TestPuffinFrame checks the bytes around the blobs that other readers look at.
func TestPuffinFrame(t *testing.T) {
	fs := vfs.NewMem()
	refs, err := writeAll(fs, "/x.puffin", []Blob{{Bitmap: roaring.BitmapOf(1, 5), ReferencedDataFile: "f"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("/x.puffin")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, _ := f.Size()
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if refs[0].Offset != 4 || !bytes.HasPrefix(data, []byte("PFA1")) || !bytes.HasSuffix(data, []byte("\x00\x00\x00\x00PFA1")) {
		t.Fatalf("frame: %q", data)
	}
	footer := data[refs[0].Offset+refs[0].Length:]
	if !bytes.HasPrefix(footer, []byte("PFA1{")) || !bytes.Contains(footer, []byte(`"cardinality":"2"`)) {
		t.Fatalf("footer: %q", footer)
	}
}

func TestDamage(t *testing.T) {
	blob, err := appendBlob(nil, roaring.BitmapOf(1, 2, 3, 1000))
	if err != nil {
		t.Fatal(err)
	}
	for i := range blob {
		d := bytes.Clone(blob)
		d[i] ^= 0x10
		if _, err := decodeBlob(d, 2000); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("flip at %d: %v", i, err)
		}
		if _, err := decodeBlob(blob[:i], 2000); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range samples()[:2] {
		blob, err := appendBlob(nil, b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(blob)
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		if bm, err := decodeBlob(blob, 100); err == nil && !bm.IsEmpty() && bm.Maximum() >= 100 {
			t.Fatal("a position out of range came through")
		}
	})
}
