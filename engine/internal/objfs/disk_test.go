package objfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// process returns a cache as another process has it.
func process(fs vfs.FS, limit int64) *DiskCache {
	d := newDiskCache(fs, "/cache/"+diskDir)
	d.limit.Store(limit)
	return d
}

func diskBytes(t *testing.T, d *DiskCache) int64 {
	t.Helper()
	_, total := d.files()
	return total
}

func TestDiskCacheOutlivesProcess(t *testing.T) {
	fs, mem := vfs.NewMem(), objstore.NewMem()
	const size = 3*blockBytes + 5
	want := content(1, size)
	put(t, mem, "a.parquet", want)
	for i := range 2 {
		store, n := counting(mem)
		f := New(store, Options{Root: root, MemoryBytes: 64 << 20, Disk: process(fs, 1<<30)})
		got := make([]byte, size)
		_, err := openFile(t, f, "a.parquet", size).ReadAt(got, 0)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Error("other bytes came")
		}
		if most := int64(1 - i); n.Load() != most {
			t.Errorf("process %d: %d requests", i, n.Load())
		}
	}
	// Another store under the same URL, and another database in the same store, are something else.
	for _, o := range []Options{{Root: root, Identity: "elsewhere"}, {Root: root + "2"}} {
		o.Disk = process(fs, 1<<30)
		f := New(objstore.NewMem(), o)
		file, err := f.OpenSized(o.Root+"/a.parquet", size)
		must(t, err)
		if _, err := file.ReadAt(make([]byte, 10), 0); base.CodeOf(err) != base.CodeNotFound {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestDiskCacheDamage damages each file in the cache in some way; none is believed.
func TestDiskCacheDamage(t *testing.T) {
	fs, mem := vfs.NewMem(), objstore.NewMem()
	const size = 8*blockBytes + 77
	want := content(2, size)
	put(t, mem, "a.parquet", want)
	read := func() *DiskCache {
		d := process(fs, 1<<30)
		f := New(mem, Options{Root: root, Disk: d})
		got := make([]byte, size)
		_, err := openFile(t, f, "a.parquet", size).ReadAt(got, 0)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Fatal("damage was believed")
		}
		return d
	}
	d := read()
	rng := rand.New(rand.NewPCG(1, 2))
	files, _ := d.files()
	if len(files) != 9 {
		t.Fatalf("%d files", len(files))
	}
	for round := range 3 {
		for _, file := range files {
			damage(t, fs, file.name, rng, files[rng.IntN(len(files))].name)
		}
		if d := read(); d.Damaged.Load() == 0 {
			t.Errorf("round %d: nothing was found damaged", round)
		}
	}
	if d := read(); d.Damaged.Load() != 0 || d.Misses.Load() != 0 || d.Hits.Load() < 9 { // what is read ahead may hit once more
		t.Errorf("it was not mended: %d damaged, %d misses, %d hits", d.Damaged.Load(), d.Misses.Load(), d.Hits.Load())
	}
}

func damage(t *testing.T, fs *vfs.MemFS, name string, rng *rand.Rand, other string) {
	t.Helper()
	read := func(name string) []byte {
		f, err := fs.Open(name)
		must(t, err)
		defer f.Close()
		n, err := f.Size()
		must(t, err)
		p := make([]byte, n)
		_, _ = f.ReadAt(p, 0)
		return p
	}
	p := read(name)
	switch rng.IntN(5) {
	case 0:
		p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
	case 1:
		p = p[:rng.IntN(len(p))]
	case 2:
		p = append(p, 0)
	case 3:
		p = read(other) // whole, and of another block, or of this one
	case 4:
		clear(p[rng.IntN(len(p)):])
	}
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.Write(p)
	must(t, err)
	must(t, f.Close())
}

// TestDiskCacheBound fills the cache far beyond its bound, from two processes and over a restart.
func TestDiskCacheBound(t *testing.T) {
	fs := vfs.NewMem()
	const limit = 64 * blockBytes
	block := content(3, blockBytes)
	var wg sync.WaitGroup
	for p := range 2 {
		d := process(fs, limit)
		wg.Go(func() {
			for i := range 200 {
				d.put("s", blockID{key: fmt.Sprintf("%d-%d.parquet", p, i), size: blockBytes}, block)
			}
		})
	}
	wg.Wait()
	d := process(fs, limit)
	if n := diskBytes(t, d); n > limit || n < limit/2 {
		t.Errorf("%d bytes with a bound of %d", n, limit)
	}
	d.limit.Store(minDiskBytes)
	d.put("s", blockID{key: "last.parquet", size: blockBytes}, block)
	if n := diskBytes(t, d); n > minDiskBytes {
		t.Errorf("%d bytes after a restart with a bound of %d", n, minDiskBytes)
	}
	if d.get("s", blockID{key: "last.parquet", size: blockBytes}) == nil {
		t.Error("the newest block is gone")
	}
}

// TestDiskCacheKeepsUsed: what is used stays, in the next process too.
func TestDiskCacheKeepsUsed(t *testing.T) {
	fs := vfs.NewMem()
	const limit = 64 * blockBytes
	block := content(3, blockBytes)
	id := func(i int) blockID { return blockID{key: fmt.Sprintf("%d.parquet", i), size: blockBytes} }
	d := process(fs, limit)
	for i := range 40 {
		d.put("s", id(i), block)
		_, name := d.path(id(i).of("s"))
		must(t, fs.Touch(d.fs.Join(d.dir, name[:2], name), time.Now().Add(time.Duration(i-1000)*time.Hour)))
	}
	if d.get("s", id(0)) == nil {
		t.Fatal("not there")
	}
	d = process(fs, limit)
	for i := 100; i < 150; i++ {
		d.put("s", id(i), block)
	}
	if d.get("s", id(0)) == nil || d.get("s", id(1)) != nil {
		t.Errorf("the block in use is there: %v; one that was not used for long: %v", d.get("s", id(0)) != nil, d.get("s", id(1)) != nil)
	}
}

// TestDiskCacheFails: a full disk, or one that cannot be read, is no error of a reader's.
func TestDiskCacheFails(t *testing.T) {
	var fail error
	fs := vfs.NewErrorFS(vfs.NewMem(), func(op vfs.Op, path string) error {
		if strings.Contains(path, diskSuffix) {
			return fail
		}
		return nil
	})
	mem := objstore.NewMem()
	want := content(4, 1000)
	put(t, mem, "a.parquet", want)
	fail = errors.New("no space left on device")
	d := process(fs, 1<<30)
	for range 2 {
		f := New(mem, Options{Root: root, Disk: d})
		got := make([]byte, 1000)
		_, err := openFile(t, f, "a.parquet", 1000).ReadAt(got, 0)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Error("other bytes came")
		}
	}
	if d.pausedTo.Load() == 0 || d.Written.Load() != 0 {
		t.Error("it goes on writing")
	}
	if _, err := OpenDiskCache(fs, "/cache", 5); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Errorf("%v", err)
	}
	if _, err := OpenDiskCache(vfs.OS, "/proc/none", 1<<30); err == nil || !strings.Contains(err.Error(), "object cache") {
		t.Errorf("%v", err)
	}
}
