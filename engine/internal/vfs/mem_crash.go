package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// entryChange is a change of directory entries that a power cut keeps or drops as a whole: a removal from one directory,
// an addition to another, or, for a rename, both.
type entryChange struct {
	fromDir *memNode // nil for a creation
	from    string
	toDir   *memNode // nil for a removal
	to      string
	node    *memNode
}

func (m *MemFS) setEntry(dir *memNode, name string, n *memNode) {
	dir.live[name] = n
	m.pending = append(m.pending, entryChange{toDir: dir, to: name, node: n})
}

func (m *MemFS) removeEntry(dir *memNode, name string) {
	m.pending = append(m.pending, entryChange{fromDir: dir, from: name, node: dir.live[name]})
	delete(dir.live, name)
}

func (m *MemFS) moveEntry(fromDir *memNode, from string, toDir *memNode, to string) {
	n := fromDir.live[from]
	m.pending = append(m.pending, entryChange{fromDir: fromDir, from: from, toDir: toDir, to: to, node: n})
	delete(fromDir.live, from)
	toDir.live[to] = n
}

// syncEntries makes the entries of dir durable. A rename across directories is one change, so syncing either side makes
// its other side durable too, and with it what happened to that name before.
func (m *MemFS) syncEntries(dir *memNode) {
	type entry struct {
		dir  *memNode
		name string
	}
	others := map[entry]struct{}{}
	settled := func(d *memNode, name string) bool {
		if d == dir {
			return true
		}
		_, ok := others[entry{d, name}]
		return ok
	}
	// Backwards, as settling a rename settles the older changes of its names.
	kept := m.pending[:0:0]
	for _, c := range slices.Backward(m.pending) {
		if (c.fromDir != nil && settled(c.fromDir, c.from)) || (c.toDir != nil && settled(c.toDir, c.to)) {
			if c.fromDir != nil && c.fromDir != dir {
				others[entry{c.fromDir, c.from}] = struct{}{}
			}
			if c.toDir != nil && c.toDir != dir {
				others[entry{c.toDir, c.to}] = struct{}{}
			}
			continue
		}
		kept = append(kept, c)
	}
	slices.Reverse(kept)
	m.pending = kept
	dir.durable = maps.Clone(dir.live)
	for e := range others {
		if n := e.dir.live[e.name]; n != nil {
			e.dir.durable[e.name] = n
		} else {
			delete(e.dir.durable, e.name)
		}
	}
}

// sectorBytes is the unit in which a disk writes all or nothing.
const sectorBytes = 512

// CrashClone returns what a power cut at this moment leaves, as a file system of its own; m goes on unharmed. Synced
// contents and synced directory entries are there. Of the rest, the rng decides: each creation, rename and removal
// happened or did not, a rename always as a whole; of a file's unsynced bytes some prefix is there, in which sectors may
// be missing from some write on (they read as zeros) and behind which a few bytes of garbage may stand; an unsynced
// change of the length happened or did not. A nil rng keeps nothing that was not synced. Nobody holds a lock in the
// clone. The same calls with the same seed give the same clone.
func (m *MemFS) CrashClone(rng *rand.Rand) *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := map[*memNode]map[string]*memNode{}
	of := func(d *memNode) map[string]*memNode {
		if entries[d] == nil {
			entries[d] = maps.Clone(d.durable)
		}
		return entries[d]
	}
	for _, c := range m.pending {
		if rng == nil || rng.IntN(2) == 0 {
			continue
		}
		if c.fromDir != nil && of(c.fromDir)[c.from] == c.node {
			delete(of(c.fromDir), c.from)
		}
		if c.toDir != nil {
			of(c.toDir)[c.to] = c.node
		}
	}
	// Dropping a removal and keeping a later rename may leave a node under two names: they stay one node.
	copies := map[*memNode]*memNode{}
	var clone func(n *memNode) *memNode
	clone = func(n *memNode) *memNode {
		if c := copies[n]; c != nil {
			return c
		}
		if !n.isDir {
			n.mu.RLock()
			defer n.mu.RUnlock()
			c := &memNode{modTime: n.modTime, content: n.content.afterCrash(rng)}
			copies[n] = c
			return c
		}
		c := newMemDir()
		copies[n] = c
		children := of(n)
		for _, name := range sortedNames(children) {
			c.live[name] = clone(children[name])
		}
		c.durable = maps.Clone(c.live)
		return c
	}
	return &MemFS{root: clone(m.root), locks: map[string]string{}}
}

// afterCrash returns what is left of a content, all of it durable.
func (c *memContent) afterCrash(rng *rand.Rand) memContent {
	if c.hasReplaced && (rng == nil || rng.IntN(2) == 0) {
		return durableContent(slices.Clone(c.replaced), int64(len(c.replaced)))
	}
	size := c.syncedSize
	if rng != nil && c.size > size && rng.IntN(2) == 0 {
		size = c.size // the new length is there, whatever is of the data
	}
	written := int64(len(c.data))
	keep := c.synced
	if rng != nil && written > c.synced {
		switch rng.IntN(3) {
		case 0: // nothing
		case 1:
			keep = written
		default:
			keep += rng.Int64N(written - c.synced + 1)
		}
	}
	data := slices.Clone(c.data[:keep])
	if rng != nil && keep > c.synced {
		data = c.tear(rng, data)
	}
	return durableContent(data, max(size, int64(len(data))))
}

// tear loses sectors of the unsynced part of data: from the last sync, or from the beginning of some write, or from the
// sector's start to its end they read as zeros, as if the sector had been written before, or never. Now and then it adds
// garbage behind.
func (c *memContent) tear(rng *rand.Rand, data []byte) []byte {
	if rng.IntN(2) == 0 {
		lose := 1 + rng.IntN(8) // one in so many sectors
		for s := c.synced / sectorBytes * sectorBytes; s < int64(len(data)); s += sectorBytes {
			if rng.IntN(lose) != 0 {
				continue
			}
			end := min(s+sectorBytes, int64(len(data)))
			from := max(s, c.synced)
			first, _ := slices.BinarySearch(c.bounds, from)
			last, _ := slices.BinarySearch(c.bounds, end)
			if n := last - first; n > 0 && rng.IntN(2) == 0 {
				from = c.bounds[first+rng.IntN(n)]
			}
			clear(data[from:end])
		}
	}
	if rng.IntN(8) == 0 && len(data) < len(c.data) {
		for range 1 + rng.IntN(64) {
			data = append(data, byte(rng.Uint32()))
		}
	}
	return data
}

func durableContent(data []byte, size int64) memContent {
	return memContent{data: data, size: size, synced: int64(len(data)), syncedSize: size}
}
