package engine

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objfs"
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

func (d *database) defaultLogDir() string { return d.fs.Join(d.root, "wal") }

// recordedLogDir returns where the log is, as the directory says.
func (d *database) recordedLogDir() (string, error) {
	recorded, err := readText(d.fs, d.fs.Join(d.root, logDirFile))
	if err != nil || recorded != "" {
		return recorded, err
	}
	return d.defaultLogDir(), nil
}

// findLogDir decides where the log is. A writer knows its tables by now.
func (d *database) findLogDir() error {
	recorded, err := readText(d.fs, d.fs.Join(d.root, logDirFile))
	if err != nil {
		return err
	}
	current, wanted := recorded, d.opts.WALDir
	if current == "" {
		current = d.defaultLogDir()
	}
	if wanted == "" {
		wanted = current
	}
	d.walDir = wanted
	if d.readOnly {
		return nil
	}
	if recorded != "" {
		if _, err := d.fs.Stat(recorded); err != nil {
			return base.Wrapf(base.CodeIO, err, "the log directory of %s, with what was not flushed, is not there", d.root)
		}
	}
	switch {
	case wanted != current:
		return d.mayMoveLogs(current, wanted)
	case wanted == d.defaultLogDir():
		return nil
	}
	return d.checkLogOwner(wanted)
}

// mayMoveLogs refuses to leave rows behind in one directory, and to take those in another for ours.
func (d *database) mayMoveLogs(current, wanted string) error {
	plan, err := d.planReplay(current)
	if err != nil {
		return err
	}
	left := plan.withRows()
	if len(left) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "the log of %s is in %s and holds rows that are not in data files: open it with that wal_dir and close it before it moves to %s",
			d.root, current, wanted)
	}
	foreign, err := listLogs(d.fs, wanted, 0)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		return base.Errorf(base.CodeInvalidArgument, "wal_dir %s holds logs that are not those of %s", wanted, d.root)
	}
	return d.checkLogOwner(wanted)
}

// checkLogOwner refuses a directory that another database uses. One that names it no longer, or is gone (moved to where
// we are, perhaps), does not.
func (d *database) checkLogOwner(dir string) error {
	owner, err := readText(d.fs, d.fs.Join(dir, logOwnerFile))
	if err != nil || owner == "" || owner == d.root {
		return err
	}
	theirs, err := readText(d.fs, d.fs.Join(owner, logDirFile))
	if err != nil || theirs != dir {
		return nil //nolint:nilerr // what cannot be read claims nothing
	}
	return base.Errorf(base.CodeInvalidArgument, "wal_dir %s is that of the database in %s", dir, owner)
}

// prepareLogDir makes the log's directory ready for a first log, durably. It runs under writeMu.
func (d *database) prepareLogDir() error {
	if err := d.mkdirDurable(d.walDir); err != nil {
		return err
	}
	if d.logDirReady {
		return nil
	}
	pointer := d.fs.Join(d.root, logDirFile)
	if d.walDir == d.defaultLogDir() {
		if err := d.fs.Remove(pointer); err == nil {
			err = d.fs.SyncDir(d.root)
			if err != nil {
				return err
			}
		} else if base.CodeOf(err) != base.CodeNotFound {
			return err
		}
	} else {
		if err := writeText(d.fs, d.walDir, logOwnerFile, d.root); err != nil {
			return err
		}
		if err := writeText(d.fs, d.root, logDirFile, d.walDir); err != nil {
			return err
		}
	}
	d.logDirReady = true
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
	if objects, ok := fs.(*objfs.FS); ok {
		return objects.Replace(path, []byte(contents))
	}
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
