package metamorphic

import (
	"strings"
	"testing"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// forgetfulFS says that logs are synced and does not do it.
type forgetfulFS struct{ vfs.FS }

type forgetfulFile struct{ vfs.File }

func (forgetfulFile) Sync() error { return nil }

func (f forgetfulFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if err == nil && strings.HasSuffix(name, ".wal") {
		file = forgetfulFile{file}
	}
	return file, err
}

// TestFindsFaults: an engine that is made to look faulty is found out, and the history shrinks to the few operations
// that it takes.
func TestFindsFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		hooks hooks
		most  int // operations of the shrunk history
		// What a crash takes of a log that is not synced also depends on what goes on in the background: a history counts
		// as failing if it does so once in so many runs.
		tries int
	}{
		{"a log that is not synced", hooks{wrapFS: func(fs vfs.FS) vfs.FS { return forgetfulFS{fs} }}, 16, 8},
		{"a bit of a deletion vector is lost", hooks{deletes: func(s *engine.Snapshot, i int) ([]uint32, error) {
			dead, err := s.Deletes(i)
			return dead[:max(0, len(dead)-1)], err
		}}, 4, 1},
		{"tombstones are lost", hooks{lose: func(e edit) bool { return e.del && e.id%7 == 3 }}, 3, 1},
		{"a row in the middle is lost", hooks{lose: func(e edit) bool { return e.payload%97 == 3 }}, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.tries > 1 && testing.Short() {
				t.Skip("it shrinks a history by running it many times")
			}
			run := func(h History) (err error) {
				for i := 0; i < test.tries && err == nil; i++ {
					err = runHooked(h, test.hooks)
				}
				return err
			}
			for seed := range uint64(30) {
				h := Generate(seed, *length)
				h.Config = "manual"
				if run(h) == nil {
					continue
				}
				short, err := Shrink(h, 1, run)
				if err == nil || len(short.Ops) > test.most {
					t.Fatalf("%d operations are left, more than %d:\n%s%v", len(short.Ops), test.most, short, err)
				}
				if err := Run(short); err != nil {
					t.Fatalf("it fails without the fault too: %v", err)
				}
				again, err := Parse(short.String())
				if err != nil || run(again) == nil {
					t.Fatalf("its text form does not fail (%v):\n%s", err, short)
				}
				t.Logf("seed %d, %d operations:\n%s%v", seed, len(short.Ops), short, run(again))
				return
			}
			t.Fatal("no history finds it")
		})
	}
}
