package objstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/time/rate"

	"github.com/merutable/merutable/engine/internal/base"
)

// bucketName is what some S3-compatible store, or AWS once, may call a bucket: upper case is for the store to refuse. It keeps out what would end up elsewhere in a URL.
var bucketName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,254}$`)

// openS3 makes the store of s3://bucket/prefix. It asks nothing of it.
func openS3(location string, c S3Config, t S3Tuning) (*S3, error) {
	bucket, prefix, err := splitS3(location)
	if err != nil {
		return nil, err
	}
	endpoint, err := c.endpointURL()
	if err != nil {
		return nil, err
	}
	pathStyle := endpoint != ""
	switch c.URLStyle {
	case "":
	case "path", "vhost":
		pathStyle = c.URLStyle == "path"
	default:
		return nil, base.Errorf(base.CodeInvalidArgument, "s3_url_style %q: path and vhost are known", c.URLStyle)
	}
	if t.Transport == nil {
		if t.Transport, err = transportFor(os.Getenv("AWS_CA_BUNDLE")); err != nil {
			return nil, err
		}
	}
	sdk, err := c.load(t)
	if err != nil {
		return nil, err
	}
	s := &S3{
		bucket: bucket, prefix: prefix, tuning: t, region: sdk.Region,
		retries: rate.NewLimiter(rate.Limit(t.RetriesPerSecond), max(1, int(t.RetriesPerSecond))),
		secrets: c.secrets(),
	}
	s.client = s3.NewFromConfig(sdk, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		} else if c.UseSSL == "false" {
			o.EndpointOptions.DisableHTTPS = true
		}
		o.UsePathStyle = pathStyle
		o.ContinueHeaderThresholdBytes = -1 // a server that does not know Expect would cost a second a request
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	return s, nil
}

// secrets returns what must not be in a message. What is as short as in toy set-ups is part of other words.
func (c S3Config) secrets() (all []string) {
	for _, secret := range []string{c.SecretAccessKey, c.SessionToken, c.AccessKeyID} {
		if len(secret) >= 12 {
			all = append(all, secret)
		}
	}
	return all
}

// splitS3 takes s3://bucket/prefix apart. The prefix is returned with a slash behind, or empty.
func splitS3(location string) (bucket, prefix string, err error) {
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(location, "s3://"), "/")
	if !bucketName.MatchString(bucket) {
		return "", "", base.Errorf(base.CodeInvalidArgument, "%q: it is s3://bucket/prefix, and %q is no bucket's name", location, bucket)
	}
	prefix = strings.TrimRight(prefix, "/")
	if prefix == "" {
		return bucket, "", nil
	}
	if err := CheckPrefix(prefix); err != nil {
		return "", "", base.Wrapf(base.CodeInvalidArgument, err, "%q", location)
	}
	return bucket, prefix + "/", nil
}

// endpointURL returns scheme and host of the endpoint, empty for AWS.
func (c S3Config) endpointURL() (string, error) {
	switch c.UseSSL {
	case "", "true", "false":
	default:
		return "", base.Errorf(base.CodeInvalidArgument, "s3_use_ssl %q: true and false are known", c.UseSSL)
	}
	if c.Endpoint == "" {
		return "", nil
	}
	text := c.Endpoint
	scheme, _, named := strings.Cut(text, "://")
	if !named {
		scheme = "https"
		if c.UseSSL == "false" {
			scheme = "http"
		}
		text = scheme + "://" + text
	}
	// The text itself is not in the messages: it may have a password where none belongs.
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || scheme != "http" && scheme != "https" {
		return "", base.Errorf(base.CodeInvalidArgument, "s3_endpoint: it is host, host:port, or http:// or https:// and these, without user and query")
	}
	if named && (c.UseSSL == "true" && scheme == "http" || c.UseSSL == "false" && scheme == "https") {
		return "", base.Errorf(base.CodeInvalidArgument, "s3_endpoint %s contradicts s3_use_ssl %s", text, c.UseSSL)
	}
	return strings.TrimRight(text, "/"), nil
}

// load resolves region and credentials as the AWS tools do, for what the configuration leaves open.
func (c S3Config) load(t S3Tuning) (aws.Config, error) {
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		return aws.Config{}, base.Errorf(base.CodeInvalidArgument, "s3_access_key_id and s3_secret_access_key are set both or neither")
	}
	if c.SessionToken != "" && c.AccessKeyID == "" {
		return aws.Config{}, base.Errorf(base.CodeInvalidArgument, "s3_session_token needs s3_access_key_id and s3_secret_access_key")
	}
	options := []func(*config.LoadOptions) error{
		// Retries are ours (s3retry.go). Where there is no instance to ask for credentials, one attempt is enough, too.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithAppID("merutable"),
		// It would write to the host's stderr. What matters is in the errors.
		config.WithLogger(logging.Nop{}),
		// Bodies go as they are, with their checksums in headers: not every store knows chunks and trailers.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)))
	}
	sdk, err := config.LoadDefaultConfig(context.Background(), options...)
	if err != nil {
		return sdk, base.Wrapf(base.CodeInvalidArgument, err, "the configuration of the AWS tools")
	}
	if sdk.Region == "" {
		sdk.Region = "us-east-1"
	}
	// Not before: AWS_CA_BUNDLE goes to the clients that fetch credentials only if they are the SDK's own.
	sdk.HTTPClient = &http.Client{Transport: t.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a signature is for one host
	}}
	sdk.Credentials = aws.NewCredentialsCache(credentialSource{sdk.Credentials})
	return sdk, nil
}

// credentialSource marks the errors of those who give credentials, which look like a store's own otherwise.
type credentialSource struct {
	inner aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (c credentialSource) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.inner.Retrieve(ctx)
	if err != nil {
		return found, &credentialError{err}
	}
	return found, nil
}

type credentialError struct {
	cause error
}

func (e *credentialError) Error() string { return e.cause.Error() }
func (e *credentialError) Unwrap() error { return e.cause }

// transports are shared by all stores: a database that is opened again and again leaves no connections behind.
var (
	transportsMu sync.Mutex
	transports   = map[string]*http.Transport{}
)

// transportFor returns the transport that trusts the certificates of a file, or those of the system.
func transportFor(caBundle string) (*http.Transport, error) {
	transportsMu.Lock()
	defer transportsMu.Unlock()
	if t, ok := transports[caBundle]; ok {
		return t, nil
	}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		// 64 objects at a time is the most of a mirror; some have parts.
		MaxIdleConnsPerHost: 64,
		MaxConnsPerHost:     256,
		IdleConnTimeout:     30 * time.Second,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
		DisableCompression:  true, // a range of the packed bytes is not what was asked for
	}
	if caBundle != "" {
		pem, err := os.ReadFile(caBundle)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = base.Errorf(base.CodeInvalidArgument, "it holds no certificate")
		}
		if err != nil {
			return nil, base.Wrapf(base.CodeInvalidArgument, err, "AWS_CA_BUNDLE %s", caBundle)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	transports[caBundle] = t
	return t, nil
}
