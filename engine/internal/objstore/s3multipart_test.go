package objstore_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

func inParts(tuning *objstore.S3Tuning) { tuning.PartBytes, tuning.PartParallelism = 5<<20, 2 }

// TestS3Parts stores objects in parts on a real server, one of which fails at first.
func TestS3Parts(t *testing.T) {
	quick(t, inParts)
	front := s3test.NewFront(t, s3test.Forward(s3test.Start(t).Endpoint))
	s := openS3(t, "db", front.Config())
	failed := 0
	front.SetFault(func(r s3test.Request) s3test.Fault {
		if r.Op == "UploadPart" && r.Query.Get("partNumber") == "2" && failed < 2 {
			failed++
			return s3test.Fault{Status: 500 + 3*(failed-1), Code: "InternalError"}
		}
		return s3test.Fault{}
	})
	data := random(11 << 20)
	mustPut(t, s, "big", data)
	wantBytes(t, s, "big", data)
	sent := map[string]int{}
	for _, r := range front.Requests() {
		if r.Op == "UploadPart" {
			sent[r.Query.Get("partNumber")]++
		}
	}
	if sent["1"] != 1 || sent["2"] != 3 || sent["3"] != 1 {
		t.Errorf("parts were sent so often: %v", sent)
	}
	// The condition holds for the last request.
	_, err := s.PutIfAbsent(t.Context(), "big", objstore.Bytes(random(6<<20)))
	wantFailure(t, err, base.CodeAlreadyExists, "big")
	wantBytes(t, s, "big", data)
	if _, err := s.Put(t.Context(), "big", objstore.Bytes(random(6<<20))); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, s, "big", random(6<<20))
}

// failingAt is a body whose reader fails from some offset on.
type failingAt struct {
	from int64
	err  error
}

func (f failingAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, f.err
	}
	return len(p), nil
}

// TestS3PartsDropped fails uploads in parts at each step: no object appears, and the parts are dropped.
func TestS3PartsDropped(t *testing.T) {
	quick(t, inParts)
	for _, op := range []string{"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "reader"} {
		t.Run(op, func(t *testing.T) {
			stub := s3test.NewStub()
			front := s3test.NewFront(t, stub)
			s := openS3(t, "", front.Config())
			front.SetFault(func(r s3test.Request) s3test.Fault {
				if r.Op == op && (op != "UploadPart" || r.Query.Get("partNumber") == "3") {
					return s3test.Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
				}
				return s3test.Fault{}
			})
			body := objstore.Bytes(random(11 << 20))
			code := base.CodeObjectStore
			if op == "reader" {
				body.Reader, code = failingAt{6 << 20, errors.New("disk")}, base.CodeIO
			}
			_, err := s.PutIfAbsent(t.Context(), "big", body)
			wantFailure(t, err, code, "big")
			if _, there := stub.Object("big"); there || stub.Uploads() != 0 {
				t.Errorf("object there: %v, uploads left: %d", there, stub.Uploads())
			}
		})
	}
}

// TestS3Corrupted has bytes change between the moment when they are measured and the moment when they are sent.
func TestS3Corrupted(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.Attempts = 2 })
	server := s3test.Start(t)
	s := openS3(t, "", server.Config())
	r := &changing{Reader: strings.NewReader(strings.Repeat("a", 1000))}
	_, err := s.Put(t.Context(), "k", objstore.Body{Reader: r, Size: 1000})
	wantFailure(t, err, base.CodeObjectStore, "k", "status 400", "request id")
	_, err = s.Head(t.Context(), "k")
	wantFailure(t, err, base.CodeNotFound)
}

// changing gives other bytes the second time.
type changing struct {
	*strings.Reader
	reads int
}

func (c *changing) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.Reader.ReadAt(p, offset)
	if c.reads++; c.reads > 1 && n > 0 {
		p[0] = 'b'
	}
	return n, err
}
