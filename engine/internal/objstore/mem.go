package objstore

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// Mem is a store in memory. Use [NewMem].
type Mem struct {
	mu      sync.RWMutex
	objects map[string]memObject
	puts    uint64 // counts, for ETags
}

type memObject struct {
	data []byte // never changed in place
	info Info
}

// NewMem returns an empty store.
func NewMem() *Mem { return &Mem{objects: map[string]memObject{}} }

// String implements [Store].
func (m *Mem) String() string { return "memory store" }

// Put implements [Store].
func (m *Mem) Put(ctx context.Context, key string, body Body) (Info, error) {
	return m.put(ctx, "put", key, body, false)
}

// PutIfAbsent implements [Store].
func (m *Mem) PutIfAbsent(ctx context.Context, key string, body Body) (Info, error) {
	return m.put(ctx, "put if absent", key, body, true)
}

func (m *Mem) put(ctx context.Context, what, key string, body Body, absent bool) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	if err := ContextError(ctx, m, what, key); err != nil {
		return Info{}, err
	}
	var data []byte
	err := copyBody(ctx, m, what, key, body, func(p []byte) error {
		data = append(data, p...)
		return nil
	})
	if err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.objects[key]; exists && absent {
		return Info{}, base.Errorf(base.CodeAlreadyExists, "%s: %s is there already", m, key)
	}
	if other, clash := m.clash(key); clash {
		return Info{}, base.Errorf(base.CodeObjectStore, "%s: %s %s: one of it and %s begins with the other", m, what, key, other)
	}
	m.puts++
	info := Info{Key: key, Size: int64(len(data)), ModTime: time.Now(), ETag: strconv.FormatUint(m.puts, 10)}
	m.objects[key] = memObject{data: data, info: info}
	return info, nil
}

// clash finds an object that a directory store could not hold beside key.
func (m *Mem) clash(key string) (string, bool) {
	for i, c := range key {
		if c == '/' {
			if _, exists := m.objects[key[:i]]; exists {
				return key[:i], true
			}
		}
	}
	if _, exists := m.objects[key]; exists {
		return "", false // it stood the test when it was made
	}
	for other := range m.objects {
		if strings.HasPrefix(other, key+"/") {
			return other, true
		}
	}
	return "", false
}

// get returns the object of a key that may be invalid.
func (m *Mem) get(ctx context.Context, what, key string) (memObject, error) {
	if err := CheckKey(key); err != nil {
		return memObject{}, err
	}
	if err := ContextError(ctx, m, what, key); err != nil {
		return memObject{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, exists := m.objects[key]
	if !exists {
		return o, base.Errorf(base.CodeNotFound, "%s: %s %s: no such object", m, what, key)
	}
	return o, nil
}

// ReadAt implements [Store].
func (m *Mem) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := CheckRange(key, offset); err != nil {
		return 0, err
	}
	o, err := m.get(ctx, "read", key)
	if err != nil {
		return 0, err
	}
	n := copy(p, o.data[min(offset, int64(len(o.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Head implements [Store].
func (m *Mem) Head(ctx context.Context, key string) (Info, error) {
	o, err := m.get(ctx, "head", key)
	return o.info, err
}

// List implements [Store].
func (m *Mem) List(ctx context.Context, prefix, after string, max int) ([]Info, error) {
	if err := CheckList(prefix, max); err != nil {
		return nil, err
	}
	if err := ContextError(ctx, m, "list", prefix); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []Info
	for key, o := range m.objects {
		if strings.HasPrefix(key, prefix) && key > after {
			found = append(found, o.info)
		}
	}
	slices.SortFunc(found, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
	return found[:min(len(found), max)], nil
}

// Delete implements [Store].
func (m *Mem) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := ContextError(ctx, m, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}
