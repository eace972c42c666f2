package engine

import (
	"context"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// copyAll brings everything to the directory aside, durably.
func (c *cloner) copyAll() error {
	fs := c.o.fs
	if err := fs.MkdirAll(c.aside); err != nil {
		return err
	}
	var err error
	if c.lock, err = fs.Lock(fs.Join(c.aside, lockFile), holder()); err != nil {
		return err
	}
	dirs := map[string]bool{".": true}
	for _, t := range c.tables {
		dirs[t.prefix+manifest.Dir] = true
	}
	for _, f := range c.names {
		dirs[path.Dir(f.key)] = true
	}
	for d := range dirs {
		for up := d; up != "."; up = path.Dir(up) {
			dirs[up] = true
		}
		if err := fs.MkdirAll(fs.Join(c.aside, d)); err != nil {
			return err
		}
	}
	if err := c.copyFiles(); err != nil {
		return err
	}
	if err := c.copyMetadata(); err != nil {
		return err
	}
	for d := range dirs {
		if err := fs.SyncDir(fs.Join(c.aside, d)); err != nil {
			return err
		}
	}
	return nil
}

// copyMetadata copies the manifests as they are stored, and what a directory has besides.
func (c *cloner) copyMetadata() error {
	ctx := context.Background()
	for _, t := range c.tables {
		key := t.prefix + manifest.Dir + "/" + manifest.FileName(t.m.Version)
		data, err := objstore.ReadSmall(ctx, c.from, key, base.MaxManifestBytes)
		if err != nil {
			return err
		}
		if m, err := manifest.Decode(key, data); err != nil {
			return err
		} else if m.Version != t.m.Version || t.m.AsStored() && (m.TableUUID != t.m.TableUUID || len(m.Files) != len(t.m.Files)) {
			return base.Errorf(base.CodeConflict, "%s/%s was replaced while it was copied", c.root, key)
		}
		if !t.m.AsStored() { // what the directory has no intents for
			if data, err = manifest.Encode(t.m); err != nil {
				return err
			}
		}
		if err := writeNew(c.o.fs, c.o.fs.Join(c.aside, key), data); err != nil {
			return err
		}
	}
	if !objstore.IsURL(c.source) {
		options, err := objstore.ReadSmall(ctx, c.from, optionsFileName, maxCatalogBytes)
		if err == nil {
			err = writeNew(c.o.fs, c.o.fs.Join(c.aside, optionsFileName), options)
		}
		if err != nil && base.CodeOf(err) != base.CodeNotFound {
			return err
		}
	}
	if c.list.version == 0 {
		return nil
	}
	return c.list.write(c.o.fs, c.aside)
}

// writeNew writes a file and syncs it.
func writeNew(fs vfs.FS, name string, data []byte) error {
	f, err := fs.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// copyFiles reads the files side by side; the caller's goroutine asks for interrupts and tells the progress.
func (c *cloner) copyFiles() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, min(c.o.Parallelism, len(c.names)))
	for i := range errs {
		wg.Go(func() {
			buf := make([]byte, cloneChunk)
			for k := int(next.Add(1)) - 1; k < len(c.names); k = int(next.Add(1)) - 1 {
				errs[i] = base.Guard(func() error { return c.copyFile(ctx, c.names[k], buf) })
				if errs[i] != nil {
					cancel()
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	err := c.follow(ended, cancel)
	for _, e := range errs {
		if err == nil || base.CodeOf(err) == base.CodeCancelled && e != nil && base.CodeOf(e) != base.CodeCancelled {
			err = e
		}
	}
	return err
}

// follow waits for the copies to end.
func (c *cloner) follow(ended chan struct{}, cancel func()) (err error) {
	tick := time.NewTicker(cloneAsk)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return err
		case <-tick.C:
			c.tell(0.7 * float64(c.done.Load()) / float64(c.total.Load()))
			if e := c.ask(); e != nil && err == nil {
				err = e
				cancel()
			}
		}
	}
}

// copyFile copies a file piece by piece.
func (c *cloner) copyFile(ctx context.Context, f cloneFile, buf []byte) (err error) {
	name := c.o.fs.Join(c.aside, f.key)
	out, err := c.o.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	for at := int64(0); f.size < 0 || at < f.size; {
		p := buf
		if f.size >= 0 {
			p = buf[:min(int64(len(buf)), f.size-at)]
		}
		n, err := c.from.ReadAt(ctx, f.key, p, at)
		ends := n < len(p) && err == io.EOF
		switch {
		case ends && f.size >= 0:
			return base.Errorf(base.CodeCorruption, "%s/%s has %d bytes, the manifest says %d", c.root, f.key, at+int64(n), f.size)
		case n < len(p) && !ends:
			return missing(base.Wrapf(base.CodeOf(err), err, "%s/%s", c.root, f.key))
		}
		if _, err := out.Write(p[:n]); err != nil {
			return err
		}
		at += int64(n)
		if f.size >= 0 {
			c.done.Add(int64(n))
		}
		if ends {
			break
		}
	}
	return out.Sync()
}
