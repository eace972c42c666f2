package sst

import (
	"encoding/json"
	"io"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Sizes of the library's read buffers: a point read wants one page, a scan reads on.
const (
	pointBufferBytes = 16 << 10 // the library peeks that far for a page header
	scanBufferBytes  = 128 << 10
	// maxPageBytes bounds a page in memory: one value of the largest size fits.
	maxPageBytes = base.MaxValueBytes + 1<<20
)

// ReaderStats counts a reader's work since it was opened.
type ReaderStats struct {
	PagesRead, BytesRead         int64
	BloomProbes, BloomNegatives  int64
	BloomFalsePositives          int64
	RowGroups, Rows, MemoryBytes int64
}

// Reader reads one data file. It keeps the footer and the key index in memory, and the file open. All methods but Close
// may be called from many goroutines at a time.
type Reader struct {
	path    string
	id      uint64 // in the cache
	file    vfs.File
	size    int64
	schema  *base.Schema
	columns []fileColumn // the table's columns, then the hidden ones
	keyCols []int        // of columns
	// keyPlaces are 0, 1, …: where key columns that were read alone are.
	keyPlaces []int
	point     *file.Reader // with small buffers
	scan      *file.Reader // with large ones
	blooms    *metadata.BloomFilterReader
	groups    []rowGroup
	rows      int64
	index     *keyIndex
	cache     *Cache
	scratch   sync.Pool
	// footerBytes and tailSum are for Verify: see footer.go.
	footerBytes int64
	tailSum     uint32
	stats       *Counters
	rowReaders  sync.Pool
}

// fileColumn is a column of the table in this file.
type fileColumn struct {
	*colType
	ordinal  int        // among the file's columns; -1: the file is older than the column
	optional bool       // in the file
	absent   []byte     // what the rows of an older file have, in storage form; nil: NULL
	one      row.Column // a row of that
}

// rowGroup is one row group: its first row in the file and the library's handle.
type rowGroup struct {
	first, rows int64
	point       *file.RowGroupReader
	columns     []chunk // by file column
}

// chunk is a column of a row group: the first rows, in the row group, of its data pages, read at first use, and column
// readers that wait for the next point read with their buffers and dictionary.
type chunk struct {
	pages   atomic.Pointer[[]int64]
	readers sync.Pool
}

var readerIDs atomic.Uint64

// Open opens a data file of size bytes of a table with the given schema, which may be younger than the file: columns are
// found by field id. Only the footer is read. Errors name the path: CodeNotFound, CodeCorruption for a file that is
// damaged or of another size, CodeSchemaMismatch for one of another table.
func Open(fs vfs.FS, path string, size int64, schema *base.Schema, cache *Cache) (*Reader, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{path: path, id: readerIDs.Add(1), file: f, size: size, schema: schema, cache: cache, keyCols: schema.PrimaryKey, stats: new(Counters)}
	for i := range r.keyCols {
		r.keyPlaces = append(r.keyPlaces, i)
	}
	r.scratch.New = func() any { return new(scratch) }
	if err := r.open(); err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return r, nil
}

func (r *Reader) open() error {
	actual, err := r.file.Size()
	if err != nil {
		return err
	}
	if actual != r.size {
		return base.Errorf(base.CodeCorruption, "%s: the file has %d bytes, %d were written", r.path, actual, r.size)
	}
	return guard(r.path, "opening", func() error {
		if err := r.readFooter(); err != nil {
			return err
		}
		if err := r.mapColumns(); err != nil {
			return err
		}
		return r.readIndex()
	})
}

// source gives the library the file.
type source struct {
	*io.SectionReader
}

func (r *Reader) newSource() source { return source{io.NewSectionReader(countingReader{r}, 0, r.size)} }

// countingReader counts the bytes read.
type countingReader struct{ r *Reader }

func (c countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.file.ReadAt(p, off)
	c.r.stats.Bytes.Add(int64(n))
	return n, err
}

func (r *Reader) readFooter() error {
	props := func(buffer int64, limit int64) *parquet.ReaderProperties {
		// A chunk may be a single page; the library rounds what it asks for up to whole cache lines.
		const cacheLine = 64
		p := parquet.NewReaderProperties(&readAllocator{path: r.path, limit: int(limit) + cacheLine})
		p.BufferedStreamEnabled = true
		p.BufferSize = buffer
		p.MaxCompressedPageSize = min(r.size, maxPageBytes)
		p.MaxUncompressedPageSize = limit
		return p
	}
	footer, before, err := readFooterBytes(r.file, r.size)
	if err != nil {
		return err
	}
	r.stats.Bytes.Add(int64(len(footer)))
	meta, err := metadata.NewFileMetaData(footer, nil)
	if err != nil {
		return err
	}
	meta.SetSourceFileSize(r.size)
	r.footerBytes, r.tailSum = int64(len(footer)), before
	// Two numbers must now lie for a page to be allocated that the file cannot hold: the page's and its chunk's.
	limit := int64(1 << 20)
	for i := 0; i < meta.NumRowGroups(); i++ {
		if err := r.checkRowGroup(meta.RowGroup(i), &limit); err != nil {
			return base.Wrapf(base.CodeCorruption, err, "row group %d", i)
		}
	}
	if r.rows != meta.GetNumRows() || r.rows <= 0 || r.rows > maxFileRows {
		return base.Errorf(base.CodeCorruption, "the row groups have %d rows, the footer says %d", r.rows, meta.GetNumRows())
	}
	limit = min(limit, maxPageBytes)
	withMeta := file.WithMetadata(meta)
	if r.point, err = file.NewParquetReader(r.newSource(), withMeta, file.WithReadProps(props(pointBufferBytes, limit))); err != nil {
		return err
	}
	if r.scan, err = file.NewParquetReader(r.newSource(), withMeta, file.WithReadProps(props(scanBufferBytes, limit))); err != nil {
		return err
	}
	r.blooms = r.point.GetBloomFilterReader()
	for i := range r.groups {
		r.groups[i].point = r.point.RowGroup(i)
	}
	return nil
}

// checkRowGroup checks that a row group's chunks lie inside the file and adds it.
func (r *Reader) checkRowGroup(g *metadata.RowGroupMetaData, largest *int64) error {
	rows := g.NumRows()
	if rows <= 0 || rows > maxFileRows-r.rows {
		return base.Errorf(base.CodeCorruption, "%d rows", rows)
	}
	inside := func(off, n int64) bool { return off >= 0 && n >= 0 && n <= r.size && off <= r.size-n }
	for i := 0; i < g.NumColumns(); i++ {
		c, err := g.ColumnChunk(i)
		if err != nil {
			return err
		}
		start := c.DataPageOffset()
		if c.HasDictionaryPage() && c.DictionaryPageOffset() > 0 {
			start = min(start, c.DictionaryPageOffset())
		}
		if c.NumValues() != rows || !inside(start, c.TotalCompressedSize()) || !inside(c.BloomFilterOffset(), int64(c.BloomFilterLength())) {
			return base.Errorf(base.CodeCorruption, "column %d: %d values, %d bytes at %d, bloom filter at %d, in a file of %d bytes",
				i, c.NumValues(), c.TotalCompressedSize(), start, c.BloomFilterOffset(), r.size)
		}
		for _, loc := range []*metadata.IndexLocation{c.GetOffsetIndexLocation(), c.GetColumnIndexLocation()} {
			if loc != nil && !inside(loc.Offset, int64(loc.Length)) {
				return base.Errorf(base.CodeCorruption, "column %d: page index at %d, %d bytes, in a file of %d", i, loc.Offset, loc.Length, r.size)
			}
		}
		*largest = max(*largest, c.TotalUncompressedSize())
	}
	r.groups = append(r.groups, rowGroup{first: r.rows, rows: rows, columns: make([]chunk, g.NumColumns())})
	r.rows += rows
	return nil
}

// mapColumns finds the table's columns in the file.
func (r *Reader) mapColumns() error {
	fileSchema := r.point.MetaData().Schema
	byID := make(map[int32]int, fileSchema.NumColumns())
	for i := 0; i < fileSchema.NumColumns(); i++ {
		byID[fileSchema.Column(i).SchemaNode().FieldID()] = i
	}
	add := func(t *colType, col *base.Column) error {
		ordinal, ok := byID[t.fieldID]
		if !ok {
			if col == nil || r.schema.IsKey(len(r.columns)) || col.InitialDefault == nil && !col.Nullable {
				return base.Errorf(base.CodeSchemaMismatch, "the file has no column %q (field id %d)", t.name, t.fieldID)
			}
			if t.size > 0 && col.InitialDefault != nil && len(col.InitialDefault) != t.size {
				return base.Errorf(base.CodeSchemaMismatch, "column %q has an initial default of %d bytes, not %d", t.name, len(col.InitialDefault), t.size)
			}
			c := fileColumn{colType: t, ordinal: -1, absent: col.InitialDefault, one: newColumn(t.typ)}
			r.columns = append(r.columns, c)
			return r.columns[len(r.columns)-1].fill(&r.columns[len(r.columns)-1].one, 0, 1)
		}
		d := fileSchema.Column(ordinal)
		if err := t.matches(d); err != nil {
			return err
		}
		r.columns = append(r.columns, fileColumn{colType: t, ordinal: ordinal, optional: isOptional(d)})
		return nil
	}
	for i := range r.schema.Columns {
		if err := add(newColType(&r.schema.Columns[i]), &r.schema.Columns[i]); err != nil {
			return err
		}
	}
	seq, op := hiddenTypes()
	if err := add(seq, nil); err != nil {
		return err
	}
	return add(op, nil)
}

func isOptional(d *schema.Column) bool { return d.MaxDefinitionLevel() > 0 }

func (r *Reader) readIndex() error {
	meta := r.point.MetaData().KeyValueMetadata()
	stored := meta.FindValue(keyIndexKey)
	if stored == nil {
		return base.Errorf(base.CodeCorruption, "the footer has no key index")
	}
	x, err := parseKeyIndex(*stored, r.rows)
	if err != nil {
		return err
	}
	r.index = x
	// Every row group starts a block: a block is read from one row group.
	for i := range r.groups {
		first := r.groups[i].first
		if b := sort.Search(x.blocks(), func(b int) bool { return x.rows[b] >= first }); b == x.blocks() || x.rows[b] != first {
			return base.Errorf(base.CodeCorruption, "no block of the key index starts with row %d, where row group %d does", first, i)
		}
	}
	return nil
}

// FileSchema returns the schema of the table when the file was written.
func (r *Reader) FileSchema() (*base.Schema, error) {
	stored := r.point.MetaData().KeyValueMetadata().FindValue(schemaKey)
	if stored == nil {
		return nil, base.Errorf(base.CodeCorruption, "%s: the footer has no schema", r.path)
	}
	s := new(base.Schema)
	if err := json.Unmarshal([]byte(*stored), s); err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "%s: schema in the footer", r.path)
	}
	return s, nil
}

// Rows returns how many rows the file has, deleted ones and tombstones included.
func (r *Reader) Rows() int64 { return r.rows }

// KeyRange returns the first and the last encoded key. They are the reader's own memory.
func (r *Reader) KeyRange() (first, last []byte) { return r.index.key(0), r.index.last }

// Stats returns the counters.
func (r *Reader) Stats() ReaderStats {
	return ReaderStats{
		PagesRead: r.stats.Pages.Load(), BytesRead: r.stats.Bytes.Load(), BloomProbes: r.stats.Probes.Load(),
		BloomNegatives: r.stats.Negatives.Load(), BloomFalsePositives: r.stats.FalsePositives.Load(),
		RowGroups: int64(len(r.groups)), Rows: r.rows, MemoryBytes: int64(r.index.bytes()),
	}
}

// Close closes the file and drops what the cache has of it. No other method may run or be called after it.
func (r *Reader) Close() error {
	r.cache.forget(r.id)
	return r.file.Close()
}

// group returns the row group that holds a row.
func (r *Reader) group(row int64) int {
	return sort.Search(len(r.groups), func(i int) bool { return r.groups[i].first > row }) - 1
}
