package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

func verifyAll(t testing.TB, fs vfs.FS) []VerifyItem {
	t.Helper()
	var items []VerifyItem
	last := 0.0
	must(t, verifyIn(fs, "/db", VerifyOptions{
		Found: func(i VerifyItem) { items = append(items, i) },
		Progress: func(done float64) {
			if done < last || done > 1 {
				t.Fatalf("progress %f after %f", done, last)
			}
			last = done
		},
	}))
	if last != 1 {
		t.Fatalf("progress ends at %f", last)
	}
	return items
}

// faults returns what is not as it should be.
func faultsOf(items []VerifyItem) (out []VerifyItem) {
	for _, i := range items {
		if i.Status != VerifyOK {
			out = append(out, i)
		}
	}
	return out
}

func readBytes(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); int64(n) < size {
		t.Fatal(err)
	}
	return data
}

func writeBytes(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.Write(data)
	must(t, err)
	must(t, f.Close())
}

// verified makes a database with files, deletion vectors, several versions and a log, and returns its files.
func verified(t testing.TB) (fs *vfs.MemFS, names []string) {
	t.Helper()
	fs = vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, RetainVersions: 3, GCGrace: -1, NoAutoCompaction: true})
	for i := range int64(60) {
		_, err := db.Put(testRow(i, i))
		must(t, err)
	}
	must(t, db.Flush())
	for i := range int64(20) {
		_, err := db.Delete(testKey(3 * i))
		must(t, err)
		_, err = db.Put(testRow(3*i+1, 1000+i))
		must(t, err)
	}
	must(t, db.Flush())
	for i := range int64(5) {
		_, err := db.Put(testRow(200+i, i))
		must(t, err)
	}
	db.Free() // the log keeps its rows
	if bad := faultsOf(verifyAll(t, fs)); bad != nil {
		t.Fatalf("nothing is wrong, but: %+v", bad)
	}
	kinds := map[string]bool{}
	for _, i := range verifyAll(t, fs) {
		kinds[i.Kind] = true
		if i.Kind != "table" && i.Kind != "options" {
			names = append(names, i.Path)
		}
	}
	for _, k := range []string{"manifest", "data", "deletes", "log", "table"} {
		if !kinds[k] {
			t.Fatalf("nothing of kind %s was verified", k)
		}
	}
	return fs, names
}

// TestVerifyFindsEveryFlip flips a bit of each byte of each file: the file is named, whatever the byte. Of the last
// record of the log nobody can tell damage from a crash; it is named as unfinished.
func TestVerifyFindsEveryFlip(t *testing.T) {
	fs, names := verified(t)
	flips := 0
	for _, name := range names {
		data := readBytes(t, fs, name)
		step := 2
		if strings.HasSuffix(name, ".parquet") || len(data) > 4096 {
			step = 13
		}
		end := len(data)
		if strings.HasSuffix(name, ".wal") || strings.Contains(name, "/wal/") {
			for end > 0 && data[end-1] == 0 { // preallocated
				end--
			}
		}
		for at := 0; at < end; at += step * unlessShort(1, 9) {
			damaged := append([]byte(nil), data...)
			damaged[at] ^= 1 << (at % 8)
			writeBytes(t, fs, name, damaged)
			named := false
			for _, f := range faultsOf(verifyAll(t, fs)) {
				named = named || f.Path == name || strings.Contains(f.Detail, name)
			}
			if !named {
				t.Errorf("%s: a flipped bit of byte %d of %d is not found", name, at, len(data))
			}
			flips++
		}
		writeBytes(t, fs, name, data)
	}
	if bad := faultsOf(verifyAll(t, fs)); bad != nil || flips < unlessShort(500, 50) {
		t.Fatalf("%d flips; in the end %+v", flips, bad)
	}
}

// TestVerifyGoesOn damages and removes several files at a time, and all are named.
func TestVerifyGoesOn(t *testing.T) {
	fs, names := verified(t)
	var want []string
	for i, name := range names {
		switch {
		case strings.HasSuffix(name, ".puffin"):
			data := readBytes(t, fs, name)
			writeBytes(t, fs, name, data[:len(data)-1])
		case strings.HasSuffix(name, ".parquet") && i%2 == 0:
			must(t, fs.Remove(name))
		case strings.HasSuffix(name, ".parquet"):
			writeBytes(t, fs, name, nil)
		default:
			continue
		}
		want = append(want, name)
	}
	bad := fmt.Sprint(faultsOf(verifyAll(t, fs)))
	for _, name := range want {
		if !strings.Contains(bad, name) {
			t.Errorf("%s is not among the faults: %s", name, bad)
		}
	}
}

// TestVerifyWithoutManifest has a newest manifest that nobody can read; what the others name is verified all the same.
func TestVerifyWithoutManifest(t *testing.T) {
	fs, _ := verified(t)
	versions, err := manifest.NewFSStore(fs, "/db").Versions()
	must(t, err)
	newest := "/db/metadata/" + manifest.FileName(versions[len(versions)-1])
	writeBytes(t, fs, newest, []byte("nonsense"))
	items := verifyAll(t, fs)
	if bad := faultsOf(items); len(bad) != 1 || bad[0].Path != newest || bad[0].Status != VerifyDamaged {
		t.Fatalf("%+v", bad)
	}
	data := 0
	for _, i := range items {
		if i.Kind == "data" {
			data++
		}
	}
	if data == 0 {
		t.Fatal("no data file was verified")
	}
}

// TestVerifyFindsDoubledKeys lets a key live in two files, by way of a manifest that forgets a deletion vector.
func TestVerifyFindsDoubledKeys(t *testing.T) {
	fs, _ := verified(t)
	store := manifest.NewFSStore(fs, "/db")
	m, err := store.Newest()
	must(t, err)
	next := m.Next()
	for i, f := range next.Files {
		if f.DVPath != "" && f.KeyMin != nil && f.Rows == 60 {
			g := *f
			g.DVPath, g.DVOffset, g.DVLength, g.Deleted = "", 0, 0, 0
			next.Files[i] = &g
		}
	}
	must(t, store.Commit(next))
	doubled := 0
	for _, i := range faultsOf(verifyAll(t, fs)) {
		if i.Kind == "table" && strings.Contains(i.Detail, "live") {
			doubled++
		}
	}
	if doubled != maxDoubled+1 {
		t.Fatalf("%d findings of keys that are live twice", doubled)
	}
}

func TestVerifyBesideAWriter(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{MemtableBytes: minMemtableBytes, GCGrace: -1})
	defer db.Free()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range int64(2000) {
			if _, err := db.Put(testRow(i%300, i)); err != nil {
				t.Error(err)
				return
			}
			if i%40 == 0 {
				if err := db.Flush(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	rounds := 0
	for running := true; running; rounds++ {
		select {
		case <-done:
			running = false
		default:
		}
		for _, f := range faultsOf(verifyAll(t, fs)) {
			if f.Status != VerifyUnfinished {
				t.Fatalf("%+v", f)
			}
		}
	}
}

func TestVerifyIsInterrupted(t *testing.T) {
	fs, _ := verified(t)
	for after := range 20 {
		asked := 0
		err := verifyIn(fs, "/db", VerifyOptions{Found: func(VerifyItem) {}, Interrupt: func() bool { asked++; return asked > after }})
		if CodeOf(err) != CodeCancelled {
			t.Fatalf("after %d questions: %v", after, err)
		}
	}
	if err := verifyIn(fs, "/none", VerifyOptions{}); CodeOf(err) != CodeNotFound {
		t.Fatalf("of nothing: %v", err)
	}
}
