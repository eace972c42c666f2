// Package spill keeps sorted rows that do not fit into memory in temporary files. A file is written once, front to back,
// and read by any number of iterators; it is never synced, for nobody needs it after a crash.
//
// A file is a sequence of blocks of about 128 KiB of rows, compressed by S2:
//
//	length of what follows the header   u32 LE
//	CRC-32C of it                       u32 LE
//	rows, compressed; each: operation and key length (length << 1 | 1 for a put) and, of a put, value length as
//	variable-length integers, then key and value
//
// Where the blocks start, and their first keys, are kept in memory.
package spill

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/s2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	blockBytes  = 128 << 10
	blockHeader = 8
	// maxBlockBytes bounds a block: one row may be as large as the engine takes.
	maxBlockBytes = blockBytes + base.MaxKeyBytes + base.MaxValueBytes + 2*binary.MaxVarintLen64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes one file. It is one goroutine's and ends with Finish or Abort.
type Writer struct {
	fs     vfs.FS
	file   vfs.File
	run    *Run
	rows   []byte // of the open block
	first  []byte // its first key
	packed []byte
	size   int64
	closed bool
}

// Create makes a file of a name that is not taken.
func Create(fs vfs.FS, path string) (*Writer, error) {
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	return &Writer{fs: fs, file: f, run: &Run{fs: fs, path: path}}, nil
}

// Add adds a row, whose key is above the one before. Key and value are copied.
func (w *Writer) Add(key []byte, op base.Op, value []byte) error {
	if len(w.rows) == 0 {
		w.first = append(w.first[:0], key...)
	}
	head := uint64(len(key)) << 1
	if op == base.OpPut {
		head |= 1
	}
	w.rows = binary.AppendUvarint(w.rows, head)
	if op == base.OpPut {
		w.rows = binary.AppendUvarint(w.rows, uint64(len(value)))
	} else {
		value = nil
	}
	w.rows = append(append(w.rows, key...), value...)
	w.run.rows++
	if len(w.rows) < blockBytes {
		return nil
	}
	return w.endBlock()
}

func (w *Writer) endBlock() error {
	if n := s2.MaxEncodedLen(len(w.rows)); cap(w.packed) < blockHeader+n {
		w.packed = make([]byte, blockHeader+n)
	}
	w.packed = w.packed[:cap(w.packed)]
	body := s2.Encode(w.packed[blockHeader:], w.rows)
	out := w.packed[:blockHeader+len(body)]
	binary.LittleEndian.PutUint32(out, uint32(len(body)))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(body, castagnoli))
	if _, err := w.file.Write(out); err != nil {
		return err
	}
	w.run.addBlock(w.size, w.first)
	w.size += int64(len(out))
	w.rows = w.rows[:0]
	return nil
}

// Finish ends the file and opens it for reading. On an error the file is removed.
func (w *Writer) Finish() (*Run, error) {
	if len(w.rows) > 0 {
		if err := w.endBlock(); err != nil {
			w.Abort()
			return nil, err
		}
	}
	w.closed = true
	err := w.file.Close()
	if err == nil {
		w.run.file, err = w.fs.Open(w.run.path)
	}
	if err != nil {
		_ = w.fs.Remove(w.run.path) // the first error is the one to report; the directory is swept in any case
		return nil, err
	}
	w.run.size = w.size
	return w.run, nil
}

// Abort gives the file up and removes it. After Finish, and when called again, it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	_ = w.file.Close()
	_ = w.fs.Remove(w.run.path) // as in Finish
}
