package sst

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// plan says how a column of a row group is encoded. It is made from a sample of the rows.
type plan struct {
	dictionary bool
	distinct   int // about how many distinct values a row group has, for the size of the bloom filter
	encoding   parquet.Encoding
	codec      compress.Compression
	stored     int // about how many bytes the column takes in the file
	// noStatistics: some value is so long that the library, which keeps and copies the least and the greatest value of
	// each page, would take many times as much memory as the values do, for bounds that nobody stores.
	noStatistics bool
}

// Sizes of samples: values spread over the row group for the question whether they repeat, and neighbours for the
// question how they compress.
const (
	spreadRows   = 16_384
	neighbours   = 8192
	sampledBytes = 64 << 10
)

// What a choice must save to be worth its price. A compressed page costs tens of microseconds of every get and a large
// part of a scan's time, integers packed by their differences cost less than plain ones.
const (
	keepCompressed = 0.7 // of the uncompressed size: text of 64 letters in no order stays plain
	keepPlain      = 0.8 // of the packed size
)

// planColumn decides for a column of the table, of which the row group has n rows.
func planColumn(t *colType, col *row.Column, n int, isKey bool, codec compress.Compression) (plan, error) {
	p := plan{encoding: parquet.Encodings.Plain, codec: codec, distinct: n}
	p.noStatistics = longest(col, n) > maxStatisticsBytes
	integer := t.physical == parquet.Types.Int32 || t.physical == parquet.Types.Int64
	if distinct, size, repeats := repeating(t, col, n); repeats {
		p.distinct = min(n, 2*distinct+64) // the sample did not see all
		// A get reads the whole dictionary beside its page, so integer keys, which pack well in their order, only have
		// small ones.
		if p.dictionary = !(isKey && integer) || distinct <= maxKeyDictionary; p.dictionary {
			// Indices hardly compress: only a large dictionary is worth what compressed pages cost.
			if size <= smallDictionaryBytes {
				p.codec = compress.Codecs.Uncompressed
			}
			p.stored = size + n*bits.Len(uint(max(distinct-1, 0)))/8
			return p, nil
		}
	}
	page := sampledPage(t, col, n)
	compressed, err := compressedSize(codec, page)
	if err != nil {
		return p, err
	}
	size := compressed
	// Differences only where every page has values: the library's encoder fails on a page of NULLs behind another one.
	packed := 0
	whole := !t.nullable && !t.leaf
	if integer && whole {
		packed = packedSize(page, t.width)
	}
	switch {
	case integer && whole && (compressed == 0 || float64(compressed) > keepPlain*float64(packed)):
		p.encoding, p.codec, size = parquet.Encodings.DeltaBinaryPacked, compress.Codecs.Uncompressed, packed
	case float64(compressed) > keepCompressed*float64(len(page)):
		p.codec, size = compress.Codecs.Uncompressed, len(page)
	}
	p.stored = int(float64(plainBytes(t, col, n)) * float64(size) / float64(max(len(page), 1)))
	return p, nil
}

// longest returns the length of the column's longest value, where lengths vary.
func longest(col *row.Column, n int) (bytes int64) {
	if col.Offsets == nil {
		return 0
	}
	for i := range n {
		bytes = max(bytes, col.Offsets[i+1]-col.Offsets[i])
	}
	return bytes
}

// plainBytes returns about what plain pages of the column hold.
func plainBytes(t *colType, col *row.Column, n int) int {
	if t.size > 0 {
		return n * max(t.width, 1)
	}
	return len(col.Data) + 4*n
}

const (
	// maxKeyDictionary is how many distinct values an integer key column may have to get a dictionary.
	maxKeyDictionary = 1024
	// smallDictionaryBytes is the size up to which a dictionary stays uncompressed: a quarter of a byte a row.
	smallDictionaryBytes = 32 << 10
)

// repeating says whether the values repeat so much that a dictionary makes the file smaller and the scan faster, and
// how many distinct ones of how many bytes were seen. With many distinct values it costs more than the values
// themselves, in size and time.
func repeating(t *colType, col *row.Column, n int) (distinct, size int, repeats bool) {
	switch t.typ.Kind {
	case base.KindBoolean:
		return 0, 0, false
	case base.KindEnum:
		for _, l := range t.typ.Labels {
			size += len(l)
		}
		return len(t.typ.Labels), size, true
	}
	seen := map[string]struct{}{}
	step := max(1, n/spreadRows)
	sampled := 0
	for i := 0; i < n; i += step {
		if col.IsNull(i) {
			continue
		}
		v := col.Storage(i)
		sampled++
		if _, dup := seen[string(v)]; dup {
			continue
		}
		if size += len(v); size > maxDictionaryBytes/2 {
			return 0, 0, false
		}
		seen[string(v)] = struct{}{}
	}
	return len(seen), size, sampled == 0 || len(seen) <= max(1, sampled/3)
}

// sampledPage returns what a plain page of some neighbouring rows in the middle of the row group would hold.
func sampledPage(t *colType, col *row.Column, n int) []byte {
	var page []byte
	for i := max(0, n/2-neighbours/2); i < n && i < n/2+neighbours/2 && len(page) < sampledBytes; i++ {
		if col.IsNull(i) {
			continue
		}
		v := col.Storage(i)
		if t.size > 0 {
			page = t.appendPage(page, v)
			continue
		}
		page = binary.LittleEndian.AppendUint32(page, uint32(len(v)))
		page = append(page, v[:min(len(v), sampledBytes)]...)
	}
	return page
}

func compressedSize(codec compress.Compression, page []byte) (int, error) {
	if len(page) == 0 {
		return 0, nil
	}
	c, err := compress.GetCodec(codec)
	if err != nil {
		return 0, err
	}
	return len(c.Encode(make([]byte, 0, c.CompressBound(int64(len(page)))), page)), nil
}

// packedSize estimates what DELTA_BINARY_PACKED makes of a plain page: differences in groups of 32 take as many bits
// each as the largest above the least of its block of 128.
func packedSize(page []byte, width int) int {
	value := func(i int) int64 {
		if width == 4 {
			return int64(int32(binary.LittleEndian.Uint32(page[i*4:])))
		}
		return int64(binary.LittleEndian.Uint64(page[i*8:]))
	}
	n := len(page) / width
	size := 8
	for from := 1; from < n; from += 128 {
		end := min(from+128, n)
		least := value(from) - value(from-1)
		for i := from + 1; i < end; i++ {
			least = min(least, value(i)-value(i-1))
		}
		size += 8
		for mini := from; mini < end; mini += 32 {
			var or uint64
			for i := mini; i < min(mini+32, end); i++ {
				or |= uint64(value(i)-value(i-1)) - uint64(least)
			}
			size += bits.Len64(or) * 32 / 8
		}
	}
	return size
}
