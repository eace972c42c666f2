package s3test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/objstore"
)

// maxKeptBody bounds the bodies that a record keeps: those of manifests.
const maxKeptBody = 4 << 20

// Request is one that came to a [Front].
type Request struct {
	// Op is what it asks for, in S3's words: PutObject, GetObject, UploadPart, ListObjectsV2, …
	Op string
	// Key is without the bucket.
	Key         string
	IfNoneMatch string
	Range       string
	Header      http.Header
	Query       url.Values
	Bytes       int64  // of the body
	Body        []byte // of a manifest, up to 4 MiB, else nil
	// Listed are the keys in the answer to a ListObjectsV2.
	Listed []string
	// Begun and Ended number the moments when requests came and answers went, all in one order. Ended is 0 before.
	Begun, Ended int
	At           time.Time
	// Applied is the status that the server behind gave, 0 where it was not asked or did not answer; Status is what the client got, 0 where it
	// got nothing.
	Applied, Status int
}

// Fault is what a Front does to a request instead of, or beside, passing it on. The zero value does nothing.
type Fault struct {
	// Status is answered without asking the server, with Code as the error code in the body.
	Status int
	Code   string
	// Header goes into the answer, whose ever it is.
	Header map[string]string
	// Drop ends the connection without asking the server.
	Drop bool
	// LoseAnswer asks the server, and then ends the connection.
	LoseAnswer bool
	// CutBody is how much of the answer's body is sent before the connection ends; 0 is all.
	CutBody int
	// Hang keeps the client waiting, for as long as it does, without asking the server.
	Hang bool
	// Delay goes before all else.
	Delay time.Duration
}

// Front stands before a server, records what comes, and makes requests fail.
type Front struct {
	// Endpoint is its URL.
	Endpoint string
	server   *httptest.Server
	upstream http.Handler
	stop     chan struct{}

	mu       sync.Mutex
	moments  int
	requests []*Request
	fault    func(r Request) Fault
}

// NewFront starts a front for a test, which ends with it: before a Stub, or before what Forward returns.
func NewFront(t testing.TB, upstream http.Handler) *Front {
	f := newFront(upstream)
	f.server = httptest.NewServer(f)
	f.Endpoint = f.server.URL
	t.Cleanup(f.close)
	return f
}

// NewTLSFront is NewFront with TLS. Its Client trusts it.
func NewTLSFront(t testing.TB, upstream http.Handler) *Front {
	f := newFront(upstream)
	f.server = httptest.NewTLSServer(f)
	f.Endpoint = f.server.URL
	t.Cleanup(f.close)
	return f
}

func newFront(upstream http.Handler) *Front {
	return &Front{upstream: upstream, stop: make(chan struct{})}
}

func (f *Front) close() {
	close(f.stop)
	f.server.CloseClientConnections()
	f.server.Close()
}

// Config returns what reaches the front.
func (f *Front) Config() objstore.S3Config { return Config(f.Endpoint) }

// Transport is one that trusts a TLS front.
func (f *Front) Transport() http.RoundTripper { return f.server.Client().Transport }

// Certificate is that of a TLS front, in DER.
func (f *Front) Certificate() []byte { return f.server.Certificate().Raw }

// Forward passes requests on to a server, signatures untouched.
func Forward(endpoint string) http.Handler {
	to, err := url.Parse(endpoint)
	if err != nil {
		panic(err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // it is signed
			r.Out.Header = r.In.Header.Clone()
		},
		// What breaks behind breaks before, too.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// SetFault has fn decide about requests from now on; it is called from several goroutines, but one at a time. nil: none
// fails.
func (f *Front) SetFault(fn func(r Request) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fn
}

// Requests returns those so far, in the order in which they came.
func (f *Front) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Request, len(f.requests))
	for i, r := range f.requests {
		all[i] = *r
	}
	return all
}

// Count returns how many requests there were so far.
func (f *Front) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// Forget empties the record.
func (f *Front) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	r, fault := f.begin(in)
	defer f.end(r)
	if fault.Delay > 0 {
		time.Sleep(fault.Delay)
	}
	for k, v := range fault.Header {
		w.Header().Set(k, v)
	}
	switch {
	case fault.Hang:
		_, _ = io.Copy(io.Discard, in.Body)
		select {
		case <-in.Context().Done():
		case <-f.stop:
		}
		panic(http.ErrAbortHandler)
	case fault.Drop:
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		f.note(r, func() { r.Status = fault.Status })
		f.end(r)
		_, _ = io.Copy(io.Discard, in.Body)
		writeError(w, in, fault.Status, fault.Code, "made to fail")
		return
	}
	kept := &keptBody{inner: in.Body, keep: (r.Op == "PutObject" || r.Op == "UploadPart") && strings.HasSuffix(r.Key, ".manifest.bin")}
	in.Body = kept
	if r.Op == "GetObject" || fault.CutBody > 0 {
		answer := &cutAnswer{ResponseWriter: w, status: http.StatusOK, cut: fault.CutBody}
		f.upstream.ServeHTTP(answer, in)
		f.note(r, func() { r.Applied, r.Status = answer.status, answer.status })
		if fault.CutBody > 0 {
			_ = http.NewResponseController(w).Flush()
		}
		if fault.CutBody > 0 || fault.LoseAnswer {
			panic(http.ErrAbortHandler)
		}
		return
	}
	// What the client learns, the record has first.
	answer := httptest.NewRecorder()
	f.upstream.ServeHTTP(answer, in)
	f.note(r, func() {
		r.Applied, r.Bytes, r.Body = answer.Code, kept.n, kept.whole()
		if fault.LoseAnswer || in.Context().Err() != nil { // a client that left gets nothing
			return
		}
		if r.Status = answer.Code; r.Op == "ListObjectsV2" {
			r.Listed = keysOf(answer.Body.Bytes())
		}
	})
	if fault.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	f.end(r)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func keysOf(listing []byte) (keys []string) {
	var in struct {
		Contents []struct{ Key string }
	}
	if xml.Unmarshal(listing, &in) == nil {
		for _, c := range in.Contents {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func (f *Front) begin(in *http.Request) (*Request, Fault) {
	_, key, _ := strings.Cut(strings.TrimPrefix(in.URL.Path, "/"), "/")
	r := &Request{
		Op: operation(in, key), Key: key, IfNoneMatch: in.Header.Get("If-None-Match"), Range: in.Header.Get("Range"),
		Header: in.Header.Clone(), Query: in.URL.Query(), At: time.Now(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moments++
	r.Begun = f.moments
	f.requests = append(f.requests, r)
	if f.fault == nil {
		return r, Fault{}
	}
	return r, f.fault(*r)
}

func (f *Front) note(r *Request, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *Front) end(r *Request) {
	f.note(r, func() {
		if r.Ended == 0 {
			f.moments++
			r.Ended = f.moments
		}
	})
}

func operation(r *http.Request, key string) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && key == "":
		return "ListObjectsV2"
	case r.Method == http.MethodHead && key == "":
		return "HeadBucket"
	case r.Method == http.MethodGet:
		return "GetObject"
	case r.Method == http.MethodHead:
		return "HeadObject"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == http.MethodPut && q.Has("uploadId"):
		return "UploadPart"
	case r.Method == http.MethodPut:
		return "PutObject"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	}
	return fmt.Sprintf("%s %s", r.Method, r.URL.RawQuery)
}

// keptBody counts a body, and keeps a small one.
type keptBody struct {
	inner io.ReadCloser
	keep  bool
	n     int64
	buf   bytes.Buffer
}

func (k *keptBody) Read(p []byte) (int, error) {
	n, err := k.inner.Read(p)
	k.n += int64(n)
	if k.keep && k.n <= maxKeptBody {
		k.buf.Write(p[:n])
	}
	return n, err
}

func (k *keptBody) Close() error { return k.inner.Close() }

func (k *keptBody) whole() []byte {
	if !k.keep || k.n > maxKeptBody {
		return nil
	}
	return k.buf.Bytes()
}

// cutAnswer lets only the beginning of an answer's body through.
type cutAnswer struct {
	http.ResponseWriter
	status int
	cut    int // bytes; 0: all
	sent   int
}

func (a *cutAnswer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *cutAnswer) Write(p []byte) (int, error) {
	if a.cut == 0 {
		return a.ResponseWriter.Write(p)
	}
	n, err := a.ResponseWriter.Write(p[:min(len(p), a.cut-a.sent)])
	a.sent += n
	if err != nil {
		return n, err
	}
	return len(p), nil
}
