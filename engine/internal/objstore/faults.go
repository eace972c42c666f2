package objstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/merutable/merutable/engine/internal/base"
)

// Op is a kind of call to a Store, for [NewFaulty].
type Op string

// The calls.
const (
	OpPut         Op = "put"
	OpPutIfAbsent Op = "put if absent"
	OpReadAt      Op = "read"
	OpHead        Op = "head"
	OpList        Op = "list"
	OpDelete      Op = "delete"
)

// AnswerLost, returned by an injector, lets the call happen and then fail with Err: the store did it, and the client
// does not know.
type AnswerLost struct {
	Err error
}

// Error implements error.
func (a *AnswerLost) Error() string { return fmt.Sprintf("the answer was lost: %v", a.Err) }

type faulty struct {
	inner  Store
	inject func(op Op, key string) error
}

// NewFaulty returns inner with failures. The injector is called before each call, from any goroutine, with the key or, for
// a List, the prefix; it may also just count or wait. An error makes the call fail without happening, or, if it is an
// *[AnswerLost], after it happened. Errors without a base code become CodeObjectStore.
func NewFaulty(inner Store, inject func(op Op, key string) error) Store {
	return &faulty{inner: inner, inject: inject}
}

func (f *faulty) around(op Op, key string, call func() error) error {
	err := f.inject(op, key)
	if err == nil {
		return call()
	}
	var lost *AnswerLost
	if errors.As(err, &lost) {
		if err := call(); err != nil {
			return err
		}
		err = lost.Err
	}
	if base.CodeOf(err) == base.CodeUnknown {
		err = base.Wrapf(base.CodeObjectStore, err, "%s: %s %s", f.inner, op, key)
	}
	return err
}

func (f *faulty) String() string { return f.inner.String() }

func (f *faulty) Put(ctx context.Context, key string, body Body) (info Info, err error) {
	err = f.around(OpPut, key, func() (err error) {
		info, err = f.inner.Put(ctx, key, body)
		return err
	})
	return info, err
}

func (f *faulty) PutIfAbsent(ctx context.Context, key string, body Body) (info Info, err error) {
	err = f.around(OpPutIfAbsent, key, func() (err error) {
		info, err = f.inner.PutIfAbsent(ctx, key, body)
		return err
	})
	return info, err
}

func (f *faulty) ReadAt(ctx context.Context, key string, p []byte, offset int64) (n int, err error) {
	err = f.around(OpReadAt, key, func() (err error) {
		n, err = f.inner.ReadAt(ctx, key, p, offset)
		return err
	})
	return n, err
}

func (f *faulty) Head(ctx context.Context, key string) (info Info, err error) {
	err = f.around(OpHead, key, func() (err error) {
		info, err = f.inner.Head(ctx, key)
		return err
	})
	return info, err
}

func (f *faulty) List(ctx context.Context, prefix, after string, max int) (page []Info, err error) {
	err = f.around(OpList, prefix, func() (err error) {
		page, err = f.inner.List(ctx, prefix, after, max)
		return err
	})
	return page, err
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	return f.around(OpDelete, key, func() error { return f.inner.Delete(ctx, key) })
}
