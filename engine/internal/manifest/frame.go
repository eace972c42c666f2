package manifest

import (
	"encoding/binary"
	"hash/crc32"

	"google.golang.org/protobuf/proto"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest/pb"
)

// Framing: "MRUB", format byte, payload length u32 LE, payload. The payload is the protobuf message; its last six bytes
// are the field checksum (27, fixed32): CRC-32C of all payload bytes before them. Protobuf fields may stand in any
// order, so this breaks no reader.
const (
	frameMagic    = "MRUB"
	frameFormat   = 1
	frameHeader   = 9
	checksumBytes = 6
)

// The tag of field 27, wire type 5.
var checksumTag = [2]byte{0xdd, 0x01}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode renders a manifest as the bytes of its file.
func Encode(m *Manifest) ([]byte, error) {
	p, err := m.toProto()
	if err != nil {
		return nil, err
	}
	body, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(make([]byte, frameHeader, 4096), p)
	if err != nil {
		return nil, base.Wrapf(base.CodeUnknown, err, "manifest v%d", m.Version)
	}
	n := len(body) - frameHeader + checksumBytes
	if n > base.MaxManifestBytes {
		return nil, base.Errorf(base.CodeInvalidArgument, "manifest v%d has %d bytes: the limit is %d", m.Version, n, base.MaxManifestBytes)
	}
	sum := crc32.Checksum(body[frameHeader:], castagnoli)
	body = append(body, checksumTag[:]...)
	body = binary.LittleEndian.AppendUint32(body, sum)
	copy(body, frameMagic)
	body[4] = frameFormat
	binary.LittleEndian.PutUint32(body[5:], uint32(n))
	return body, nil
}

// Decode reads the bytes of a manifest file; name is for errors. Every error is CodeCorruption, or CodeUnsupported for
// a format that this version does not know.
func Decode(name string, data []byte) (*Manifest, error) {
	if len(data) < frameHeader || string(data[:4]) != frameMagic {
		return nil, base.Errorf(base.CodeCorruption, "%s: not a manifest (magic bytes missing)", name)
	}
	if data[4] != frameFormat {
		return nil, base.Errorf(base.CodeUnsupported, "%s: manifest format %d; this version reads format %d", name, data[4], frameFormat)
	}
	payload := data[frameHeader:]
	if n := binary.LittleEndian.Uint32(data[5:]); uint64(n) != uint64(len(payload)) {
		return nil, base.Errorf(base.CodeCorruption, "%s: payload length %d, but the file holds %d", name, n, len(payload))
	}
	if len(payload) < checksumBytes {
		return nil, base.Errorf(base.CodeCorruption, "%s: no checksum", name)
	}
	body, tail := payload[:len(payload)-checksumBytes], payload[len(payload)-checksumBytes:]
	if tail[0] != checksumTag[0] || tail[1] != checksumTag[1] {
		return nil, base.Errorf(base.CodeCorruption, "%s: no checksum", name)
	}
	if sum := crc32.Checksum(body, castagnoli); sum != binary.LittleEndian.Uint32(tail[2:]) {
		return nil, base.Errorf(base.CodeCorruption, "%s: checksum mismatch over %d bytes", name, len(body))
	}
	var p pb.Manifest
	if err := proto.Unmarshal(body, &p); err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "%s: protobuf", name)
	}
	m, err := fromProto(&p)
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "%s", name)
	}
	return m, nil
}
