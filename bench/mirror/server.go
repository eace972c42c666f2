package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/merutable/merutable/engine"
)

const (
	bucket    = "bench"
	accessKey = "bench"
	secretKey = "bench-secret"
)

func config(endpoint string) engine.S3Config {
	return engine.S3Config{Endpoint: endpoint, Region: "us-east-1", AccessKeyID: accessKey, SecretAccessKey: secretKey}
}

// server is a versitygw that can be stopped and started again.
type server struct {
	dir, address string
	cmd          *exec.Cmd
}

func startServer(dir string) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	s := &server{dir: dir, address: l.Addr().String()}
	check(l.Close())
	for _, d := range []string{filepath.Join(dir, "objects", bucket), filepath.Join(dir, "meta")} {
		check(os.MkdirAll(d, 0o755))
	}
	s.start()
	return s
}

func (s *server) endpoint() string { return "http://" + s.address }

func (s *server) start() {
	bin := filepath.Join("build", "bin", "versitygw")
	if _, err := os.Stat(bin); err != nil {
		check(errors.New(bin + " is missing: run from the repository's root, after sh scripts/fetch_tools.sh"))
	}
	s.cmd = exec.Command(bin, "--quiet", "--keep-alive", "--port", s.address,
		"posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "objects"))
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	check(s.cmd.Start())
	for range 1000 {
		if c, err := net.Dial("tcp", s.address); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	check(errors.New("versitygw does not start"))
}

func (s *server) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// files returns the paths of the objects below a prefix.
func (s *server) files(prefix string) (paths []string) {
	check(filepath.WalkDir(filepath.Join(s.dir, "objects", bucket, prefix), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// upload puts files below a prefix as anybody would with the SDK, several at a time.
func (s *server) upload(paths []string, prefix string) (took time.Duration, bytes int64) {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(s.endpoint()), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	began := time.Now()
	var sent atomic.Int64
	queue := make(chan string)
	var wg sync.WaitGroup
	for range *parallel {
		wg.Go(func() {
			for path := range queue {
				sent.Add(putFile(client, path, prefix+"/"+filepath.Base(path)))
			}
		})
	}
	for _, path := range paths {
		queue <- path
	}
	close(queue)
	wg.Wait()
	return time.Since(began), sent.Load()
}

func putFile(client *s3.Client, path, key string) int64 {
	f, err := os.Open(path)
	check(err)
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	check(err)
	_, err = client.PutObject(context.Background(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: f})
	check(err)
	return info.Size()
}

// counter passes requests on to a server and counts them.
type counter struct {
	endpoint string
	n        atomic.Int64
}

func startCounter(endpoint string) *counter {
	to, err := url.Parse(endpoint)
	check(err)
	c := &counter{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host // the host is signed
	}}
	c.endpoint = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.n.Add(1)
		if *verbose {
			fmt.Println(time.Now().Format(time.TimeOnly), r.Method, strings.TrimPrefix(r.URL.String(), "/"+bucket))
		}
		proxy.ServeHTTP(w, r)
	})).URL
	return c
}
