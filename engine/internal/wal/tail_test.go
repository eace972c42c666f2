package wal

import (
	"bytes"
	"sync"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// follower reads a log as it grows.
type follower struct {
	fs   vfs.FS
	path string
	at   Position
	got  [][]byte
}

func (f *follower) poll() (err error) {
	f.at, err = ReplayFrom(f.fs, f.path, testNum, f.at, func(_ int64, p []byte) error {
		f.got = append(f.got, bytes.Clone(p))
		return nil
	})
	return err
}

func TestReplayFrom(t *testing.T) {
	fs := newDir(t)
	f := &follower{fs: fs, path: testPath}
	wantCode(t, f.poll(), base.CodeNotFound)
	w := create(t, fs)
	must(t, f.poll())
	for i := range 20 {
		must(t, w.Append(payloadOf(i)))
		must(t, f.poll())
		checkPrefix(t, f.got, i+1, payloadOf)
		if f.at.Offset != w.Size() {
			t.Fatalf("at %d, the log ends at %d", f.at.Offset, w.Size())
		}
	}
	must(t, w.Close())
	must(t, f.poll())
	checkPrefix(t, f.got, 20, payloadOf)
	_, err := ReplayFrom(fs, testPath, testNum, Position{Offset: -1}, nil)
	wantCode(t, err, base.CodeInvalidArgument)
}

// TestReplayFromTorn shows every state of a record under way: nothing of it is seen, and nothing is wrong.
func TestReplayFromTorn(t *testing.T) {
	fs := newDir(t)
	data, ends := commitLog(t, true)
	for o := range len(data) {
		// With the rest missing, or already preallocated.
		for _, rest := range []int{0, len(data) - o} {
			writeFile(t, fs, testPath, append(bytes.Clone(data[:o]), make([]byte, rest)...))
			f := &follower{fs: fs, path: testPath}
			must(t, f.poll())
			n := wholeBefore(ends, int64(o))
			if n < len(f.got) { // the missing bytes were zeros by themselves
				n = len(f.got)
			}
			checkPrefix(t, f.got, n, payloadOf)
			writeFile(t, fs, testPath, data)
			must(t, f.poll())
			checkPrefix(t, f.got, commits, payloadOf)
		}
	}
}

func TestReplayFromDamage(t *testing.T) {
	fs := newDir(t)
	data, ends := commitLog(t, true)
	damaged := bytes.Clone(data)
	damaged[ends[4]+FrameOverhead] ^= 4
	writeFile(t, fs, testPath, damaged)
	f := &follower{fs: fs, path: testPath}
	wantCode(t, f.poll(), base.CodeCorruption, testPath)
	checkPrefix(t, f.got, 5, payloadOf)
	// From where it stands, damage cannot be told from a log that was rewound.
	wantCode(t, f.poll(), base.CodeConflict, testPath)

	writeFile(t, fs, testPath, data[:100])
	f.at = Position{Offset: 101}
	wantCode(t, f.poll(), base.CodeConflict, testPath)
	// The error of the callback is nobody else's.
	stop := base.Errorf(base.CodeCorruption, "stop")
	writeFile(t, fs, testPath, data)
	if _, err := ReplayFrom(fs, testPath, testNum, Position{Offset: HeaderBytes}, func(int64, []byte) error { return stop }); err != stop {
		t.Fatal(err)
	}
}

// TestReplayFromRewound: records that were taken back, and others of the same length in their place, are noticed.
func TestReplayFromRewound(t *testing.T) {
	fs := newDir(t)
	f := &follower{fs: fs, path: testPath}
	w := create(t, fs)
	must(t, w.Append([]byte("stays")))
	must(t, f.poll())
	before := w.Size()
	must(t, w.AppendGroup([][]byte{[]byte("taken"), []byte("back")}))
	must(t, f.poll())
	must(t, w.Rewind(before))
	must(t, w.AppendGroup([][]byte{[]byte("other"), []byte("ones")}))
	wantCode(t, f.poll(), base.CodeConflict, testPath)
	f.at, f.got = Position{}, nil
	must(t, f.poll())
	if got := string(bytes.Join(f.got, []byte(" "))); got != "stays other ones" {
		t.Fatalf("got %q", got)
	}
	must(t, w.Close())
}

// TestFollow lets followers run beside a writer that grows, syncs and closes a real log.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(vfs.OS, dir, testNum)
	must(t, err)
	const records = 3000
	payload := func(i int) []byte {
		if i%100 == 0 {
			return bytes.Repeat(payloadOf(i), 20000)
		}
		return payloadOf(i)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			f := &follower{fs: vfs.OS, path: vfs.OS.Join(dir, Name(testNum))}
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				if err := f.poll(); err != nil {
					t.Error(err)
					return
				}
			}
			if len(f.got) != records {
				t.Errorf("the follower saw %d records, want %d", len(f.got), records)
			}
			for i, p := range f.got {
				if !bytes.Equal(p, payload(i)) {
					t.Errorf("record %d is wrong", i)
					return
				}
			}
		})
	}
	var syncs sync.WaitGroup
	syncs.Go(func() {
		for range 50 {
			if err := w.Sync(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range records {
		must(t, w.Append(payload(i)))
	}
	syncs.Wait()
	must(t, w.Sync())
	must(t, w.Close())
	close(done)
	wg.Wait()
}
