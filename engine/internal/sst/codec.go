package sst

import (
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/merutable/merutable/engine/internal/base"
)

// The library lets a program register its own page codecs. Ours write the same formats by the same implementations as
// the library's, but
//
//   - decompress into the page's buffer and never beyond it: a few bytes of a corrupt page cannot ask for gigabytes
//   - compress Snappy by the fast encoder, three to six times as fast as the thorough one for a tenth of the ratio:
//     Snappy is for level 0, where zstd would compress better for less time than the thorough encoder takes
//   - keep one zstd encoder and decoder a goroutine, without helper goroutines
func init() {
	compress.RegisterCodec(compress.Codecs.Snappy, snappyCodec{})
	compress.RegisterCodec(compress.Codecs.Zstd, zstdCodec{})
}

type snappyCodec struct{}

func (snappyCodec) Encode(dst, src []byte) []byte               { return s2.EncodeSnappy(dst[:cap(dst)], src) }
func (c snappyCodec) EncodeLevel(dst, src []byte, _ int) []byte { return c.Encode(dst, src) }
func (snappyCodec) CompressBound(n int64) int64                 { return int64(snappy.MaxEncodedLen(int(n))) }

func (c snappyCodec) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err) // the contract of the interface; the library calls DecodeWithError
	}
	return out
}

func (snappyCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > len(dst) {
		return nil, base.Errorf(base.CodeCorruption, "a page of %d bytes decompresses to %d", len(dst), n)
	}
	return snappy.Decode(dst, src)
}

type zstdCodec struct{}

var (
	zstdEncoders = sync.Pool{New: func() any {
		// Entropy coding also of what has no repetitions: text of a small alphabet shrinks by half.
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithZeroFrames(true), zstd.WithAllLitEntropyCompression(true), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // only for options that do not exist
		}
		return enc
	}}
	zstdDecoders = sync.Pool{New: func() any {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err)
		}
		return dec
	}}
)

// Encode compresses at the fastest level, whatever level is asked for. Frames carry a checksum.
func (zstdCodec) Encode(dst, src []byte) []byte {
	enc := zstdEncoders.Get().(*zstd.Encoder)
	out := enc.EncodeAll(src, dst[:0])
	zstdEncoders.Put(enc)
	return out
}

func (c zstdCodec) EncodeLevel(dst, src []byte, _ int) []byte { return c.Encode(dst, src) }

func (zstdCodec) CompressBound(n int64) int64 { return n + n>>8 + 128 }

func (c zstdCodec) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

func (zstdCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	dec := zstdDecoders.Get().(*zstd.Decoder)
	out, err := dec.DecodeAll(src, dst[:0:len(dst)])
	zstdDecoders.Put(dec)
	return out, err
}
