package engine

import (
	"context"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// A database in an object store is read by the code that reads a directory: objfs is its file system. What differs is
// here and in remoterefresh.go: manifests are listed and not pinned, and there are no logs to look for.

// storeID tells the store of a URL from others of the same URL.
type storeID struct {
	config S3Config
	given  objstore.Store // by UseStore
}

// UseStore makes the engine take a store for that of a database's URL, whatever that is. It is for tests, as UseFS.
func (o *Options) UseStore(s objstore.Store) { o.store = s }

// resolve returns what a path stands for. With create a directory is made.
func (o *Options) resolve(path string, create bool) (engineKey, error) {
	if objstore.IsURL(path) {
		return engineKey{fs: o.fs, dir: strings.TrimRight(path, "/"), store: storeID{o.S3, o.store}}, nil
	}
	dir, err := resolveDir(o.fs, path, create)
	return engineKey{fs: o.fs, dir: dir}, err
}

// openStore returns the store of a URL.
func (o *Options) openStore(url string) (objstore.Store, error) {
	if o.store != nil {
		return o.store, nil
	}
	return objstore.Open(url, o.S3)
}

// mount returns the file system of a database's object store. It asks nothing of it.
func (o *Options) mount(url string) (*objfs.FS, error) {
	store, err := o.openStore(url)
	if err != nil {
		return nil, err
	}
	mo := objfs.Options{Root: url, MemoryBytes: o.blockBytes(), Identity: o.S3.Endpoint}
	if o.ObjectCacheDir != "" && o.ObjectCacheBytes > 0 {
		if mo.Disk, err = objfs.OpenDiskCache(o.fs, o.ObjectCacheDir, o.ObjectCacheBytes); err != nil {
			return nil, err
		}
	}
	return objfs.New(store, mo), nil
}

// mountReader returns the options that a database in an object store is read with.
func mountReader(url string, given Options) (Options, error) {
	o, err := given.effective()
	if err != nil {
		return o, err
	}
	objects, err := o.mount(url)
	if err != nil {
		return o, err
	}
	o.fs = objects
	return o, nil
}

// blockBytes is what the blocks of an object store have in memory: a share of what memory.go gives to jobs.
func (o *Options) blockBytes() int64 {
	const unbudgeted = 64 << 20
	if o.MemoryLimit == 0 {
		return unbudgeted
	}
	return min(o.MemoryLimit/budgetShares*blockShares, maxBlockBytes) // objfs has a least of its own
}

const (
	// blockShares is of the budget, and of jobShares.
	blockShares   = 2
	maxBlockBytes = 1 << 30
)

// ObjectStats say how the files of a database in an object store are read. Blocks are parts of files.
type ObjectStats struct {
	ObjectRequests    int64 `json:"object_requests"`              // for parts of files
	ObjectBytes       int64 `json:"object_bytes_read"`            // what came
	ObjectHits        int64 `json:"object_cache_hits"`            // blocks that were in memory
	ObjectMisses      int64 `json:"object_cache_misses"`          // those that were not
	ObjectDiskHits    int64 `json:"object_cache_disk_hits"`       // of these, blocks that were in object_cache_dir
	ObjectCacheMemory int64 `json:"object_cache_bytes_in_memory"` // in memory now
}

func (d *database) objectStats() ObjectStats {
	if !d.remote() {
		return ObjectStats{}
	}
	s := d.objects.Stats()
	return ObjectStats{
		ObjectRequests: s.Requests, ObjectBytes: s.Bytes, ObjectHits: s.MemoryHits, ObjectMisses: s.MemoryMiss,
		ObjectDiskHits: s.DiskHits, ObjectCacheMemory: s.MemoryBytes,
	}
}

// remote reports whether the database is in an object store.
func (d *database) remote() bool { return d.objects != nil }

// newStore returns where the manifests of a table's directory are.
func (d *database) newStore(dir string) manifest.Store {
	s := manifestsIn(d.fs, dir)
	if o, ok := s.(*manifest.ObjectStore); ok {
		o.SetPatience(d.opts.commitPatience())
	}
	return s
}

// manifestsIn returns the manifests of a table's directory, which may be one of an object store's.
func manifestsIn(fs vfs.FS, dir string) manifest.Store {
	objects, ok := fs.(*objfs.FS)
	if !ok {
		return manifest.NewFSStore(fs, dir)
	}
	return manifest.NewObjectStore(objects.Store(), objects.Prefix(dir), dir)
}

// File is a data file of a snapshot, as it is stored. Its methods may be called from any goroutine, but Close only behind
// all others.
type File struct {
	state *readState
	file  interface {
		ReadAt(p []byte, off int64) (int, error)
		Close() error
	}
	size int64
}

// OpenFile opens the data file that Files()[i] describes, wherever it is stored, for who reads Parquet by himself. The
// file stays readable after Close of the snapshot. Close it. The first read may be what says that the file is not there.
func (s *Snapshot) OpenFile(i int) (*File, error) {
	if i < 0 || i >= len(s.state.files) {
		return nil, base.Errorf(base.CodeInvalidArgument, "file %d of %d", i, len(s.state.files))
	}
	if err := s.pin(); err != nil {
		return nil, err
	}
	f, err := s.state.files[i].openRaw()
	if err != nil {
		s.state.unref()
		return nil, err
	}
	return &File{state: s.state, file: f, size: s.state.files[i].size}, nil
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	return n, missing(err)
}

// ReadAtUnless is ReadAt, which ends with CodeCancelled where interrupt, asked some times a second, is true: a store may not
// answer for long.
func (f *File) ReadAtUnless(p []byte, off int64, interrupt func() bool) (n int, err error) {
	remote, ok := f.file.(interface {
		ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	})
	if !ok || interrupt == nil {
		return f.ReadAt(p, off)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = base.Guard(func() (err error) {
			n, err = remote.ReadAtContext(ctx, p, off)
			return err
		})
	}()
	const every = 100 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return n, missing(err)
		case <-tick.C:
			if interrupt() {
				cancel()
				<-ended // at once
				return n, missing(err)
			}
		}
	}
}

// Size returns the length in bytes.
func (f *File) Size() int64 { return f.size }

// Close closes the file.
func (f *File) Close() error {
	err := f.file.Close()
	f.state.unref()
	return err
}
