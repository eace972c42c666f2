package dv

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// maxPuffinBytes bounds a Puffin file that is verified in memory.
const maxPuffinBytes = 1 << 30

// Verify checks a whole Puffin file: every byte of it is either covered by a checksum or what [Writer] would write. It
// returns, by offset and length, which data file each vector is of.
func Verify(fs vfs.FS, path string, snapshot int64) (map[Ref]string, error) {
	data, err := vfs.ReadFile(fs, path, maxPuffinBytes)
	if err != nil {
		return nil, err
	}
	blobs, err := verifyPuffin(data, snapshot)
	if err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "%s", path)
	}
	return blobs, nil
}

func verifyPuffin(data []byte, snapshot int64) (map[Ref]string, error) {
	bad := func(format string, args ...any) (map[Ref]string, error) {
		return nil, base.Errorf(base.CodeCorruption, format, args...)
	}
	const trailer = 8 + len(puffinMagic)
	if len(data) < 2*len(puffinMagic)+trailer || !bytes.HasPrefix(data, []byte(puffinMagic)) || !bytes.HasSuffix(data, []byte(puffinMagic)) {
		return bad("no Puffin file: the magic bytes are missing")
	}
	tail := data[len(data)-trailer:]
	n := int64(binary.LittleEndian.Uint32(tail))
	at := int64(len(data)-trailer) - n - int64(len(puffinMagic))
	if at < int64(len(puffinMagic)) || string(data[at:at+int64(len(puffinMagic))]) != puffinMagic || binary.LittleEndian.Uint32(tail[4:]) != 0 {
		return bad("a footer of %d bytes in a file of %d", n, len(data))
	}
	js := data[at+int64(len(puffinMagic)) : int64(len(data)-trailer)]
	var footer puffinFooter
	if err := json.Unmarshal(js, &footer); err != nil {
		return bad("the footer: %v", err)
	}
	blobs := map[Ref]string{}
	expected := puffinFooter{Properties: map[string]string{"created-by": "merutable"}}
	next := int64(len(puffinMagic))
	for _, b := range footer.Blobs {
		if b.Offset != next || b.Length < 0 || b.Length > at-next {
			return bad("a deletion vector of %d bytes at offset %d, where the next one begins at %d", b.Length, b.Offset, next)
		}
		next += b.Length
		bm, err := decodeBlob(data[b.Offset:next], 1<<32)
		if err != nil {
			return bad("offset %d: %v", b.Offset, err)
		}
		name := b.Properties["referenced-data-file"]
		blobs[Ref{b.Offset, b.Length}] = name
		expected.Blobs = append(expected.Blobs, puffinBlob{
			Type: "deletion-vector-v1", Fields: []int32{rowPositionField}, Offset: b.Offset, Length: b.Length, SnapshotID: -1, Sequence: -1,
			Properties: map[string]string{
				"referenced-data-file": name, "cardinality": strconv.FormatUint(bm.GetCardinality(), 10),
			},
		})
		expected.Properties["merutable.snapshot-id"] = strconv.FormatInt(snapshot, 10)
		expected.Properties["merutable.sequence-number"] = strconv.FormatInt(snapshot, 10)
	}
	if next != at {
		return bad("deletion vectors end at %d, the footer begins at %d", next, at)
	}
	want, err := json.Marshal(expected)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(js, want) {
		return bad("the footer is not what was written")
	}
	return blobs, nil
}
