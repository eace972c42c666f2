package engine

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// A batch is the unit of the log: all of it or nothing comes back after a crash. Its bytes are the log record:
//
//	first sequence number   u64 LE
//	record count            u32 LE
//	schema id               u32 LE
//	records: op u8, key length uvarint, key, and for puts: value length uvarint, value
//
// Record i has sequence number first+i. The value is a full row in the codec of package row.
type batch struct {
	// table is what the records are encoded for; a batch does not survive a DROP and CREATE.
	table *table
	// checked says that no key may have been changed after sequence number since.
	checked bool
	since   base.Seq
	base    *Snapshot // of since; the Write holds it
	data    []byte
	n       int
	// memBytes bounds what the records take in a memtable.
	memBytes int
}

const batchHeader = 16

func (b *batch) add(op base.Op, key, value []byte) {
	if len(b.data) == 0 {
		b.data = append(b.data, make([]byte, batchHeader)...)
	}
	b.data = append(b.data, byte(op))
	b.data = binary.AppendUvarint(b.data, uint64(len(key)))
	b.data = append(b.data, key...)
	if op == base.OpPut {
		b.data = binary.AppendUvarint(b.data, uint64(len(value)))
		b.data = append(b.data, value...)
	}
	b.n++
	b.memBytes += memtable.EntryBytes(len(key), len(value))
}

// seal fills the header in; the batch is then ready for the log.
func (b *batch) seal(first base.Seq, schemaID int32) {
	binary.LittleEndian.PutUint64(b.data, first)
	binary.LittleEndian.PutUint32(b.data[8:], uint32(b.n))
	binary.LittleEndian.PutUint32(b.data[12:], uint32(schemaID))
}

// batchReader walks a log record. It trusts nothing: lengths are checked against what is there.
type batchReader struct {
	rest     []byte
	first    base.Seq
	n        int
	schemaID int32
}

func readBatch(data []byte) (batchReader, error) {
	if len(data) < batchHeader {
		return batchReader{}, base.Errorf(base.CodeCorruption, "batch of %d bytes is shorter than its header", len(data))
	}
	r := batchReader{
		first: binary.LittleEndian.Uint64(data), n: int(binary.LittleEndian.Uint32(data[8:])),
		schemaID: int32(binary.LittleEndian.Uint32(data[12:])), rest: data[batchHeader:],
	}
	if r.first == 0 || r.first > base.MaxSeq || r.n == 0 || r.n > len(r.rest) {
		return batchReader{}, base.Errorf(base.CodeCorruption, "batch header: sequence %d, %d records in %d bytes", r.first, r.n, len(r.rest))
	}
	return r, nil
}

// next returns the record at hand; call it n times. The slices alias the log record.
func (r *batchReader) next() (op base.Op, key, value []byte, err error) {
	if len(r.rest) == 0 || r.rest[0] > byte(base.OpPut) {
		return 0, nil, nil, base.Errorf(base.CodeCorruption, "batch record: bad op with %d bytes left", len(r.rest))
	}
	op, r.rest = base.Op(r.rest[0]), r.rest[1:]
	if key, err = r.bytes(base.MaxKeyBytes); err != nil {
		return 0, nil, nil, err
	}
	if op == base.OpPut {
		if value, err = r.bytes(base.MaxValueBytes); err != nil {
			return 0, nil, nil, err
		}
	}
	return op, key, value, nil
}

func (r *batchReader) bytes(limit int) ([]byte, error) {
	n, w := binary.Uvarint(r.rest)
	if w <= 0 || n > uint64(limit) || n > uint64(len(r.rest)-w) {
		return nil, base.Errorf(base.CodeCorruption, "batch record: length %d with %d bytes left", n, len(r.rest))
	}
	out := r.rest[w : w+int(n)]
	r.rest = r.rest[w+int(n):]
	return out, nil
}
