package objstore_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// everyCall makes each call once and returns the errors by name.
func everyCall(s objstore.Store) map[string]error {
	ctx := context.Background()
	_, put := s.Put(ctx, "some/key", objstore.Bytes([]byte("x")))
	_, absent := s.PutIfAbsent(ctx, "some/key", objstore.Bytes([]byte("x")))
	_, read := s.ReadAt(ctx, "some/key", make([]byte, 1), 0)
	_, head := s.Head(ctx, "some/key")
	_, list := s.List(ctx, "some/", "", 1)
	return map[string]error{"put": put, "put if absent": absent, "read": read, "head": head, "list": list, "delete": s.Delete(ctx, "some/key")}
}

// TestS3Refused has a real server refuse for the usual reasons.
func TestS3Refused(t *testing.T) {
	quick(t, nil)
	server := s3test.Start(t)
	for _, c := range []struct {
		name   string
		url    string
		change func(*objstore.S3Config)
		want   string
	}{
		{"key", s3test.URL("db"), func(c *objstore.S3Config) { c.AccessKeyID = "nobody" }, "credentials are refused"},
		{"secret", s3test.URL("db"), func(c *objstore.S3Config) { c.SecretAccessKey = "wrong-secret" }, "credentials are refused"},
		{"bucket", "s3://no-such-bucket/db", func(*objstore.S3Config) {}, "there is no bucket no-such-bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := server.Config()
			c.change(&config)
			s, err := objstore.Open(c.url, config)
			if err != nil {
				t.Fatal(err)
			}
			for what, err := range everyCall(s) {
				if what == "delete" && c.name == "bucket" && err == nil {
					continue // there is nothing to delete
				}
				want := []string{c.url, what, "some/", "request id"}
				if what == "head" && c.name == "secret" {
					want = append(want, "status 403") // the answer does not say more
				} else {
					want = append(want, c.want)
				}
				wantFailure(t, err, base.CodeObjectStore, want...)
				if strings.Contains(err.Error(), "wrong-secret") {
					t.Errorf("%v holds a secret", err)
				}
			}
			if st := objstore.StatsOf(s); st.Retries != 0 {
				t.Errorf("%d retries of what will not change", st.Retries)
			}
		})
	}
}

// TestS3Answers maps answers of stores to codes and words.
func TestS3Answers(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.Attempts = 3 })
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "db", front.Config())
	for _, c := range []struct {
		status   int
		code     string
		want     base.Code
		says     string
		requests int
	}{
		{507, "InsufficientStorage", base.CodeNoSpace, "the destination is full", 1},
		{403, "QuotaExceeded", base.CodeNoSpace, "the destination is full", 1},
		{507, "XMinioStorageFull", base.CodeNoSpace, "the destination is full", 1},
		{400, "EntityTooLarge", base.CodeObjectStore, "too large", 1},
		{403, "AccessDenied", base.CodeObjectStore, "access denied to bucket " + s3test.Bucket, 1},
		{403, "ExpiredToken", base.CodeObjectStore, "credentials are refused", 1},
		{403, "RequestTimeTooSkewed", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{404, "NoSuchKey", base.CodeObjectStore, "no such object", 1}, // which was not asked
		{404, "NoSuchBucket", base.CodeObjectStore, "there is no bucket", 1},
		{409, "ConditionalRequestConflict", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{400, "RequestTimeout", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{503, "SlowDown", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{500, "", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{520, "", base.CodeObjectStore, "gave up after 3 attempts", 3},
		{501, "NotImplemented", base.CodeObjectStore, "status 501", 2}, // once more without the checksum
		{418, "Teapot", base.CodeObjectStore, "status 418 Teapot", 1},
	} {
		front.SetFault(func(s3test.Request) s3test.Fault { return s3test.Fault{Status: c.status, Code: c.code} })
		before := front.Count()
		_, err := s.PutIfAbsent(t.Context(), "a/key", objstore.Bytes([]byte("x")))
		wantFailure(t, err, c.want, "s3://"+s3test.Bucket+"/db", "put if absent a/key", c.says, fmt.Sprint("status ", c.status), fmt.Sprint("request id stub-", c.status))
		if open := c.status >= 500 && c.status != 501 && c.status != 507; objstore.MayHaveHappened(err) != open {
			t.Errorf("%v may have happened: want %v", err, open)
		}
		if n := front.Count() - before; n != c.requests {
			t.Errorf("%d %s: %d requests, want %d", c.status, c.code, n, c.requests)
		}
	}
}

// TestS3Full has a store without room, and room again.
func TestS3Full(t *testing.T) {
	quick(t, nil)
	stub := s3test.NewStub()
	stub.Capacity = 1000
	s := openS3(t, "db", s3test.NewFront(t, stub).Config())
	mustPut(t, s, "a", random(600))
	_, err := s.PutIfAbsent(t.Context(), "b", objstore.Bytes(random(600)))
	wantFailure(t, err, base.CodeNoSpace, "b", "full")
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "b", random(600))
}

// TestS3Elsewhere has a bucket in another region.
func TestS3Elsewhere(t *testing.T) {
	quick(t, nil)
	stub := s3test.NewStub()
	stub.Region = "eu-central-1"
	front := s3test.NewFront(t, stub)
	_, err := openS3(t, "db", front.Config()).Put(t.Context(), "k", objstore.Bytes(nil))
	wantFailure(t, err, base.CodeObjectStore, "not in region us-east-1 but in eu-central-1")
	c := front.Config()
	c.Region = "eu-central-1"
	mustPut(t, openS3(t, "db", c), "k", nil)
}

// TestS3TLS trusts who it was told to trust, and nobody else.
func TestS3TLS(t *testing.T) {
	quick(t, nil)
	front := s3test.NewTLSFront(t, s3test.NewStub())
	s := openS3(t, "db", front.Config())
	_, err := s.Put(t.Context(), "k", objstore.Bytes(nil))
	wantFailure(t, err, base.CodeObjectStore, "certificate")
	if st := objstore.StatsOf(s); st.Requests != 1 {
		t.Errorf("%d requests", st.Requests)
	}
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate()})
	if err := os.WriteFile(bundle, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	c := front.Config()
	c.Endpoint = strings.TrimPrefix(c.Endpoint, "https://") // TLS is the default
	s = openS3(t, "db", c)
	mustPut(t, s, "k", random(10))
	wantBytes(t, s, "k", random(10))
	t.Setenv("AWS_CA_BUNDLE", bundle+".missing")
	_, err = objstore.Open(s3test.URL(""), c)
	wantFailure(t, err, base.CodeInvalidArgument, "AWS_CA_BUNDLE", bundle+".missing")
}

// TestS3Chain takes credentials from where the AWS tools do.
func TestS3Chain(t *testing.T) {
	quick(t, nil)
	front := s3test.NewFront(t, s3test.NewStub())
	home := t.TempDir()
	for k, v := range map[string]string{
		"HOME": home, "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": filepath.Join(home, "config"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "credentials"),
	} {
		t.Setenv(k, v)
	}
	c := objstore.S3Config{Endpoint: front.Endpoint}
	began := time.Now()
	_, err := openS3(t, "db", c).Put(t.Context(), "k", objstore.Bytes(nil))
	wantFailure(t, err, base.CodeObjectStore, "no credentials", "s3://"+s3test.Bucket+"/db", "put k")
	if took := time.Since(began); took > 5*time.Second || front.Count() != 0 {
		t.Errorf("%d requests, after %v", front.Count(), took)
	}
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = some-token\nregion = eu-west-3\n",
		s3test.AccessKey, s3test.SecretKey)
	if err := os.WriteFile(filepath.Join(home, "credentials"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mustPut(t, openS3(t, "db", c), "k", nil)
	r := front.Requests()[0]
	if r.Header.Get("X-Amz-Security-Token") != "some-token" || !strings.Contains(r.Header.Get("Authorization"), "/eu-west-3/s3/") {
		t.Errorf("%v", r.Header)
	}
}

// TestS3Config refuses what makes no sense, without repeating secrets.
func TestS3Config(t *testing.T) {
	good := s3test.Config("http://127.0.0.1:1")
	for _, c := range []struct {
		url    string
		change func(*objstore.S3Config)
		says   string
	}{
		{"s3://", nil, "no bucket"},
		{"s3:///x", nil, "no bucket"},
		{"s3://bu?ck/x", nil, "no bucket"},
		{"s3://bucket/a//b", nil, "between slashes"},
		{"s3://bucket/../b", nil, "dot"},
		{"s3://b/x", func(c *objstore.S3Config) { c.SecretAccessKey = "" }, "both or neither"},
		{"s3://b/x", func(c *objstore.S3Config) { c.AccessKeyID, c.SecretAccessKey, c.SessionToken = "", "", "t0ken" }, "s3_session_token"},
		{"s3://b/x", func(c *objstore.S3Config) { c.URLStyle = "virtual" }, "s3_url_style"},
		{"s3://b/x", func(c *objstore.S3Config) { c.UseSSL = "yes" }, "s3_use_ssl"},
		{"s3://b/x", func(c *objstore.S3Config) { c.UseSSL = "true" }, "contradicts"},
		{"s3://b/x", func(c *objstore.S3Config) { c.Endpoint = "http://u:" + s3test.SecretKey + "@host" }, "s3_endpoint"},
		{"s3://b/x", func(c *objstore.S3Config) { c.Endpoint = "ftp://host" }, "s3_endpoint"},
	} {
		config := good
		if c.change != nil {
			c.change(&config)
		}
		_, err := objstore.Open(c.url, config)
		wantFailure(t, err, base.CodeInvalidArgument, c.says)
		if strings.Contains(err.Error(), "t0ken") {
			t.Error(err)
		}
	}
	good.SessionToken = "t0ken"
	text := fmt.Sprintf("%v %+v %#v %s", good, good, good, openS3(t, "db", good))
	for _, secret := range []string{s3test.AccessKey, s3test.SecretKey, "t0ken"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds a secret", text)
		}
	}
}

// hosts is a transport that notes where requests would go.
type hosts struct {
	urls []string
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.urls = append(h.urls, r.URL.Scheme+"://"+r.URL.Host+r.URL.Path)
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// TestS3Styles looks where requests go.
func TestS3Styles(t *testing.T) {
	for _, c := range []struct {
		endpoint, style, ssl, want string
	}{
		{"", "", "", "https://bucket.s3.eu-west-1.amazonaws.com/db/k"},
		{"", "path", "", "https://s3.eu-west-1.amazonaws.com/bucket/db/k"},
		{"", "", "false", "http://bucket.s3.eu-west-1.amazonaws.com/db/k"},
		{"store.example", "", "", "https://store.example/bucket/db/k"},
		{"store.example:81", "vhost", "false", "http://bucket.store.example:81/db/k"},
		{"http://store.example/base/", "", "", "http://store.example/base/bucket/db/k"},
		{"https://store.example", "vhost", "true", "https://bucket.store.example/db/k"},
	} {
		h := &hosts{}
		quick(t, func(tuning *objstore.S3Tuning) { tuning.Transport = h })
		config := s3test.Config(c.endpoint)
		config.Region, config.URLStyle, config.UseSSL = "eu-west-1", c.style, c.ssl
		_, err := openS3(t, "db", config).ReadAt(t.Context(), "k", make([]byte, 1), 0)
		wantFailure(t, err, base.CodeNotFound)
		if len(h.urls) != 1 || h.urls[0] != c.want {
			t.Errorf("%+v goes to %v", c, h.urls)
		}
	}
}

// TestS3Hosted has the bucket in the host's name, on a real server.
func TestS3Hosted(t *testing.T) {
	server := s3test.Start(t, "--virtual-domain", "s3.test")
	address := strings.TrimPrefix(server.Endpoint, "http://")
	asked := ""
	quick(t, func(tuning *objstore.S3Tuning) {
		tuning.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, host string) (net.Conn, error) {
			asked = host
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}}
	})
	c := s3test.Config("http://s3.test")
	c.URLStyle = "vhost"
	s := openS3(t, "a b", c)
	mustPut(t, s, "c d/e", random(1000))
	wantBytes(t, s, "c d/e", random(1000))
	if page, err := s.List(t.Context(), "c", "", 10); err != nil || len(page) != 1 {
		t.Error(page, err)
	}
	if err := s.Delete(t.Context(), "c d/e"); err != nil {
		t.Error(err)
	}
	if want := s3test.Bucket + ".s3.test:80"; asked != want {
		t.Errorf("%s was asked, want %s", asked, want)
	}
}

// TestS3NoRanges has a store that sends everything, whatever was asked for.
func TestS3NoRanges(t *testing.T) {
	quick(t, nil)
	whole := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("0123456789")) })
	s := openS3(t, "", s3test.NewFront(t, whole).Config())
	p := make([]byte, 4)
	if n, err := s.ReadAt(t.Context(), "k", p, 0); n != 4 || err != nil || string(p) != "0123" {
		t.Errorf("%d bytes, %v: %s", n, err, p)
	}
	_, err := s.ReadAt(t.Context(), "k", p, 2)
	wantFailure(t, err, base.CodeObjectStore, "range", "from 2 on")
}

// TestS3NoInstance has nobody, or somebody who does not answer, where instances find their credentials.
func TestS3NoInstance(t *testing.T) {
	quick(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	home := t.TempDir()
	for k, v := range map[string]string{
		"HOME": home, "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "",
		"AWS_CONFIG_FILE": filepath.Join(home, "config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "credentials"),
	} {
		t.Setenv(k, v)
	}
	for _, at := range []string{"http://127.0.0.1:1", "http://" + silent.Addr().String()} {
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", at)
		began := time.Now()
		_, err := openS3(t, "db", objstore.S3Config{Endpoint: "http://127.0.0.1:1"}).Head(t.Context(), "k")
		wantFailure(t, err, base.CodeObjectStore, "no credentials")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		} else {
			t.Logf("%s: %v", at, took)
		}
	}
}

// TestS3ClockJumps has clocks that differ by hours: the store's is the one that counts.
func TestS3ClockJumps(t *testing.T) {
	quick(t, nil)
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "db", front.Config())
	for _, jump := range []time.Duration{0, 3 * time.Hour, -48 * time.Hour, 0} {
		refused := 0
		front.SetFault(func(r s3test.Request) s3test.Fault {
			now := time.Now().Add(jump).UTC()
			date := map[string]string{"Date": now.Format(http.TimeFormat)}
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err == nil && now.Sub(signed).Abs() < 15*time.Minute {
				return s3test.Fault{Header: date}
			}
			refused++
			return s3test.Fault{Status: 403, Code: "RequestTimeTooSkewed", Header: date}
		})
		key := fmt.Sprint("k", jump)
		if _, err := s.Head(t.Context(), key); base.CodeOf(err) != base.CodeNotFound { // the first to be refused, without a word
			t.Fatalf("%v: %v", jump, err)
		}
		if _, err := s.Put(t.Context(), key, objstore.Bytes(random(10))); err != nil {
			t.Fatalf("%v: %v", jump, err)
		}
		wantBytes(t, s, key, random(10))
		if err := s.Delete(t.Context(), key); err != nil || refused > 1 {
			t.Errorf("%v: %d requests were refused, %v", jump, refused, err)
		}
	}
}

// TestS3InDoubt says what is known of a write that failed.
func TestS3InDoubt(t *testing.T) {
	quick(t, func(tuning *objstore.S3Tuning) { tuning.Attempts = 3 })
	front := s3test.NewFront(t, s3test.NewStub())
	s := openS3(t, "db", front.Config())
	slow, full, lost := s3test.Fault{Status: 429, Code: "SlowDown"}, s3test.Fault{Status: 507}, s3test.Fault{LoseAnswer: true}
	denied := s3test.Fault{Status: 403, Code: "AccessDenied"}
	for i, c := range []struct {
		faults []s3test.Fault
		open   bool
	}{
		{[]s3test.Fault{denied}, false},
		{[]s3test.Fault{slow, slow, slow}, false},
		{[]s3test.Fault{slow, full}, false},
		{[]s3test.Fault{lost, denied}, true},
		{[]s3test.Fault{lost, full}, true},
		{[]s3test.Fault{{Drop: true}, slow, slow}, true},
	} {
		n := 0
		front.SetFault(func(s3test.Request) s3test.Fault {
			n++
			return c.faults[n-1]
		})
		_, err := s.PutIfAbsent(t.Context(), fmt.Sprint("k", i), objstore.Bytes(nil))
		if err == nil || objstore.MayHaveHappened(err) != c.open || n != len(c.faults) {
			t.Errorf("case %d, after %d requests: %v may have happened: want %v", i, n, err, c.open)
		}
	}
	// Nobody listens there.
	_, err := openS3(t, "db", s3test.Config("http://127.0.0.1:1")).PutIfAbsent(t.Context(), "k", objstore.Bytes(nil))
	wantFailure(t, err, base.CodeObjectStore, "gave up after 3 attempts", "refused")
	if objstore.MayHaveHappened(err) {
		t.Errorf("%v: it was not sent", err)
	}
}
