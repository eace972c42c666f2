package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/objstore"
)

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// waitMirrored waits until the mirror has all there is, in memory too.
func waitMirrored(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the mirror has all", func() bool {
		s := db.MirrorStatus()
		if s.State == "stopped" {
			t.Fatalf("the mirror stopped: %s", s.LastError)
		}
		return s.LagSecs == 0 && s.Seq == s.VisibleSeq
	})
}

// copyStore writes a store's objects to a directory.
func copyStore(t *testing.T, s objstore.Store) string {
	t.Helper()
	dir := t.TempDir()
	err := objstore.ListAll(context.Background(), s, "", func(i objstore.Info) error {
		data, err := objstore.ReadAll(context.Background(), s, i.Key, 1<<30)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, i.Key)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMirrorHasWhatIsThere(t *testing.T) {
	store := objstore.NewMem()
	dir := t.TempDir()
	o := Options{MirrorFlush: -1}
	o.UseMirror(store)
	db, err := Open(dir, o)
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	want := model{}
	for i := range int64(10) {
		row := testRow(i, i)
		_, err := db.Put(row)
		must(t, err)
		want[i] = i
	}
	waitMirrored(t, db)
	r, err := Open(copyStore(t, store), Options{ReadOnly: true})
	must(t, err)
	defer r.Free()
	check(t, r, want)
	must(t, db.Close())
}
