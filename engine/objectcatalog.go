package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objfs"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// In an object store the catalog cannot be replaced: two writers would overwrite each other's. So each version that a writer
// of the store commits is an object of its own, TABLES.v<N>, put if there is none, as manifests are, and the newest one
// counts. The TABLES of a mirror is one more version.

// catalogVersionPrefix begins the name of a version.
const catalogVersionPrefix = catalogFileName + ".v"

// keptCatalogs is how many superseded versions are kept.
const keptCatalogs = 8

// parseCatalogName returns the version that a name in the root stands for, 0 for TABLES, whose version stands in it.
func parseCatalogName(name string) (version uint64, ok bool) {
	if name == catalogFileName {
		return 0, true
	}
	digits, found := strings.CutPrefix(name, catalogVersionPrefix)
	if !found {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 63)
	return v, err == nil && v > 0 && strconv.FormatUint(v, 10) == digits
}

// catalogVersions lists the versions there are, ascending.
func catalogVersions(objects *objfs.FS, root string) (versions []uint64, err error) {
	prefix := objects.Prefix(root)
	err = objstore.ListAll(context.Background(), objects.Store(), prefix+catalogFileName, func(i objstore.Info) error {
		if v, ok := parseCatalogName(strings.TrimPrefix(i.Key, prefix)); ok {
			versions = append(versions, v)
		}
		return nil
	})
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "%s", objects.Join(root, catalogFileName))
	}
	slices.Sort(versions)
	return versions, nil
}

// newestCatalogName returns the name of the newest version, "" where there is none.
func newestCatalogName(objects *objfs.FS, root string) (string, error) {
	versions, err := catalogVersions(objects, root)
	if err != nil || len(versions) == 0 {
		return "", err
	}
	if v := versions[len(versions)-1]; v > 0 {
		return catalogVersionPrefix + strconv.FormatUint(v, 10), nil
	}
	return catalogFileName, nil
}

// putCatalog is commitCatalog in an object store.
func (d *database) putCatalog(next *catalog) error {
	name := catalogVersionPrefix + strconv.FormatUint(next.version, 10)
	_, err := manifest.PutOnce(d.objects.Store(), d.objects.Prefix(d.root)+name, []byte(next.file()), d.opts.commitPatience())
	if err != nil && manifest.NotCommitted(err) {
		return err
	}
	if err == nil {
		err = d.reclaimCatalogs(next.version)
	}
	if base.CodeOf(err) == base.CodeConflict {
		err = base.Wrapf(base.CodeConflict, err, "version %d of the list of tables is another writer's: this one takes no writes until the database is opened anew", next.version)
	}
	if err != nil {
		return d.fail(err)
	}
	return nil
}

// reclaimCatalogs removes old versions, in their order. It also sees whether there is a newer one than that which was just
// committed: then another writer was there long ago, and has reclaimed the one of that name.
func (d *database) reclaimCatalogs(committed uint64) error {
	versions, err := catalogVersions(d.objects, d.root)
	if err != nil {
		return err
	}
	if len(versions) > 0 && versions[len(versions)-1] > committed {
		return base.Errorf(base.CodeConflict, "version %d is there", versions[len(versions)-1])
	}
	for _, v := range versions {
		if v == 0 {
			continue // the mirror's, small
		}
		if v+keptCatalogs >= committed || d.fs.Remove(d.fs.Join(d.root, catalogVersionPrefix+strconv.FormatUint(v, 10))) != nil {
			break
		}
	}
	return nil
}
