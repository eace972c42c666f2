package sst

import (
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst/ssttest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// openCounter counts the files that are open for reading.
type openCounter struct {
	vfs.FS
	mu         sync.Mutex
	open, most int
}

type countedFile struct {
	vfs.File
	c *openCounter
}

func (c *openCounter) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.most = max(c.most, c.open)
	return countedFile{f, c}, nil
}

func (f countedFile) Close() error {
	f.c.mu.Lock()
	f.c.open--
	f.c.mu.Unlock()
	return f.File.Close()
}

// TestOpenFiles reads many files from several goroutines through a table of few: the number of open files is bounded, and
// all reads find their rows.
func TestOpenFiles(t *testing.T) {
	const files, tableSize, goroutines = 40, 5, 4
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, true, 0)
	fs := &openCounter{FS: vfs.NewMem()}
	cache := NewCache(0)
	cache.table.max = tableSize
	var rs []*Reader
	var rows [][]testRow
	for i := range files {
		rows = append(rows, makeRows(t, s, 300, int64(i), 0))
		path := fmt.Sprint("f", i)
		info, err := Write(fs, path, small(s, 0), ssttest.NewSource(s, rows[i]))
		must(t, err)
		r, err := Open(fs, path, info.Size, s, cache)
		must(t, err)
		rs = append(rs, r)
	}
	if fs.open != tableSize {
		t.Fatalf("%d files are open", fs.open)
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewSource(int64(g)))
			for range 500 {
				i := rng.Intn(files)
				want := rng.Intn(len(rows[i]))
				if pos, found, err := rs[i].Find(rows[i][want].Key); err != nil || !found || pos != int64(want) {
					t.Errorf("file %d, row %d: %d %v %v", i, want, pos, found, err)
					return
				}
			}
		})
	}
	wg.Wait()
	// Each goroutine may be opening one beside.
	if fs.most > tableSize+2*goroutines || fs.open > tableSize {
		t.Errorf("%d files are open, there were %d", fs.open, fs.most)
	}
	for _, r := range rs {
		must(t, r.Close())
	}
	if fs.open != 0 || cache.table.open != 0 || cache.table.root.next != &cache.table.root {
		t.Errorf("%d files are open after Close", fs.open)
	}
}

// TestFileIsAnother: a file that is closed and opened again must be the one that it was.
func TestFileIsAnother(t *testing.T) {
	s := ssttest.MakeSchema([]base.Type{{Kind: base.KindInteger}, {Kind: base.KindVarchar}}, true, 0)
	rows := makeRows(t, s, 2000, 1, 0)
	other := makeRows(t, s, 2000, 2, 0)
	for name, c := range map[string]struct {
		change func(fs vfs.FS) error
		want   base.Code
	}{
		"removed":      {func(fs vfs.FS) error { return fs.Remove("f") }, base.CodeIO},
		"another size": {func(fs vfs.FS) error { return fs.Truncate("f", 100) }, base.CodeCorruption},
		"other rows": {func(fs vfs.FS) error {
			_, err := Write(fs, "f", small(s, 0), ssttest.NewSource(s, other))
			return err
		}, base.CodeCorruption},
	} {
		mem := vfs.NewMem()
		info, err := Write(mem, "f", small(s, 0), ssttest.NewSource(s, rows))
		must(t, err)
		_, err = Write(mem, "g", small(s, 0), ssttest.NewSource(s, rows))
		must(t, err)
		cache := NewCache(0)
		cache.table.max = 1
		r, err := Open(mem, "f", info.Size, s, cache)
		must(t, err)
		g, err := Open(mem, "g", info.Size, s, cache) // f is closed
		must(t, err)
		must(t, c.change(mem))
		r.kept.Store(nil) // as if it was the cache's
		if _, _, err := r.Find(rows[5].Key); base.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if _, found, err := g.Find(rows[5].Key); err != nil || !found {
			t.Errorf("%s: the other file: %v %v", name, found, err)
		}
		must(t, r.Close())
		must(t, g.Close())
	}
}
