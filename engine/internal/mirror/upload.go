package mirror

import (
	"bytes"
	"context"
	"io"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// upload sends a file, unless the store has it. ask has it ask for the object first, as it does after a failure: a store
// that was down shows by a small request whether it is back. sent is 0 where the object was there.
func (m *Mirror) upload(ctx context.Context, o *object, ask bool) (sent int64, err error) {
	f, err := o.dir.Open(o.rel)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	if o.size != 0 && o.size != size {
		return 0, base.Errorf(base.CodeCorruption, "%s has %d bytes, the manifest says %d", o.rel, size, o.size)
	}
	o.size = size
	ctx, cancel := withPatience(ctx, size)
	defer cancel()
	if ask || o.tries > 0 { // the answer may have been lost
		err := m.compare(ctx, o.key, f, size)
		if base.CodeOf(err) != base.CodeNotFound {
			return 0, err
		}
	}
	info, err := m.store.PutIfAbsent(ctx, o.key, objstore.Body{Reader: f, Size: size})
	switch {
	case base.CodeOf(err) == base.CodeAlreadyExists:
		return 0, m.compare(ctx, o.key, f, size)
	case err != nil:
		return 0, err
	case info.Size != size:
		return 0, base.Errorf(base.CodeObjectStore, "%s: %s was stored with %d of %d bytes", m.store, o.key, info.Size, size)
	}
	return size, nil
}

// How much of an object is read to compare it: all of it up to compareWhole, else compareEnd bytes at both ends.
const (
	compareWhole = 64 << 20
	compareEnd   = 4 << 20
	compareChunk = 1 << 20
)

// compare compares an object with a file of ours. CodeNotFound: there is no such object; CodeConflict: it is another one.
func (m *Mirror) compare(ctx context.Context, key string, f io.ReaderAt, size int64) error {
	info, err := m.store.Head(ctx, key)
	if err != nil {
		return err
	}
	if info.Size != size {
		return m.notOurs(key, "has %d bytes: ours has %d", info.Size, size)
	}
	if size <= compareWhole {
		return m.compareRange(ctx, key, f, 0, size)
	}
	if err := m.compareRange(ctx, key, f, 0, compareEnd); err != nil {
		return err
	}
	return m.compareRange(ctx, key, f, size-compareEnd, size)
}

func (m *Mirror) compareRange(ctx context.Context, key string, f io.ReaderAt, from, to int64) error {
	theirs, ours := make([]byte, min(compareChunk, to-from)), make([]byte, min(compareChunk, to-from))
	for from < to {
		n := min(int64(len(ours)), to-from)
		if got, err := m.store.ReadAt(ctx, key, theirs[:n], from); int64(got) < n {
			return unexpectedEnd(m.store, key, err)
		}
		if got, err := f.ReadAt(ours[:n], from); int64(got) < n {
			return unexpectedEnd(m.store, key, err)
		}
		if !bytes.Equal(theirs[:n], ours[:n]) {
			return m.notOurs(key, "has other contents than ours")
		}
		from += n
	}
	return nil
}

func unexpectedEnd(s objstore.Store, key string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.ReaderAt returns it bare
		return base.Errorf(base.CodeObjectStore, "%s: %s ends early", s, key)
	}
	return err
}

// read returns an object of a known size.
func (m *Mirror) read(ctx context.Context, key string, size int64) ([]byte, error) {
	if size > base.MaxManifestBytes {
		return nil, m.notOurs(key, "has %d bytes", size)
	}
	ctx, cancel := withPatience(ctx, size)
	defer cancel()
	p := make([]byte, size)
	if n, err := m.store.ReadAt(ctx, key, p, 0); int64(n) < size {
		return nil, unexpectedEnd(m.store, key, err)
	}
	return p, nil
}
