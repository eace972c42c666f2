package sst

import (
	"encoding/json"
	"sort"
	"sync"
	"sync/atomic"

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
	// scanBuffersBytes is about what the buffers of a scan of all columns may have together: a merge scans many files.
	scanBuffersBytes = 2 << 20
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

// Reader reads one data file as rows of one schema of the table, which may be younger than the file. It keeps the key
// index in memory; the footer is the cache's, and the file may be closed and opened again between reads: see [library]
// and [handle]. All methods but Close may be called from many goroutines at a time.
type Reader struct {
	*openFile
	schema  *base.Schema
	columns []fileColumn // the table's columns, then the hidden ones
	keyCols []int        // of columns
	// keyPlaces are 0, 1, …: where key columns that were read alone are.
	keyPlaces  []int
	rowReaders sync.Pool
}

// openFile is what the readers of one file share, whatever their schemas.
type openFile struct {
	path   string
	id     uint64 // in the cache
	file   *handle
	size   int64
	groups []rowGroup
	rows   int64
	index  *keyIndex
	bounds []storedBounds // by column of the file
	cache  *Cache
	// kept is the library where the cache does not keep it, loading the lock of those who load it.
	kept    atomic.Pointer[library]
	loading sync.Mutex
	scratch sync.Pool
	// footerBytes and tailSum are for Verify: see footer.go.
	footerBytes int64
	tailSum     uint32
	stats       *Counters
}

// fileColumn is a column of the table in this file.
type fileColumn struct {
	*colType
	ordinal  int        // among the file's columns; -1: the file is older than the column
	optional bool       // in the file
	absent   []byte     // what the rows of an older file have, in storage form; nil: NULL
	one      row.Column // a row of that
	// stored is the column in the narrower type that it had when the file was written, and widen the way from there; nil
	// where the type is the same.
	stored *fileColumn
	widen  row.Widen
	as     pageType
	// inFile is what a nested column has; its ordinal is that of its first leaf. maxDef and maxRep are a leaf's.
	inFile         *fileNested
	maxDef, maxRep int16
}

// pageType tells the pages of a column in the cache from each other that readers of several schemas decode to values of
// several types.
type pageType struct {
	kind             base.Kind
	precision, scale uint8
}

// rowGroup is one row group: its first row in the file, and by file column the first rows, in the row group, of the data
// pages, read at first use.
type rowGroup struct {
	first, rows int64
	pages       []pageStarts
}

type pageStarts = atomic.Pointer[[]uint32]

var readerIDs atomic.Uint64

// Open opens a data file of size bytes of a table with the given schema, which may be younger than the file: columns are
// found by field id. Only the footer is read. Errors name the path: CodeNotFound, CodeCorruption for a file that is
// damaged or of another size, CodeSchemaMismatch for one of another table.
func Open(fs vfs.FS, path string, size int64, schema *base.Schema, cache *Cache) (*Reader, error) {
	f := &openFile{path: path, id: readerIDs.Add(1), size: size, cache: cache, stats: new(Counters)}
	f.file = cache.files().handle(fs, path, size)
	f.scratch.New = func() any { return new(scratch) }
	r := f.newReader(schema)
	if err := r.open(); err != nil {
		_ = r.Close() // nothing was written through it
		return nil, err
	}
	return r, nil
}

func (f *openFile) newReader(schema *base.Schema) *Reader {
	r := &Reader{openFile: f, schema: schema, keyCols: schema.PrimaryKey}
	for i := range r.keyCols {
		r.keyPlaces = append(r.keyPlaces, i)
	}
	return r
}

// WithSchema returns a reader of the same file for another schema of the table. They share what they hold and the
// counters; Close of one closes all.
func (r *Reader) WithSchema(schema *base.Schema) (*Reader, error) {
	other := r.newReader(schema)
	err := guard(r.path, "opening", func() error {
		lib, err := r.library()
		if err != nil {
			return err
		}
		return other.mapColumns(lib.meta)
	})
	if err != nil {
		return nil, err
	}
	return other, nil
}

// MayHoldNull reports whether rows of the file may be NULL in a column, deleted ones included.
func (r *Reader) MayHoldNull(column int) bool {
	c := &r.columns[column]
	return c.optional || c.ordinal < 0 && c.absent == nil
}

// Schema returns the schema of the rows.
func (r *Reader) Schema() *base.Schema { return r.schema }

func (r *Reader) open() error {
	if err := r.file.open(); err != nil {
		return err
	}
	return guard(r.path, "opening", func() error {
		f, err := r.readFooter()
		if err != nil {
			return err
		}
		r.footerBytes, r.tailSum, r.groups, r.rows = f.bytes, f.tailSum, f.groups, f.rows
		if err := r.mapColumns(f.meta); err != nil {
			return err
		}
		r.keepBounds(r.columns, f.meta)
		if err := r.readIndex(f.meta); err != nil {
			return err
		}
		lib, err := r.newLibrary(f)
		if err == nil {
			r.keep(lib)
		}
		return err
	})
}

// mapColumns finds the table's columns in the file, by field id.
func (r *Reader) mapColumns(meta *metadata.FileMetaData) error {
	byID := make(map[int32]int, meta.Schema.NumColumns())
	for i := 0; i < meta.Schema.NumColumns(); i++ {
		byID[meta.Schema.Column(i).SchemaNode().FieldID()] = i
	}
	for i, t := range r.cache.typesOf(r.schema) {
		col := (*base.Column)(nil) // hidden
		if i < len(r.schema.Columns) {
			col = &r.schema.Columns[i]
		}
		var c fileColumn
		var err error
		if t.nested != nil {
			if c, err = mapNested(t, byID, meta); c.inFile == nil && err == nil {
				c, err = r.absentColumn(t, col)
			}
		} else if ordinal, ok := byID[t.fieldID]; ok {
			c, err = r.mapColumn(t, ordinal, meta)
		} else {
			c, err = r.absentColumn(t, col)
		}
		if err != nil {
			return err
		}
		r.columns = append(r.columns, c)
	}
	return nil
}

// mapNested makes a column of a nested type; its inFile is nil where the file has none of it.
func mapNested(t *colType, byID map[int32]int, meta *metadata.FileMetaData) (c fileColumn, err error) {
	c.colType = t
	if c.inFile, err = t.nestedIn(meta.Schema, byID); c.inFile != nil {
		c.ordinal = c.inFile.leaves[0].ordinal
		c.optional = c.inFile.root == c.nested.root(true)
	}
	return c, err
}

// mapColumn makes the column that is there as one of the file's columns.
func (r *Reader) mapColumn(t *colType, ordinal int, meta *metadata.FileMetaData) (fileColumn, error) {
	d := meta.Schema.Column(ordinal)
	c := fileColumn{colType: t, ordinal: ordinal, optional: isOptional(d), as: pageType{t.typ.Kind, t.typ.Precision, t.typ.Scale}}
	mismatch := t.matches(d)
	if mismatch == nil {
		return c, nil
	}
	// The column may have had a narrower type.
	stored := meta.KeyValueMetadata().FindValue(schemaKey)
	if stored == nil || r.schema.IsKey(len(r.columns)) {
		return c, mismatch
	}
	var s *base.Schema
	if err := json.Unmarshal([]byte(*stored), &s); err != nil {
		return c, err
	}
	i := s.IndexOfField(t.fieldID)
	if i < 0 || !s.Columns[i].Type.Widens(t.typ) {
		return c, mismatch
	}
	c.stored = &fileColumn{colType: newColType(&s.Columns[i]), ordinal: ordinal, optional: c.optional}
	if err := c.stored.matches(d); err != nil {
		return c, err
	}
	c.widen = row.NewWiden(c.stored.typ, t.typ)
	return c, nil
}

// absentColumn makes a column that the file does not have: it is younger.
func (r *Reader) absentColumn(t *colType, col *base.Column) (c fileColumn, err error) {
	if col == nil || r.schema.IsKey(len(r.columns)) || col.InitialDefault == nil && !col.Nullable {
		return c, base.Errorf(base.CodeSchemaMismatch, "the file has no column %q (field id %d)", t.name, t.fieldID)
	}
	if t.size > 0 && col.InitialDefault != nil && len(col.InitialDefault) != t.size {
		return c, base.Errorf(base.CodeSchemaMismatch, "column %q has an initial default of %d bytes, not %d", t.name, len(col.InitialDefault), t.size)
	}
	c = fileColumn{colType: t, ordinal: -1, absent: col.InitialDefault, one: newColumn(t.typ)}
	return c, c.fill(&c.one, 0, 1)
}

func isOptional(d *schema.Column) bool { return d.MaxDefinitionLevel() > 0 }

func (r *Reader) readIndex(meta *metadata.FileMetaData) error {
	stored := meta.KeyValueMetadata().FindValue(keyIndexKey)
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
	var s *base.Schema
	err := guard(r.path, "reading the schema", func() error {
		stored, err := r.keyValue(schemaKey)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(stored), &s)
	})
	return s, err
}

// keyValue returns a free entry of the footer.
func (r *Reader) keyValue(key string) (string, error) {
	lib, err := r.library()
	if err != nil {
		return "", err
	}
	stored := lib.meta.KeyValueMetadata().FindValue(key)
	if stored == nil {
		return "", base.Errorf(base.CodeCorruption, "the footer has no entry %q", key)
	}
	return *stored, nil
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

// Close closes the file for good and drops what the cache has of it. No other method may run or be called after it, nor
// one of a reader of the same file with another schema.
func (r *Reader) Close() error {
	r.cache.forget(r.id)
	return r.file.Close()
}

// group returns the row group that holds a row.
func (r *Reader) group(row int64) int {
	return sort.Search(len(r.groups), func(i int) bool { return r.groups[i].first > row }) - 1
}
