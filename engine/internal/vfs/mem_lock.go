package vfs

import "io"

// Lock implements [FS]. The lock holds between all users of this MemFS; a clone of CrashClone has no locks.
func (m *MemFS) Lock(name, holder string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := cleanPath(name)
	if other, taken := m.locks[key]; taken {
		return nil, lockedError(name, other)
	}
	n, err := m.createNode(name)
	if err != nil {
		return nil, wrapErr(OpLock, name, err)
	}
	holder = clipHolder(holder)
	n.mu.Lock()
	n.content.empty()
	n.content.write([]byte(holder+"\n"), 0)
	n.mu.Unlock()
	m.locks[key] = holder
	return &memLock{fs: m, key: key}, nil
}

type memLock struct {
	fs  *MemFS
	key string // "" once released; under fs.mu
}

// Close releases the lock. A second call does nothing.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.key != "" {
		delete(l.fs.locks, l.key)
		l.key = ""
	}
	return nil
}

// LockShared implements [FS].
func (m *MemFS) LockShared(name string) (io.Closer, error) { return m.lockNode(OpLockShared, name) }

// TryLockExclusive implements [FS].
func (m *MemFS) TryLockExclusive(name string) (io.Closer, error) { return m.lockNode(OpTryLock, name) }

func (m *MemFS) lockNode(op Op, name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walkFile(name)
	if err != nil {
		return nil, wrapErr(op, name, err)
	}
	if n.exclusive || op == OpTryLock && n.sharers > 0 {
		return nil, lockedError(name, "another handle")
	}
	if op == OpTryLock {
		n.exclusive = true
	} else {
		n.sharers++
	}
	return &memNodeLock{fs: m, node: n, exclusive: op == OpTryLock}, nil
}

type memNodeLock struct {
	fs        *MemFS
	node      *memNode // nil once released; under fs.mu
	exclusive bool
}

// Close releases the lock. A second call does nothing.
func (l *memNodeLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	switch {
	case l.node == nil:
	case l.exclusive:
		l.node.exclusive = false
	default:
		l.node.sharers--
	}
	l.node = nil
	return nil
}
