package objstore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/merutable/merutable/engine/internal/base"
)

const (
	// maxParts is S3's.
	maxParts = 10_000
	// abortTimeout bounds the attempt to have the parts of a failed upload dropped.
	abortTimeout = 10 * time.Second
	// completePatience, in stalls: a store may copy all parts into one before it answers.
	completePatience = 10
)

// upload is an object that goes in parts.
type upload struct {
	s       *S3
	c       call
	body    Body
	id      string
	checked bool // the store was told to expect CRC32C with each part
	size    int64
	parts   []types.CompletedPart
}

// putParts stores a large object. It appears with the last request, which is the one that is conditional.
func (s *S3) putParts(ctx context.Context, c call, body Body, ifNoneMatch *string) (Info, error) {
	u := &upload{s: s, c: c, body: body, size: partSize(body.Size, s.tuning.PartBytes)}
	u.parts = make([]types.CompletedPart, (body.Size+u.size-1)/u.size)
	if err := u.create(ctx); err != nil {
		return Info{}, err
	}
	if err := u.sendParts(ctx); err != nil {
		u.abort(ctx)
		return Info{}, err
	}
	tag, err := u.complete(ctx, ifNoneMatch)
	if err != nil {
		// If only the answer was lost there is nothing left to abort.
		u.abort(ctx)
		return Info{}, err
	}
	return Info{Key: c.key, Size: body.Size, ETag: tag}, nil
}

// partSize returns the size of parts, larger than usual where there would be too many.
func partSize(size, usual int64) int64 {
	const unit = 1 << 20
	least := (size + maxParts - 1) / maxParts
	return max(usual, (least+unit-1)/unit*unit)
}

func (u *upload) create(ctx context.Context) error {
	for {
		in := &s3.CreateMultipartUploadInput{Bucket: &u.s.bucket, Key: u.s.name(u.c.key)}
		if u.checked = !u.s.plain.Load(); u.checked {
			in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c
		}
		refused := false
		err := u.s.retry(ctx, u.c, func(ctx context.Context, _ func(sent, received int)) error {
			out, err := u.s.client.CreateMultipartUpload(ctx, in)
			if err != nil {
				refused = u.checked && refusesChecksum(err)
				return err
			}
			if u.id = aws.ToString(out.UploadId); u.id == "" {
				return &refusal{"the store gave no upload id"}
			}
			u.s.bucketSeen.Store(true)
			return nil
		})
		if !refused {
			return err
		}
		u.s.plain.Store(true)
	}
}

func (u *upload) sendParts(ctx context.Context) error {
	g, partCtx := errgroup.WithContext(ctx) // which the first part that fails ends
	g.SetLimit(max(1, u.s.tuning.PartParallelism))
	for i := range u.parts {
		if partCtx.Err() != nil {
			break
		}
		g.Go(func() error { return u.sendPart(partCtx, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ContextError(ctx, u.s, u.c.what, u.c.key)
}

func (u *upload) sendPart(ctx context.Context, i int) error {
	offset := int64(i) * u.size
	p, err := measure(ctx, u.s, u.c, u.body, offset, min(u.size, u.body.Size-offset))
	if err != nil {
		return err
	}
	if !u.checked {
		p.crc32c = nil
	}
	number := aws.Int32(int32(i + 1))
	c := u.c
	c.bytes = p.size
	return u.s.retry(ctx, c, func(ctx context.Context, progress func(sent, received int)) error {
		r := p.open(progress)
		out, err := u.s.client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &u.s.bucket, Key: u.s.name(c.key), UploadId: &u.id, PartNumber: number,
			Body: io.ReadSeeker(r), ContentLength: &p.size, ChecksumCRC32C: p.crc32c,
		}, p.signed)
		if e := r.close(); e != nil {
			return &bodyError{e}
		}
		if err != nil {
			return err
		}
		u.parts[i] = types.CompletedPart{ETag: out.ETag, PartNumber: number, ChecksumCRC32C: p.crc32c}
		return nil
	})
}

// complete makes the object of its parts.
func (u *upload) complete(ctx context.Context, ifNoneMatch *string) (tag string, err error) {
	c := u.c
	c.patience = completePatience
	tries, gone := 0, false
	err = u.s.retry(ctx, c, func(ctx context.Context, _ func(sent, received int)) error {
		tries++
		out, err := u.s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &u.s.bucket, Key: u.s.name(c.key), UploadId: &u.id, IfNoneMatch: ifNoneMatch,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
		})
		if err == nil {
			tag = etag(out.ETag)
			return nil
		}
		gone = tries > 1 && isNoSuchUpload(err)
		return err
	})
	if !gone {
		return tag, err
	}
	// An earlier attempt may have made the object, its answer lost.
	info, err := u.s.head(ctx, c)
	switch {
	case err != nil:
		return "", err
	case ifNoneMatch != nil:
		return "", base.Errorf(base.CodeAlreadyExists, "%s: %s is there already", u.s, c.key)
	case info.Size != u.body.Size:
		return "", base.Errorf(base.CodeObjectStore, "%s: %s %s: the store lost the upload", u.s, c.what, c.key)
	}
	return info.ETag, nil
}

func isNoSuchUpload(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "NoSuchUpload"
}

// abort drops the parts that have arrived: they cost money without being seen. Where that fails, a rule of the bucket for
// incomplete uploads has to do it.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_ = u.s.retry(ctx, u.c, func(ctx context.Context, _ func(sent, received int)) error {
		_, err := u.s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &u.s.bucket, Key: u.s.name(u.c.key), UploadId: &u.id,
		})
		if statusOf(err) == http.StatusNotFound {
			return nil
		}
		return err
	})
}
