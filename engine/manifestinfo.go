package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// ManifestInfo is what ReadManifest tells.
type ManifestInfo struct {
	Schema  *Schema
	Version int64
	// Files are the absolute paths, or URLs, of the live data files.
	Files []string
}

// ReadManifest reads the newest manifest without opening the database. CodeNotFound where there is no table.
func ReadManifest(path string) (*ManifestInfo, error) {
	o := Options{ReadOnly: true}.withFS()
	key, err := o.resolve(path, false)
	if err != nil {
		return nil, err
	}
	dir := key.dir
	if objstore.IsURL(dir) {
		if o.fs, err = o.mount(dir); err != nil {
			return nil, err
		}
	}
	m, err := manifestsIn(o.fs, dir).Newest()
	if err != nil {
		return nil, err
	}
	if m.Dropped {
		return nil, base.Errorf(base.CodeNotFound, "no table in %s", dir)
	}
	info := &ManifestInfo{Schema: m.Schema, Version: m.Version}
	for _, f := range m.Files {
		info.Files = append(info.Files, o.fs.Join(dir, f.Path))
	}
	return info, nil
}
