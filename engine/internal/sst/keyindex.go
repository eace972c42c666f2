package sst

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"sort"

	"github.com/merutable/merutable/engine/internal/base"
)

// The footer's free entries.
const (
	schemaKey    = "merutable.schema"
	keyIndexKey  = "merutable.key_index"
	checksumsKey = "merutable.checksums"
)

const keyIndexVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// keyIndex is the sparse index of a file: the rows are cut into blocks, none of which crosses a row group, and the
// first key of each block is kept. Stored form, in base64: version, CRC-32C of what follows (u32 LE), then as
// variable-length integers the number of blocks and, for each, how many rows after the block before it starts, how many
// bytes its key shares with the key before, how many follow, and these; at the end, likewise, the number of rows after
// the last block's start and the file's last key.
type keyIndex struct {
	rows []int64  // first row of each block, and the number of rows at the end
	ends []uint32 // where each key ends in keys
	keys []byte   // the first keys of the blocks, one after the other
	last []byte
}

func (x *keyIndex) blocks() int { return len(x.ends) }

// key returns the first key of block i.
func (x *keyIndex) key(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = x.ends[i-1]
	}
	return x.keys[start:x.ends[i]:x.ends[i]]
}

// find returns the block that would hold the key, or -1 when the key lies before the first or behind the last.
func (x *keyIndex) find(key []byte) int {
	if x.blocks() == 0 || bytes.Compare(key, x.last) > 0 {
		return -1
	}
	return sort.Search(x.blocks(), func(i int) bool { return bytes.Compare(x.key(i), key) > 0 }) - 1
}

// bytes returns about how much memory the index takes.
func (x *keyIndex) bytes() int { return len(x.keys) + 4*len(x.ends) + 8*len(x.rows) + len(x.last) }

// keyIndexBuilder gathers the stored form.
type keyIndexBuilder struct {
	blocks  uint64
	entries []byte
	prev    []byte // the last entry's key
	row     int64  // the last entry's row
}

// add opens a block at a row, which is beyond the last block's start.
func (b *keyIndexBuilder) add(row int64, key []byte) {
	b.entry(row, key)
	b.blocks++
}

func (b *keyIndexBuilder) entry(row int64, key []byte) {
	shared := 0
	for shared < len(b.prev) && shared < len(key) && b.prev[shared] == key[shared] {
		shared++
	}
	b.entries = binary.AppendUvarint(b.entries, uint64(row-b.row))
	b.entries = binary.AppendUvarint(b.entries, uint64(shared))
	b.entries = binary.AppendUvarint(b.entries, uint64(len(key)-shared))
	b.entries = append(b.entries, key[shared:]...)
	b.prev, b.row = append(b.prev[:0], key...), row
}

// finish returns the footer entry of a file of that many rows.
func (b *keyIndexBuilder) finish(rows int64, last []byte) string {
	b.entry(rows, last)
	body := append(binary.AppendUvarint(nil, b.blocks), b.entries...)
	out := make([]byte, 5, 5+len(body))
	out[0] = keyIndexVersion
	binary.LittleEndian.PutUint32(out[1:], crc32.Checksum(body, castagnoli))
	return base64.StdEncoding.EncodeToString(append(out, body...))
}

// parseKeyIndex reads the footer entry of a file with the given number of rows. Keys and rows ascend, and no key is
// longer than base.MaxKeyBytes; what is allocated is bounded by the entry's own length times the longest key shared.
func parseKeyIndex(stored string, rows int64) (*keyIndex, error) {
	raw, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return nil, base.Wrapf(base.CodeCorruption, err, "key index")
	}
	if len(raw) < 6 {
		return nil, base.Errorf(base.CodeCorruption, "key index of %d bytes", len(raw))
	}
	if raw[0] != keyIndexVersion {
		return nil, base.Errorf(base.CodeUnsupported, "key index of version %d, this program knows %d", raw[0], keyIndexVersion)
	}
	body := raw[5:]
	if sum := crc32.Checksum(body, castagnoli); sum != binary.LittleEndian.Uint32(raw[1:]) {
		return nil, base.Errorf(base.CodeCorruption, "key index: checksum %08x, stored is %08x", sum, binary.LittleEndian.Uint32(raw[1:]))
	}
	p := &indexParser{rest: body}
	n := p.uvarint()
	if p.bad || n == 0 || n > uint64(len(body))/3 || int64(n) > rows {
		return nil, base.Errorf(base.CodeCorruption, "key index of %d blocks in %d bytes, for %d rows", n, len(body), rows)
	}
	x := &keyIndex{rows: make([]int64, 0, n+1), ends: make([]uint32, 0, n)}
	for i := uint64(0); i <= n; i++ {
		// Rows ascend from 0 to the file's.
		last := i == n
		if p.entry(); p.bad || (i == 0) != (p.step == 0) || p.row > rows || last && p.row != rows {
			return nil, base.Errorf(base.CodeCorruption, "key index: block %d of %d starts at row %d of %d", i, n, p.row, rows)
		}
		if i > 0 && (p.order > 0 || p.order == 0 && !last) {
			return nil, base.Errorf(base.CodeCorruption, "key index: the keys of blocks %d and %d do not ascend", i-1, i)
		}
		x.rows = append(x.rows, p.row)
		if last {
			x.last = bytes.Clone(p.key)
			break
		}
		x.keys = append(x.keys, p.key...)
		x.ends = append(x.ends, uint32(len(x.keys)))
	}
	if len(p.rest) != 0 || len(x.keys) > maxIndexKeyBytes {
		return nil, base.Errorf(base.CodeCorruption, "key index: %d bytes of keys, %d bytes behind the last block", len(x.keys), len(p.rest))
	}
	return x, nil
}

// maxIndexKeyBytes bounds the keys of one index: the writer closes no block before it has enough rows, so this is far
// above what it makes.
const maxIndexKeyBytes = 1 << 30

type indexParser struct {
	rest  []byte
	key   []byte
	row   int64
	step  uint64
	order int // of the key before and this one
	bad   bool
}

func (p *indexParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.bad = true
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *indexParser) entry() {
	step, shared, n := p.uvarint(), p.uvarint(), p.uvarint()
	if p.bad || step > 1<<40 || shared > uint64(len(p.key)) || n > uint64(len(p.rest)) || shared+n > base.MaxKeyBytes {
		p.bad = true
		return
	}
	p.step = step
	p.row += int64(step)
	// Behind the shared bytes the new key must be the greater one.
	p.order = bytes.Compare(p.key[shared:], p.rest[:n])
	p.key = append(p.key[:shared], p.rest[:n]...)
	p.rest = p.rest[n:]
}
