package objstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// payload is a part of a body, or all of it, with its checksums.
type payload struct {
	body         Body // of the whole object
	offset, size int64
	sha256       string // in hexadecimal
	crc32c       *string
}

// measure reads a part of a body and computes its checksums. SHA-256 goes into the signature, so that every store that
// checks signatures checks the bytes; CRC32C is for those that keep it with the object.
func measure(ctx context.Context, s Store, c call, body Body, offset, size int64) (payload, error) {
	strong, quick := sha256.New(), crc32.New(castagnoli)
	part := Body{Reader: io.NewSectionReader(body.Reader, offset, size), Size: size}
	if size < 0 {
		part.Reader = body.Reader
	}
	err := copyBody(ctx, s, c.what, c.key, part, func(p []byte) error {
		_, _ = strong.Write(p)
		_, _ = quick.Write(p)
		return nil
	})
	return payload{
		body: body, offset: offset, size: size,
		sha256: hex.EncodeToString(strong.Sum(nil)),
		crc32c: aws.String(base64.StdEncoding.EncodeToString(quick.Sum(nil))),
	}, err
}

// sending is one attempt's reader of a payload. net/http may read on for a moment after the attempt has ended, which
// close keeps away from the caller's reader.
type sending struct {
	mu       sync.Mutex
	inner    *io.SectionReader
	progress func(n int)
	closed   bool
	err      error // of the caller's reader
}

func (p payload) open(progress func(sent, received int)) *sending {
	return &sending{
		inner:    io.NewSectionReader(p.body.Reader, p.offset, p.size),
		progress: func(n int) { progress(n, 0) },
	}
}

// Read implements io.Reader.
func (r *sending) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.ErrClosedPipe
	}
	n, err := r.inner.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	r.progress(n)
	return n, err
}

// Seek implements io.Seeker: the SDK asks for the length so.
func (r *sending) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inner.Seek(offset, whence)
}

// close ends the use of the caller's reader and returns the error that it gave.
func (r *sending) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.err
}

// signed makes the SDK sign a payload by the hash that is known already, rather than read it once more.
func (p payload) signed(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("PayloadHash", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			return next.HandleFinalize(v4.SetPayloadHash(ctx, p.sha256), in)
		}), middleware.Before)
	})
}
