package mirrortest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// TestPrimaryOnS3 has a database whose only place is a real server: commits whose answers are lost, requests that fail, and
// a second writer, which fences the first.
func TestPrimaryOnS3(t *testing.T) {
	impatient(t)
	front := s3test.NewFront(t, s3test.Forward(s3test.Start(t).Endpoint))
	// A compaction is a commit, too: it would be chance who fences whom.
	o := engine.Options{S3: s3test.Config(front.Endpoint), NoAutoCompaction: true}
	first, err := open(s3test.URL("primary"), o)
	must(t, err)
	defer first.Free()
	n := 0
	front.SetFault(func(r s3test.Request) s3test.Fault {
		if n++; n%4 == 0 {
			return s3test.Fault{Status: 503, Code: "SlowDown"}
		}
		return s3test.Fault{LoseAnswer: r.Op == "PutObject" && n%4 == 2}
	})
	var want []string
	put := func(db *engine.DB, id int64) error {
		_, err := db.Put([]engine.Value{engine.Int(id), engine.Int(-id), engine.String("row")})
		return err
	}
	for id := range int64(25) {
		must(t, put(first, id))
		want = append(want, fmt.Sprintf("%v|%v|%v|", engine.Int(id), engine.Int(-id), engine.String("row")))
	}
	if got := rowsOf(t, first); !slices.Equal(got, want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	front.SetFault(nil)

	second, err := open(s3test.URL("primary"), elsewhere(o, front))
	must(t, err)
	defer second.Free()
	if got := rowsOf(t, second); !slices.Equal(got, want) {
		t.Fatalf("the second writer sees %d rows, want %d", len(got), len(want))
	}
	must(t, put(second, 25))
	want = append(want, fmt.Sprintf("%v|%v|%v|", engine.Int(25), engine.Int(-25), engine.String("row")))
	if err := put(first, 100); engine.CodeOf(err) != engine.CodeConflict {
		t.Fatalf("the first writer, after the second: %v", err)
	}
	if err := put(first, 101); engine.CodeOf(err) != engine.CodeConflict {
		t.Fatalf("the first writer goes on: %v", err)
	}
	must(t, second.Close())
	first.Free() // with which a reader here would share what it has seen
	reader, err := engine.Open(s3test.URL("primary"), engine.Options{ReadOnly: true, S3: o.S3})
	must(t, err)
	defer reader.Free()
	if got := rowsOf(t, reader); !slices.Equal(got, want) {
		t.Fatalf("a reader sees %d rows, want %d", len(got), len(want))
	}
}

// elsewhere reaches the same server as another host does: one process has one engine for a place.
func elsewhere(o engine.Options, front *s3test.Front) engine.Options {
	o.S3.Endpoint = strings.Replace(front.Endpoint, "127.0.0.1", "localhost", 1)
	return o
}
