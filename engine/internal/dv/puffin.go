package dv

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Blob is one deletion vector to write.
type Blob struct {
	Bitmap *roaring.Bitmap
	// ReferencedDataFile is the path of the data file, as the manifest has it.
	ReferencedDataFile string
	// SnapshotID and Sequence are of the commit; they stand in the file's properties.
	SnapshotID, Sequence int64
}

// Ref says where in a Puffin file a blob is, in bytes.
type Ref struct{ Offset, Length int64 }

// A Puffin file is magic, blobs, magic, footer (JSON), its length as i32 LE, four bytes of flags, magic.
const puffinMagic = "PFA1"

// maxBlobBytes bounds a blob: a bitmap over 2^32 rows takes at most 512 MiB and its headers.
const maxBlobBytes = 520 << 20

// rowPositionField is the field id that Iceberg reserves for a row's position.
const rowPositionField = 2147483645

type puffinBlob struct {
	Type       string            `json:"type"`
	Fields     []int32           `json:"fields"`
	SnapshotID int64             `json:"snapshot-id"`
	Sequence   int64             `json:"sequence-number"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Properties map[string]string `json:"properties"`
}

type puffinFooter struct {
	Blobs      []puffinBlob      `json:"blobs"`
	Properties map[string]string `json:"properties"`
}

// Write writes a Puffin file with the blobs in order and syncs it, not its directory. After an error the file may be
// there in part.
func Write(fs vfs.FS, path string, blobs []Blob) ([]Ref, error) {
	out := []byte(puffinMagic)
	footer := puffinFooter{Properties: map[string]string{"created-by": "merutable"}}
	refs := make([]Ref, 0, len(blobs))
	for _, b := range blobs {
		start := int64(len(out))
		var err error
		if out, err = appendBlob(out, b.Bitmap); err != nil {
			return nil, err
		}
		ref := Ref{Offset: start, Length: int64(len(out)) - start}
		refs = append(refs, ref)
		footer.Properties["merutable.snapshot-id"] = strconv.FormatInt(b.SnapshotID, 10)
		footer.Properties["merutable.sequence-number"] = strconv.FormatInt(b.Sequence, 10)
		footer.Blobs = append(footer.Blobs, puffinBlob{
			Type: "deletion-vector-v1", Fields: []int32{rowPositionField}, Offset: ref.Offset, Length: ref.Length,
			// The specification has both inherited from the manifest that lists the file.
			SnapshotID: -1, Sequence: -1,
			Properties: map[string]string{
				"referenced-data-file": b.ReferencedDataFile,
				"cardinality":          strconv.FormatUint(b.Bitmap.GetCardinality(), 10),
			},
		})
	}
	js, err := json.Marshal(footer)
	if err != nil {
		return nil, base.Wrapf(base.CodeUnknown, err, "%s: footer", path)
	}
	out = append(out, puffinMagic...)
	out = append(out, js...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(js)))
	out = append(out, 0, 0, 0, 0)
	out = append(out, puffinMagic...)
	return refs, writeSynced(fs, path, out)
}

func writeSynced(fs vfs.FS, path string, data []byte) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Read reads the blob at an offset of a Puffin file. Every position is below maxRows, or it is CodeCorruption, which
// names path and offset.
func Read(fs vfs.FS, path string, offset, length, maxRows int64) (*roaring.Bitmap, error) {
	if offset < int64(len(puffinMagic)) || length < 0 || length > maxBlobBytes {
		return nil, base.Errorf(base.CodeCorruption, "%s: deletion vector of %d bytes at offset %d", path, length, offset)
	}
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if offset > size || length > size-offset {
		return nil, base.Errorf(base.CodeCorruption, "%s: deletion vector of %d bytes at offset %d, but the file has %d", path, length, offset, size)
	}
	blob := make([]byte, length)
	if n, err := f.ReadAt(blob, offset); err != nil && (err != io.EOF || int64(n) < length) {
		return nil, base.Wrapf(base.CodeIO, err, "%s: offset %d", path, offset)
	}
	bm, err := decodeBlob(blob, maxRows)
	if err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "%s: offset %d", path, offset)
	}
	return bm, nil
}
