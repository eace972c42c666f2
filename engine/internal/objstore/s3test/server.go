package s3test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/objstore"
)

// Credentials that every server of this package takes.
const (
	AccessKey = "s3test-access-key"
	SecretKey = "s3test-secret-that-must-not-leak"
	Bucket    = "bucket"
)

// patience bounds how long a server may take to start.
const patience = 30 * time.Second

// Config returns what reaches a server of this package.
func Config(endpoint string) objstore.S3Config {
	return objstore.S3Config{
		Endpoint: endpoint, Region: "us-east-1", AccessKeyID: AccessKey, SecretAccessKey: SecretKey, URLStyle: "path",
	}
}

// Server is a running S3 server with one bucket, [Bucket].
type Server struct {
	// Endpoint is its URL.
	Endpoint string
	// Dir is where it keeps objects: Dir/bucket/key.
	Dir string
}

// Start starts versitygw for a test, with further flags. It is stopped with the test.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	bin := tool(t, "versitygw")
	dir := t.TempDir()
	s := &Server{Dir: filepath.Join(dir, "objects")}
	for _, d := range []string{filepath.Join(s.Dir, Bucket), filepath.Join(dir, "meta")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	s.Endpoint = "http://" + address
	args := append([]string{"--quiet", "--keep-alive", "--port", address}, flags...)
	cmd := exec.Command(bin, append(args, "posix", "--sidecar", filepath.Join(dir, "meta"), s.Dir)...)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	run(t, cmd, s.Endpoint)
	return s
}

// Config returns what reaches the server.
func (s *Server) Config() objstore.S3Config { return Config(s.Endpoint) }

// tool returns the path of a tool in build/bin.
func tool(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "build", "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	text := name + " is not in build/bin: ./dev test-go puts it there (scripts/fetch_tools.sh)"
	if os.Getenv("MERUTABLE_TEST_SERVERS") == "required" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// output keeps the end of what a process says.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > 1<<20 {
		o.buf.Reset()
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// run starts a server, waits until it answers HTTP at the URL, and stops it with the test.
func run(t testing.TB, cmd *exec.Cmd, url string) {
	t.Helper()
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), out.String())
		}
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if answers(url) {
			return
		}
		select {
		case <-exited:
			t.Fatalf("%s ended: %s", cmd.Path, out.String())
		default:
		}
		if time.Since(began) > patience {
			t.Fatalf("%s does not answer at %s: %s", cmd.Path, url, out.String())
		}
	}
}

func answers(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return true
}

// URL returns the URL of a prefix in the bucket.
func URL(prefix string) string {
	return strings.TrimSuffix(fmt.Sprintf("s3://%s/%s", Bucket, prefix), "/")
}
