// Package objstore is the engine's only door to object stores: where a mirror goes, and where a database may be read
// from.
//
// An object is a run of bytes under a key. It appears whole or not at all, and is replaced as a whole or not at all. What
// a call made visible, every later call sees, from any process (read after write, also for List). What a Put returned is
// durable.
package objstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/merutable/merutable/engine/internal/base"
)

// Limits of keys and listings.
const (
	// MaxKeyBytes bounds a key.
	MaxKeyBytes = 1024
	// MaxSegmentBytes bounds what stands between two slashes of a key: keys are file names in a directory store.
	MaxSegmentBytes = 255
	// MaxList is the most that one List returns.
	MaxList = 1000
)

// Store is an object store, or a part of one below some prefix. Its methods may be called from any goroutine.
//
// Errors are base.Errors that name the store and the key. CodeNotFound: there is no such object. CodeAlreadyExists: only
// from PutIfAbsent. CodeInvalidArgument: a key or range that no store takes; nothing was sent. CodeCancelled and
// CodeTimeout: the context ended. CodeNoSpace: the store is full, or as full as it may become. CodeObjectStore: anything
// else. After CodeObjectStore, CodeCancelled or CodeTimeout a
// Put, PutIfAbsent or Delete may or may not have happened; a PutIfAbsent that is then tried again may find its own
// object, which the caller tells by comparing.
//
// A key must not begin with another key and a slash ("a" and "a/b"): a directory store cannot hold both, and refuses the
// second with CodeObjectStore.
type Store interface {
	// Put makes or replaces an object. It does not keep the body.
	Put(ctx context.Context, key string, body Body) (Info, error)
	// PutIfAbsent makes an object, or fails with CodeAlreadyExists and changes nothing where there is one. Of any number
	// of concurrent calls for one key, from any processes, one succeeds. It is the commit of a manifest.
	PutIfAbsent(ctx context.Context, key string, body Body) (Info, error)
	// ReadAt fills p with the bytes of an object from offset on, like io.ReaderAt: fewer than len(p) come with an error,
	// io.EOF where the object ends.
	ReadAt(ctx context.Context, key string, p []byte, offset int64) (n int, err error)
	// Head describes an object.
	Head(ctx context.Context, key string) (Info, error)
	// List describes the objects whose key begins with prefix and is greater than after, in byte order of the key, at
	// most max of them, 1 to MaxList. Fewer than max means that there are no more. Objects that come or go between two
	// calls may be in the listing or not; all others are in it once.
	List(ctx context.Context, prefix, after string, max int) ([]Info, error)
	// Delete removes an object. It is no error where there is none. A power cut may bring an object back.
	Delete(ctx context.Context, key string) error
	// String names the store in messages and holds no secrets.
	String() string
}

// Info describes an object.
type Info struct {
	Key  string
	Size int64 // bytes
	// ModTime is when it was stored. What Put and PutIfAbsent return may leave it zero: a store may not say.
	ModTime time.Time
	// ETag changes when the object is replaced by other bytes. It means nothing else, and nothing outside its store.
	ETag string
}

// Body is what to store. Reader is read by one goroutine at a time, any part perhaps several times, until the call
// returns.
type Body struct {
	Reader io.ReaderAt
	Size   int64 // bytes
}

// Bytes returns a body that is in memory.
func Bytes(p []byte) Body { return Body{Reader: bytes.NewReader(p), Size: int64(len(p))} }

// ReadAll returns a whole object. One of more than max bytes is CodeObjectStore, and not read.
func ReadAll(ctx context.Context, s Store, key string, max int64) ([]byte, error) {
	info, err := s.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	if info.Size > max {
		return nil, base.Errorf(base.CodeObjectStore, "%s: %s has %d bytes: the limit is %d", s, key, info.Size, max)
	}
	p := make([]byte, info.Size)
	n, err := s.ReadAt(ctx, key, p, 0)
	if n == len(p) && (err == nil || err == io.EOF) {
		return p, nil
	}
	if err == nil || err == io.EOF {
		return nil, base.Errorf(base.CodeObjectStore, "%s: %s had %d bytes, now %d", s, key, info.Size, n)
	}
	return nil, err
}

// ReadSmall is ReadAll for objects that are mostly small: one request reads one of up to 64 KiB.
func ReadSmall(ctx context.Context, s Store, key string, max int64) ([]byte, error) {
	const first = 64 << 10
	p := make([]byte, 0, first)
	for step := int64(first); ; step *= 2 {
		if int64(len(p)) > max {
			return nil, base.Errorf(base.CodeObjectStore, "%s: %s has more than %d bytes: that is the limit", s, key, max)
		}
		at := len(p)
		p = append(p, make([]byte, step)...)
		n, err := s.ReadAt(ctx, key, p[at:], int64(at))
		p = p[:at+n]
		switch {
		case err == io.EOF:
			return p, nil
		case err != nil:
			return nil, err
		}
	}
}

// ListAll calls fn for every object whose key begins with prefix, in order; an error of fn ends it.
func ListAll(ctx context.Context, s Store, prefix string, fn func(Info) error) error {
	for after := ""; ; {
		page, err := s.List(ctx, prefix, after, MaxList)
		if err != nil {
			return err
		}
		for _, info := range page {
			if err := fn(info); err != nil {
				return err
			}
			after = info.Key
		}
		if len(page) < MaxList {
			return nil
		}
	}
}

// CheckKey returns CodeInvalidArgument for a key that not every store can hold: one that is empty or too long, not UTF-8,
// or has a control character, a backslash, or a segment that is empty or begins with a dot.
func CheckKey(key string) error {
	if key == "" {
		return base.Errorf(base.CodeInvalidArgument, "an object key is empty")
	}
	if err := checkChars(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch {
		case segment == "":
			return base.Errorf(base.CodeInvalidArgument, "object key %q: a part between slashes is empty", key)
		case segment[0] == '.':
			return base.Errorf(base.CodeInvalidArgument, "object key %q: a part begins with a dot", key)
		case len(segment) > MaxSegmentBytes:
			return base.Errorf(base.CodeInvalidArgument, "object key %q: a part has %d bytes: the limit is %d", key, len(segment), MaxSegmentBytes)
		}
	}
	return nil
}

// CheckPrefix is CheckKey for the prefix of a listing: it may be empty, end with a slash and end anywhere in a segment.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return CheckKey(strings.TrimSuffix(prefix, "/"))
}

func checkChars(key string) error {
	switch {
	case len(key) > MaxKeyBytes:
		return base.Errorf(base.CodeInvalidArgument, "an object key has %d bytes: the limit is %d", len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return base.Errorf(base.CodeInvalidArgument, "object key %q is not valid UTF-8", key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return base.Errorf(base.CodeInvalidArgument, "object key %q holds a control character or a backslash", key)
	}
	return nil
}

// CheckList validates the arguments of List.
func CheckList(prefix string, max int) error {
	if max < 1 || max > MaxList {
		return base.Errorf(base.CodeInvalidArgument, "a listing of %d objects: 1 to %d are allowed", max, MaxList)
	}
	return CheckPrefix(prefix)
}

// CheckRange validates the offset of a ReadAt.
func CheckRange(key string, offset int64) error {
	if offset < 0 {
		return base.Errorf(base.CodeInvalidArgument, "object %s: read at offset %d", key, offset)
	}
	return nil
}

// MayHaveHappened reports whether the error of a Put, PutIfAbsent or Delete leaves open whether the store did it. A store
// that knows better has an error in the chain with a method Refused that says so.
func MayHaveHappened(err error) bool {
	var known interface{ Refused() bool }
	if errors.As(err, &known) && known.Refused() {
		return false
	}
	switch base.CodeOf(err) {
	case base.CodeObjectStore, base.CodeCancelled, base.CodeTimeout, base.CodeUnknown:
		return true
	}
	return false
}

// ContextError returns the error of an ended context with its code, nil while it goes on.
func ContextError(ctx context.Context, s Store, what, key string) error {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return base.Wrapf(base.CodeTimeout, err, "%s: %s %s", s, what, key)
	}
	return base.Wrapf(base.CodeCancelled, err, "%s: %s %s", s, what, key)
}

// copyChunk is how much of a body is held in memory.
const copyChunk = 1 << 20

// copyBody hands a body on in pieces, which write must not keep. A body that is shorter than it says is
// CodeInvalidArgument; an error of its reader keeps its code.
func copyBody(ctx context.Context, s Store, what, key string, body Body, write func(p []byte) error) error {
	if body.Size < 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: %s %s: a body of %d bytes", s, what, key, body.Size)
	}
	buf := make([]byte, min(body.Size, copyChunk))
	for offset := int64(0); offset < body.Size; {
		if err := ContextError(ctx, s, what, key); err != nil {
			return err
		}
		p := buf[:min(int64(len(buf)), body.Size-offset)]
		n, err := body.Reader.ReadAt(p, offset)
		if n < len(p) {
			if err == nil || err == io.EOF {
				return base.Errorf(base.CodeInvalidArgument, "%s: %s %s: the body ends after %d of %d bytes", s, what, key, offset+int64(n), body.Size)
			}
			code := base.CodeOf(err)
			if code == base.CodeUnknown {
				code = base.CodeIO
			}
			return base.Wrapf(code, err, "%s: %s %s: reading the body", s, what, key)
		}
		if err := write(p); err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}
