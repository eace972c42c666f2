package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// vectors returns the deletion vector files of the database, and the path that each data file's vector is in.
func vectors(t *testing.T, db *DB, fs vfs.FS) (puffins []string, byFile map[string]string) {
	t.Helper()
	collectNow(t, db)
	for n := range strings.SplitSeq(listTree(t, fs), "\n") {
		if strings.HasSuffix(n, ".puffin") {
			puffins = append(puffins, strings.TrimPrefix(n, "/db/"))
		}
	}
	byFile = map[string]string{}
	s := db.c.current()
	defer s.unref()
	for _, f := range s.files {
		byFile[f.rel] = f.meta.DVPath
	}
	return puffins, byFile
}

// TestSharedVectors: the vectors of a commit stand in one file, which stays as long as any data file's vector is there.
func TestSharedVectors(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{RetainVersions: 1, GCGrace: -1, NoAutoCompaction: true}
	db := openMem(t, fs, o)
	m := model{}
	write := func(payload int64, ids ...int64) {
		for _, id := range ids {
			_, err := db.Put(testRow(id, payload))
			must(t, err)
			m[id] = payload
		}
		must(t, db.Flush())
	}
	write(1, 1, 2, 3)
	write(1, 11, 12, 13)
	write(1, 21, 22, 23)
	write(2, 1, 11, 21)
	puffins, byFile := vectors(t, db, fs)
	if len(puffins) != 1 || len(byFile) != 4 {
		t.Fatalf("vectors %v of files %v", puffins, byFile)
	}
	first := puffins[0]
	write(3, 2, 12) // the third file's vector stays where it is
	write(4, 31)    // by now nothing but the third file refers there
	write(4, 32)
	check(t, db, m)
	puffins, byFile = vectors(t, db, fs)
	if len(puffins) != 2 || !slices.Contains(puffins, first) {
		t.Fatalf("vectors %v of files %v, the first one was %s", puffins, byFile, first)
	}
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, o)
	check(t, db, m)
	write(5, 22)
	write(5, 33)
	write(5, 34)
	puffins, _ = vectors(t, db, fs)
	if len(puffins) != 2 || slices.Contains(puffins, first) {
		t.Fatalf("vectors %v: the first one is of no use any more", puffins)
	}
	check(t, db, m)
	must(t, db.Close())
	db.Free()
}

// TestCommitChange: one commit replaces files, moves one to another level and marks rows.
func TestCommitChange(t *testing.T) {
	fs := vfs.NewMem()
	db := openMem(t, fs, Options{NoAutoCompaction: true})
	for id := range int64(4) {
		_, err := db.PutBatch([][]Value{testRow(10*id, id), testRow(10*id+1, id)})
		must(t, err)
		must(t, db.Flush())
	}
	c := db.c
	c.commitMu.Lock()
	s := c.current()
	files := slices.Clone(s.files) // newest first
	next := s.manifest.Next()
	ch := change{
		removed: map[*dataFile]bool{files[0].dataFile: true},
		levels:  map[*dataFile]int{files[1].dataFile: 2, files[3].dataFile: 2},
		dead:    map[*dataFile]*roaring.Bitmap{files[2].dataFile: roaring.BitmapOf(1), files[3].dataFile: roaring.BitmapOf(0)},
	}
	must(t, c.commitFiles(s, next, ch))
	c.installFiles(next, nil, nil)
	s.unref()
	c.commitMu.Unlock()
	want := model{10: 1, 1: 0, 20: 2, 21: 2}
	check(t, db, want)
	levels := func(files []*manifest.File) (got []int) {
		for _, f := range files {
			got = append(got, f.Level)
		}
		return got
	}
	if got := levels(next.Files); !slices.Equal(got, []int{0, 2, 2}) || next.Files[1].Path != files[3].rel {
		t.Fatalf("levels %v", got)
	}
	for i, f := range mustSnapshot(t, db).Files() {
		if f.Level != next.Files[i].Level {
			t.Fatalf("file %d: level %d, the manifest says %d", i, f.Level, next.Files[i].Level)
		}
	}
	must(t, db.Close())
	db.Free()
	db = openMem(t, fs, Options{NoAutoCompaction: true})
	defer db.Free()
	check(t, db, want)
}

func mustSnapshot(t *testing.T, db *DB) *Snapshot {
	t.Helper()
	s, err := db.Snapshot()
	must(t, err)
	t.Cleanup(s.Close)
	return s
}
