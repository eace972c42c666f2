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

// Writer writes a Puffin file: the vectors of one commit, each a blob. One goroutine uses it. Memory is bounded by one
// blob and the footer.
type Writer struct {
	path   string
	f      vfs.File
	size   int64
	buf    []byte
	footer puffinFooter
}

// NewWriter makes the file. After an error of any method call Close; the file may be there in part.
func NewWriter(fs vfs.FS, path string) (*Writer, error) {
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, f: f, buf: []byte(puffinMagic)}
	w.footer.Properties = map[string]string{"created-by": "merutable"}
	return w, nil
}

// Add appends a blob and says where it is.
func (w *Writer) Add(b Blob) (Ref, error) {
	before := len(w.buf) // the magic, of the first blob
	out, err := appendBlob(w.buf, b.Bitmap)
	if err != nil {
		return Ref{}, err
	}
	ref := Ref{Offset: w.size + int64(before), Length: int64(len(out) - before)}
	w.footer.Properties["merutable.snapshot-id"] = strconv.FormatInt(b.SnapshotID, 10)
	w.footer.Properties["merutable.sequence-number"] = strconv.FormatInt(b.Sequence, 10)
	w.footer.Blobs = append(w.footer.Blobs, puffinBlob{
		Type: "deletion-vector-v1", Fields: []int32{rowPositionField}, Offset: ref.Offset, Length: ref.Length,
		// The specification has both inherited from the manifest that lists the file.
		SnapshotID: -1, Sequence: -1,
		Properties: map[string]string{
			"referenced-data-file": b.ReferencedDataFile,
			"cardinality":          strconv.FormatUint(b.Bitmap.GetCardinality(), 10),
		},
	})
	return ref, w.write(out)
}

func (w *Writer) write(p []byte) error {
	n, err := w.f.Write(p)
	w.size += int64(n)
	w.buf = p[:0]
	return err
}

// Finish writes the footer, syncs the file and closes it. It does not sync the directory.
func (w *Writer) Finish() error {
	js, err := json.Marshal(w.footer)
	if err != nil {
		return base.Wrapf(base.CodeUnknown, err, "%s: footer", w.path)
	}
	out := append(w.buf, puffinMagic...) // behind the magic at the start, where there is no blob
	out = append(out, js...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(js)))
	out = append(out, 0, 0, 0, 0)
	out = append(out, puffinMagic...)
	if err := w.write(out); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	return w.Close()
}

// Close closes the file. A second call does nothing.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	return f.Close()
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
	// Nobody asks for the size: in an object store that would be a request more.
	blob := make([]byte, length)
	n, err := f.ReadAt(blob, offset)
	switch {
	case int64(n) == length:
	case err == io.EOF:
		return nil, base.Errorf(base.CodeCorruption, "%s: deletion vector of %d bytes at offset %d, but the file has %d", path, length, offset, offset+int64(n))
	default:
		return nil, readError(err, path, offset)
	}
	bm, err := decodeBlob(blob, maxRows)
	if err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "%s: offset %d", path, offset)
	}
	return bm, nil
}

// readError is that of a read that failed. A file that is missing stays CodeNotFound: an object store says so only then.
func readError(err error, path string, offset int64) error {
	code := base.CodeIO
	if c := base.CodeOf(err); c == base.CodeNotFound || c == base.CodeObjectStore || c == base.CodeCancelled || c == base.CodeTimeout {
		code = c
	}
	return base.Wrapf(code, err, "%s: offset %d", path, offset)
}
