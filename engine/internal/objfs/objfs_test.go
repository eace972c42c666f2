package objfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const root = "s3://bucket/db"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content is what an object of a test holds.
func content(seed uint64, size int) []byte {
	p := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(p)
	return p
}

func put(t testing.TB, s objstore.Store, key string, data []byte) {
	t.Helper()
	_, err := s.Put(context.Background(), key, objstore.Bytes(data))
	must(t, err)
}

// counting returns a store that counts its requests.
func counting(inner objstore.Store) (objstore.Store, *atomic.Int64) {
	n := new(atomic.Int64)
	return objstore.NewFaulty(inner, func(objstore.Op, string) error {
		n.Add(1)
		return nil
	}), n
}

func openFile(t testing.TB, f *FS, key string, size int) vfs.File {
	t.Helper()
	file, err := f.OpenSized(root+"/"+key, int64(size))
	must(t, err)
	return file
}

// TestReads compares reads of all kinds with what the object holds, by many goroutines at a time.
func TestReads(t *testing.T) {
	for _, size := range []int{1, 1000, blockBytes - 1, blockBytes, blockBytes + 1, 5*blockBytes + 17, 20 * blockBytes} {
		mem := objstore.NewMem()
		want := content(uint64(size), size)
		put(t, mem, "data/L0/a.parquet", want)
		f := New(mem, Options{Root: root, MemoryBytes: 1})
		files := []vfs.File{openFile(t, f, "data/L0/a.parquet", size)}
		unsized, err := f.Open(root + "/data/L0/a.parquet")
		must(t, err)
		files = append(files, unsized)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(size), uint64(g)))
				for range 40 {
					readSome(t, files[rng.IntN(2)], want, rng)
				}
			})
		}
		wg.Wait()
		if n, err := unsized.Size(); err != nil || n != int64(size) {
			t.Errorf("size %d, %v; want %d", n, err, size)
		}
	}
}

func readSome(t *testing.T, f vfs.File, want []byte, rng *rand.Rand) {
	off := rng.IntN(len(want) + 10)
	n := rng.IntN(min(len(want)+20, 3*blockBytes))
	if rng.IntN(4) == 0 {
		n = rng.IntN(100)
	}
	p := make([]byte, n)
	got, err := f.ReadAt(p, int64(off))
	expect := want[min(off, len(want)):min(off+n, len(want))]
	if !bytes.Equal(p[:got], expect) || (err != nil && err != io.EOF) || (got < n) != (err == io.EOF) {
		t.Errorf("%d bytes at %d of %d: %d came, %v", n, off, len(want), got, err)
	}
}

func TestSequentialRead(t *testing.T) {
	const size = 24 << 20
	mem := objstore.NewMem()
	want := content(7, size)
	put(t, mem, "a.parquet", want)
	store, n := counting(mem)
	f := New(store, Options{Root: root, MemoryBytes: 64 << 20})
	file := openFile(t, f, "a.parquet", size)
	var got []byte
	for p := make([]byte, 50_000); len(got) < size; {
		k, err := file.ReadAt(p, int64(len(got)))
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		got = append(got, p[:k]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes came")
	}
	if most := int64(size/(maxRun*blockBytes) + 8); n.Load() > most {
		t.Errorf("%d requests for %d MiB, want at most %d", n.Load(), size>>20, most)
	}
	if s := f.Stats(); s.Bytes != size || s.Requests != n.Load() {
		t.Errorf("%+v", s)
	}
	before := n.Load()
	p := make([]byte, size)
	if _, err := file.ReadAt(p, 0); err != nil || !bytes.Equal(p, want) || n.Load() != before {
		t.Errorf("again: %v, %d requests", err, n.Load()-before)
	}
}

// TestLargeRead is one call for much: few requests, and the tail of a file comes with its last block.
func TestLargeRead(t *testing.T) {
	const size = 10 << 20
	mem := objstore.NewMem()
	put(t, mem, "a.parquet", content(8, size))
	store, n := counting(mem)
	f := New(store, Options{Root: root, MemoryBytes: 64 << 20})
	file := openFile(t, f, "a.parquet", size)
	p := make([]byte, 100)
	_, err := file.ReadAt(p, size-100)
	must(t, err)
	_, err = file.ReadAt(p, size-tailRun*blockBytes+5)
	must(t, err)
	if n.Load() != 1 {
		t.Errorf("%d requests for the tail", n.Load())
	}
	_, err = file.ReadAt(make([]byte, 8<<20), 0)
	must(t, err)
	if n.Load() != 3 {
		t.Errorf("%d requests for 8 MiB", n.Load()-1)
	}
}

// TestSingleFlight has many readers wait for one block, which is asked for once.
func TestSingleFlight(t *testing.T) {
	mem := objstore.NewMem()
	want := content(9, 1000)
	put(t, mem, "a.parquet", want)
	var n atomic.Int64
	gate := make(chan struct{})
	f := New(objstore.NewFaulty(mem, func(objstore.Op, string) error {
		n.Add(1)
		<-gate
		return nil
	}), Options{Root: root})
	file := openFile(t, f, "a.parquet", 1000)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			p := make([]byte, 1000)
			if _, err := file.ReadAt(p, 0); err != nil || !bytes.Equal(p, want) {
				t.Errorf("%v", err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n.Load() != 1 {
		t.Errorf("%d requests", n.Load())
	}
}

// TestErrorsOfReads: they keep their code, name the object, and are not remembered.
func TestErrorsOfReads(t *testing.T) {
	mem := objstore.NewMem()
	put(t, mem, "a.parquet", content(1, 1000))
	var fail error
	store := objstore.NewFaulty(mem, func(objstore.Op, string) error { return fail })
	f := New(store, Options{Root: root})
	read := func(key string, size int) error {
		_, err := openFile(t, f, key, size).ReadAt(make([]byte, 10), 0)
		return err
	}
	for _, c := range []struct {
		fail error
		key  string
		size int
		code base.Code
	}{
		{errors.New("503 slow down"), "a.parquet", 1000, base.CodeObjectStore},
		{base.Errorf(base.CodeTimeout, "no answer"), "a.parquet", 1000, base.CodeTimeout},
		{nil, "b.parquet", 1000, base.CodeNotFound},
		{nil, "a.parquet", 1001, base.CodeCorruption},
	} {
		fail = c.fail
		err := read(c.key, c.size)
		if base.CodeOf(err) != c.code || !strings.Contains(err.Error(), root+"/"+c.key) {
			t.Errorf("%v %s: %v", c.fail, c.key, err)
		}
		fail = nil
		must(t, read("a.parquet", 1000))
		f = New(store, Options{Root: root})
	}
}

// short answers with less than was asked for, and no error.
type short struct{ objstore.Store }

func (s short) ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error) {
	return s.Store.ReadAt(ctx, key, p[:len(p)/2], off)
}

func TestShortAnswer(t *testing.T) {
	mem := objstore.NewMem()
	put(t, mem, "a.parquet", content(1, 1000))
	file := openFile(t, New(short{mem}, Options{Root: root}), "a.parquet", 1000)
	if _, err := file.ReadAt(make([]byte, 10), 0); base.CodeOf(err) != base.CodeObjectStore {
		t.Errorf("half an answer: %v", err)
	}
}

// TestPanics lets the store, and the disk of the cache, panic: reads end with an error, whoever's goroutine it is, and the
// next ones go on.
func TestPanics(t *testing.T) {
	mem := objstore.NewMem()
	want := content(5, 9*blockBytes)
	put(t, mem, "a.parquet", want)
	for _, where := range []string{"store", "disk"} {
		var broken atomic.Bool
		broken.Store(true)
		store := objstore.NewFaulty(mem, func(objstore.Op, string) error {
			if broken.Load() && where == "store" {
				panic("broken store")
			}
			return nil
		})
		fs := vfs.NewErrorFS(vfs.NewMem(), func(_ vfs.Op, path string) error {
			if broken.Load() && where == "disk" && strings.Contains(path, diskSuffix) {
				panic("broken disk")
			}
			return nil
		})
		f := New(store, Options{Root: root, MemoryBytes: 64 << 20, Disk: process(fs, 1<<30)})
		file := openFile(t, f, "a.parquet", len(want)).(*blockFile)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		got := make([]byte, len(want))
		for _, ctx := range []context.Context{context.Background(), ctx} {
			_, err := file.ReadAtContext(ctx, got, 0)
			if base.CodeOf(err) != base.CodeUnknown || !strings.Contains(err.Error(), "broken "+where) {
				t.Errorf("%s: %v", where, err)
			}
		}
		broken.Store(false)
		_, err := file.ReadAtContext(ctx, got, 0)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes came", where)
		}
	}
}

// TestMemoryBound reads far more than the cache in memory may have.
func TestMemoryBound(t *testing.T) {
	const size = 40 << 20
	mem := objstore.NewMem()
	want := content(3, size)
	put(t, mem, "a.parquet", want)
	f := New(mem, Options{Root: root, MemoryBytes: minMemory})
	file := openFile(t, f, "a.parquet", size)
	p := make([]byte, 3<<20)
	for off := int64(0); off < size; off += int64(len(p)) {
		n, err := file.ReadAt(p, off)
		if !bytes.Equal(p[:n], want[off:off+int64(n)]) || err != nil && err != io.EOF {
			t.Fatalf("at %d: %v", off, err)
		}
		if s := f.Stats(); s.MemoryBytes > minMemory {
			t.Fatalf("%d bytes are cached, %d may be", s.MemoryBytes, minMemory)
		}
	}
}

func TestNames(t *testing.T) {
	mem := objstore.NewMem()
	for _, key := range []string{"TABLES", "data/L0/a.parquet", "data/L0/b.parquet", "data/L1/c.parquet", "metadata/v1.manifest.bin"} {
		put(t, mem, key, []byte(key))
	}
	f := New(mem, Options{Root: root})
	list := func(dir string) []string {
		names, err := f.List(f.Join(root, dir))
		must(t, err)
		return names
	}
	if got := list(""); !slices.Equal(got, []string{"TABLES", "data", "metadata"}) {
		t.Errorf("%v", got)
	}
	if got := list("data"); !slices.Equal(got, []string{"L0", "L1"}) {
		t.Errorf("%v", got)
	}
	if got := list("data/L0"); !slices.Equal(got, []string{"a.parquet", "b.parquet"}) {
		t.Errorf("%v", got)
	}
	if _, err := f.List(root + "/none"); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("%v", err)
	}
	if i, err := f.Stat(root + "/data"); err != nil || !i.IsDir {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := f.Stat(root + "/TABLES"); err != nil || i.IsDir || i.Size != 6 {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := f.Stat(root + "/none"); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := f.Open("s3://bucket/dbx/TABLES"); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Errorf("%v", err)
	}
	if _, err := f.Open(root + "/none"); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("%v", err)
	}
	many := objstore.NewMem()
	for i := range 2500 {
		put(t, many, "data/L0/"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+time.Duration(i).String(), nil)
	}
	put(t, many, "metadata/v1", nil)
	store, n := counting(many)
	if names, err := New(store, Options{Root: root}).List(root); err != nil || len(names) != 2 || n.Load() > 2 {
		t.Errorf("%v, %v, %d requests", names, err, n.Load())
	}
}
