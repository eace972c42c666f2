package objfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"path"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	// maxBuffered is how much of a file is gathered in memory.
	maxBuffered = 1 << 20
	// sendAttempts bounds how often an object is sent. The store has made attempts of its own by then, so one that took
	// long to fail is not tried again.
	sendAttempts = 4
	sendPause    = 10 * time.Millisecond
	sendPatience = 2 * time.Second
)

// upload is a file that is being written.
type upload struct {
	fs        *FS
	name, key string

	mu   sync.Mutex
	buf  []byte   // while it is small
	file vfs.File // then; nil before
	path string   // of file, "" where that has no name any more
	size int64
	sent bool
	err  error // the first of a Write
}

// Name implements [vfs.File].
func (u *upload) Name() string { return u.name }

// Size implements [vfs.File].
func (u *upload) Size() (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.size, nil
}

// Write implements [vfs.File].
func (u *upload) Write(p []byte) (n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.err != nil:
		return 0, u.err
	case u.sent:
		return 0, base.Errorf(base.CodeClosed, "write %s: it was sent, and an object never changes", u.name)
	}
	if u.file == nil && len(u.buf)+len(p) > maxBuffered {
		u.err = u.spill()
	}
	if u.err == nil && u.file != nil {
		n, u.err = u.file.Write(p)
	} else if u.err == nil {
		u.buf = append(u.buf, p...)
		n = len(p)
	}
	u.size += int64(n)
	return n, u.err
}

// spill moves what was gathered to a temporary file, which loses its name at once where the system lets it.
func (u *upload) spill() error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	name := vfs.OS.Join(os.TempDir(), "merutable-upload-"+hex.EncodeToString(id[:]))
	file, err := vfs.OS.Create(name)
	if err != nil {
		return err
	}
	u.file, u.path = file, name
	if vfs.OS.Remove(name) == nil {
		u.path = ""
	}
	_, err = file.Write(u.buf)
	u.buf = nil
	return err
}

// ReadAt implements io.ReaderAt.
func (u *upload) ReadAt(p []byte, off int64) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reader().ReadAt(p, off)
}

func (u *upload) reader() io.ReaderAt {
	if u.file != nil {
		return u.file
	}
	return bytes.NewReader(u.buf)
}

// Sync implements [vfs.File]: the file becomes an object.
func (u *upload) Sync() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sent || u.err != nil {
		return u.err
	}
	u.fs.unsent.take(u.key) // it may come to be, whatever happens
	if err := u.send(); err != nil {
		return named(err, u.name)
	}
	u.sent = true
	u.remember()
	return nil
}

func (u *upload) send() error {
	ctx, cancel := sendContext(u.size)
	defer cancel()
	for attempt := 1; ; attempt++ {
		began := time.Now()
		_, err := u.fs.store.PutIfAbsent(ctx, u.key, objstore.Body{Reader: u.reader(), Size: u.size})
		switch code := base.CodeOf(err); {
		case err == nil:
			return nil
		case code == base.CodeAlreadyExists:
			return u.compare(ctx)
		case !objstore.MayHaveHappened(err), attempt == sendAttempts, time.Since(began) > sendPatience:
			return err
		}
		select {
		case <-ctx.Done():
			return objstore.ContextError(ctx, u.fs.store, "put", u.key)
		case <-time.After(sendPause << attempt):
		}
	}
}

// compare takes an object of our name for ours if it has our size.
func (u *upload) compare(ctx context.Context) error {
	info, err := u.fs.store.Head(ctx, u.key)
	if err == nil && info.Size != u.size {
		err = base.Errorf(base.CodeObjectStore, "it is there already with %d bytes, ours has %d", info.Size, u.size)
	}
	return err
}

// remember keeps a small file's blocks, for those that read it next: the rows of a commit are looked up in the one before.
func (u *upload) remember() {
	if u.file != nil || !immutable(u.key) {
		return
	}
	size := u.size
	if path.Ext(u.key) == ".puffin" {
		size = unknownSize // so are deletion vectors read
	}
	for i := int64(0); i*blockBytes < u.size; i++ {
		block := bytes.Clone(u.buf[i*blockBytes : min((i+1)*blockBytes, u.size)])
		u.fs.memory.Put(blockID{key: u.key, size: size, index: i}, block, len(block))
	}
}

// Close implements [vfs.File].
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil {
		return nil
	}
	err := u.file.Close()
	if u.path != "" {
		_ = vfs.OS.Remove(u.path) // one that stays is the system's to remove
	}
	u.file, u.buf = nil, nil
	if u.err == nil {
		u.err = base.Errorf(base.CodeClosed, "%s is closed", u.name)
	}
	return err
}
