// Package mirrortest checks what a mirror does to its store.
package mirrortest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Checker is a store that proves, call by call, that what it holds is a committed snapshot of every table at any moment:
// no manifest comes before what it names, manifests of a table come in order, the catalog names tables that are there,
// nothing that the newest manifests need goes, nothing but files of tables comes, and nothing that was confirmed is sent
// again. Beside it nobody may write.
type Checker struct {
	objstore.Store
	fail func(format string, args ...any)

	mu     sync.Mutex
	newest map[string]*manifest.Manifest // by the prefix of the table's keys
	counts map[objstore.Op]int
	bytes  int64
	sent   map[string]int
	most   int // the most manifests of one table there ever were
	kept   map[string]int
	tables []string // the prefixes that the catalog lists
}

// NewChecker checks a store that is empty. fail is called for what is wrong.
func NewChecker(inner objstore.Store, fail func(format string, args ...any)) *Checker {
	return &Checker{
		Store: inner, fail: fail, newest: map[string]*manifest.Manifest{}, counts: map[objstore.Op]int{}, sent: map[string]int{},
		kept: map[string]int{},
	}
}

// Requests returns how many calls there were of a kind.
func (c *Checker) Requests(op objstore.Op) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[op]
}

// AllRequests returns how many calls there were.
func (c *Checker) AllRequests() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, count := range c.counts {
		n += count
	}
	return n
}

// MostManifests returns the most manifests of one table that there ever were.
func (c *Checker) MostManifests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// Bytes returns how many bytes were stored.
func (c *Checker) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Newest returns the version of the newest manifest of a table, given the prefix of its keys.
func (c *Checker) Newest(prefix string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.newest[prefix]; m != nil {
		return m.Version
	}
	return 0
}

func (c *Checker) count(op objstore.Op) {
	c.mu.Lock()
	c.counts[op]++
	c.mu.Unlock()
}

// split returns the prefix of a table's keys and the rest.
func split(key string) (prefix, rel string) {
	if strings.HasPrefix(key, "tables/") {
		if i := strings.IndexByte(key[len("tables/"):], '/'); i >= 0 {
			i += len("tables/") + 1
			return key[:i], key[i:]
		}
	}
	return "", key
}

func manifestVersion(rel string) (int64, bool) {
	name, ok := strings.CutPrefix(rel, manifest.Dir+"/")
	if !ok {
		return 0, false
	}
	return manifest.ParseFileName(name)
}

// PutIfAbsent implements [objstore.Store].
func (c *Checker) PutIfAbsent(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	c.count(objstore.OpPutIfAbsent)
	prefix, rel := split(key)
	version, isManifest := manifestVersion(rel)
	if !isManifest && !(strings.HasPrefix(rel, "data/L") && manifest.IsDataFileName(rel[strings.LastIndexByte(rel, '/')+1:])) {
		c.fail("%s was put", key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var m *manifest.Manifest
	if isManifest {
		m = c.checkManifest(ctx, prefix, key, version, body)
	}
	info, err := c.Store.PutIfAbsent(ctx, key, body)
	if err != nil {
		return info, err
	}
	c.bytes += body.Size
	if c.sent[key]++; c.sent[key] > 1 {
		c.fail("%s was sent twice", key)
	}
	if m != nil {
		c.newest[prefix] = m
		c.checkNames()
		c.kept[prefix]++
		c.most = max(c.most, c.kept[prefix])
	}
	return info, nil
}

// checkManifest checks that a manifest may come now. It runs under mu.
func (c *Checker) checkManifest(ctx context.Context, prefix, key string, version int64, body objstore.Body) *manifest.Manifest {
	data := make([]byte, body.Size)
	if _, err := body.Reader.ReadAt(data, 0); err != nil && len(data) == 0 {
		c.fail("%s: %v", key, err)
	}
	m, err := manifest.Decode(key, data)
	if err != nil || m.Version != version {
		c.fail("%s is no manifest of its version: %v", key, err)
		return nil
	}
	if old := c.newest[prefix]; old != nil && version < old.Version {
		c.fail("%s came after version %d", key, old.Version)
	}
	for rel, size := range Files(m) {
		info, err := c.Store.Head(context.WithoutCancel(ctx), prefix+rel)
		if err != nil || size > 0 && info.Size != size {
			c.fail("%s came before %s: %v", key, rel, err)
		}
	}
	return m
}

// checkNames checks that no two tables that readers see have one name. It runs under mu.
func (c *Checker) checkNames() {
	names := map[string]string{}
	for _, prefix := range append([]string{""}, c.tables...) {
		m := c.newest[prefix]
		if m == nil || m.Schema == nil {
			continue
		}
		name := strings.ToLower(m.Schema.TableName)
		if other, taken := names[name]; taken {
			c.fail("%q and %q are both named %s", other, prefix, name)
		}
		names[name] = prefix
	}
}

// Files returns the files that a manifest names with their sizes, 0 for those that are not known.
func Files(m *manifest.Manifest) map[string]int64 {
	files := map[string]int64{}
	for _, f := range m.Files {
		files[f.Path] = f.Size
		if f.DVPath != "" {
			files[f.DVPath] = 0
		}
	}
	return files
}

// Put implements [objstore.Store].
func (c *Checker) Put(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	c.count(objstore.OpPut)
	_, rel := split(key)
	if key != "TABLES" && rel != manifest.Dir+"/low_water.txt" {
		c.fail("%s was replaced", key)
	}
	if key == "TABLES" {
		data := make([]byte, body.Size)
		_, _ = body.Reader.ReadAt(data, 0)
		c.mu.Lock()
		c.tables = nil
		for line := range bytes.Lines(data) {
			var id uint32
			var dir string
			if n, _ := fmt.Sscanf(string(line), "table %d %s\n", &id, &dir); n != 2 {
				continue
			}
			if c.tables = append(c.tables, dir+"/"); c.newest[dir+"/"] == nil {
				c.fail("TABLES lists %s, which has no manifest", dir)
			}
		}
		c.checkNames()
		c.mu.Unlock()
	}
	return c.Store.Put(ctx, key, body)
}

// Delete implements [objstore.Store].
func (c *Checker) Delete(ctx context.Context, key string) error {
	c.count(objstore.OpDelete)
	prefix, rel := split(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.newest[prefix]
	listed := c.listed(prefix)
	if version, ok := manifestVersion(rel); ok {
		if m != nil && version == m.Version && listed {
			c.fail("%s went, the newest manifest", key)
		}
		if _, err := c.Store.Head(context.WithoutCancel(ctx), key); err == nil {
			c.kept[prefix]--
		}
	} else if m != nil && listed {
		if _, named := Files(m)[rel]; named {
			c.fail("%s went, which version %d names", key, m.Version)
		}
	}
	return c.Store.Delete(ctx, key)
}

// listed reports whether readers of the store see a table. It runs under mu.
func (c *Checker) listed(prefix string) bool {
	return prefix == "" || slices.Contains(c.tables, prefix)
}

// ReadAt implements [objstore.Store].
func (c *Checker) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	c.count(objstore.OpReadAt)
	return c.Store.ReadAt(ctx, key, p, offset)
}

// Head implements [objstore.Store].
func (c *Checker) Head(ctx context.Context, key string) (objstore.Info, error) {
	c.count(objstore.OpHead)
	return c.Store.Head(ctx, key)
}

// List implements [objstore.Store].
func (c *Checker) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	c.count(objstore.OpList)
	return c.Store.List(ctx, prefix, after, max)
}
