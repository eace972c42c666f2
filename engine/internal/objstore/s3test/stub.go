package s3test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Stub is an S3 server in memory, with the oddities of some that call themselves compatible. Set its fields before the
// first request. It checks that the access key is the right one, but no signatures: versitygw does.
type Stub struct {
	// NoChunks refuses chunked bodies and checksums in trailers, as older stores do. Without it such bodies are stored raw,
	// framing included, as other stores do.
	NoChunks bool
	// NoChecksums refuses the headers of additional checksums.
	NoChecksums bool
	// PageSize bounds the pages of listings, whatever was asked for; 0: 1000.
	PageSize int
	// NoStartAfter makes listings ignore start-after.
	NoStartAfter bool
	// Capacity is how many bytes it stores before it is full; 0: no bound.
	Capacity int64
	// Region is where its bucket is; requests that are signed for another one are refused. Empty: any.
	Region string

	mu      sync.Mutex
	objects map[string]stubObject
	uploads map[string]map[int][]byte
	next    int
}

type stubObject struct {
	data []byte
	etag string
	at   time.Time
}

// NewStub returns an empty one with one bucket, [Bucket].
func NewStub() *Stub {
	return &Stub{objects: map[string]stubObject{}, uploads: map[string]map[int][]byte{}}
}

// Object returns the bytes of an object as they are stored.
func (s *Stub) Object(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o.data, ok
}

// SetObject stores an object without a request.
func (s *Stub) SetObject(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = stubObject{data: data, etag: fmt.Sprintf("%x", md5.Sum(data)), at: time.Now()}
}

// Uploads returns how many uploads in parts were begun and neither completed nor aborted.
func (s *Stub) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "stub-"+strconv.Itoa(status))
	w.WriteHeader(status)
	if r.Method != http.MethodHead && code != "" {
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message><RequestId>stub-%d</RequestId></Error>", code, message, status)
	}
}

// ServeHTTP implements http.Handler.
func (s *Stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amz-Request-Id", "stub-ok")
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if refused := s.admit(w, r, bucket); refused {
		return
	}
	switch operation(r, key) {
	case "PutObject":
		s.putObject(w, r, key)
	case "GetObject", "HeadObject":
		s.getObject(w, r, key)
	case "DeleteObject":
		s.mu.Lock()
		delete(s.objects, key)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case "ListObjectsV2":
		s.list(w, r)
	case "HeadBucket":
		w.WriteHeader(http.StatusOK)
	case "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload":
		s.multipart(w, r, key)
	default:
		writeError(w, r, http.StatusNotImplemented, "NotImplemented", r.Method)
	}
}

func (s *Stub) admit(w http.ResponseWriter, r *http.Request, bucket string) (refused bool) {
	authorization := r.Header.Get("Authorization")
	switch {
	case !strings.Contains(authorization, "Credential="+AccessKey+"/"):
		writeError(w, r, http.StatusForbidden, "InvalidAccessKeyId", "The key does not exist")
	case s.Region != "" && !strings.Contains(authorization, "/"+s.Region+"/s3/"):
		w.Header().Set("X-Amz-Bucket-Region", s.Region)
		writeError(w, r, http.StatusMovedPermanently, "PermanentRedirect", "The bucket is elsewhere")
	case bucket != Bucket:
		writeError(w, r, http.StatusNotFound, "NoSuchBucket", "The bucket does not exist")
	case s.NoChunks && (strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") || r.Header.Get("X-Amz-Trailer") != "" ||
		strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked")):
		writeError(w, r, http.StatusBadRequest, "InvalidArgument", "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a valid sha256 value")
	case s.NoChecksums && hasChecksum(r.Header):
		writeError(w, r, http.StatusBadRequest, "InvalidArgument", "unsupported header")
	default:
		return false
	}
	return true
}

func hasChecksum(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Amz-Checksum-") || name == "X-Amz-Sdk-Checksum-Algorithm" {
			return true
		}
	}
	return false
}

// body reads and checks a body. It answers itself where that fails.
func (s *Stub) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	data, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength >= 0 && int64(len(data)) != r.ContentLength {
		writeError(w, r, http.StatusBadRequest, "IncompleteBody", "The body is not whole")
		return nil, false
	}
	sum := sha256.Sum256(data)
	if want := r.Header.Get("X-Amz-Content-Sha256"); len(want) == 64 && want != hex.EncodeToString(sum[:]) {
		writeError(w, r, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The body is not what was signed")
		return nil, false
	}
	if want := r.Header.Get("X-Amz-Checksum-Crc32c"); want != "" && want != crc32c(data) {
		writeError(w, r, http.StatusBadRequest, "BadDigest", "The CRC32C is not the body's")
		return nil, false
	}
	return data, true
}

func crc32c(data []byte) string {
	c := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString([]byte{byte(c >> 24), byte(c >> 16), byte(c >> 8), byte(c)})
}

func (s *Stub) putObject(w http.ResponseWriter, r *http.Request, key string) {
	data, ok := s.body(w, r)
	if !ok {
		return
	}
	s.store(w, r, key, data, fmt.Sprintf("%x", md5.Sum(data)))
}

// store keeps an object if the request's condition holds, and answers.
func (s *Stub) store(w http.ResponseWriter, r *http.Request, key string, data []byte, etag string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.objects[key]; exists && r.Header.Get("If-None-Match") == "*" {
		writeError(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the conditions did not hold")
		return false
	}
	used := int64(len(data))
	for _, o := range s.objects {
		used += int64(len(o.data))
	}
	if s.Capacity > 0 && used > s.Capacity {
		writeError(w, r, http.StatusInsufficientStorage, "InsufficientStorage", "No room")
		return false
	}
	s.objects[key] = stubObject{data: data, etag: etag, at: time.Now()}
	w.Header().Set("Etag", `"`+etag+`"`)
	if r.Method == http.MethodPost {
		writeXML(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			ETag    string
		}{ETag: `"` + etag + `"`})
	}
	return true
}

func writeXML(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(v)
}

func (s *Stub) getObject(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	o, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		writeError(w, r, http.StatusNotFound, "NoSuchKey", "The key does not exist")
		return
	}
	w.Header().Set("Etag", `"`+o.etag+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", o.at, bytes.NewReader(o.data))
}

type listEntry struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
}

func (s *Stub) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("max-keys"))
	if size <= 0 || size > 1000 {
		size = 1000
	}
	if s.PageSize > 0 {
		size = min(size, s.PageSize)
	}
	after := q.Get("start-after")
	if s.NoStartAfter {
		after = ""
	}
	if token := q.Get("continuation-token"); token != "" {
		plain, _ := hex.DecodeString(token)
		after = string(plain)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, q.Get("prefix")) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	type result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []listEntry
	}
	out := result{Name: Bucket, IsTruncated: len(keys) > size}
	for _, key := range keys[:min(size, len(keys))] {
		o := s.objects[key]
		out.Contents = append(out.Contents, listEntry{key, o.at.UTC().Format("2006-01-02T15:04:05.000Z"), `"` + o.etag + `"`, len(o.data)})
	}
	if out.IsTruncated {
		out.NextContinuationToken = hex.EncodeToString([]byte(keys[size-1]))
	}
	writeXML(w, out)
}

func (s *Stub) multipart(w http.ResponseWriter, r *http.Request, key string) {
	q := r.URL.Query()
	id := q.Get("uploadId")
	if q.Has("uploads") {
		s.mu.Lock()
		s.next++
		id = "upload-" + strconv.Itoa(s.next)
		s.uploads[id] = map[int][]byte{}
		s.mu.Unlock()
		writeXML(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket   string
			Key      string
			UploadId string
		}{Bucket: Bucket, Key: key, UploadId: id})
		return
	}
	data, ok := s.body(w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	parts, known := s.uploads[id]
	s.mu.Unlock()
	switch {
	case !known:
		writeError(w, r, http.StatusNotFound, "NoSuchUpload", "The upload does not exist")
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.uploads, id)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		s.mu.Lock()
		parts[n] = data
		s.mu.Unlock()
		w.Header().Set("Etag", fmt.Sprintf(`"%x"`, md5.Sum(data)))
	default:
		s.complete(w, r, key, id, data)
	}
}

func (s *Stub) complete(w http.ResponseWriter, r *http.Request, key, id string, body []byte) {
	var in struct {
		Parts []struct {
			PartNumber int
			ETag       string
		} `xml:"Part"`
	}
	if err := xml.Unmarshal(body, &in); err != nil {
		writeError(w, r, http.StatusBadRequest, "MalformedXML", "")
		return
	}
	var whole []byte
	s.mu.Lock()
	parts := s.uploads[id]
	for i, p := range in.Parts {
		data, ok := parts[p.PartNumber]
		if !ok || p.PartNumber != i+1 || strings.Trim(p.ETag, `"`) != fmt.Sprintf("%x", md5.Sum(data)) {
			s.mu.Unlock()
			writeError(w, r, http.StatusBadRequest, "InvalidPart", "")
			return
		}
		whole = append(whole, data...)
	}
	s.mu.Unlock()
	if s.store(w, r, key, whole, fmt.Sprintf("%x-%d", md5.Sum(whole), len(in.Parts))) {
		s.mu.Lock()
		delete(s.uploads, id)
		s.mu.Unlock()
	}
}
