package wal

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{150, 4 << 10, 270 << 10} {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) {
			dir := b.TempDir()
			w, err := Create(vfs.OS, dir, 1)
			must(b, err)
			payload := bytes.Repeat([]byte("merutable"), size/9+1)[:size]
			const total = 64 << 20
			for w.Size() < total {
				must(b, w.Append(payload))
			}
			must(b, w.Sync())
			must(b, w.Close())
			path := vfs.OS.Join(dir, Name(1))
			b.SetBytes(w.Size())
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				valid, err := Replay(vfs.OS, path, 1, true, func(int64, []byte) error { n++; return nil })
				if err != nil || valid != w.Size() {
					b.Fatal(valid, err)
				}
			}
		})
	}
}

// BenchmarkSearch is a log whose first record is damaged, so that everything behind is searched.
func BenchmarkSearch(b *testing.B) {
	for name, fill := range map[string][]byte{"text": []byte("merutable"), "zeros": {0}, "number": {testNum, 0, 0, 0}} {
		b.Run(name, func(b *testing.B) {
			fs := newDir(b)
			w := create(b, fs)
			must(b, w.Append(bytes.Repeat(fill, 64<<20/len(fill))))
			data := readFile(b, fs, testPath)
			data[HeaderBytes] ^= 1
			writeFile(b, fs, testPath, data)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if valid, err := Replay(fs, testPath, testNum, true, nil); err != nil || valid != HeaderBytes {
					b.Fatal(valid, err)
				}
			}
		})
	}
}

// BenchmarkAppendSync measures durable records with and without preallocation.
func BenchmarkAppendSync(b *testing.B) {
	for _, size := range []int{150, 270 << 10} {
		for _, reserve := range []bool{true, false} {
			b.Run(fmt.Sprintf("record=%d/reserve=%v", size, reserve), func(b *testing.B) {
				w, err := Create(vfs.OS, b.TempDir(), 1)
				must(b, err)
				w.noReserve = !reserve
				must(b, w.Append(nil))
				must(b, w.Sync())
				payload := bytes.Repeat([]byte{7}, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					must(b, w.Append(payload))
					must(b, w.Sync())
				}
				must(b, w.Close())
			})
		}
	}
}

// BenchmarkAppend measures framing and the write call alone.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{150, 16 << 10, 270 << 10} {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) {
			fs := vfs.OS
			dir := b.TempDir()
			w, err := Create(fs, dir, 1)
			must(b, err)
			payload := bytes.Repeat([]byte{7}, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				must(b, w.Append(payload))
				if w.Size() > 256<<20 {
					b.StopTimer()
					must(b, w.Rewind(HeaderBytes))
					b.StartTimer()
				}
			}
			must(b, w.Close())
		})
	}
}
