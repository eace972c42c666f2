package objstore

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/time/rate"

	"github.com/merutable/merutable/engine/internal/base"
)

// S3 keeps objects in a bucket of an S3-compatible store, below a prefix. The store must have conditional writes
// (If-None-Match) and read after write. Requests that fail for a while are sent again, see [S3Tuning]. Use [Open].
type S3 struct {
	bucket, prefix string // the prefix with a slash behind, or empty
	region         string
	client         *s3.Client
	tuning         S3Tuning
	retries        *rate.Limiter
	counters       s3Counters
	secrets        []string
	// bucketSeen is set once an answer has proved that the bucket is there.
	bucketSeen atomic.Bool
	// plain is set once the store has refused a request for its CRC32C.
	plain atomic.Bool
}

// String implements [Store].
func (s *S3) String() string { return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/") }

func (s *S3) admit(ctx context.Context, what, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if n := len(s.prefix) + len(key); n > MaxKeyBytes {
		return base.Errorf(base.CodeInvalidArgument, "%s: object key %s has %d bytes with the prefix: the limit is %d", s, key, n, MaxKeyBytes)
	}
	return ContextError(ctx, s, what, key)
}

// name returns the key as the bucket has it.
func (s *S3) name(key string) *string { return aws.String(s.prefix + key) }

// Put implements [Store].
func (s *S3) Put(ctx context.Context, key string, body Body) (Info, error) {
	return s.put(ctx, call{what: "put", key: key}, body, nil)
}

// PutIfAbsent implements [Store].
func (s *S3) PutIfAbsent(ctx context.Context, key string, body Body) (Info, error) {
	return s.put(ctx, call{what: putIfAbsent, key: key}, body, aws.String("*"))
}

func (s *S3) put(ctx context.Context, c call, body Body, ifNoneMatch *string) (Info, error) {
	if err := s.admit(ctx, c.what, c.key); err != nil {
		return Info{}, err
	}
	if body.Size > max(s.tuning.WholeBytes, s.tuning.PartBytes) {
		return s.putParts(ctx, c, body, ifNoneMatch)
	}
	p, err := measure(ctx, s, c, body, 0, body.Size)
	if err != nil {
		return Info{}, err
	}
	var out *s3.PutObjectOutput
	err = s.send(ctx, c, p, func(ctx context.Context, r io.Reader, crc32c *string) (err error) {
		out, err = s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.name(c.key), Body: r, ContentLength: &p.size,
			IfNoneMatch: ifNoneMatch, ChecksumCRC32C: crc32c,
		}, p.signed)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return Info{Key: c.key, Size: p.size, ETag: etag(out.ETag)}, nil
}

// send sends a payload. A store that does not know the header of CRC32C gets it without.
func (s *S3) send(ctx context.Context, c call, p payload, put func(ctx context.Context, r io.Reader, crc32c *string) error) error {
	c.bytes = p.size
	for {
		crc32c := p.crc32c
		if s.plain.Load() {
			crc32c = nil
		}
		var refused bool
		err := s.retry(ctx, c, func(ctx context.Context, progress func(sent, received int)) error {
			r := p.open(progress)
			err := put(ctx, r, crc32c)
			if e := r.close(); e != nil {
				return &bodyError{e}
			}
			refused = err != nil && crc32c != nil && refusesChecksum(err)
			if err == nil {
				s.bucketSeen.Store(true)
			}
			return err
		})
		if err == nil || !refused {
			return err
		}
		s.plain.Store(true)
	}
}

// ReadAt implements [Store].
func (s *S3) ReadAt(ctx context.Context, key string, p []byte, offset int64) (n int, err error) {
	c := call{what: "read", key: key, bytes: int64(len(p))}
	if err := CheckRange(key, offset); err != nil {
		return 0, err
	}
	if err := s.admit(ctx, c.what, key); err != nil {
		return 0, err
	}
	if len(p) == 0 { // which no range says
		_, err := s.head(ctx, c)
		return 0, err
	}
	end := offset + int64(len(p)) - 1
	if end < offset {
		end = 1<<63 - 1
	}
	var ended error
	err = s.retry(ctx, c, func(ctx context.Context, progress func(sent, received int)) error {
		n, ended = 0, nil
		out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &s.bucket, Key: s.name(key), Range: aws.String(fmt.Sprintf("bytes=%d-%d", offset, end)),
		})
		if beyondEnd(err) {
			ended = io.EOF
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = out.Body.Close() }()
		s.bucketSeen.Store(true)
		progress(0, 0)
		if from := aws.ToString(out.ContentRange); offset > 0 && !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", offset)) {
			return &refusal{fmt.Sprintf("asked for bytes from %d on, the store sent range %q", offset, from)}
		}
		n, err = io.ReadFull(progressReader{out.Body, func(n int) { progress(0, n) }}, p)
		if n < len(p) && (out.ContentLength == nil || int64(n) == *out.ContentLength) && (err == io.EOF || err == io.ErrUnexpectedEOF) {
			ended = io.EOF
			return nil
		}
		if err != nil {
			return &brokenBody{err}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, ended
}

// Head implements [Store].
func (s *S3) Head(ctx context.Context, key string) (Info, error) {
	c := call{what: "head", key: key}
	if err := s.admit(ctx, c.what, key); err != nil {
		return Info{}, err
	}
	return s.head(ctx, c)
}

func (s *S3) head(ctx context.Context, c call) (Info, error) {
	var out *s3.HeadObjectOutput
	err := s.retry(ctx, c, func(ctx context.Context, _ func(sent, received int)) (err error) {
		out, err = s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(c.key)})
		return err
	})
	if base.CodeOf(err) == base.CodeNotFound && !s.bucketSeen.Load() {
		// The answer to a HEAD has no text: it may be the bucket that is not there.
		if e := s.probe(ctx, c); e != nil {
			return Info{}, e
		}
	}
	if err != nil {
		return Info{}, err
	}
	s.bucketSeen.Store(true)
	return Info{
		Key: c.key, Size: aws.ToInt64(out.ContentLength), ETag: etag(out.ETag), ModTime: modTime(out.LastModified),
	}, nil
}

// probe returns an error where the bucket is missing, or the credentials are nobody's, which a store may also answer with
// 404. A listing's answer says so; that one may not list is none.
func (s *S3) probe(ctx context.Context, c call) error {
	err := s.retry(ctx, c, func(ctx context.Context, _ func(sent, received int)) error {
		_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &s.prefix, MaxKeys: aws.Int32(1)})
		switch statusOf(err) {
		case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return nil
		}
		return err
	})
	if err == nil {
		s.bucketSeen.Store(true)
	}
	return err
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, key string) error {
	c := call{what: "delete", key: key}
	if err := s.admit(ctx, c.what, key); err != nil {
		return err
	}
	err := s.retry(ctx, c, func(ctx context.Context, _ func(sent, received int)) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.name(key)})
		return err
	})
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	return err
}

func etag(p *string) string { return strings.Trim(aws.ToString(p), `"`) }

// modTime is in whole seconds: that is all that a HEAD tells, while listings have more.
func modTime(t *time.Time) time.Time { return aws.ToTime(t).Truncate(time.Second) }
