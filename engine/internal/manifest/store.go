package manifest

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Dir is the directory of manifests inside a database directory.
const Dir = "metadata"

const (
	fileSuffix = ".manifest.bin"
	tmpSuffix  = ".tmp"
)

// Store is where manifests live: a directory, later an object store. Commits come from one writer at a time; reads may
// come from many threads and processes.
type Store interface {
	// Newest returns the newest manifest, CodeNotFound where there is none. A damaged newest manifest is an error: an
	// older one would silently undo commits.
	Newest() (*Manifest, error)
	// Changed returns the newest manifest if it is not cur, else nil. It is cheap where nothing changed. It also notices
	// that the database was replaced by another one of the same version.
	Changed(cur *Manifest) (*Manifest, error)
	// Commit makes m the newest manifest, durably. Its version must be one more than the newest. After an error the
	// commit may or may not have happened, and only opening anew tells; unless [NotCommitted] says that it did not.
	Commit(m *Manifest) error
	// At returns the manifest of a version, CodeNotFound where it is gone.
	At(version int64) (*Manifest, error)
	// Versions lists the manifests there are, ascending.
	Versions() ([]int64, error)
	// Remove deletes the manifest of a version, if it is there.
	Remove(version int64) error
}

// FileName returns the name of a version's file inside [Dir].
func FileName(version int64) string { return "v" + strconv.FormatInt(version, 10) + fileSuffix }

// ParseFileName is the inverse of [FileName].
func ParseFileName(name string) (version int64, ok bool) {
	digits, found := strings.CutSuffix(name, fileSuffix)
	if !found || len(digits) < 2 || digits[0] != 'v' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits[1:], 10, 64)
	return n, err == nil && n > 0 && FileName(n) == name
}

// FSStore keeps manifests in a directory.
type FSStore struct {
	fs  vfs.FS
	dir string // the metadata directory
}

// NewFSStore returns the store of a database directory. It touches nothing.
func NewFSStore(fs vfs.FS, dbDir string) *FSStore {
	return &FSStore{fs: fs, dir: fs.Join(dbDir, Dir)}
}

// Newest implements [Store].
func (s *FSStore) Newest() (*Manifest, error) {
	// A reader may list, then find the file reclaimed by the writer because newer ones came: list again, boundedly.
	const attempts = 10
	for i := 0; ; i++ {
		versions, err := s.Versions()
		if err != nil {
			return nil, err
		}
		if len(versions) == 0 {
			return nil, base.Errorf(base.CodeNotFound, "no table in %s", s.dir)
		}
		m, err := s.read(versions[len(versions)-1])
		if base.CodeOf(err) == base.CodeNotFound && i < attempts {
			continue
		}
		return m, err
	}
}

// Changed implements [Store].
func (s *FSStore) Changed(cur *Manifest) (*Manifest, error) {
	info, err := s.fs.Stat(s.path(cur.Version))
	if err == nil && stampOf(info) == cur.stamp {
		if _, err = s.fs.Stat(s.path(cur.Version + 1)); base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
	}
	if err != nil && base.CodeOf(err) != base.CodeNotFound {
		return nil, err
	}
	return s.Newest()
}

// stamp tells one file of a name from another that replaced it.
type stamp struct {
	size    int64
	modNano int64
}

func stampOf(i vfs.Info) stamp { return stamp{size: i.Size, modNano: i.ModTime.UnixNano()} }

// notCommitted is an error of a commit that surely did not happen.
type notCommitted struct{ error }

func (n notCommitted) Unwrap() error { return n.error }

// NotCommitted reports whether an error of [Store.Commit] says that the commit did not happen: it may be tried again, with
// other contents too.
func NotCommitted(err error) bool {
	var n notCommitted
	return errors.As(err, &n)
}

// Commit implements [Store]: write, sync, rename, sync the directory. A manifest of that version that is there already
// is left alone: only another writer, which should not exist, can have made it.
func (s *FSStore) Commit(m *Manifest) error {
	data, err := Encode(m)
	if err != nil {
		return notCommitted{err}
	}
	final := s.path(m.Version)
	tmp := final + tmpSuffix
	if err := s.writeSynced(tmp, data); err != nil {
		_ = s.fs.Remove(tmp) // best effort: the next open sweeps it
		return notCommitted{err}
	}
	if err := s.fs.RenameExclusive(tmp, final); err != nil {
		// Where the answer got lost the commit may have happened.
		if _, e := s.fs.Stat(final); base.CodeOf(e) == base.CodeNotFound {
			_ = s.fs.Remove(tmp)
			return notCommitted{err}
		}
		return err
	}
	return s.fs.SyncDir(s.dir)
}

func (s *FSStore) writeSynced(name string, data []byte) error {
	f, err := s.fs.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// At implements [Store].
func (s *FSStore) At(version int64) (*Manifest, error) { return s.read(version) }

// Versions implements [Store].
func (s *FSStore) Versions() ([]int64, error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
		return nil, err
	}
	var out []int64
	for _, n := range names {
		if v, ok := ParseFileName(n); ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Remove implements [Store].
func (s *FSStore) Remove(version int64) error {
	err := s.fs.Remove(s.path(version))
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	return err
}

func (s *FSStore) path(version int64) string { return s.fs.Join(s.dir, FileName(version)) }

func (s *FSStore) read(version int64) (*Manifest, error) {
	name := s.path(version)
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > base.MaxManifestBytes {
		return nil, base.Errorf(base.CodeCorruption, "%s has %d bytes: the limit is %d", name, size, base.MaxManifestBytes)
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, base.Wrapf(base.CodeIO, err, "%s", name)
	}
	m, err := Decode(name, data)
	if err != nil {
		return nil, err
	}
	if m.Version != version {
		return nil, base.Errorf(base.CodeCorruption, "%s holds manifest %d", name, m.Version)
	}
	info, err := s.fs.Stat(name)
	if err != nil {
		return nil, err
	}
	m.stamp = stampOf(info)
	return m, nil
}

// IsTemporary reports whether a name in [Dir] is the leftover of a commit that did not happen.
func IsTemporary(name string) bool {
	stem, found := strings.CutSuffix(name, tmpSuffix)
	_, ok := ParseFileName(stem)
	return found && ok
}
