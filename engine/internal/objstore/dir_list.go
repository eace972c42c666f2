package objstore

import (
	"context"
	"slices"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// List implements [Store]. It looks at every file of the directories that the range touches, once a call.
func (d *Dir) List(ctx context.Context, prefix, after string, max int) ([]Info, error) {
	if err := CheckList(prefix, max); err != nil {
		return nil, err
	}
	l := dirListing{d: d, ctx: ctx, prefix: prefix, after: after, max: max}
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if err := l.visit(dir); err != nil {
		return nil, err
	}
	return l.found, nil
}

type dirListing struct {
	d             *Dir
	ctx           context.Context
	prefix, after string
	max           int
	found         []Info
}

// visit lists a directory, "" or a key with a slash behind.
func (l *dirListing) visit(dir string) error {
	if err := ContextError(l.ctx, l.d, "list", dir); err != nil {
		return err
	}
	entries, err := l.entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if len(l.found) == l.max {
			return nil
		}
		if !e.info.IsDir {
			l.found = append(l.found, describe(e.key, e.info))
		} else if err := l.visit(e.key); err != nil {
			return err
		}
	}
	return nil
}

// dirEntry is a file, or a directory: then its key ends with a slash.
type dirEntry struct {
	key  string
	info vfs.Info
}

// entries returns those entries of a directory that may belong to the listing, in the order of the keys: a directory
// sorts by its name with the slash, which "a-b" goes before, though "a" goes before that.
func (l *dirListing) entries(dir string) ([]dirEntry, error) {
	names, err := l.d.fs.List(l.d.fs.Join(l.d.root, dir))
	if err != nil {
		// Missing, or removed meanwhile, or a file where the prefix has a directory: there are no such keys.
		if base.CodeOf(err) == base.CodeNotFound || l.isFile(dir) {
			return nil, nil
		}
		return nil, l.d.wrap("list", dir, err)
	}
	var entries []dirEntry
	for _, name := range names {
		file := dir + name
		if name[0] == '.' || !l.wantsFile(file) && !l.wantsDir(file+"/") {
			continue
		}
		info, err := l.d.fs.Stat(l.d.path(file))
		if base.CodeOf(err) == base.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, l.d.wrap("list", file, err)
		}
		switch {
		case info.IsDir && l.wantsDir(file+"/"):
			entries = append(entries, dirEntry{file + "/", info})
		case !info.IsDir && l.wantsFile(file):
			entries = append(entries, dirEntry{file, info})
		}
	}
	slices.SortFunc(entries, func(a, b dirEntry) int { return strings.Compare(a.key, b.key) })
	return entries, nil
}

func (l *dirListing) isFile(dir string) bool {
	info, err := l.d.fs.Stat(l.d.fs.Join(l.d.root, strings.TrimSuffix(dir, "/")))
	return err == nil && !info.IsDir
}

func (l *dirListing) wantsFile(key string) bool {
	return strings.HasPrefix(key, l.prefix) && key > l.after
}

// wantsDir reports whether some key below dir may be wanted.
func (l *dirListing) wantsDir(dir string) bool {
	inPrefix := strings.HasPrefix(dir, l.prefix) || strings.HasPrefix(l.prefix, dir)
	return inPrefix && (dir > l.after || strings.HasPrefix(l.after, dir))
}
