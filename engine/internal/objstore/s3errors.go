package objstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/merutable/merutable/engine/internal/base"
)

// bodyError is one of the reader of what is to be stored.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return e.cause.Error() }
func (e *bodyError) Unwrap() error { return e.cause }

// brokenBody is an answer that ended early.
type brokenBody struct{ cause error }

func (e *brokenBody) Error() string { return "the answer broke off: " + e.cause.Error() }
func (e *brokenBody) Unwrap() error { return e.cause }

// refusal is something that another attempt does not change.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// failure is why an attempt failed.
type failure struct {
	code  base.Code
	text  string
	cause error // only what holds no secrets: requests do, so the SDK's errors are not kept
	// retry says that another attempt may succeed, not before after; once that only a second one may.
	retry, once bool
	after       time.Duration
	// refused says that the store did nothing.
	refused bool
}

// notDone is an error of a call that the store refused each time: nothing was changed, see [MayHaveHappened].
type notDone struct{ error }

func (e notDone) Unwrap() error { return e.error }

// Refused says so.
func (notDone) Refused() bool { return true }

// of makes the error of a call. doubt: an earlier attempt may have done it.
func (f failure) of(s *S3, c call, doubt bool) error {
	err := f.describe(s, c, doubt)
	if f.refused && !doubt {
		return notDone{err}
	}
	return err
}

func (f failure) describe(s *S3, c call, doubt bool) error {
	text := f.text
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	if f.code == base.CodeNotFound && c.puts() || f.code == base.CodeAlreadyExists && c.what != putIfAbsent {
		f.code = base.CodeObjectStore // of a store that answers strangely: the caller has not asked that
	}
	if f.code == base.CodeNoSpace && doubt {
		f.code = base.CodeObjectStore // which leaves it open
	}
	where := fmt.Sprintf("%s: %s %s", s, c.what, c.key)
	if f.cause != nil {
		return base.Wrapf(f.code, f.cause, "%s: %s", where, text)
	}
	return base.Errorf(f.code, "%s: %s", where, text)
}

// classify says what the error of an attempt means.
func (s *S3) classify(err error) failure {
	f := failure{code: base.CodeObjectStore, text: err.Error()}
	var (
		body     *bodyError
		refused  *refusal
		stalled  *stallError
		noAccess *credentialError
		answer   *smithyhttp.ResponseError
	)
	switch {
	case errors.As(err, &body):
		f.text, f.cause = "reading the body", body.cause
		if f.code = base.CodeOf(body.cause); f.code == base.CodeUnknown {
			f.code = base.CodeIO
		}
	case errors.As(err, &refused):
		f.text = refused.text
	case errors.As(err, &stalled):
		f.text, f.retry = stalled.Error()+" from "+s.server(), true
	case errors.As(err, &noAccess):
		f.text, f.refused = "no credentials: "+noAccess.Error(), true
	case errors.As(err, &answer) && statusOf(err) != 0:
		return s.classifyAnswer(err, answer)
	default:
		f.text, f.retry, f.refused = unanswered(err)
	}
	return f
}

// unanswered describes an error without an answer of the store. unsent: there was no connection to send it on.
func unanswered(err error) (text string, retry, unsent bool) {
	var (
		broken *brokenBody
		send   *smithyhttp.RequestSendError
		decode *smithy.DeserializationError
		cert   *tls.CertificateVerificationError
		dns    *net.DNSError
		op     *net.OpError
	)
	switch {
	case errors.As(err, &cert):
		return "the server's certificate: " + cert.Error(), false, true
	case errors.As(err, &dns) && dns.IsNotFound:
		return dns.Error(), false, true
	case errors.As(err, &broken):
		return broken.Error(), true, false
	case errors.As(err, &send):
		return send.Err.Error(), true, errors.As(err, &op) && op.Op == "dial"
	case errors.As(err, &decode):
		return decode.Error(), true, false
	}
	return err.Error(), errors.Is(err, context.Canceled), false // of the attempt: the call's own context has been asked
}

// classifyAnswer describes an answer of the store.
func (s *S3) classifyAnswer(err error, answer *smithyhttp.ResponseError) failure {
	status := answer.HTTPStatusCode()
	code, message := "", ""
	var api smithy.APIError
	if errors.As(err, &api) {
		code, message = api.ErrorCode(), api.ErrorMessage()
	} else if answer.Err != nil {
		message = answer.Err.Error()
	}
	f := failure{code: base.CodeObjectStore}
	f.refused = status >= 300 && status < 500 && status != http.StatusRequestTimeout || status == http.StatusNotImplemented ||
		status == http.StatusInsufficientStorage
	explained := ""
	decode := (*smithy.DeserializationError)(nil)
	switch {
	case status/100 == 2 && errors.As(err, &decode):
		f.retry, explained = true, "the answer broke off"
	case code == "NoSuchBucket":
		explained = noBucket(s.bucket)
	case code == "NoSuchUpload":
		explained = "the store has dropped the parts of this upload"
	case isMissing(status, code):
		f.code, explained = base.CodeNotFound, "no such object"
	case status == http.StatusPreconditionFailed:
		f.code, explained = base.CodeAlreadyExists, "it is there already"
	case isFull(status, code):
		f.code, explained = base.CodeNoSpace, "the destination is full"
	case code == "EntityTooLarge":
		explained = "the object is too large for the store"
	case isElsewhere(status, code):
		explained = s.elsewhere(answer.Response.Header.Get("X-Amz-Bucket-Region"))
	case isTransient(status, code):
		f.retry = true
		f.after = retryAfter(answer.Response.Header)
	case isCredential(code):
		explained = "the credentials are refused"
	case status == http.StatusForbidden && isSkewed(answer.Response.Response) && code != "AccessDenied":
		// An answer to a HEAD does not say so. The SDK goes by the store's clock from now on.
		explained, f.once = "refused, perhaps because the clocks differ: the store's says "+answer.Response.Header.Get("Date"), true
	case status == http.StatusForbidden:
		explained = "access denied to bucket " + s.bucket
	}
	f.text = describeAnswer(explained, status, code, requestID(err, answer), message)
	return f
}

func describeAnswer(explained string, status int, code, id, message string) string {
	var b strings.Builder
	if explained != "" {
		b.WriteString(explained + " (")
	}
	fmt.Fprintf(&b, "status %d", status)
	if code != "" && code != "UnknownError" {
		b.WriteString(" " + code)
	}
	if id == "" {
		id = "not given"
	}
	b.WriteString(", request id " + id)
	if explained != "" {
		b.WriteString(")")
	}
	if message != "" && message != code && len(message) <= 1000 {
		b.WriteString(": " + message)
	}
	return b.String()
}

func noBucket(bucket string) string { return "there is no bucket " + bucket }

func (s *S3) elsewhere(region string) string {
	text := "the bucket " + s.bucket + " is not in region " + s.region
	if region != "" && region != s.region {
		text += " but in " + region + ": set s3_region"
	}
	return text
}

func (s *S3) server() string {
	if e := s.client.Options().BaseEndpoint; e != nil {
		return *e
	}
	return "the store"
}

// isTransient says that the same request may succeed later.
func isTransient(status int, code string) bool {
	switch code {
	case "ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "RequestTimeTooSkewed", "SlowDown",
		"BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody", "InternalError",
		"ServiceUnavailable", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded":
		return true
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	// Answers of proxies in front of stores: 520 to 530 are Cloudflare's.
	return status >= 520 && status <= 530
}

// isSkewed says that a request was signed with another time than the store's, by as much as it might refuse.
func isSkewed(answer *http.Response) bool {
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil || answer.Request == nil {
		return false
	}
	signed, err := time.Parse("20060102T150405Z", answer.Request.Header.Get("X-Amz-Date"))
	return err == nil && signed.Sub(theirs).Abs() > 5*time.Minute
}

// isFull knows the names that stores have for it.
func isFull(status int, code string) bool {
	switch code {
	case "InsufficientStorage", "InsufficientCapacity", "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded",
		"StorageQuotaExceeded", "TooManyObjects", "NoSpaceLeft":
		return true
	}
	return status == http.StatusInsufficientStorage
}

// isMissing says that it is the object that is not there: a HEAD is answered without a code.
func isMissing(status int, code string) bool {
	switch code {
	case "NoSuchKey", "NotFound", "NoSuchVersion", "UnknownError", "":
		return status == http.StatusNotFound
	}
	return false
}

func isElsewhere(status int, code string) bool {
	switch code {
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return true
	}
	return status >= 300 && status < 400
}

func isCredential(code string) bool {
	switch code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidSecurity",
		"NotSignedUp", "AccountProblem", "XAdminUserNotFound":
		return true
	}
	return false
}

// refusesChecksum says that a store may not know the header of CRC32C: there are some that refuse what they do not know.
func refusesChecksum(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "NotImplemented":
		return true
	case "InvalidArgument", "InvalidRequest", "BadRequest":
		return statusOf(err) == http.StatusBadRequest
	}
	return false
}

// beyondEnd says that an object ends before the range.
func beyondEnd(err error) bool {
	return err != nil && statusOf(err) == http.StatusRequestedRangeNotSatisfiable
}

// statusOf returns the status of an answer, 0 without one.
func statusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil && answer.Response.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

func requestID(err error, answer *smithyhttp.ResponseError) string {
	var aws *awshttp.ResponseError
	if errors.As(err, &aws) && aws.RequestID != "" {
		return aws.RequestID
	}
	return answer.Response.Header.Get("X-Amz-Request-Id")
}

// retryAfter returns how long the store asks to be left alone.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
