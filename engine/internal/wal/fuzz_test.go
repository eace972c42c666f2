package wal

import (
	"bytes"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// FuzzReplay feeds arbitrary files. Whatever Replay takes for valid must be a whole log when everything behind is cut.
func FuzzReplay(f *testing.F) {
	data, ends := commitLog(f, true)
	f.Add(data, true)
	f.Add(data[:ends[3]], false)
	f.Add(data[:ends[3]+5], true)
	holed := bytes.Clone(data)
	clear(holed[512:1024])
	f.Add(holed, true)
	f.Add(bytes.Repeat([]byte{testNum, 0, 0, 0}, 100), true)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, file []byte, last bool) {
		fs := vfs.NewMem()
		must(t, fs.MkdirAll(testDir))
		writeFile(t, fs, testPath, file)
		got, offsets, valid, err := replayAll(fs, last)
		switch base.CodeOf(err) {
		case base.CodeOK, base.CodeCorruption, base.CodeUnsupported:
		default:
			t.Fatalf("%v has code %d", err, base.CodeOf(err))
		}
		total := int64(0)
		for i, p := range got {
			if !bytes.Equal(file[offsets[i]+FrameOverhead:][:len(p)], p) {
				t.Fatalf("record %d is not what the file holds", i)
			}
			total += FrameOverhead + int64(len(p))
		}
		if valid > int64(len(file)) || valid > 0 && valid != HeaderBytes+total || valid == 0 && total > 0 {
			t.Fatalf("valid %d of %d, with %d bytes in records", valid, len(file), total)
		}
		f := &follower{fs: fs, path: testPath}
		if e := f.poll(); base.CodeOf(e) == base.CodeIO || len(f.got) != len(got) {
			t.Fatalf("ReplayFrom gives %d records (%v), Replay %d", len(f.got), e, len(got))
		}
		if valid == 0 {
			return
		}
		writeFile(t, fs, testPath, file[:valid])
		again, _, _, err := replayAll(fs, false)
		must(t, err)
		if len(again) != len(got) {
			t.Fatalf("%d records after the cut, %d before", len(again), len(got))
		}
	})
}
