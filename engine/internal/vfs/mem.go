package vfs

import (
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MemFS is a file system in memory that knows what a power cut would leave: see [MemFS.CrashClone]. Paths use slashes;
// relative ones start at the root. The zero value is not usable, use [NewMem].
type MemFS struct {
	// mu guards the tree and the locks; contents have a lock each. Order: mu, then memNode.mu.
	mu    sync.Mutex
	root  *memNode
	locks map[string]string // clean path to holder
	// pending are the changes of directory entries that no SyncDir has made durable, oldest first.
	pending []entryChange
}

// memNode is a file or directory.
type memNode struct {
	isDir bool
	// sharers and exclusive are the locks of LockShared and TryLockExclusive; under MemFS.mu.
	sharers   int
	exclusive bool
	// live and durable are a directory's entries now and as of the last sync; under MemFS.mu.
	live, durable map[string]*memNode

	mu      sync.RWMutex
	modTime time.Time
	content memContent
}

// NewMem returns an empty file system: a root directory.
func NewMem() *MemFS {
	return &MemFS{root: newMemDir(), locks: map[string]string{}}
}

func newMemDir() *memNode {
	return &memNode{isDir: true, live: map[string]*memNode{}, durable: map[string]*memNode{}, modTime: time.Now()}
}

func cleanPath(name string) string { return path.Clean("/" + name) }

// walk returns the node of a clean path.
func (m *MemFS) walk(name string) (*memNode, error) {
	n := m.root
	for rest := name[1:]; rest != ""; {
		elem, tail, _ := strings.Cut(rest, "/")
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		child := n.live[elem]
		if child == nil {
			return nil, syscall.ENOENT
		}
		n, rest = child, tail
	}
	return n, nil
}

// walkParent returns the directory of a clean path, and its last element.
func (m *MemFS) walkParent(name string) (*memNode, string, error) {
	dir, base := path.Split(name)
	if base == "" {
		return nil, "", syscall.EINVAL // the root has no parent
	}
	parent, err := m.walk(path.Clean(dir))
	if err != nil {
		return nil, "", err
	}
	if !parent.isDir {
		return nil, "", syscall.ENOTDIR
	}
	return parent, base, nil
}

func (m *MemFS) walkFile(name string) (*memNode, error) {
	n, err := m.walk(cleanPath(name))
	if err != nil {
		return nil, err
	}
	if n.isDir {
		return nil, syscall.EISDIR
	}
	return n, nil
}

// Create implements [FS].
func (m *MemFS) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.createNode(name)
	if err != nil {
		return nil, wrapErr(OpCreate, name, err)
	}
	n.mu.Lock()
	n.content.empty()
	n.modTime = time.Now()
	n.mu.Unlock()
	return &memFile{node: n, name: name, writable: true}, nil
}

// createNode returns the file of that name, making it if needed.
func (m *MemFS) createNode(name string) (*memNode, error) {
	parent, base, err := m.walkParent(cleanPath(name))
	if err != nil {
		return nil, err
	}
	n := parent.live[base]
	if n == nil {
		n = &memNode{modTime: time.Now()}
		m.setEntry(parent, base, n)
	}
	if n.isDir {
		return nil, syscall.EISDIR
	}
	return n, nil
}

// Open implements [FS].
func (m *MemFS) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walkFile(name)
	if err != nil {
		return nil, wrapErr(OpOpen, name, err)
	}
	return &memFile{node: n, name: name}, nil
}

// OpenAppend implements [FS].
func (m *MemFS) OpenAppend(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walkFile(name)
	if err != nil {
		return nil, wrapErr(OpOpenAppend, name, err)
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return &memFile{node: n, name: name, writable: true, pos: n.content.size}, nil
}

// Truncate implements [FS].
func (m *MemFS) Truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walkFile(name)
	if err == nil && size < 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return wrapErr(OpTruncate, name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.content.resize(size)
	n.content.sync()
	n.modTime = time.Now()
	return nil
}

// Remove implements [FS].
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.walkParent(cleanPath(name))
	if err == nil {
		switch n := parent.live[base]; {
		case n == nil:
			err = syscall.ENOENT
		case len(n.live) > 0:
			err = syscall.ENOTEMPTY
		default:
			m.removeEntry(parent, base)
		}
	}
	return wrapErr(OpRemove, name, err)
}

// Rename implements [FS].
func (m *MemFS) Rename(from, to string) error { return m.rename(OpRename, from, to) }

// RenameExclusive implements [FS].
func (m *MemFS) RenameExclusive(from, to string) error { return m.rename(OpRenameExclusive, from, to) }

func (m *MemFS) rename(op Op, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return wrapErr(op, from+" to "+to, m.renameLocked(cleanPath(from), cleanPath(to), op == OpRenameExclusive))
}

func (m *MemFS) renameLocked(from, to string, exclusive bool) error {
	fromDir, fromBase, err := m.walkParent(from)
	if err != nil {
		return err
	}
	toDir, toBase, err := m.walkParent(to)
	if err != nil {
		return err
	}
	n, old := fromDir.live[fromBase], toDir.live[toBase]
	switch {
	case n == nil:
		return syscall.ENOENT
	case old != nil && exclusive:
		return syscall.EEXIST
	case old == n:
		return nil
	case old != nil && old.isDir && !n.isDir:
		return syscall.EISDIR
	case old != nil && !old.isDir && n.isDir:
		return syscall.ENOTDIR
	case old != nil && len(old.live) > 0:
		return syscall.ENOTEMPTY
	case strings.HasPrefix(to, from+"/"):
		return syscall.EINVAL // into itself
	}
	m.moveEntry(fromDir, fromBase, toDir, toBase)
	return nil
}

// MkdirAll implements [FS].
func (m *MemFS) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, elem := range strings.Split(cleanPath(dir)[1:], "/") {
		if elem == "" {
			continue
		}
		child := n.live[elem]
		if child == nil {
			child = newMemDir()
			m.setEntry(n, elem, child)
		}
		if !child.isDir {
			return wrapErr(OpMkdirAll, dir, syscall.ENOTDIR)
		}
		n = child
	}
	return nil
}

// RemoveAll implements [FS]. A power cut may leave any part of the tree, as each removal counts for itself.
func (m *MemFS) RemoveAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.walkParent(cleanPath(dir))
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return wrapErr(OpRemoveAll, dir, err)
	}
	if parent.live[base] != nil {
		m.removeTree(parent, base)
	}
	return nil
}

func (m *MemFS) removeTree(parent *memNode, base string) {
	n := parent.live[base]
	for _, child := range sortedNames(n.live) {
		m.removeTree(n, child)
	}
	m.removeEntry(parent, base)
}

func sortedNames(entries map[string]*memNode) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// List implements [FS].
func (m *MemFS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(cleanPath(dir))
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrapErr(OpList, dir, err)
	}
	return sortedNames(n.live), nil
}

// Stat implements [FS].
func (m *MemFS) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(cleanPath(name))
	if err != nil {
		return Info{}, wrapErr(OpStat, name, err)
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return Info{Size: n.content.size, ModTime: n.modTime, IsDir: n.isDir}, nil
}

// SyncDir implements [FS].
func (m *MemFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(cleanPath(dir))
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return wrapErr(OpSyncDir, dir, err)
	}
	m.syncEntries(n)
	return nil
}

// Join implements [FS].
func (m *MemFS) Join(elem ...string) string { return path.Join(elem...) }
