package vfs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// outcomes returns how often each state, as described by look, came out of power cuts.
func outcomes(m *MemFS, look func(fs *MemFS) string) map[string]int {
	found := map[string]int{}
	for seed := range uint64(300) {
		found[look(m.CrashClone(rand.New(rand.NewPCG(seed, 1))))]++
	}
	return found
}

func wantOutcomes(t *testing.T, got map[string]int, want ...string) {
	t.Helper()
	slices.Sort(want)
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Fatalf("outcomes %q, want %q", keys, want)
	}
}

// look describes some files: content, or a dash where there is none.
func look(names ...string) func(fs *MemFS) string {
	return func(fs *MemFS) string {
		var out []string
		for _, name := range names {
			f, err := fs.Open(name)
			if err != nil {
				out = append(out, "-")
				continue
			}
			size, _ := f.Size()
			data := make([]byte, size)
			_, _ = f.ReadAt(data, 0)
			out = append(out, string(data))
		}
		return strings.Join(out, " ")
	}
}

func TestCrashKeepsSynced(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/d"))
	must(t, m.SyncDir("/"))
	put(t, m, "/d/a", "synced")
	must(t, m.SyncDir("/d"))
	wantOutcomes(t, outcomes(m, look("/d/a")), "synced")
	c := m.CrashClone(nil)
	if s := content(t, c, "/d/a"); s != "synced" {
		t.Fatalf("%q", s)
	}
	// Twice over: what a clone holds is durable.
	wantOutcomes(t, outcomes(c, look("/d/a")), "synced")
	// The clone is a copy.
	put(t, c, "/d/a", "changed")
	must(t, c.Remove("/d/a"))
	if s := content(t, m, "/d/a"); s != "synced" {
		t.Fatalf("%q", s)
	}
}

func TestCrashLosesUnsyncedBytes(t *testing.T) {
	m := NewMem()
	f, err := m.Create("/a")
	must(t, err)
	must(t, m.SyncDir("/"))
	_, err = f.Write([]byte("abc"))
	must(t, err)
	must(t, f.Sync())
	tail := strings.Repeat("x", 3000)
	for range 3 {
		_, err = f.Write([]byte(tail[:1000]))
		must(t, err)
	}
	if s := content(t, m.CrashClone(nil), "/a"); s != "abc" {
		t.Fatalf("%q", s)
	}
	var all, none, part, holes, garbage int
	for s, n := range outcomes(m, look("/a")) {
		if !strings.HasPrefix(s, "abc") {
			t.Fatalf("synced bytes were lost: %.20q", s)
		}
		rest := s[3:]
		written := strings.TrimRight(rest, "\x00")
		switch {
		case rest == tail:
			all += n
		case rest == "":
			none += n
		case strings.Trim(rest, "\x00x") != "":
			garbage += n
		case strings.Contains(written, "\x00"):
			holes += n
		default:
			part += n
		}
	}
	if all == 0 || none == 0 || part == 0 || holes == 0 || garbage == 0 {
		t.Fatalf("all %d, none %d, part %d, with holes %d, with garbage %d", all, none, part, holes, garbage)
	}
}

func TestCrashOfEntries(t *testing.T) {
	const a, b, c = "/d/a", "/d/b", "/e/c"
	type step func(m *MemFS) error
	write := func(name, s string) step {
		return func(m *MemFS) error { put(t, m, name, s); return nil }
	}
	syncDir := func(d string) step { return func(m *MemFS) error { return m.SyncDir(d) } }
	for name, test := range map[string]struct {
		steps []step
		want  []string // contents of a, b, c
	}{
		"created":        {[]step{write(a, "1")}, []string{"- - -", "1 - -"}},
		"created synced": {[]step{write(a, "1"), syncDir("/d")}, []string{"1 - -"}},
		"removed": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.Remove(a) }},
			[]string{"- - -", "1 - -"},
		},
		"renamed": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.Rename(a, b) }},
			[]string{"1 - -", "- 1 -"},
		},
		"renamed over": {
			[]step{write(a, "1"), write(b, "2"), syncDir("/d"), func(m *MemFS) error { return m.Rename(a, b) }},
			[]string{"1 2 -", "- 1 -"},
		},
		"renamed unsynced": {
			[]step{write(a, "1"), func(m *MemFS) error { return m.Rename(a, b) }},
			[]string{"- - -", "1 - -", "- 1 -"},
		},
		"renamed away": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.Rename(a, c) }},
			[]string{"1 - -", "- - 1"},
		},
		"renamed away, target synced": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.Rename(a, c) }, syncDir("/e")},
			[]string{"- - 1"},
		},
		"renamed away, source synced": {
			[]step{write(a, "1"), func(m *MemFS) error { return m.Rename(a, c) }, syncDir("/d")},
			[]string{"- - 1"},
		},
		"renamed away and replaced": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.Rename(a, c) }, write(a, "2"), syncDir("/e")},
			[]string{"2 - 1"},
		},
		"removed all": {
			[]step{write(a, "1"), write(b, "2"), syncDir("/d"), func(m *MemFS) error { return m.RemoveAll("/d") }},
			[]string{"1 2 -", "1 - -", "- 2 -", "- - -"},
		},
		"directory removed": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { return m.RemoveAll("/d") }, syncDir("/")},
			[]string{"- - -"},
		},
		"overwritten": {
			[]step{write(a, "1"), syncDir("/d"), func(m *MemFS) error { f, err := m.Create(a); must(t, f.Close()); return err }},
			[]string{"1 - -", " - -"},
		},
		"overwritten, synced": {[]step{write(a, "1"), syncDir("/d"), write(a, "2")}, []string{"2 - -"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMem()
			must(t, m.MkdirAll("/d"))
			must(t, m.MkdirAll("/e"))
			must(t, m.SyncDir("/"))
			for _, s := range test.steps {
				must(t, s(m))
			}
			wantOutcomes(t, outcomes(m, look(a, b, c)), test.want...)
		})
	}
}

func TestCrashOfDirectories(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/x/y"))
	put(t, m, "/x/y/a", "1")
	must(t, m.SyncDir("/x/y"))
	// The file is durable in a directory that may not be.
	wantOutcomes(t, outcomes(m, look("/x/y/a")), "-", "1")
	must(t, m.SyncDir("/x"))
	wantOutcomes(t, outcomes(m, look("/x/y/a")), "-", "1")
	must(t, m.SyncDir("/"))
	wantOutcomes(t, outcomes(m, look("/x/y/a")), "1")
}

func TestCrashOfPreallocated(t *testing.T) {
	m := NewMem()
	f, err := m.Create("/a")
	must(t, err)
	must(t, m.SyncDir("/"))
	must(t, Preallocate(f, 4))
	wantOutcomes(t, outcomes(m, look("/a")), "", "\x00\x00\x00\x00")
	_, err = f.Write([]byte("ab"))
	must(t, err)
	must(t, f.Sync())
	wantOutcomes(t, outcomes(m, look("/a")), "ab\x00\x00")
	must(t, m.Truncate("/a", 1)) // syncs
	wantOutcomes(t, outcomes(m, look("/a")), "a")
}

func TestCrashIsReproducible(t *testing.T) {
	m := NewMem()
	for i := range 20 {
		dir := fmt.Sprint("/d", i%3)
		must(t, m.MkdirAll(dir))
		f, err := m.Create(fmt.Sprint(dir, "/f", i))
		must(t, err)
		_, err = f.Write(make([]byte, 100*i))
		must(t, err)
	}
	describe := func() string {
		c := m.CrashClone(rand.New(rand.NewPCG(9, 9)))
		var out strings.Builder
		for d := range 3 {
			names, _ := c.List(fmt.Sprint("/d", d))
			for _, n := range names {
				fmt.Fprintf(&out, "%s %q\n", n, content(t, c, fmt.Sprint("/d", d, "/", n)))
			}
		}
		return out.String()
	}
	if a, b := describe(), describe(); a != b {
		t.Fatalf("one seed, two outcomes:\n%s\n%s", a, b)
	}
}

func TestCrashLosesLocks(t *testing.T) {
	m := NewMem()
	_, err := m.Lock("/LOCK", "one")
	must(t, err)
	_, err = m.Lock("LOCK", "two")
	wantCode(t, err, base.CodeLocked, "one")
	l, err := m.CrashClone(nil).Lock("/LOCK", "three")
	must(t, err)
	must(t, l.Close())
}

func TestMemRename(t *testing.T) {
	m := NewMem()
	must(t, m.MkdirAll("/a/b"))
	must(t, m.MkdirAll("/full/x"))
	put(t, m, "/f", "")
	for _, pair := range [][2]string{{"/a", "/a/b/c"}, {"/a", "/f"}, {"/f", "/a"}, {"/a", "/full"}, {"/", "/z"}, {"/f", "/f/g"}} {
		if m.Rename(pair[0], pair[1]) == nil {
			t.Errorf("%s was renamed to %s", pair[0], pair[1])
		}
	}
	must(t, m.Rename("/f", "/f"))
	must(t, m.Rename("/a", "/full/x"))
	if _, err := m.Stat("/full/x/b"); err != nil {
		t.Fatal(err)
	}
}
