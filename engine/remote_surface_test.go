package engine

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// TestRemoteSurface has every way of reading answer from a mirror as it does at the primary.
func TestRemoteSurface(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		store := objstore.NewMem()
		o := Options{MirrorFlush: -1}
		o.UseMirror(store)
		log := newRequestLog(store)
		log.noWrites = true
		var read Options
		read.UseStore(log)
		compareSurfaces(t, o, remoteURL, read)
	})
	t.Run("versitygw", func(t *testing.T) {
		if testing.Short() {
			t.Skip("a server of its own")
		}
		server := s3test.Start(t)
		const url = "s3://" + s3test.Bucket + "/some/prefix"
		compareSurfaces(t, Options{MirrorFlush: -1, Mirror: url, S3: server.Config()}, url, Options{S3: server.Config()})
	})
}

func compareSurfaces(t *testing.T, primary Options, url string, read Options) {
	primary.RetainVersions, primary.MirrorRetain, primary.NoAutoCompaction = 1000, time.Hour, true
	dir := t.TempDir()
	db, err := Open(dir, primary)
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	m := model{}
	for round := range int64(3) {
		for id := range int64(600) {
			if (id+round)%3 == 0 {
				_, err := db.Put(testRow(id, round))
				must(t, err)
				m[id] = round
			} else if (id+round)%17 == 0 {
				_, err := db.Delete(testKey(id))
				must(t, err)
				delete(m, id)
			}
		}
		waitMirrored(t, db)
	}
	other := testSchema()
	other.TableName = "other"
	must(t, db.CreateTable(other))
	o, err := db.OpenTable("other")
	must(t, err)
	defer o.Free()
	_, err = o.Put(testRow(1, 1))
	must(t, err)
	waitMirrored(t, db)
	read.ReadOnly = true
	r, err := Open(url, read)
	must(t, err)
	defer r.Free()
	check(t, r, m)
	waitFor(t, "the other table", func() bool { must(t, r.Refresh()); return len(r.Tables()) == 2 })
	ro, err := r.OpenTable("other")
	must(t, err)
	defer ro.Free()
	check(t, ro, model{1: 1})
	compareVersions(t, db, r)
	compareFiles(t, r, url)
	verifyRemote(t, url, read)
	if i, err := r.Snapshot(); err != nil || i.MemoryRows() != 0 {
		t.Errorf("%v", err)
	} else {
		i.Close()
	}
	if err := r.Flush(); base.CodeOf(err) != base.CodeReadOnly {
		t.Errorf("a flush: %v", err)
	}
	must(t, db.Close())
}

// compareVersions compares what the mirror keeps of older versions, and the changes between them.
func compareVersions(t *testing.T, db, r *DB) {
	t.Helper()
	versions, err := r.Versions()
	must(t, err)
	if len(versions) < 3 {
		t.Fatalf("the mirror has %d versions", len(versions))
	}
	for _, v := range versions {
		here, err := db.SnapshotAt(v.Version)
		must(t, err)
		there, err := r.SnapshotAt(v.Version)
		must(t, err)
		asOf, err := r.SnapshotAsOf(v.Committed)
		must(t, err)
		want, err := fingerprint(here)
		must(t, err)
		got, err := fingerprint(there)
		if err != nil || got != want || asOf.Version() < v.Version {
			t.Errorf("version %d: %s at the mirror, %s at the primary, %v; as of its time it is %d", v.Version, got, want, err, asOf.Version())
		}
		for _, s := range []*Snapshot{here, there, asOf} {
			s.Close()
		}
	}
	if _, err := r.SnapshotAt(1 << 40); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("a version to come: %v", err)
	}
	s, err := r.Snapshot()
	must(t, err)
	until := s.Seq()
	s.Close()
	for _, since := range []uint64{0, versions[len(versions)-2].Seq, until / 2} {
		if got, want := feedOf(t, r, since, until), feedOf(t, db, since, until); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("changes since %d: %d at the mirror, %d at the primary", since, len(got), len(want))
		}
	}
}

// compareFiles reads the data files as a host does that reads Parquet by itself.
func compareFiles(t *testing.T, r *DB, url string) {
	t.Helper()
	s, err := r.Snapshot()
	must(t, err)
	files := s.Files()
	for i, info := range files {
		f, err := s.OpenFile(i)
		must(t, err)
		if !strings.HasPrefix(info.Path, url+"/data/") || f.Size() != info.Size {
			t.Errorf("%+v, size %d", info, f.Size())
		}
		data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		must(t, err)
		if int64(len(data)) != info.Size || !bytes.HasPrefix(data, []byte("PAR1")) || !bytes.HasSuffix(data, []byte("PAR1")) {
			t.Errorf("%s: %d bytes", info.Path, len(data))
		}
		never := func() bool { return true }
		if _, err := f.ReadAtUnless(make([]byte, 4), 0, never); err != nil && base.CodeOf(err) != base.CodeCancelled {
			t.Errorf("%v", err)
		}
		must(t, f.Close())
	}
	s.Close()
	if _, err := s.OpenFile(0); base.CodeOf(err) != base.CodeClosed {
		t.Errorf("a file of a closed snapshot: %v", err)
	}
	if len(files) == 0 {
		t.Error("no files")
	}
}

func verifyRemote(t *testing.T, url string, read Options) {
	t.Helper()
	kinds := map[string]int{}
	err := Verify(url, VerifyOptions{S3: read.S3, store: read.store, Found: func(i VerifyItem) {
		kinds[i.Kind]++
		if i.Status != VerifyOK || !strings.HasPrefix(i.Path, url+"/") {
			t.Errorf("%+v", i)
		}
	}})
	must(t, err)
	if kinds["manifest"] < 4 || kinds["data"] < 4 || kinds["deletes"] == 0 || kinds["log"] != 0 {
		t.Errorf("found %v", kinds)
	}
}

// TestRemoteWrongCredentials are those of a real server.
func TestRemoteWrongCredentials(t *testing.T) {
	if testing.Short() {
		t.Skip("a server of its own")
	}
	server := s3test.Start(t)
	c := server.Config()
	c.SecretAccessKey = "another-secret-entirely"
	url := "s3://" + s3test.Bucket + "/db"
	_, err := Open(url, Options{ReadOnly: true, S3: c})
	if base.CodeOf(err) != base.CodeObjectStore || !strings.Contains(err.Error(), url) || strings.Contains(err.Error(), c.SecretAccessKey) {
		t.Errorf("wrong credentials: %v", err)
	}
	t.Log(err)
	_, err = Open("s3://no-such-bucket/db", Options{ReadOnly: true, S3: server.Config()})
	if err == nil || !strings.Contains(err.Error(), "no-such-bucket") {
		t.Errorf("a bucket that is not there: %v", err)
	}
	t.Log(err)
	_, err = Open(url, Options{ReadOnly: true, S3: server.Config()})
	if base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("an empty prefix: %v", err)
	}
	t.Log(err)
	if _, err := Clone(url, t.TempDir(), CloneOptions{S3: server.Config()}); base.CodeOf(err) != base.CodeNotFound {
		t.Errorf("a clone of nothing: %v", err)
	}
}

// TestRemoteInterrupt: a read that the store does not answer can be left.
func TestRemoteInterrupt(t *testing.T) {
	_, _, _, store := filledStore(t)
	gate := make(chan struct{})
	log := newRequestLog(objstore.NewFaulty(store, func(op objstore.Op, key string) error {
		if strings.HasSuffix(key, ".parquet") {
			<-gate
		}
		return nil
	}))
	r := openRemote(t, log, Options{})
	s, err := r.Snapshot()
	must(t, err)
	defer s.Close()
	f, err := s.OpenFile(0)
	must(t, err)
	asked := 0
	p := make([]byte, 4)
	_, err = f.ReadAtUnless(p, 0, func() bool { asked++; return asked > 2 })
	if base.CodeOf(err) != base.CodeCancelled {
		t.Errorf("a read without an answer: %v", err)
	}
	close(gate)
	n, err := f.ReadAtUnless(p, 0, func() bool { return false })
	if n != 4 || err != nil || string(p) != "PAR1" {
		t.Errorf("the read after it: %d, %v, %q", n, err, p)
	}
	must(t, f.Close())
}
