package sst

import (
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/merutable/merutable/engine/internal/base"
)

// library is what the Parquet library needs to read a file: the footer and readers on it. It takes some 100 KB for a
// full file, and a database may have thousands of files. So it is an entry of the cache like the pages, read again
// where it is wanted and no more there; who uses it keeps it alive. A reader without a cache keeps its own.
type library struct {
	meta   *metadata.FileMetaData
	point  *file.Reader // with small buffers
	scan   *file.Reader // with large ones
	blooms *metadata.BloomFilterReader
	groups []libraryGroup
}

// libraryGroup is a row group for point reads.
type libraryGroup struct {
	*file.RowGroupReader
	// waiting holds, by file column, column readers with their buffers and dictionary, until the next point read.
	waiting []sync.Pool
}

// library returns the file's. On the way to a decoded page that is cached it is not needed.
func (r *Reader) library() (*library, error) {
	key := cacheKey{reader: r.id, kind: cachedLibrary}
	find := func() *library {
		if lib := r.kept.Load(); lib != nil {
			return lib
		}
		if v, ok := r.cache.use(key); ok {
			return v.(*library)
		}
		return nil
	}
	if lib := find(); lib != nil {
		return lib, nil
	}
	r.loading.Lock()
	defer r.loading.Unlock()
	if lib := find(); lib != nil { // another goroutine was faster
		return lib, nil
	}
	f, err := r.readFooter()
	if err != nil {
		return nil, err
	}
	if f.bytes != r.footerBytes || f.tailSum != r.tailSum {
		return nil, base.Errorf(base.CodeCorruption, "the file is another one than when it was opened")
	}
	lib, err := r.newLibrary(f)
	if err == nil {
		r.keep(lib)
	}
	return lib, err
}

// keep gives a library to the cache, or to the reader where that does not take it.
func (r *Reader) keep(lib *library) {
	if !r.cache.put(cacheKey{reader: r.id, kind: cachedLibrary}, lib, lib.memory()) {
		r.kept.Store(lib)
	}
}

// What a library takes, by measurement: a column of a row group, and for each byte of the page index what that is once
// it is read, as point reads do.
const (
	chunkBytes     = 700
	pageIndexRatio = 5
)

func (l *library) memory() int {
	n := 4 << 10
	for _, g := range l.meta.RowGroups {
		for _, c := range g.Columns {
			n += chunkBytes + pageIndexRatio*int(c.GetOffsetIndexLength())
		}
	}
	return n
}

// footer is a parsed and checked footer.
type footer struct {
	meta    *metadata.FileMetaData
	bytes   int64
	tailSum uint32
	groups  []rowGroup
	rows    int64
	// maxPage is the largest page that a column of the file may have.
	maxPage int64
}

func (r *Reader) readFooter() (*footer, error) {
	raw, before, err := readFooterBytes(r.file, r.size)
	if err != nil {
		return nil, err
	}
	r.stats.Bytes.Add(int64(len(raw)))
	meta, err := metadata.NewFileMetaData(raw, nil)
	if err != nil {
		return nil, err
	}
	meta.SetSourceFileSize(r.size)
	// Two numbers must now lie for a page to be allocated that the file cannot hold: the page's and its chunk's.
	f := &footer{meta: meta, bytes: int64(len(raw)), tailSum: before, maxPage: 1 << 20}
	for i := 0; i < meta.NumRowGroups(); i++ {
		if err := f.addRowGroup(meta.RowGroup(i), r.size); err != nil {
			return nil, base.Wrapf(base.CodeCorruption, err, "row group %d", i)
		}
	}
	if f.rows != meta.GetNumRows() || f.rows <= 0 || f.rows > maxFileRows {
		return nil, base.Errorf(base.CodeCorruption, "the row groups have %d rows, the footer says %d", f.rows, meta.GetNumRows())
	}
	f.maxPage = min(f.maxPage, maxPageBytes)
	return f, nil
}

// addRowGroup checks that a row group's chunks lie inside a file of size bytes and adds it.
func (f *footer) addRowGroup(g *metadata.RowGroupMetaData, size int64) error {
	rows := g.NumRows()
	if rows <= 0 || rows > maxFileRows-f.rows {
		return base.Errorf(base.CodeCorruption, "%d rows", rows)
	}
	inside := func(off, n int64) bool { return off >= 0 && n >= 0 && n <= size && off <= size-n }
	for i := 0; i < g.NumColumns(); i++ {
		c, err := g.ColumnChunk(i)
		if err != nil {
			return err
		}
		start := c.DataPageOffset()
		if c.HasDictionaryPage() && c.DictionaryPageOffset() > 0 {
			start = min(start, c.DictionaryPageOffset())
		}
		repeats := f.meta.Schema.Column(i).MaxRepetitionLevel() > 0
		if c.NumValues() != rows && !(repeats && c.NumValues() > rows) || !inside(start, c.TotalCompressedSize()) ||
			!inside(c.BloomFilterOffset(), int64(c.BloomFilterLength())) {
			return base.Errorf(base.CodeCorruption,
				"column %d: %d values, %d bytes at %d, bloom filter at %d, in a file of %d bytes",
				i, c.NumValues(), c.TotalCompressedSize(), start, c.BloomFilterOffset(), size)
		}
		for _, loc := range []*metadata.IndexLocation{c.GetOffsetIndexLocation(), c.GetColumnIndexLocation()} {
			if loc != nil && !inside(loc.Offset, int64(loc.Length)) {
				return base.Errorf(base.CodeCorruption, "column %d: page index at %d, %d bytes, in a file of %d", i, loc.Offset,
					loc.Length, size)
			}
		}
		f.maxPage = max(f.maxPage, c.TotalUncompressedSize())
	}
	f.groups = append(f.groups, rowGroup{first: f.rows, rows: rows, pages: make([]pageStarts, g.NumColumns())})
	f.rows += rows
	return nil
}

// newLibrary makes the library of a footer, of which it drops what reads never look at.
func (r *Reader) newLibrary(f *footer) (*library, error) {
	for _, g := range f.meta.RowGroups {
		for _, c := range g.Columns {
			c.MetaData.Statistics, c.MetaData.EncodingStats, c.MetaData.SizeStatistics = nil, nil, nil
		}
	}
	props := func(buffer int64) file.ReadOption {
		// A chunk may be a single page; the library rounds what it asks for up to whole cache lines.
		const cacheLine = 64
		p := parquet.NewReaderProperties(&readAllocator{path: r.path, limit: int(f.maxPage) + cacheLine})
		p.BufferedStreamEnabled = true
		p.BufferSize = buffer
		p.MaxCompressedPageSize = min(r.size, maxPageBytes)
		p.MaxUncompressedPageSize = f.maxPage
		return file.WithReadProps(p)
	}
	scanBuffer := max(pointBufferBytes, min(scanBufferBytes, scanBuffersBytes/int64(f.meta.Schema.NumColumns())))
	l := &library{meta: f.meta}
	var err error
	if l.point, err = file.NewParquetReader(r.newSource(), file.WithMetadata(f.meta), props(pointBufferBytes)); err != nil {
		return nil, err
	}
	if l.scan, err = file.NewParquetReader(r.newSource(), file.WithMetadata(f.meta), props(scanBuffer)); err != nil {
		return nil, err
	}
	// The point reader's own would put its buffers, and so all of the library, into every filter that is cached.
	l.blooms = &metadata.BloomFilterReader{Input: r.newSource(), FileMetadata: f.meta, BufferPool: &filterBuffers}
	for i := range f.groups {
		waiting := make([]sync.Pool, len(f.groups[i].pages))
		l.groups = append(l.groups, libraryGroup{RowGroupReader: l.point.RowGroup(i), waiting: waiting})
	}
	return l, nil
}

// filterBuffers holds the memory of bloom filters that are no more used.
var filterBuffers = sync.Pool{New: func() any {
	return memory.NewResizableBuffer(&readAllocator{path: "bloom filter", limit: maxBloomBytes + 1<<10, exact: true})
}}

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
