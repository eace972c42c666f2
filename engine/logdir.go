package engine

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The log may lie elsewhere than in the database directory (option wal_dir). The file WAL_DIR in the database directory
// says where, so that opening without the option, or with another one, does not miss rows; and the file OWNER in the
// log's directory says whose logs are there, so that two databases do not read each other's.
const (
	logDirFile   = "WAL_DIR"
	logOwnerFile = "OWNER"
	maxPathBytes = 1 << 16
)

func (c *core) defaultLogDir() string { return c.fs.Join(c.dir, "wal") }

// findLogDir decides where the log is. For a writer m is the newest manifest, nil where there is none.
func (c *core) findLogDir(m *manifest.Manifest) error {
	recorded, err := readText(c.fs, c.fs.Join(c.dir, logDirFile))
	if err != nil {
		return err
	}
	current, wanted := recorded, c.opts.WALDir
	if current == "" {
		current = c.defaultLogDir()
	}
	if wanted == "" {
		wanted = current
	}
	c.walDir = wanted
	if c.readOnly {
		return nil
	}
	if recorded != "" {
		if _, err := c.fs.Stat(recorded); err != nil {
			return base.Wrapf(base.CodeIO, err, "the log directory of %s, with what was not flushed, is not there", c.dir)
		}
	}
	switch {
	case wanted != current:
		return c.mayMoveLogs(m, current, wanted)
	case wanted == c.defaultLogDir():
		return nil
	}
	return c.checkLogOwner(wanted)
}

// mayMoveLogs refuses to leave rows behind in one directory, and to take those in another for ours.
func (c *core) mayMoveLogs(m *manifest.Manifest, current, wanted string) error {
	var left []uint64
	if m != nil && !m.Dropped { // else there are no rows
		var err error
		if left, err = listLogs(c.fs, current, m.MinLog); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "the log of %s is in %s and holds rows that are not in data files: open it with that wal_dir and close it before it moves to %s",
			c.dir, current, wanted)
	}
	foreign, err := listLogs(c.fs, wanted, 0)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "wal_dir %s holds logs that are not those of %s", wanted, c.dir)
	}
	return c.checkLogOwner(wanted)
}

// checkLogOwner refuses a directory that another database uses. One that names it no longer, or is gone (moved to where
// we are, perhaps), does not.
func (c *core) checkLogOwner(dir string) error {
	owner, err := readText(c.fs, c.fs.Join(dir, logOwnerFile))
	if err != nil || owner == "" || owner == c.dir {
		return err
	}
	theirs, err := readText(c.fs, c.fs.Join(owner, logDirFile))
	if err != nil || theirs != dir {
		return nil //nolint:nilerr // what cannot be read claims nothing
	}
	return base.Errorf(base.CodeInvalidArgument, "wal_dir %s is that of the database in %s", dir, owner)
}

// prepareLogDir makes the log's directory ready for a first log, durably. It runs under writeMu.
func (c *core) prepareLogDir() error {
	if err := c.mkdirDurable(c.walDir); err != nil {
		return err
	}
	if c.logDirReady {
		return nil
	}
	pointer := c.fs.Join(c.dir, logDirFile)
	if c.walDir == c.defaultLogDir() {
		if err := c.fs.Remove(pointer); err == nil {
			err = c.fs.SyncDir(c.dir)
			if err != nil {
				return err
			}
		} else if base.CodeOf(err) != base.CodeNotFound {
			return err
		}
	} else {
		if err := writeText(c.fs, c.walDir, logOwnerFile, c.dir); err != nil {
			return err
		}
		if err := writeText(c.fs, c.dir, logDirFile, c.walDir); err != nil {
			return err
		}
	}
	c.logDirReady = true
	return nil
}

// readText returns a small text file without the line's end, "" where there is none.
func readText(fs vfs.FS, name string) (string, error) {
	f, err := fs.Open(name)
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return "", nil
		}
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxPathBytes))
	if err != nil {
		return "", base.Wrapf(base.CodeIO, err, "%s", name)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// writeText replaces a small text file, atomically and durably.
func writeText(fs vfs.FS, dir, name, text string) error {
	if err := replaceFile(fs, fs.Join(dir, name), text+"\n"); err != nil {
		return err
	}
	return fs.SyncDir(dir)
}

// replaceFile replaces a small file, atomically; its directory is the caller's to sync.
func replaceFile(fs vfs.FS, path, contents string) error {
	tmp := path + tmpSuffix
	f, err := fs.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(contents))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err != nil {
		_ = fs.Remove(tmp) // best effort
	}
	return err
}

// absoluteLogDir makes option wal_dir the one name that its directory has for all, for which a writer creates it.
func absoluteLogDir(o *Options) error {
	if o.WALDir == "" || o.fs != vfs.OS {
		return nil
	}
	abs, err := filepath.Abs(o.WALDir)
	if err != nil {
		return base.Wrapf(base.CodeIO, err, "wal_dir %q", o.WALDir)
	}
	if !o.ReadOnly {
		if err := o.fs.MkdirAll(abs); err != nil {
			return err
		}
	}
	if o.WALDir, err = filepath.EvalSymlinks(abs); err != nil {
		return base.Wrapf(base.CodeIO, err, "wal_dir %q", abs)
	}
	return nil
}
