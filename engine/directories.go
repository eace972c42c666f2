package engine

import (
	"path/filepath"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
)

// mkdirDurable creates a directory and syncs the entries that lead to it, so that what is synced inside survives. One
// that is there may be no more than a name in memory: whoever made it may have died before it was synced.
func (d *database) mkdirDurable(dir string) error {
	if d.remote() {
		return nil // there are no directories
	}
	_, synced := d.dirs.Load(dir)
	if synced {
		if _, err := d.fs.Stat(dir); err == nil {
			return nil
		}
	}
	if err := d.mkdir(dir); err != nil {
		return err
	}
	if err := d.syncParents(dir); err != nil {
		return err
	}
	d.dirs.Store(dir, struct{}{})
	return nil
}

// mkdir creates a directory with its parents, but not where the database is gone: what is written there nobody would find.
func (d *database) mkdir(dir string) error {
	if _, err := d.fs.Stat(d.root); base.CodeOf(err) == base.CodeNotFound {
		return base.Wrapf(base.CodeIO, err, "the database was moved or removed while it was open")
	}
	return d.fs.MkdirAll(dir)
}

// syncParents syncs the directories above dir. Above the database directory it does what it is allowed to: those mostly
// exist for long.
func (d *database) syncParents(dir string) error {
	inside := true
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		inside = inside && dir != d.root && strings.HasPrefix(dir, d.root)
		if err := d.fs.SyncDir(parent); err != nil && inside {
			return err
		}
	}
	return nil
}
