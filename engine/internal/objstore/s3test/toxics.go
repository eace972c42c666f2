package s3test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/objstore"
)

// Proxy is a running toxiproxy before a server.
type Proxy struct {
	// Endpoint is the URL at which it passes on to the server.
	Endpoint string
	api      string
}

// StartProxy starts toxiproxy before an endpoint for a test. It is stopped with the test.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	bin := tool(t, "toxiproxy")
	host, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{api: "http://" + net.JoinHostPort(host, port)}
	cmd := exec.Command(bin, "-host", host, "-port", port)
	cmd.Env = append(os.Environ(), "LOG_LEVEL=warn")
	run(t, cmd, p.api+"/version")
	listen := freeAddress(t)
	p.Endpoint = "http://" + listen
	p.call(t, http.MethodPost, "/proxies", map[string]any{
		"name": "s3", "listen": listen, "upstream": strings.TrimPrefix(upstream, "http://"), "enabled": true,
	})
	return p
}

// Config returns what reaches the server through the proxy.
func (p *Proxy) Config() objstore.S3Config { return Config(p.Endpoint) }

// SetUp makes the proxy take connections, or refuse them and end those that there are.
func (p *Proxy) SetUp(t testing.TB, up bool) {
	t.Helper()
	p.call(t, http.MethodPost, "/proxies/s3", map[string]any{"enabled": up})
}

// AddToxic puts a fault on the connections, those that are open included: "latency" {latency, jitter: ms}, "timeout"
// {timeout: ms, 0 keeps connections open for ever and passes nothing}, "reset_peer" {timeout: ms}, "bandwidth" {rate: KB/s},
// "limit_data" {bytes}. stream is "upstream" or "downstream"; toxicity the share of connections.
func (p *Proxy) AddToxic(t testing.TB, kind, stream string, toxicity float64, attributes map[string]any) {
	t.Helper()
	p.call(t, http.MethodPost, "/proxies/s3/toxics", map[string]any{
		"name": kind + "-" + stream, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes,
	})
}

// RemoveToxic takes a fault away.
func (p *Proxy) RemoveToxic(t testing.TB, kind, stream string) {
	t.Helper()
	p.call(t, http.MethodDelete, "/proxies/s3/toxics/"+kind+"-"+stream, nil)
}

func (p *Proxy) call(t testing.TB, method, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(method, p.api+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		t.Fatalf("toxiproxy: %s %s: %s: %s", method, path, answer.Status, said)
	}
}
