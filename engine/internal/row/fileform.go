package row

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
)

const (
	sign32 = 1 << 31
	sign64 = 1 << 63
)

// AppendFileForm appends the file form of values of a kind, given in storage form back to back, to dst. The file form is
// what Parquet and Arrow hold of the kinds that they have no type for:
//
//   - HUGEINT 16 bytes big-endian with the sign bit flipped, UHUGEINT 16 bytes big-endian: they sort as the numbers do
//   - INTERVAL 16 bytes: months int32, days int32, microseconds int64, each big-endian with the sign bit flipped
//   - BIT, and every other kind, its storage form
func AppendFileForm(dst []byte, kind base.Kind, storage []byte) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	switch kind {
	case base.KindHugeInt, base.KindUHugeInt:
		flip := signOf(kind)
		for ; len(storage) >= 16; storage = storage[16:] {
			dst = be.AppendUint64(dst, le.Uint64(storage[8:])^flip)
			dst = be.AppendUint64(dst, le.Uint64(storage))
		}
		return dst
	case base.KindInterval:
		for ; len(storage) >= 16; storage = storage[16:] {
			dst = be.AppendUint32(dst, le.Uint32(storage)^sign32)
			dst = be.AppendUint32(dst, le.Uint32(storage[4:])^sign32)
			dst = be.AppendUint64(dst, le.Uint64(storage[8:])^sign64)
		}
		return dst
	}
	return append(dst, storage...)
}

// AppendStorageFromFileForm is the inverse of [AppendFileForm]. For the kinds of 16 bytes every 16 bytes are a value;
// what is left behind the last whole one is ignored.
func AppendStorageFromFileForm(dst []byte, kind base.Kind, file []byte) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	switch kind {
	case base.KindHugeInt, base.KindUHugeInt:
		flip := signOf(kind)
		for ; len(file) >= 16; file = file[16:] {
			dst = le.AppendUint64(dst, be.Uint64(file[8:]))
			dst = le.AppendUint64(dst, be.Uint64(file)^flip)
		}
		return dst
	case base.KindInterval:
		for ; len(file) >= 16; file = file[16:] {
			dst = le.AppendUint32(dst, be.Uint32(file)^sign32)
			dst = le.AppendUint32(dst, be.Uint32(file[4:])^sign32)
			dst = le.AppendUint64(dst, be.Uint64(file[8:])^sign64)
		}
		return dst
	}
	return append(dst, file...)
}

func signOf(kind base.Kind) uint64 {
	if kind == base.KindHugeInt {
		return sign64
	}
	return 0
}
