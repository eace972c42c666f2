package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const commits = 24

// commitLog returns the bytes of a log of 24 synced records and where each ends, with the preallocated space or without.
func commitLog(t testing.TB, cut bool) (data []byte, ends []int64) {
	t.Helper()
	fs := newDir(t)
	w := create(t, fs)
	for i := range commits {
		must(t, w.Append(payloadOf(i)))
		must(t, w.Sync())
		ends = append(ends, w.Size())
	}
	data = readFile(t, fs, testPath)
	must(t, w.Close())
	if cut {
		data = data[:w.Size()]
	}
	return data, ends
}

// wholeBefore returns how many records end at or before offset.
func wholeBefore(ends []int64, offset int64) int {
	n := 0
	for n < len(ends) && ends[n] <= offset {
		n++
	}
	return n
}

// replayBytes replays a log of the given content.
func replayBytes(t testing.TB, fs *vfs.MemFS, data []byte, last bool) (got [][]byte, valid int64, err error) {
	t.Helper()
	writeFile(t, fs, testPath, data)
	got, _, valid, err = replayAll(fs, last)
	return got, valid, err
}

// checkCut wants the first n records and, as an older log, an error unless the file ends there.
func checkCut(t testing.TB, fs *vfs.MemFS, data []byte, n int, ends []int64) {
	t.Helper()
	got, valid, err := replayBytes(t, fs, data, true)
	must(t, err)
	checkPrefix(t, got, n, payloadOf)
	want := int64(0)
	if n > 0 {
		want = ends[n-1]
	} else if len(data) >= HeaderBytes {
		want = HeaderBytes
	}
	if valid != want {
		t.Fatalf("valid %d, want %d", valid, want)
	}
	_, _, err = replayBytes(t, fs, data, false)
	if valid > 0 && allZero(data[valid:]) { // what was preallocated may follow
		must(t, err)
	} else {
		wantCode(t, err, base.CodeCorruption, testPath, fmt.Sprintf("offset %d", valid))
	}
}

// TestTruncatedAnywhere cuts the log at every byte: the records that are whole stay, the file header counting as part of
// the first.
func TestTruncatedAnywhere(t *testing.T) {
	fs := newDir(t)
	data, ends := commitLog(t, true)
	for o := range len(data) + 1 {
		checkCut(t, fs, data[:o], wholeBefore(ends, int64(o)), ends)
	}
}

// TestGarbageBehind appends 1 to 64 bytes behind a log cut at every byte.
func TestGarbageBehind(t *testing.T) {
	fs := newDir(t)
	data, ends := commitLog(t, true)
	rng := rand.New(rand.NewPCG(5, 3))
	for o := HeaderBytes; o <= len(data); o++ {
		n := wholeBefore(ends, int64(o))
		for extra := 1; extra <= 64; extra++ {
			if o < len(data) && extra%9 != 0 {
				continue // all lengths behind the whole log, some behind a torn one
			}
			for _, kind := range []string{"zero", "random", "copy"} {
				damaged := bytes.Clone(data[:o])
				switch kind {
				case "zero":
					damaged = append(damaged, make([]byte, extra)...)
				case "random":
					for range extra {
						damaged = append(damaged, byte(rng.Uint32()))
					}
				case "copy": // of what the log holds elsewhere: whole frames, at a wrong offset
					at := int(ends[rng.IntN(4)])
					damaged = append(damaged, data[at:at+extra]...)
				}
				if o < len(data) && damaged[o] == data[o] {
					damaged[o]++ // the garbage may have continued the record
				}
				checkCut(t, fs, damaged, n, ends)
			}
		}
	}
}

// TestFlipAnywhere changes every byte: in the last record that cuts it off, everywhere before it is damage that names
// the file and the record's offset.
func TestFlipAnywhere(t *testing.T) {
	for _, closed := range []bool{true, false} {
		fs := newDir(t)
		data, ends := commitLog(t, closed)
		flips := []byte{1, 2, 4, 8, 16, 32, 64, 128, 255}
		if testing.Short() {
			flips = []byte{1, 255}
		}
		written := ends[commits-1]
		data = data[:min(int64(len(data)), written+100)]
		for o := range int64(len(data)) {
			n := wholeBefore(ends, o)
			for _, flip := range flips {
				damaged := bytes.Clone(data)
				damaged[o] ^= flip
				if n >= commits-1 {
					checkCut(t, fs, damaged, n, ends)
					continue
				}
				got, _, err := replayBytes(t, fs, damaged, true)
				start := int64(0) // the file header
				if n > 0 {
					start = ends[n-1]
				} else if o >= HeaderBytes {
					start = HeaderBytes
				}
				wantCode(t, err, base.CodeCorruption, testPath, "offset "+strconv.FormatInt(start, 10)+":")
				checkPrefix(t, got, n, payloadOf)
			}
		}
	}
}

// TestFlipUnsynced is the same for records that were never synced: only a missing sector may pass for a crash.
func TestFlipUnsynced(t *testing.T) {
	fs := newDir(t)
	w := create(t, fs)
	var ends []int64
	for i := range commits {
		must(t, w.Append(payloadOf(i)))
		ends = append(ends, w.Size())
	}
	must(t, w.Close())
	data := readFile(t, fs, testPath)
	for o := range ends[commits-2] {
		damaged := bytes.Clone(data)
		damaged[o] ^= 0x20
		_, _, err := replayBytes(t, fs, damaged, true)
		wantCode(t, err, base.CodeCorruption, testPath)
	}
	// The second sector never reached the disk.
	damaged := bytes.Clone(data)
	clear(damaged[sectorBytes : 2*sectorBytes])
	checkCut(t, fs, damaged, wholeBefore(ends, sectorBytes), ends)
	// The same hole in a synced log is damage.
	data, _ = commitLog(t, true)
	clear(data[sectorBytes : 2*sectorBytes])
	_, _, err := replayBytes(t, fs, data, true)
	wantCode(t, err, base.CodeCorruption, testPath)
}

// TestLogInsidePayload stores a log as a value: its frames must not be taken for later ones when the record is torn.
func TestLogInsidePayload(t *testing.T) {
	inner, _ := commitLog(t, true)
	fs := newDir(t)
	w := create(t, fs)
	must(t, w.Append(payloadOf(0)))
	must(t, w.Sync())
	end := w.Size()
	must(t, w.Append(inner))
	must(t, w.Sync())
	must(t, w.Close())
	data := readFile(t, fs, testPath)[:w.Size()]
	for o := int(end); o < len(data); o++ {
		got, valid, err := replayBytes(t, fs, data[:o], true)
		must(t, err)
		checkPrefix(t, got, 1, payloadOf)
		if valid != end {
			t.Fatalf("cut at %d: valid %d", o, valid)
		}
	}
}

// TestDamageFarAway: the next whole record stands megabytes behind the damage, across the reader's windows.
func TestDamageFarAway(t *testing.T) {
	fs := newDir(t)
	w := create(t, fs)
	big := bytes.Repeat([]byte{testNum, 0, 0, 0}, 1<<20) // looks like the log's number everywhere
	must(t, w.Append(big))
	must(t, w.Sync())
	must(t, w.Append(payloadOf(1)))
	must(t, w.Close())
	data := readFile(t, fs, testPath)
	for _, o := range []int{HeaderBytes, HeaderBytes + 4, HeaderBytes + 16, 3 << 20} {
		damaged := bytes.Clone(data)
		damaged[o] ^= 1
		_, _, err := replayBytes(t, fs, damaged, true)
		wantCode(t, err, base.CodeCorruption, testPath, "offset 20:", strconv.Itoa(HeaderBytes+FrameOverhead+len(big)))
	}
}

// TestReplayAllocation: a length that the file does not hold allocates nothing.
func TestReplayAllocation(t *testing.T) {
	fs := newDir(t)
	data := appendFileHeader(nil, testNum)
	data = appendFrameHeader(data, testNum, HeaderBytes, 0, nil)
	frame := data[HeaderBytes:]
	frame[4], frame[5], frame[6], frame[7] = 0, 0, 0, 0x3f // 1 GiB less 16 MiB, and the check says so
	sum := headerCheck(frame, HeaderBytes)
	frame[16], frame[17], frame[18], frame[19] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	writeFile(t, fs, testPath, data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	valid, err := Replay(fs, testPath, testNum, true, nil)
	runtime.ReadMemStats(&after)
	if err != nil || valid != HeaderBytes {
		t.Fatal(valid, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
		t.Errorf("%d bytes allocated", n)
	}
}
