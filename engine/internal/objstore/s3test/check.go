package s3test

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/manifest"
)

// Check proves of a record that a mirror below a prefix kept its rules, or says which request broke one:
//
//   - A manifest was sent only after all data files and deletion vectors that it names were confirmed.
//   - Manifests of a table were confirmed in ascending order, each sent with If-None-Match.
//   - Nothing of the log, no lock, no options and no temporary file was sent.
//   - Nothing that was confirmed was sent again, except TABLES and low_water.txt, which are replaced; a manifest may be
//     sent again by a process that asks whether it is its own.
//
// The record may begin with objects that are there: name them in present, without the prefix. There must have been one
// mirror at a time.
func Check(requests []Request, prefix string, present ...string) error {
	c := checker{prefix: strings.TrimSuffix(prefix, "/") + "/", confirmed: map[string]int{}, newest: map[string]int64{}, parts: map[string]map[int][]byte{}}
	if prefix == "" {
		c.prefix = ""
	}
	for _, key := range present {
		c.confirmed[key] = -1
		c.confirmManifest(key)
	}
	// Two moments a request: when it came what it needs must be confirmed, when its answer went it is.
	moments := make(map[int]*Request, 2*len(requests))
	last := 0
	for i := range requests {
		r := &requests[i]
		moments[r.Begun], moments[r.Ended] = r, r
		last = max(last, r.Begun, r.Ended)
	}
	for now := 1; now <= last; now++ {
		r := moments[now]
		if r == nil {
			continue
		}
		if r.Op == "ListObjectsV2" {
			if now == r.Ended {
				c.listed(r)
			}
			continue
		}
		key, ours := strings.CutPrefix(r.Key, c.prefix)
		if !ours {
			continue
		}
		if now == r.Begun {
			if err := c.begun(r, key); err != nil {
				return fmt.Errorf("request %d, %s of %s: %w", now, r.Op, r.Key, err)
			}
		} else {
			c.ended(r, key)
		}
	}
	return nil
}

type checker struct {
	prefix    string
	confirmed map[string]int   // when
	newest    map[string]int64 // manifest of a table, by its directory
	parts     map[string]map[int][]byte
}

func replaceable(key string) bool {
	name := path.Base(key)
	return name == "TABLES" || name == "low_water.txt"
}

// manifestOf returns the directory of the table and the version where a key is a manifest's.
func manifestOf(key string) (table string, version int64, ok bool) {
	dir, name := path.Split(key)
	if path.Base(dir) != "metadata" {
		return "", 0, false
	}
	version, ok = manifest.ParseFileName(name)
	return strings.TrimSuffix(dir, "metadata/"), version, ok
}

func (c *checker) begun(r *Request, key string) error {
	switch r.Op {
	case "PutObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload":
	default:
		return nil
	}
	for _, part := range strings.Split(key, "/") {
		switch part {
		case "wal", "tmp", "LOCK", "OPTIONS":
			return fmt.Errorf("%s is no business of a mirror", part)
		}
	}
	table, version, isManifest := manifestOf(key)
	if when, is := c.confirmed[key]; is && !replaceable(key) && !isManifest {
		return fmt.Errorf("it was confirmed already, at %d", when)
	}
	if !isManifest {
		return nil
	}
	body := r.Body
	switch r.Op {
	case "CreateMultipartUpload":
		return nil
	case "UploadPart":
		c.keepPart(r)
		return nil
	case "CompleteMultipartUpload":
		body = c.assemble(r.Query.Get("uploadId"))
	}
	if r.IfNoneMatch != "*" {
		return fmt.Errorf("a manifest without If-None-Match")
	}
	if newest := c.newest[table]; version < newest {
		return fmt.Errorf("manifest %d after %d", version, newest)
	}
	if body == nil {
		return nil // the request was refused before its body was read
	}
	m, err := manifest.Decode(key, bytes.Clone(body))
	if err != nil {
		if r.Applied == 0 || r.Applied >= 300 {
			return nil // a connection that broke
		}
		return err
	}
	if m.Version != version {
		return fmt.Errorf("the manifest is of version %d", m.Version)
	}
	for _, f := range m.Files {
		for _, name := range []string{f.Path, f.DVPath} {
			if name == "" {
				continue
			}
			if _, is := c.confirmed[table+name]; !is {
				return fmt.Errorf("the manifest names %s, which is not confirmed", table+name)
			}
		}
	}
	return nil
}

// keepPart keeps a part of a manifest.
func (c *checker) keepPart(r *Request) {
	id := r.Query.Get("uploadId")
	number, err := strconv.Atoi(r.Query.Get("partNumber"))
	if err != nil || r.Applied != http.StatusOK {
		return
	}
	if c.parts[id] == nil {
		c.parts[id] = map[int][]byte{}
	}
	c.parts[id][number] = r.Body
}

func (c *checker) assemble(id string) (whole []byte) {
	for n := 1; n <= len(c.parts[id]); n++ {
		whole = append(whole, c.parts[id][n]...)
	}
	return whole
}

// ended learns what an answer says.
func (c *checker) ended(r *Request, key string) {
	switch r.Op {
	case "PutObject", "CompleteMultipartUpload":
		if r.Status == http.StatusOK || r.Status == http.StatusPreconditionFailed {
			c.confirmed[key] = r.Ended
			c.confirmManifest(key)
		}
	case "HeadObject", "GetObject":
		if r.Status == http.StatusOK || r.Status == http.StatusPartialContent {
			c.confirmed[key] = r.Ended
		}
	case "DeleteObject":
		if r.Applied >= 200 && r.Applied < 300 {
			delete(c.confirmed, key)
		}
	}
}

// listed learns from a listing.
func (c *checker) listed(r *Request) {
	for _, name := range r.Listed {
		if key, ours := strings.CutPrefix(name, c.prefix); ours {
			c.confirmed[key] = r.Ended
			c.confirmManifest(key)
		}
	}
}

func (c *checker) confirmManifest(key string) {
	if table, version, ok := manifestOf(key); ok {
		c.newest[table] = max(c.newest[table], version)
	}
}
