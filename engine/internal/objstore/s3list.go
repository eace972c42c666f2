package objstore

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// List implements [Store]. Objects whose keys nobody could ask for are left out: those of other programs, and what some of
// them make for a directory. A page of the store may be shorter than was asked for; as many are fetched as it takes.
func (s *S3) List(ctx context.Context, prefix, after string, max int) ([]Info, error) {
	c := call{what: "list", key: prefix}
	if err := CheckList(prefix, max); err != nil {
		return nil, err
	}
	if err := ContextError(ctx, s, c.what, c.key); err != nil {
		return nil, err
	}
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.name(prefix)}
	if from := sendable(after); from != "" {
		in.StartAfter = s.name(from)
	} else if after != "" && s.prefix != "" {
		in.StartAfter = aws.String(s.prefix)
	}
	var found []Info
	for {
		in.MaxKeys = aws.Int32(int32(max - len(found)))
		page, err := s.page(ctx, c, in)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if info, ok := s.listed(o, prefix, after); ok && len(found) < max {
				found = append(found, info)
			}
		}
		token := aws.ToString(page.NextContinuationToken)
		if len(found) == max || !aws.ToBool(page.IsTruncated) || token == "" {
			return found, nil
		}
		if token == aws.ToString(in.ContinuationToken) {
			return nil, failureOf("its listing does not come on").of(s, c, false)
		}
		in.ContinuationToken, in.StartAfter = &token, nil
	}
}

func failureOf(text string) failure { return (*S3)(nil).classify(&refusal{text}) }

func (s *S3) page(ctx context.Context, c call, in *s3.ListObjectsV2Input) (out *s3.ListObjectsV2Output, err error) {
	err = s.retry(ctx, c, func(ctx context.Context, _ func(sent, received int)) (err error) {
		out, err = s.client.ListObjectsV2(ctx, in)
		return err
	})
	if err == nil {
		s.bucketSeen.Store(true)
	}
	return out, err
}

// listed translates an entry. Not every store goes by StartAfter.
func (s *S3) listed(o types.Object, prefix, after string) (Info, bool) {
	key, ours := strings.CutPrefix(aws.ToString(o.Key), s.prefix)
	if !ours || !strings.HasPrefix(key, prefix) || key <= after || CheckKey(key) != nil {
		return Info{}, false
	}
	return Info{Key: key, Size: aws.ToInt64(o.Size), ETag: etag(o.ETag), ModTime: modTime(o.LastModified)}, true
}

// sendable returns the longest beginning of text that goes into a request. What it is less than, text is less than too, or
// it begins with it: the rest is for listed to leave out.
func sendable(text string) string {
	for i, r := range text {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return text[:i]
		}
	}
	if len(text) > MaxKeyBytes {
		return sendable(strings.ToValidUTF8(text[:MaxKeyBytes], ""))
	}
	return text
}
