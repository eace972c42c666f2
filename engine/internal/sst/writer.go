package sst

import (
	"bufio"
	"bytes"
	"encoding/json"
	"hash/crc32"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// RowSource yields the rows of a file, ascending by encoded key, one row a key. What Key and Value return is borrowed
// until the next call of Next.
type RowSource interface {
	// Next moves to the next row and reports whether there is one.
	Next() bool
	Key() []byte
	Seq() base.Seq
	Op() base.Op
	// Value is the row's record (package row); nil for a tombstone.
	Value() []byte
	// Err returns what ended the rows early.
	Err() error
}

// FileInfo describes a file that was written.
type FileInfo struct {
	Size, Rows     int64
	KeyMin, KeyMax []byte
	SeqMin, SeqMax base.Seq
	// Tombstones holds the positions of the rows that are deletions; nil where there are none.
	Tombstones *roaring.Bitmap
}

// Write writes the rows of src to a new file and syncs it; the directory entry is the caller's to sync. It streams row
// group by row group. On any error the file is removed. No rows give CodeInvalidArgument: there are no empty files.
func Write(fs vfs.FS, path string, o WriterOptions, src RowSource) (FileInfo, error) {
	o = o.withDefaults()
	f, err := fs.Create(path)
	if err != nil {
		return FileInfo{}, err
	}
	w := &writer{path: path, o: o, builder: row.NewBuilder(o.Schema, nil)}
	err = w.run(f, src)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = fs.Remove(path) // the first error is the one to report; a file that stays is an orphan that open sweeps
		return FileInfo{}, err
	}
	return w.info, nil
}

// writer writes one file.
type writer struct {
	path    string
	o       WriterOptions
	sink    countingWriter
	builder *row.Builder
	index   keyIndexBuilder
	info    FileInfo
	last    []byte // the last key
	// blocks are the starts of the blocks of the row group being gathered, blockBytes the size of the last one's keys.
	blocks     []int
	blockBytes int

	types []*colType // the table's columns, then the hidden ones
	nan   []bool     // by column: declared to hold a NaN
	isKey []bool
	pq    *file.Writer
	pages pageWriter
	plans []plan // by column of the table
	sums  checksums
}

// countingWriter counts what is written and sums it up. Once hold is set it keeps what is written: the tail of the file,
// which gets its checksum before it goes out.
type countingWriter struct {
	w    *bufio.Writer
	n    int64
	crc  uint32 // CRC-32C since the last row group's end
	hold bool
	tail []byte
}

func (c *countingWriter) Write(p []byte) (int, error) {
	if c.hold {
		c.tail = append(c.tail, p...)
		c.n += int64(len(p))
		return len(p), nil
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.crc = crc32.Update(c.crc, castagnoli, p[:n])
	return n, err
}

func (w *writer) run(f vfs.File, src RowSource) error {
	w.sink.w = bufio.NewWriterSize(f, 256<<10)
	if err := w.setColumns(); err != nil {
		return err
	}
	for src.Next() {
		if err := w.add(src); err != nil {
			return err
		}
		if w.builder.Len() >= w.o.RowGroupRows || w.builder.Bytes() >= w.o.RowGroupBytes {
			if err := w.flushRowGroup(); err != nil {
				return err
			}
		}
	}
	if err := src.Err(); err != nil {
		return err
	}
	if w.builder.Len() > 0 {
		if err := w.flushRowGroup(); err != nil {
			return err
		}
	}
	if w.info.Rows == 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: a data file without rows is not written", w.path)
	}
	return w.finish()
}

func (w *writer) setColumns() error {
	n := len(w.o.Schema.Columns)
	w.types = make([]*colType, n, n+2)
	w.nan, w.isKey = make([]bool, n+2), make([]bool, n+2)
	for i := range w.types {
		w.types[i] = newColType(&w.o.Schema.Columns[i])
		w.isKey[i] = w.o.Schema.IsKey(i)
	}
	seq, op := hiddenTypes()
	w.types = append(w.types, seq, op)
	for _, i := range w.o.NaNColumns {
		if i < 0 || i >= n {
			return base.Errorf(base.CodeInvalidArgument, "%s: NaN column %d is not in 0..%d", w.path, i, n-1)
		}
		w.nan[i] = true
	}
	return nil
}

// add takes one row.
func (w *writer) add(src RowSource) error {
	key, seq, op := src.Key(), src.Seq(), src.Op()
	pos := w.info.Rows + int64(w.builder.Len())
	if pos == 0 {
		w.info.KeyMin = bytes.Clone(key)
		w.info.SeqMin, w.info.SeqMax = seq, seq
	} else if bytes.Compare(w.last, key) >= 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: the key of row %d is not above the one before it", w.path, pos)
	}
	w.info.SeqMin, w.info.SeqMax = min(w.info.SeqMin, seq), max(w.info.SeqMax, seq)
	w.last = append(w.last[:0], key...)
	w.cutBlock(pos, key)
	if w.o.InheritSeq {
		seq = 0
	}
	if op == base.OpDelete {
		if w.info.Tombstones == nil {
			w.info.Tombstones = roaring.New()
		}
		w.info.Tombstones.Add(uint32(pos))
		return w.builder.AppendTombstoneKey(key, seq)
	}
	w.builder.AppendRecord(src.Value(), seq, op)
	return nil
}

// cutBlock starts a block of the key index where the open one is full, or with the row group's first row.
func (w *writer) cutBlock(pos int64, key []byte) {
	n := w.builder.Len()
	if n == 0 || n-w.blocks[len(w.blocks)-1] >= w.o.KeyBlockRows || w.blockBytes >= maxKeyBlockBytes {
		w.index.add(pos, key)
		w.blocks = append(w.blocks, n)
		w.blockBytes = 0
	}
	w.blockBytes += len(key)
}

// flushRowGroup writes the rows gathered.
func (w *writer) flushRowGroup() error {
	cols := w.builder.Columns()
	if w.info.Rows+int64(cols.N) > maxFileRows {
		return base.Errorf(base.CodeInvalidArgument, "%s: more than %d rows in one file", w.path, int64(maxFileRows))
	}
	err := guardWrite(w.path, func() error {
		if w.pq == nil {
			if err := w.open(cols); err != nil {
				return err
			}
		}
		return w.writeRowGroup(cols)
	})
	if err != nil {
		return err
	}
	w.info.Rows += int64(cols.N)
	w.builder.Reset()
	w.blocks = w.blocks[:0]
	return nil
}

// maxFileRows keeps positions inside the 32 bits of a deletion vector.
const maxFileRows = 1<<32 - 1

// open starts the file: the first row group decides on dictionaries.
func (w *writer) open(cols *row.Columns) error {
	codec := w.o.codec()
	props := []parquet.WriterProperty{
		parquet.WithCreatedBy("merutable"), parquet.WithVersion(parquet.V2_LATEST), parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithCompression(codec), parquet.WithAllocator(memory.DefaultAllocator),
		// Pages end where pageWriter says, not by the library's own count of bytes.
		parquet.WithDataPageSize(1 << 40), parquet.WithBatchSize(1 << 30),
		parquet.WithDictionaryDefault(false), parquet.WithDictionaryPageSizeLimit(maxDictionaryBytes),
		parquet.WithPageIndexEnabled(true), parquet.WithStats(true), parquet.WithMaxStatsSize(maxBoundBytes),
		parquet.WithBloomFilterFPP(bloomFPP), parquet.WithMaxBloomFilterBytes(16 << 20),
	}
	fields := make(schema.FieldList, 0, len(w.types))
	for i, t := range w.types {
		node, err := t.node()
		if err != nil {
			return err
		}
		fields = append(fields, node)
		if !t.bounds {
			props = append(props, parquet.WithStatsFor(t.name, false))
		}
		if w.isKey[i] && t.bloom {
			props = append(props, parquet.WithBloomFilterEnabledFor(t.name, true), parquet.WithBloomFilterNDVFor(t.name, int64(cols.N)))
		}
		if i < len(cols.Cols) {
			p, err := planColumn(t, &cols.Cols[i], cols.N, w.isKey[i], codec)
			if err != nil {
				return err
			}
			w.plans = append(w.plans, p)
			props = append(props, parquet.WithDictionaryFor(t.name, p.dictionary), parquet.WithEncodingFor(t.name, p.encoding),
				parquet.WithCompressionFor(t.name, p.codec))
		}
	}
	// Sequence numbers ascend or come from a small range; operations are nearly always the same.
	props = append(props, parquet.WithEncodingFor(base.SeqColumn, parquet.Encodings.DeltaBinaryPacked),
		parquet.WithCompressionFor(base.SeqColumn, compress.Codecs.Uncompressed),
		parquet.WithDictionaryFor(base.OpColumn, true), parquet.WithCompressionFor(base.OpColumn, compress.Codecs.Uncompressed),
		parquet.WithSortingColumns(w.sorting()))
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return err
	}
	w.pq, err = file.NewParquetWriterWithError(&w.sink, root, file.WithWriterProps(parquet.NewWriterProperties(props...)))
	return err
}

// sorting names the columns by which the rows ascend in the order that Parquet gives the types: the key columns up to
// the first of a type that has another order.
func (w *writer) sorting() []parquet.SortingColumn {
	var out []parquet.SortingColumn
	for _, k := range w.o.Schema.PrimaryKey {
		if !w.types[k].sorted {
			break
		}
		out = append(out, parquet.SortingColumn{ColumnIdx: int32(k)})
	}
	return out
}

func (w *writer) writeRowGroup(cols *row.Columns) error {
	rg, err := w.pq.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	for i, t := range w.types {
		cw, err := rg.NextColumn()
		if err != nil {
			return err
		}
		switch i - len(cols.Cols) {
		case 0:
			err = w.pages.writeSeqs(cw, cols.Seqs, w.o.PageBytes)
		case 1:
			err = w.pages.writeOps(cw, cols.Ops)
		default:
			err = w.pages.write(cw, t, &cols.Cols[i], cols.N, w.shape(i))
		}
		if err != nil {
			return base.Wrapf(codeOr(err, base.CodeParquet), err, "column %q", t.name)
		}
	}
	if err := rg.Close(); err != nil {
		return err
	}
	w.sums = append(w.sums, checksum{end: w.sink.n, crc: w.sink.crc})
	w.sink.crc = 0
	return nil
}

func (w *writer) shape(column int) pageShape {
	s := pageShape{bytes: w.o.PageBytes, noBounds: w.nan[column]}
	if w.isKey[column] {
		s.starts = w.blocks
	}
	if w.plans[column].dictionary && !w.isKey[column] {
		s.rows = maxPageRows // a page holds indices, whatever the values are
	}
	if w.plans[column].codec == compress.Codecs.Uncompressed {
		s.bytes = min(s.bytes, uncompressedPageBytes)
	}
	return s
}

// finish writes the footer.
func (w *writer) finish() error {
	w.info.KeyMax = bytes.Clone(w.last)
	js, err := json.Marshal(w.o.Schema)
	if err != nil {
		return base.Wrapf(base.CodeInvalidArgument, err, "%s: schema", w.path)
	}
	err = guardWrite(w.path, func() error {
		if err := w.pq.AppendKeyValueMetadata(schemaKey, string(js)); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(keyIndexKey, w.index.finish(w.info.Rows, w.last)); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(checksumsKey, w.sums.encode()); err != nil {
			return err
		}
		if err := w.pq.AppendKeyValueMetadata(tailKey, tailBlank); err != nil {
			return err
		}
		w.sink.hold = true
		if err := w.pq.Close(); err != nil {
			return err
		}
		if err := sealTail(w.sink.tail); err != nil {
			return err
		}
		if _, err := w.sink.w.Write(w.sink.tail); err != nil {
			return err
		}
		return w.sink.w.Flush()
	})
	w.info.Size = w.sink.n
	return err
}
