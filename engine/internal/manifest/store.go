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

// Store is where manifests live: a directory, or an object store. Commits come from one writer at a time; reads may
// come from many threads and processes.
type Store interface {
	// Newest returns the newest manifest, CodeNotFound where there is none. A damaged newest manifest is an error: an
	// older one would silently undo commits.
	Newest() (*Manifest, error)
	// Changed returns the newest manifest if it is not cur, else nil. It is cheap where nothing changed. It also notices
	// that the database was replaced by another one of the same version.
	Changed(cur *Manifest) (*Manifest, error)
	// Commit makes m the newest manifest, durably. Its version must be one more than the newest; in an object store it may be
	// a larger one afterwards. After an error the
	// commit may or may not have happened, and only opening anew tells; unless [NotCommitted] says that it did not.
	Commit(m *Manifest) error
	// Stage writes m durably beside the manifests, where it does not count before Publish makes it one; tag tells it from
	// others of its version. A commit over several stores is made of them.
	Stage(m *Manifest, tag string) error
	// Publish makes a staged manifest the newest one, durably. Where that was done before it does nothing.
	Publish(version int64, tag string) error
	// Unstage removes a staged manifest, as far as that can be done.
	Unstage(version int64, tag string)
	// StagedTags returns the tags of the manifests that are staged.
	StagedTags() ([]string, error)
	// At returns the manifest of a version, CodeNotFound where it is gone.
	At(version int64) (*Manifest, error)
	// Versions lists the manifests there are, ascending. There may be gaps.
	Versions() ([]int64, error)
	// Pin keeps m, which was read from this store, from being removed by the writer, until the result is closed or the
	// process ends. CodeNotFound or CodeLocked: it is gone, or the writer is just removing it. CodeUnsupported: the store
	// cannot pin. It changes nothing that is stored.
	Pin(m *Manifest) (io.Closer, error)
	// Pinned reports whether somebody pins a version. It may disturb Pin for a moment.
	Pinned(version int64) (bool, error)
	// Remove deletes the manifest of a version, if it is there; CodeLocked where somebody pins it.
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

// attempts bounds how often a reader looks again because the writer was faster.
const attempts = 10

// Newest implements [Store].
func (s *FSStore) Newest() (*Manifest, error) {
	// A reader may list, then find the file reclaimed by the writer because newer ones came: list again, boundedly.
	for i := 0; ; i++ {
		version, err := s.latest()
		if err != nil {
			return nil, err
		}
		if version == 0 {
			return nil, base.Errorf(base.CodeNotFound, "no table in %s", s.dir)
		}
		m, err := s.read(version)
		if base.CodeOf(err) == base.CodeNotFound && i < attempts {
			continue
		}
		return m, err
	}
}

// latest returns the newest version there is, 0 for none. A listing beside a commit may miss both the name that comes and
// one that goes, and show only what a reader pins, so it counts when it is the same twice.
func (s *FSStore) latest() (version int64, err error) {
	for i := range attempts {
		versions, err := s.Versions()
		if err != nil {
			return 0, err
		}
		last := int64(0)
		if len(versions) > 0 {
			last = versions[len(versions)-1]
		}
		if i > 0 && last == version {
			break
		}
		version = last
	}
	return version, nil
}

// Changed implements [Store].
func (s *FSStore) Changed(cur *Manifest) (*Manifest, error) {
	// A pinned manifest outlives its successors: that the next one is not there does not say that none came.
	versions, err := s.Versions()
	if err != nil {
		return nil, err
	}
	if n := len(versions); n == 0 || versions[n-1] != cur.Version {
		return s.Newest()
	}
	info, err := s.fs.Stat(s.path(cur.Version))
	if err == nil && stampOf(info) == cur.stamp {
		return nil, nil
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
	etag    string // of an object store's
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
	if base.CodeOf(err) == base.CodeNotFound {
		return base.Wrapf(base.CodeIO, err, "the database was moved or removed while it was open")
	} else if err != nil {
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

const stagedSuffix = ".staged"

func (s *FSStore) stagedPath(version int64, tag string) string {
	return s.path(version) + "." + tag + stagedSuffix
}

// Stage implements [Store].
func (s *FSStore) Stage(m *Manifest, tag string) error {
	data, err := Encode(m)
	if err != nil {
		return err
	}
	if err := s.writeSynced(s.stagedPath(m.Version, tag), data); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// Publish implements [Store].
func (s *FSStore) Publish(version int64, tag string) error {
	staged := s.stagedPath(version, tag)
	if _, err := s.fs.Stat(staged); base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	if err := s.fs.RenameExclusive(staged, s.path(version)); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// Unstage implements [Store].
func (s *FSStore) Unstage(version int64, tag string) {
	_ = s.fs.Remove(s.stagedPath(version, tag)) // what stays is swept
}

// StagedTags implements [Store].
func (s *FSStore) StagedTags() ([]string, error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
		return nil, err
	}
	var tags []string
	for _, n := range names {
		if _, tag, ok := parseStaged(n); ok {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// parseStaged is the inverse of stagedPath.
func parseStaged(name string) (version int64, tag string, ok bool) {
	stem, found := strings.CutSuffix(name, stagedSuffix)
	i := strings.LastIndexByte(stem, '.')
	if !found || i < 0 {
		return 0, "", false
	}
	version, ok = ParseFileName(stem[:i])
	return version, stem[i+1:], ok
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

// Pin implements [Store].
func (s *FSStore) Pin(m *Manifest) (io.Closer, error) {
	name := s.path(m.Version)
	lock, err := s.fs.LockShared(name)
	if base.CodeOf(err) == base.CodeUnsupported {
		if _, e := s.fs.Stat(name); e != nil {
			return nil, e
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := s.fs.Stat(name)
	if err == nil && m.stamp != (stamp{}) && m.stamp != stampOf(info) { // this process knows no stamp of what it committed
		err = base.Errorf(base.CodeNotFound, "%s was replaced", name)
	}
	if err != nil {
		_ = lock.Close() // it holds nothing that we need
		return nil, err
	}
	return lock, nil
}

// Pinned implements [Store].
func (s *FSStore) Pinned(version int64) (bool, error) {
	lock, err := s.fs.TryLockExclusive(s.path(version))
	switch base.CodeOf(err) {
	case base.CodeLocked:
		return true, nil
	case base.CodeUnsupported, base.CodeNotFound:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// Remove implements [Store].
func (s *FSStore) Remove(version int64) error {
	name := s.path(version)
	lock, err := s.fs.TryLockExclusive(name)
	switch base.CodeOf(err) {
	case base.CodeNotFound:
		return nil
	case base.CodeUnsupported:
		lock, err = io.NopCloser(nil), nil // nobody can pin it
	}
	if err != nil {
		return err
	}
	err = s.fs.Remove(name)
	if e := lock.Close(); err == nil {
		err = e
	}
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	return err
}

func (s *FSStore) path(version int64) string { return s.fs.Join(s.dir, FileName(version)) }

func (s *FSStore) read(version int64) (*Manifest, error) {
	name := s.path(version)
	data, err := vfs.ReadFile(s.fs, name, base.MaxManifestBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeVersion(name, data, version)
	if err != nil {
		return nil, err
	}
	info, err := s.fs.Stat(name)
	if err != nil {
		return nil, err
	}
	m.stamp = stampOf(info)
	return m, nil
}

// decodeVersion is Decode for the file of a version.
func decodeVersion(name string, data []byte, version int64) (*Manifest, error) {
	m, err := Decode(name, data)
	if err == nil && m.Version != version {
		return nil, base.Errorf(base.CodeCorruption, "%s holds manifest %d", name, m.Version)
	}
	return m, err
}

// IsTemporary reports whether a name in [Dir] is the leftover of a commit that did not happen.
func IsTemporary(name string) bool {
	if _, _, staged := parseStaged(name); staged {
		return true
	}
	stem, found := strings.CutSuffix(name, tmpSuffix)
	_, ok := ParseFileName(stem)
	return found && ok
}
