package engine

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/dv"
	"github.com/merutable/merutable/engine/internal/keyenc"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// table is a schema with the codecs made from it. It is immutable.
type table struct {
	number    uint64 // another one for each
	schema    *base.Schema
	keySchema *base.Schema
	layout    *row.Layout
	codec     *keyenc.Codec
}

func newTable(s *base.Schema) (*table, error) {
	codec, err := keyenc.NewCodec(s)
	if err != nil {
		return nil, err
	}
	return &table{number: tableNumbers.Add(1), schema: s, keySchema: KeySchema(s), layout: row.NewLayout(s), codec: codec}, nil
}

var tableNumbers atomic.Uint64

// dataFile is one immutable Parquet file. It is shared by all states that name it and opened at its first use.
type dataFile struct {
	fs    vfs.FS
	path  string // absolute
	rel   string // as in the manifest
	size  int64
	cache *sst.Cache
	// id is its number in this process, and counters those of all files of its database.
	id       uint64
	counters *sst.Counters

	// refs is counted without mu, which is held while the file is opened: an object store may take its time for that, and
	// states come and go under the database's lock.
	refs atomic.Int32

	mu sync.Mutex
	// readers are of one open file, each for a schema; the one asked for last comes first.
	readers []*sst.Reader
}

// maxReaders bounds the schemas for which a file keeps a reader.
const maxReaders = 4

var dataFileIDs atomic.Uint64

func (c *core) newDataFile(rel string, size int64) *dataFile {
	return &dataFile{
		fs: c.fs, path: c.fs.Join(c.dir, rel), rel: rel, size: size, cache: c.cache, id: dataFileIDs.Add(1), counters: &c.reads.files,
	}
}

// open returns a reader of the file's rows as those of a schema.
func (f *dataFile) open(schema *base.Schema) (*sst.Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.readers) > 0 && f.readers[0].Schema() == schema {
		return f.readers[0], nil
	}
	var r *sst.Reader
	if i := slices.IndexFunc(f.readers, func(r *sst.Reader) bool { return r.Schema().SameRows(schema) }); i >= 0 {
		r = f.readers[i]
		f.readers = slices.Delete(f.readers, i, i+1)
	} else if len(f.readers) > 0 {
		var err error
		if r, err = f.readers[0].WithSchema(schema); err != nil {
			return nil, missing(err)
		}
	} else {
		var err error
		if r, err = sst.Open(f.fs, f.path, f.size, schema, f.cache); err != nil {
			return nil, missing(err)
		}
		r.CountTo(f.counters)
	}
	f.readers = slices.Insert(f.readers[:min(len(f.readers), maxReaders-1)], 0, r)
	return r, nil
}

// openRaw opens the file itself.
func (f *dataFile) openRaw() (vfs.File, error) {
	file, err := vfs.OpenSized(f.fs, f.path, f.size)
	return file, missing(err)
}

// missing makes the error about a file that is gone one that nobody takes for a key or a table that is not there.
func missing(err error) error {
	if gone := (*objfs.Gone)(nil); errors.As(err, &gone) {
		return base.Wrapf(base.CodeIO, err, "a file of the table is gone")
	}
	if base.CodeOf(err) == base.CodeNotFound {
		return base.Wrapf(base.CodeIO, err, "a file of the table is gone (a reader in another process is safe for gc_grace_secs after its last refresh)")
	}
	return err
}

func (f *dataFile) ref() { f.refs.Add(1) }

func (f *dataFile) unref() {
	if f.refs.Add(-1) != 0 {
		return
	}
	f.mu.Lock() // which nobody has any more
	defer f.mu.Unlock()
	if len(f.readers) > 0 {
		f.readers[0].Close() // and so all of them
		f.readers = nil
	}
}

// liveFile is a data file in one state, with the deletion vector that it has there.
type liveFile struct {
	*dataFile
	meta *manifest.File

	dvMu sync.Mutex
	dv   atomic.Pointer[roaring.Bitmap]
}

// deleted returns the file's deletion vector, never nil. It is shared: do not change it. After an error the next call
// tries again.
func (f *liveFile) deleted(dbDir string) (*roaring.Bitmap, error) {
	if bm := f.dv.Load(); bm != nil {
		return bm, nil
	}
	f.dvMu.Lock()
	defer f.dvMu.Unlock()
	if bm := f.dv.Load(); bm != nil {
		return bm, nil
	}
	bm := roaring.New()
	if f.meta.DVPath != "" {
		var err error
		if bm, err = dv.Read(f.fs, f.fs.Join(dbDir, f.meta.DVPath), f.meta.DVOffset, f.meta.DVLength, f.meta.Rows); err != nil {
			return nil, missing(err)
		}
		if int64(bm.GetCardinality()) != f.meta.Deleted {
			return nil, base.Errorf(base.CodeCorruption, "%s marks %d rows, the manifest says %d", f.meta.DVPath, bm.GetCardinality(), f.meta.Deleted)
		}
	}
	f.dv.Store(bm)
	return bm, nil
}

// memEntry is a memtable with what the engine knows about it.
type memEntry struct {
	mt *memtable.Memtable
	// log is the first log that holds rows of it, lastLog the last one, once it takes no more writes.
	log, lastLog uint64
	// visible is how many of its entries readers may see, and lastSeq the newest of their sequence numbers; both are
	// guarded by core.mu.
	// firstSeq is the oldest one, firstAt when it came, while there is a mirror.
	visible           int
	firstSeq, lastSeq base.Seq
	firstAt           time.Time
	// flushing says that a flush worker has it, since flushBegan; both are guarded by core.mu. flushedRows is about how
	// many rows it has written.
	flushing    bool
	flushBegan  time.Time
	flushedRows atomic.Int64

	resolutions resolutionCache
	counted     liveCount
	mapping     *vfs.Mapping // of a transaction's memtable that is in a file
}

// restEvery is how many bytes of rows are read of memtables that are in files before their pages are given back.
const restEvery = 32 << 20

// rest gives pages back that are in memory, of a memtable that is in a file.
func (e *memEntry) rest() {
	if e.mapping != nil {
		e.mapping.Drop()
	}
}

// free returns how many bytes of rows it still takes.
func (e *memEntry) free() int { return e.mt.Capacity() - e.mt.Bytes() }

// readState is what a reader needs to see the table: immutable but for the growing active memtable. The core holds one
// reference to the current one, each snapshot one to its own.
type readState struct {
	core     *core
	refs     atomic.Int32
	manifest *manifest.Manifest // nil in a database without a manifest
	table    *table             // nil where there is no table
	files    []*liveFile
	index    *fileIndex  // of files
	mems     []*memEntry // newest first; the active one, if any, is the first
	// bounds has, for each memtable, the newest sequence number that is seen of it, where that is not one number for all:
	// in what a transaction sees.
	bounds []base.Seq
	// sinceRest counts the bytes of rows that were read since pages were given back.
	sinceRest atomic.Int64
	// private is how many memtables, the first ones, are a transaction's own: their rows have no sequence numbers yet.
	private int
	part    bool // made by only: its files are held, not its manifest
	// droppedSeq bounds the sequence numbers of the deletions that compactions of this process have dropped: of later
	// ones there is a trace in the files or in memory.
	droppedSeq base.Seq
}

// newState makes a state with one reference, which itself references files and memtables. Deletion vectors and readers
// of prev are carried over where the manifest names the same ones.
func (c *core) newState(prev *readState, m *manifest.Manifest, t *table, mems []*memEntry) *readState {
	s := &readState{core: c, manifest: m, table: t, mems: mems}
	s.refs.Store(1)
	if prev != nil {
		s.droppedSeq = prev.droppedSeq
	}
	if prev != nil && prev.manifest == m { // only the memtables are others
		s.files, s.index = prev.files, prev.index
	} else {
		s.files = c.liveFiles(prev, m)
		s.index = newFileIndex(s.files)
	}
	for _, f := range s.files {
		f.ref()
	}
	for _, e := range mems {
		e.mt.Ref()
	}
	c.pinned.add(m)
	return s
}

// liveFiles returns the files of a manifest, those that prev knows with what is open of them.
func (c *core) liveFiles(prev *readState, m *manifest.Manifest) []*liveFile {
	if m == nil {
		return nil
	}
	known := map[string]*liveFile{}
	if prev != nil {
		for _, f := range prev.files {
			known[f.rel] = f
		}
	}
	files := make([]*liveFile, len(m.Files))
	for i, meta := range m.Files {
		lf := &liveFile{meta: meta}
		if k, ok := known[meta.Path]; ok && k.size == meta.Size {
			lf.dataFile = k.dataFile
			if k.meta == meta {
				lf = k
			} else if k.meta.DVPath == meta.DVPath && k.meta.DVOffset == meta.DVOffset && k.meta.DVLength == meta.DVLength &&
				k.meta.Deleted == meta.Deleted {
				lf.dv.Store(k.dv.Load())
			}
		} else {
			lf.dataFile = c.newDataFile(meta.Path, meta.Size)
		}
		files[i] = lf
	}
	return files
}

// only makes a state with one reference that holds nothing but some files of s, for a job that needs no more and runs for
// long.
func (s *readState) only(files []*liveFile) *readState {
	part := &readState{core: s.core, manifest: s.manifest, table: s.table, files: files, part: true}
	part.refs.Store(1)
	for _, f := range files {
		f.ref()
	}
	s.core.pinned.holdFiles(files)
	return part
}

// hasRead takes note of bytes of rows that a scan has read. What many scans bring in of a transaction's files, such as
// those of the pieces of an overlay, is given back now and then.
func (s *readState) hasRead(bytes int) {
	if s.bounds == nil || s.sinceRest.Add(int64(bytes)) < restEvery {
		return
	}
	s.sinceRest.Store(0)
	for _, e := range s.mems {
		e.rest()
	}
}

// bound returns the newest sequence number that a reader as of seq sees in memtable i.
func (s *readState) bound(i int, seq base.Seq) base.Seq {
	if s.bounds != nil {
		return s.bounds[i]
	}
	return seq
}

func (s *readState) ref() { s.refs.Add(1) }

func (s *readState) unref() {
	if s.refs.Add(-1) != 0 {
		return
	}
	if s.part {
		s.core.pinned.releaseFiles(s.files)
		s.core.collectGarbage()
	} else if s.core.pinned.remove(s.manifest) {
		s.core.collectGarbage()
	}
	for _, f := range s.files {
		f.unref()
	}
	for _, e := range s.mems {
		e.mt.Unref()
	}
}
