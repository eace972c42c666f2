package engine

import (
	"os"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Temporary files: what bulk loads and change feeds spill, and the memory of large transactions. They are in the directory
// tmp of the table, so that what a crash leaves goes with the garbage. A database in an object store has them on the local
// disk, in directories of the system's for temporary files; those that a crash leaves go when they are old.

const (
	// systemTemporary begins the names of our directories among the system's temporary files.
	systemTemporary = "merutable-"
	// systemTemporaryAge is when nobody is taken to use such a directory any more: far above what any statement takes.
	systemTemporaryAge = 7 * 24 * time.Hour
)

// temporaryFS is where temporary files go.
func (d *database) temporaryFS() vfs.FS {
	if d.objects != nil {
		return vfs.OS
	}
	return d.fs
}

// temporaryDirectory is a directory for temporary files that is made when the first one is. A database that is open
// read-only writes nothing of its own: there it is the system's.
type temporaryDirectory struct {
	c    *core
	rel  string // "" where it is the system's
	path string
}

func (d *temporaryDirectory) make() (string, error) {
	if d.path != "" {
		return d.path, nil
	}
	fs := d.c.temporaryFS()
	if d.c.readOnly || d.c.objects != nil {
		path := fs.Join(os.TempDir(), systemTemporary+newUUID())
		if err := fs.MkdirAll(path); err != nil {
			return "", err
		}
		d.path = path
		return path, nil
	}
	rel := temporaryDir + "/" + newUUID()
	d.c.pending.add(rel) // no garbage as long as it is used
	path := fs.Join(d.c.dir, rel)
	if err := d.c.mkdir(path); err != nil {
		d.c.pending.remove(rel)
		return "", err
	}
	d.rel, d.path = rel, path
	return path, nil
}

// file returns the path of a new temporary file.
func (d *temporaryDirectory) file() (string, error) {
	dir, err := d.make()
	if err != nil {
		return "", err
	}
	return d.c.temporaryFS().Join(dir, newUUID()+".run"), nil
}

func (d *temporaryDirectory) remove() {
	if d.path == "" {
		return
	}
	_ = d.c.temporaryFS().RemoveAll(d.path) // swept as garbage if it stays
	if d.rel != "" {
		d.c.pending.remove(d.rel)
	}
	d.path = ""
}

// mapTemporary maps memory that a file of the database's temporary directory backs.
func (c *core) mapTemporary(size int) (*vfs.Mapping, error) {
	if c.objects != nil {
		return vfs.MapTemporary(vfs.OS, os.TempDir(), size)
	}
	dir := c.fs.Join(c.dir, temporaryDir)
	if err := c.mkdir(dir); err != nil {
		return nil, err
	}
	return vfs.MapTemporary(c.fs, dir, size)
}

// sweepSystemTemporary removes what processes that died have left among the system's temporary files, as far as it can.
func sweepSystemTemporary(now time.Time) {
	fs, dir := vfs.OS, os.TempDir()
	names, err := fs.List(dir)
	if err != nil {
		return
	}
	for _, n := range names {
		id, ours := strings.CutPrefix(n, systemTemporary)
		if !ours || !manifest.IsUUID(id) {
			continue
		}
		path := fs.Join(dir, n)
		if info, err := fs.Stat(path); err == nil && info.IsDir && now.Sub(info.ModTime) > systemTemporaryAge {
			_ = fs.RemoveAll(path)
		}
	}
}
