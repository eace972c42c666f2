package objstore

import (
	"log/slog"
	"net/url"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// S3Config says how an S3-compatible store is reached. What is empty comes from where the AWS tools take it: environment,
// shared files, the instance. It prints without its secrets.
type S3Config struct {
	// Endpoint is a host with or without a port, or a URL; empty: AWS.
	Endpoint string
	// Region, us-east-1 where nobody names one.
	Region string
	// AccessKeyID and SecretAccessKey are set both or neither; SessionToken belongs to temporary ones.
	AccessKeyID, SecretAccessKey, SessionToken string
	// URLStyle is "path" or "vhost"; empty: path where an endpoint is set.
	URLStyle string
	// UseSSL is "true" or "false"; empty: as the endpoint's URL says, else true.
	UseSSL string
}

// String implements fmt.Stringer.
func (c S3Config) String() string {
	return "S3Config{endpoint " + c.Endpoint + ", region " + c.Region + "}"
}

// GoString implements fmt.GoStringer.
func (c S3Config) GoString() string { return c.String() }

// LogValue implements slog.LogValuer.
func (c S3Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// IsURL reports whether a path names an object store rather than a directory.
func IsURL(path string) bool { return strings.HasPrefix(path, "s3://") }

// Open returns the store that a URL names: s3://bucket/prefix, or file:///directory. It asks nothing of it.
func Open(location string, c S3Config) (Store, error) {
	switch {
	case IsURL(location):
		s, err := openS3(location, c, currentTuning())
		if err != nil {
			return nil, err // not a nil *S3 in an interface
		}
		return s, nil
	case strings.HasPrefix(location, "file://"):
		dir, err := url.PathUnescape(strings.TrimPrefix(location, "file://"))
		if err != nil || !strings.HasPrefix(dir, "/") {
			return nil, base.Errorf(base.CodeInvalidArgument, "%q is not a file URI of this machine", location)
		}
		return NewDir(vfs.OS, dir), nil
	}
	return nil, base.Errorf(base.CodeInvalidArgument, "%q is neither s3://bucket/prefix nor file:///directory", location)
}
