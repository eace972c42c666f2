package objstore_test

import (
	"fmt"
	"testing"

	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/objstoretest"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

func openS3(t testing.TB, prefix string, c objstore.S3Config) objstore.Store {
	t.Helper()
	s, err := objstore.Open(s3test.URL(prefix), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestS3Contract runs the tests of all stores on a real server, each below a prefix of its own.
func TestS3Contract(t *testing.T) {
	server := s3test.Start(t)
	n := 0
	objstoretest.Run(t, func(t *testing.T) func() objstore.Store {
		n++
		prefix := fmt.Sprintf("some where/%d", n)
		return func() objstore.Store { return openS3(t, prefix, server.Config()) }
	})
}
