package s3test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// history is a record in the making: each request is over before the next begins.
type history struct {
	requests []Request
	moment   int
}

func (h *history) add(op, key string, status int, change func(*Request)) *history {
	h.moment += 2
	r := Request{Op: op, Key: "db/" + key, Begun: h.moment - 1, Ended: h.moment, Applied: status, Status: status}
	if change != nil {
		change(&r)
	}
	h.requests = append(h.requests, r)
	return h
}

func (h *history) put(key string) *history { return h.add("PutObject", key, http.StatusOK, nil) }

func (h *history) commit(t *testing.T, version int64, files ...string) *history {
	t.Helper()
	m := &manifest.Manifest{
		Version: version, TableUUID: "6f1f5e3a-7ec0-4b5c-9a3c-0f3a9b1f0e11",
		Schema: &base.Schema{
			TableName: "t", Columns: []base.Column{{Name: "id", Type: base.Type{Kind: base.KindBigInt}}}, PrimaryKey: []int{0},
		},
	}
	m.Schema.AssignFieldIDs()
	for _, f := range files {
		m.Files = append(m.Files, &manifest.File{
			Path: f, Size: 10, Rows: 2, SeqMin: 1, SeqMax: 2, KeyMin: []byte("a"), KeyMax: []byte("b"),
			DVPath: strings.Replace(f, ".parquet", ".puffin", 1), DVLength: 5, Deleted: 1,
		})
	}
	data, err := manifest.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return h.add("PutObject", "metadata/"+manifest.FileName(version), http.StatusOK, func(r *Request) {
		r.IfNoneMatch, r.Body = "*", data
	})
}

// last changes the last request.
func (h *history) last(change func(*Request)) *history {
	change(&h.requests[len(h.requests)-1])
	return h
}

// TestCheck has the checker find each way to break a rule, and nothing where none is broken.
func TestCheck(t *testing.T) {
	const a, b = "data/L0/a.parquet", "data/L0/b.parquet"
	const da, db = "data/L0/a.puffin", "data/L0/b.puffin"
	lost := func(r *Request) { r.Status = 0 }
	first := func() *history { return (&history{}).put(a).put(da).commit(t, 3, a) }
	for name, c := range map[string]struct {
		h    *history
		want string // "" where all is well
	}{
		"good":            {first().put(b).put(db).commit(t, 5, a, b).put("TABLES").put("TABLES"), ""},
		"no data":         {first().put(db).commit(t, 4, a, b), "names " + b},
		"no vector":       {first().put(b).commit(t, 4, a, b), "names " + db},
		"data lost":       {first().put(db).put(b).last(lost).commit(t, 4, a, b), "names " + b},
		"lost and listed": {first().put(db).put(b).last(lost).add("ListObjectsV2", "", 200, func(r *Request) { r.Listed = []string{"db/" + b} }).commit(t, 4, a, b), ""},
		"lost and found":  {first().put(db).put(b).last(lost).add("HeadObject", b, 200, nil).commit(t, 4, a, b), ""},
		"lost and 412":    {first().put(db).put(b).last(lost).add("PutObject", b, 412, nil).commit(t, 4, a, b), ""},
		"lost and again":  {first().put(db).put(b).last(lost).put(b).commit(t, 4, a, b), ""},
		"failed":          {first().put(db).add("PutObject", b, 503, nil).commit(t, 4, a, b), "names " + b},
		"too early":       {first().put(db).put(b).last(func(r *Request) { r.Ended += 2 }).commit(t, 4, a, b).last(func(r *Request) { r.Ended++ }), "names " + b},
		"descending":      {first().commit(t, 2, a), "manifest 2 after 3"},
		"unconditional":   {first().commit(t, 4, a).last(func(r *Request) { r.IfNoneMatch = "" }), "If-None-Match"},
		"other version":   {first().commit(t, 4, a).last(func(r *Request) { r.Key = "db/metadata/v5.manifest.bin" }), "version 4"},
		"twice":           {first().put(a), "confirmed already"},
		"parts twice":     {first().add("UploadPart", a, 200, nil), "confirmed already"},
		"deleted between": {first().add("DeleteObject", a, 204, nil).put(a), ""},
		"deleted before":  {first().add("DeleteObject", a, 204, nil).commit(t, 4, a), "names " + a},
		"log":             {first().put("wal/000001.log"), "wal"},
		"table's lock":    {first().put("tables/1/LOCK"), "LOCK"},
		"options":         {first().put("OPTIONS"), "OPTIONS"},
		"temporary":       {first().put("tmp/x"), "tmp"},
		"elsewhere":       {first().put(a).last(func(r *Request) { r.Key = "other/" + a }), ""},
	} {
		err := Check(c.h.requests, "db")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
	h := (&history{}).commit(t, 3, a)
	if err := Check(h.requests, "db", a, da); err != nil {
		t.Error(err)
	}
	if err := Check(h.requests, "db", a, da, "metadata/v4.manifest.bin"); err == nil {
		t.Error("manifest 3 after one that was there")
	}
}
