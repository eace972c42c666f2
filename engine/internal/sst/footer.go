package sst

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"

	"github.com/merutable/merutable/engine/internal/base"
)

// Behind the last row group a file has its tail: bloom filters, page index, footer, the footer's length and a magic
// number. The footer's last free entry is a checksum of the tail, 16 hex digits: the CRC-32C of what lies between the
// last row group and the footer, then of the footer, with zeros where these digits stand. So a footer is known to be
// whole before anything in it is believed: a flipped bit in a bound would make rows vanish.
const (
	tailKey       = "merutable.tail_checksum"
	tailDigits    = 16
	tailBlank     = "0000000000000000"
	parquetMagic  = "PAR1"
	footerTrailer = 8
	// tailReadBytes is how much of a file's end is read first: the footer of most files.
	tailReadBytes = 64 << 10
)

// tailAt returns where in a footer the digits stand, or -1: behind the key come the type of the value's field and its
// length, a byte each.
func tailAt(footer []byte) int {
	i := bytes.LastIndex(footer, []byte(tailKey))
	if i < 0 || len(footer)-i < len(tailKey)+2+tailDigits || footer[i+len(tailKey)+1] != tailDigits {
		return -1
	}
	return i + len(tailKey) + 2
}

// sealTail fills in the digits of a tail that was written with blank ones.
func sealTail(tail []byte) error {
	footer, err := footerOf(tail)
	if err != nil {
		return err
	}
	at := tailAt(footer)
	if at < 0 || string(footer[at:at+tailDigits]) != tailBlank {
		return base.Errorf(base.CodeParquet, "the footer has no place for its checksum")
	}
	hex.Encode(footer[at:], tailSums(tail[:len(tail)-footerTrailer-len(footer)], footer))
	return nil
}

// tailSums returns both sums; the digits in the footer must be blank.
func tailSums(before, footer []byte) []byte {
	sums := binary.BigEndian.AppendUint32(nil, crc32.Checksum(before, castagnoli))
	return binary.BigEndian.AppendUint32(sums, crc32.Checksum(footer, castagnoli))
}

// footerOf returns the footer at the end of a file's last bytes.
func footerOf(tail []byte) ([]byte, error) {
	n := len(tail) - footerTrailer
	if n < 0 || string(tail[n+4:]) != parquetMagic {
		return nil, base.Errorf(base.CodeCorruption, "no Parquet file: the magic number is missing")
	}
	length := binary.LittleEndian.Uint32(tail[n:])
	if uint64(length) > uint64(n) {
		return nil, base.Errorf(base.CodeCorruption, "a footer of %d bytes, where %d are", length, n)
	}
	return tail[n-int(length) : n], nil
}

// readFooterBytes reads the footer of a file of size bytes and checks its sum. The other sum is returned.
func readFooterBytes(f io.ReaderAt, size int64) (footer []byte, before uint32, err error) {
	tail, err := readEnd(f, size, min(size, tailReadBytes))
	if err != nil {
		return nil, 0, err
	}
	if len(tail) < footerTrailer {
		return nil, 0, base.Errorf(base.CodeCorruption, "no Parquet file: it has %d bytes", size)
	}
	if length := int64(binary.LittleEndian.Uint32(tail[len(tail)-footerTrailer:])); length+footerTrailer > int64(len(tail)) &&
		length+footerTrailer <= size && string(tail[len(tail)-4:]) == parquetMagic {
		if tail, err = readEnd(f, size, length+footerTrailer); err != nil {
			return nil, 0, err
		}
	}
	if footer, err = footerOf(tail); err != nil {
		return nil, 0, err
	}
	at := tailAt(footer)
	if at < 0 {
		return nil, 0, base.Errorf(base.CodeCorruption, "the footer has no checksum: it is damaged, or not one of ours")
	}
	var stored [tailDigits / 2]byte
	if _, err := hex.Decode(stored[:], footer[at:at+tailDigits]); err != nil {
		return nil, 0, base.Wrapf(base.CodeCorruption, err, "checksum of the footer")
	}
	copy(footer[at:], tailBlank)
	sum := crc32.Checksum(footer, castagnoli)
	if want := binary.BigEndian.Uint32(stored[4:]); sum != want {
		return nil, 0, base.Errorf(base.CodeCorruption, "the footer has checksum %08x, stored is %08x", sum, want)
	}
	return footer, binary.BigEndian.Uint32(stored[:]), nil
}

// readEnd reads the last n bytes of a file.
func readEnd(f io.ReaderAt, size, n int64) ([]byte, error) {
	b := make([]byte, n)
	if got, err := f.ReadAt(b, size-n); int64(got) < n {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}
