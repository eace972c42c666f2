package manifest

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// ObjectStore keeps manifests in an object store. A commit is a PutIfAbsent; readers list. There are no pins: what the
// writer of the store leaves for readers, for a time, is all that protects them.
type ObjectStore struct {
	store objstore.Store
	// prefix is what keys of manifests begin with, with a slash at the end.
	prefix string
	// name is what stands for prefix in messages.
	name string
	ownCommits
}

var _ Store = (*ObjectStore)(nil)

// NewObjectStore returns the manifests of a table whose keys begin with prefix, which is "" or ends with a slash; url stands
// for it in messages, without one. It asks nothing of the store.
func NewObjectStore(store objstore.Store, prefix, url string) *ObjectStore {
	return &ObjectStore{store: store, prefix: prefix + Dir + "/", name: url + "/" + Dir + "/"}
}

func (s *ObjectStore) key(version int64) string { return s.prefix + FileName(version) }

// listed is a manifest that a listing shows.
type listed struct {
	version int64
	size    int64
	stamp   stamp
}

// list returns the manifests there are, ascending. It costs a request for each thousand.
func (s *ObjectStore) list() ([]listed, error) {
	var found []listed
	err := objstore.ListAll(context.Background(), s.store, s.prefix, func(i objstore.Info) error {
		if v, ok := ParseFileName(strings.TrimPrefix(i.Key, s.prefix)); ok {
			found = append(found, listed{version: v, size: i.Size, stamp: stamp{size: i.Size, etag: i.ETag}})
		}
		return nil
	})
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "%s", s.name)
	}
	slices.SortFunc(found, func(a, b listed) int { return int(min(max(a.version-b.version, -1), 1)) })
	return found, nil
}

// Newest implements [Store]. A manifest that goes between the listing and the read was reclaimed, for there is a newer
// one: the store is listed again, some times. One that is listed and never there is an error.
func (s *ObjectStore) Newest() (*Manifest, error) { return s.newest(nil) }

// newest reads the newest manifest, unless it is cur: then it returns nil.
func (s *ObjectStore) newest(cur *Manifest) (*Manifest, error) {
	for i := 0; ; i++ {
		found, err := s.list()
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, base.Errorf(base.CodeNotFound, "no table in %s", strings.TrimSuffix(s.name, "/"))
		}
		last := found[len(found)-1]
		if cur != nil && cur.Version == last.version && cur.stamp == last.stamp {
			return nil, nil
		}
		m, err := s.read(last.version, last.size)
		if base.CodeOf(err) == base.CodeNotFound {
			if i < attempts {
				continue
			}
			return nil, base.Wrapf(base.CodeObjectStore, err, "%s%s was listed %d times, and is not there", s.name, FileName(last.version), i+1)
		}
		if err == nil {
			m, err = s.resolve(m)
			if base.CodeOf(err) == base.CodeNotFound { // there is a newer one, or else somebody removed what this one needs
				if i < attempts {
					continue
				}
				return nil, base.Wrapf(base.CodeCorruption, err, "%s", s.name)
			}
		}
		if err == nil && m.undecided == "" { // else it may become another one
			m.stamp = last.stamp
		}
		return m, err
	}
}

// Changed implements [Store]. It costs a listing where nothing changed.
func (s *ObjectStore) Changed(cur *Manifest) (*Manifest, error) { return s.newest(cur) }

// At implements [Store].
func (s *ObjectStore) At(version int64) (*Manifest, error) {
	if version < 1 {
		return nil, base.Errorf(base.CodeNotFound, "%s: there is no version %d", s.name, version)
	}
	m, err := s.read(version, 0)
	if err != nil {
		return nil, err
	}
	return s.resolve(m)
}

// bytes returns a version's manifest as it is stored.
func (s *ObjectStore) bytes(version, size int64) (data []byte, err error) {
	name := s.name + FileName(version)
	if size > base.MaxManifestBytes {
		return nil, base.Errorf(base.CodeCorruption, "%s has %d bytes: the limit is %d", name, size, base.MaxManifestBytes)
	}
	ctx := context.Background()
	if size > 0 {
		data = make([]byte, size)
		var n int
		if n, err = s.store.ReadAt(ctx, s.key(version), data, 0); err == io.EOF {
			err = nil
		}
		data = data[:n] // what is too short, Decode finds
	} else {
		data, err = objstore.ReadSmall(ctx, s.store, s.key(version), base.MaxManifestBytes)
	}
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "%s", name)
	}
	return data, nil
}

func (s *ObjectStore) read(version, size int64) (*Manifest, error) {
	data, err := s.bytes(version, size)
	if err != nil {
		return nil, err
	}
	return decodeVersion(s.name+FileName(version), data, version)
}

// Versions implements [Store].
func (s *ObjectStore) Versions() ([]int64, error) {
	found, err := s.list()
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(found))
	for i, l := range found {
		versions[i] = l.version
	}
	return versions, nil
}

// errOneCommit is for what commits over several tables are made of.
func errOneCommit() error {
	return base.Errorf(base.CodeUnsupported, "an object store takes no commit over several tables")
}

// Stage implements [Store]: CodeUnsupported.
func (s *ObjectStore) Stage(*Manifest, string) error { return errOneCommit() }

// Publish implements [Store]: CodeUnsupported.
func (s *ObjectStore) Publish(int64, string) error { return errOneCommit() }

// Unstage implements [Store].
func (s *ObjectStore) Unstage(int64, string) {}

// StagedTags implements [Store]: nothing is ever staged.
func (s *ObjectStore) StagedTags() ([]string, error) { return nil, nil }

// Pin implements [Store]: CodeUnsupported.
func (s *ObjectStore) Pin(*Manifest) (io.Closer, error) {
	return nil, base.Errorf(base.CodeUnsupported, "%s: an object store has no pins", s.name)
}

// Pinned implements [Store]: nobody can.
func (s *ObjectStore) Pinned(int64) (bool, error) { return false, nil }

// Remove implements [Store].
func (s *ObjectStore) Remove(version int64) error {
	return s.store.Delete(context.Background(), s.key(version))
}
