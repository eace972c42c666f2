package objfs

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	envChild     = "OBJFS_TEST_DIR" // set in processes of TestDiskCacheOfProcesses
	sharedLimit  = minDiskBytes
	sharedObject = 6<<20 + 12_345
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envChild); dir != "" {
		if err := readShared(dir, uint64(os.Getpid()), 40); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func sharedKey(i int) string { return fmt.Sprintf("data/%d.parquet", i) }

// readShared reads objects through the cache in a directory that others use too, and checks every byte.
func readShared(dir string, seed uint64, rounds int) error {
	disk, err := OpenDiskCache(vfs.OS, filepath.Join(dir, "cache"), sharedLimit)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	store := objstore.NewDir(vfs.OS, filepath.Join(dir, "store"))
	stored := [][]byte{content(0, sharedObject), content(1, sharedObject), content(2, sharedObject)}
	for range rounds {
		i := rng.IntN(len(stored))
		want := stored[i]
		file, err := New(store, Options{Root: root, Disk: disk}).OpenSized(root+"/"+sharedKey(i), sharedObject)
		if err != nil {
			return err
		}
		off, p := rng.IntN(sharedObject), make([]byte, 1+rng.IntN(2<<20))
		n, err := file.ReadAt(p, int64(off))
		if err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(p[:n], want[off:off+n]) || n < min(len(p), sharedObject-off) {
			return fmt.Errorf("%d bytes at %d of %s are others than were stored", n, off, sharedKey(i))
		}
	}
	return nil
}

// TestDiskCacheOfProcesses has three processes use one directory that is too small for what they read, one of which is
// killed.
func TestDiskCacheOfProcesses(t *testing.T) {
	dir := t.TempDir()
	store := objstore.NewDir(vfs.OS, filepath.Join(dir, "store"))
	for i := range 3 {
		put(t, store, sharedKey(i), content(uint64(i), sharedObject))
	}
	var children []*exec.Cmd
	for range 2 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), envChild+"="+dir)
		c.Stderr = os.Stderr
		must(t, c.Start())
		children = append(children, c)
	}
	must(t, readShared(dir, 1, 12))
	_ = children[1].Process.Kill()
	must(t, children[0].Wait())
	_ = children[1].Wait() // it was killed, or was done
	must(t, readShared(dir, 2, 12))
	d := newDiskCache(vfs.OS, filepath.Join(dir, "cache", diskDir))
	if n := diskBytes(t, d); n > sharedLimit+sharedLimit/8 || n == 0 {
		t.Errorf("%d bytes with a bound of %d", n, int64(sharedLimit))
	}
}
