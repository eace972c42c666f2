package sst

import (
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/merutable/merutable/engine/internal/base"
)

// The writer's defaults, chosen by measurement.
const (
	defaultRowGroupRows  = 122_880 // DuckDB's own: one task of its scan
	defaultRowGroupBytes = 64 << 20
	defaultPageBytes     = 40 << 10 // with smaller zstd pages DuckDB's scan is slower than of its own files
	defaultPageBytesL0   = 16 << 10
	defaultKeyBlockRows  = 2048
	// Uncompressed pages cost a scan little more than their bytes, so gets may have them small.
	uncompressedPageBytes = 16 << 10
	// maxKeyBlockBytes is about how many bytes of keys a block has at most, with which it ends before its rows are full.
	maxKeyBlockBytes = 128 << 10
	// maxPageRows bounds a page of a narrow column: a point get decodes a whole page.
	maxPageRows = 16_384
	// dictionaryPageRows is how many rows a page of a column with a dictionary has: it holds indices, whatever the values
	// are. A get makes values of all of them, but a page costs DuckDB's scan some 4 µs: with 4,096 rows a scan took 1.4
	// times as long as of DuckDB's own file, with these 1.1.
	dictionaryPageRows = 16_384
	// maxDictionaryBytes bounds a dictionary, which a point get decodes whole too.
	maxDictionaryBytes = 128 << 10
	// maxBoundBytes is the longest value that statistics hold. Longer ones are left out, never cut: a reader that takes
	// a cut bound for a value of the column is silently wrong.
	maxBoundBytes = 256
	// maxStatisticsBytes is the longest value of a column with statistics at all.
	maxStatisticsBytes = 1 << 20
	// bloomFPP makes filters of 8.5 bits a key for a full row group, the closest power of two.
	bloomFPP      = 0.02
	maxBloomBytes = 16 << 20
	// bloomBits is about how many bits a key takes in a filter, for estimates.
	bloomBits = 10
)

// WriterOptions say how a file is written. The zero value of everything but Schema works.
type WriterOptions struct {
	// Schema is the table's.
	Schema *base.Schema
	// Level is the level of the tree that the file is for: level 0 is compressed fast, the others well.
	Level int
	// RowGroupRows is how many rows a row group has at most. The default value is 122880.
	RowGroupRows int
	// RowGroupBytes is about how many bytes of rows a row group has at most: it bounds the writer's memory. The default
	// value is 64 MiB.
	RowGroupBytes int
	// PageBytes is about how many uncompressed bytes a page has. The default value is 16 KiB at level 0, 40 KiB above.
	PageBytes int
	// KeyBlockRows is how many rows one entry of the key index and one page of the key columns cover at most. The default
	// value is 2048.
	KeyBlockRows int
	// InheritSeq writes 0 for every sequence number: the manifest has the one of all rows.
	InheritSeq bool
}

// withDefaults returns the options with every zero replaced.
func (o WriterOptions) withDefaults() WriterOptions {
	set := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	set(&o.RowGroupRows, defaultRowGroupRows)
	set(&o.RowGroupBytes, defaultRowGroupBytes)
	if o.Level == 0 {
		set(&o.PageBytes, defaultPageBytesL0)
	}
	set(&o.PageBytes, defaultPageBytes)
	set(&o.KeyBlockRows, defaultKeyBlockRows)
	return o
}

// codec is the compression of columns that compress. Level 0 is written under the eyes of writers, read by gets most of
// all, and rewritten soon: Snappy. The others: zstd.
func (o *WriterOptions) codec() compress.Compression {
	if o.Level == 0 {
		return compress.Codecs.Snappy
	}
	return compress.Codecs.Zstd
}
