package spill

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"

	"github.com/klauspost/compress/s2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// Run is a file of sorted rows. Any number of iterators may read it at once.
type Run struct {
	fs   vfs.FS
	path string
	file vfs.File
	size int64
	rows int64
	at   []int64 // where the blocks start
	ends []int   // where their first keys end in keys
	keys []byte
	gone bool
}

func (r *Run) addBlock(at int64, first []byte) {
	r.at = append(r.at, at)
	r.keys = append(r.keys, first...)
	r.ends = append(r.ends, len(r.keys))
}

// Rows returns how many rows the file has.
func (r *Run) Rows() int64 { return r.rows }

// Bytes returns the size of the file.
func (r *Run) Bytes() int64 { return r.size }

// Blocks returns how many blocks the file has.
func (r *Run) Blocks() int { return len(r.at) }

// FirstKey returns the first key of block i. Do not change it.
func (r *Run) FirstKey(i int) []byte {
	start := 0
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.keys[start:r.ends[i]:r.ends[i]]
}

// Remove closes and removes the file; a second call does nothing. No iterator may be used any more.
func (r *Run) Remove() error {
	if r.gone {
		return nil
	}
	r.gone = true
	err := r.file.Close()
	if e := r.fs.Remove(r.path); err == nil {
		err = e
	}
	return err
}

// Iter walks a run in key order. It is one goroutine's. It holds one block; keys and values stay as they are when it moves
// on, for as long as somebody holds them.
type Iter struct {
	r     *Run
	block int // the next one to read
	rest  []byte
	key   []byte
	value []byte
	op    base.Op
	valid bool
	raw   []byte
	err   error
}

// NewIter returns an iterator that stands nowhere: call First or SeekGE.
func (r *Run) NewIter() *Iter { return &Iter{r: r} }

// First moves to the first row.
func (it *Iter) First() {
	it.block, it.rest = 0, nil
	it.Next()
}

// SeekGE moves to the first row whose key is at least key.
func (it *Iter) SeekGE(key []byte) {
	above := sort.Search(it.r.Blocks(), func(i int) bool { return bytes.Compare(it.r.FirstKey(i), key) > 0 })
	it.block, it.rest = max(above-1, 0), nil
	for it.Next(); it.Valid() && bytes.Compare(it.key, key) < 0; {
		it.Next()
	}
}

// Valid reports whether the iterator stands on a row.
func (it *Iter) Valid() bool { return it.valid }

// Key, Op and Value describe the row. Value is nil for a tombstone.
func (it *Iter) Key() []byte   { return it.key }
func (it *Iter) Op() base.Op   { return it.op }
func (it *Iter) Value() []byte { return it.value }

// Err returns what ended the walk early.
func (it *Iter) Err() error { return it.err }

// Next moves to the next row.
func (it *Iter) Next() {
	it.valid = false
	if it.err != nil {
		return
	}
	if len(it.rest) == 0 {
		if it.block == it.r.Blocks() {
			return
		}
		if it.err = it.readBlock(); it.err != nil {
			return
		}
	}
	it.valid = it.decode()
	if !it.valid {
		it.err = it.r.damage(it.block-1, "a row is cut off")
	}
}

func (r *Run) damage(block int, what string) error {
	return base.Errorf(base.CodeCorruption, "%s: the block at offset %d: %s", r.path, r.at[block], what)
}

func (it *Iter) readBlock() error {
	r, start := it.r, it.r.at[it.block]
	end := r.size
	if it.block+1 < len(r.at) {
		end = r.at[it.block+1]
	}
	n := int(end - start)
	if cap(it.raw) < n {
		it.raw = make([]byte, n)
	}
	raw := it.raw[:n]
	if got, err := r.file.ReadAt(raw, start); got < n {
		if err == io.EOF {
			return r.damage(it.block, "the file ends before it does")
		}
		return err
	}
	body := raw[blockHeader:]
	if int(binary.LittleEndian.Uint32(raw)) != len(body) || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(raw[4:]) {
		return r.damage(it.block, "its checksum is wrong")
	}
	size, err := s2.DecodedLen(body)
	if err != nil || size == 0 || size > maxBlockBytes {
		return r.damage(it.block, "its length is wrong")
	}
	// A new one for each block: rows of the one before may still be in use.
	if it.rest, err = s2.Decode(make([]byte, size), body); err != nil {
		return r.damage(it.block, err.Error())
	}
	it.block++
	return nil
}

func (it *Iter) decode() bool {
	head, n := binary.Uvarint(it.rest)
	if n <= 0 {
		return false
	}
	rest := it.rest[n:]
	it.op, it.value = base.Op(head&1), nil
	keyLen, valueLen := head>>1, uint64(0)
	if it.op == base.OpPut {
		if valueLen, n = binary.Uvarint(rest); n <= 0 {
			return false
		}
		rest = rest[n:]
	}
	if keyLen > uint64(len(rest)) || valueLen > uint64(len(rest))-keyLen {
		return false
	}
	it.key = rest[:keyLen:keyLen]
	if it.op == base.OpPut {
		it.value = rest[keyLen : keyLen+valueLen : keyLen+valueLen]
	}
	it.rest = rest[keyLen+valueLen:]
	return true
}
