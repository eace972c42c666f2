package mirror

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// counted is a store whose answers are counted, by which the mirror knows that it is alive.
type counted struct {
	objstore.Store
	answers *atomic.Int64
	came    func() // runs after each
}

// note counts an answer. That there is no such object, or one already, is one.
func (c *counted) note(err error) {
	switch base.CodeOf(err) {
	case base.CodeOK, base.CodeNotFound, base.CodeAlreadyExists:
		c.answers.Add(1)
		c.came()
	}
}

func (c *counted) Put(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	info, err := c.Store.Put(ctx, key, body)
	c.note(err)
	return info, err
}

func (c *counted) PutIfAbsent(ctx context.Context, key string, body objstore.Body) (objstore.Info, error) {
	info, err := c.Store.PutIfAbsent(ctx, key, body)
	c.note(err)
	return info, err
}

func (c *counted) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	n, err := c.Store.ReadAt(ctx, key, p, offset)
	if err == io.EOF { //nolint:errorlint // it comes bare
		c.note(nil)
	} else {
		c.note(err)
	}
	return n, err
}

func (c *counted) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := c.Store.Head(ctx, key)
	c.note(err)
	return info, err
}

func (c *counted) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	page, err := c.Store.List(ctx, prefix, after, max)
	c.note(err)
	return page, err
}

func (c *counted) Delete(ctx context.Context, key string) error {
	err := c.Store.Delete(ctx, key)
	c.note(err)
	return err
}
