package engine

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// A batch is what one change writes to one table. The batches of one commit are one log record: all of it or nothing
// comes back after a crash. A record of batches is the byte recordBatches, then for each batch:
//
//	table id                u32 LE, 0 is the root table
//	schema id               u32 LE
//	first sequence number   u64 LE
//	row count               u32 LE
//	length of the rows      u32 LE, in bytes
//	rows: op u8, key length uvarint, key, and for puts: value length uvarint, value
//
// Row i has sequence number first+i; the next batch, and the next record of the log, takes up where the last row left off.
// The value is a full row in the codec of package row.
type batch struct {
	core *core
	// table is what the rows are encoded for; a batch does not survive a DROP and CREATE.
	table *table
	// checked says that no key may have been changed after sequence number since.
	checked bool
	since   base.Seq
	base    *Snapshot // of since; the Write holds it
	// data is a record with this batch alone.
	data []byte
	n    int
	// memBytes bounds what the rows take in a memtable.
	memBytes int
	// interrupt, if not nil, says that the writer does not want to wait any longer. It is asked by the writer's goroutine
	// only.
	interrupt func() bool
	last      base.Seq // of its rows, once sealed
}

// The kinds of log records, their first byte.
const (
	recordHead    = 1 // see logHead
	recordBatches = 2
	recordIntent  = 3 // see intent
)

const (
	partHeader  = 24
	batchHeader = 1 + partHeader
)

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
func (b *batch) seal(first base.Seq) {
	b.data[0] = recordBatches
	h := b.data[1:batchHeader]
	binary.LittleEndian.PutUint32(h, b.core.id)
	binary.LittleEndian.PutUint32(h[4:], uint32(b.table.schema.SchemaID))
	binary.LittleEndian.PutUint64(h[8:], first)
	binary.LittleEndian.PutUint32(h[16:], uint32(b.n))
	binary.LittleEndian.PutUint32(h[20:], uint32(len(b.data)-batchHeader))
}

// joinBatches returns the record of sealed batches.
func joinBatches(parts []*batch) []byte {
	if len(parts) == 1 {
		return parts[0].data
	}
	record := []byte{recordBatches}
	for _, b := range parts {
		record = append(record, b.data[1:]...)
	}
	return record
}

// batchReader walks the rows of a batch. It trusts nothing: lengths are checked against what is there.
type batchReader struct {
	rest     []byte
	table    uint32
	schemaID int32
	first    base.Seq
	n        int
}

// last returns the sequence number of the last row.
func (r *batchReader) last() base.Seq { return r.first + base.Seq(r.n) - 1 }

// readBatches returns the batches of a log record.
func readBatches(record []byte) ([]batchReader, error) {
	if len(record) == 0 || record[0] != recordBatches {
		return nil, base.Errorf(base.CodeCorruption, "a record that is none of batches")
	}
	var parts []batchReader
	for rest := record[1:]; len(rest) > 0 || len(parts) == 0; {
		if len(rest) < partHeader {
			return nil, base.Errorf(base.CodeCorruption, "a batch of %d bytes is shorter than its header", len(rest))
		}
		r := batchReader{
			table: binary.LittleEndian.Uint32(rest), schemaID: int32(binary.LittleEndian.Uint32(rest[4:])),
			first: binary.LittleEndian.Uint64(rest[8:]), n: int(binary.LittleEndian.Uint32(rest[16:])),
		}
		length := uint64(binary.LittleEndian.Uint32(rest[20:]))
		rest = rest[partHeader:]
		if r.first == 0 || r.first > base.MaxSeq || r.n == 0 || uint64(r.n) > length || length > uint64(len(rest)) || r.last() > base.MaxSeq {
			return nil, base.Errorf(base.CodeCorruption, "batch header: sequence %d, %d rows in %d of %d bytes", r.first, r.n, length, len(rest))
		}
		r.rest, rest = rest[:length:length], rest[length:]
		parts = append(parts, r)
	}
	return parts, nil
}

// readBatch is readBatches for a record that has one batch.
func readBatch(record []byte) (batchReader, error) {
	parts, err := readBatches(record)
	if err != nil {
		return batchReader{}, err
	}
	if len(parts) != 1 {
		return batchReader{}, base.Errorf(base.CodeCorruption, "%d batches where there is to be one", len(parts))
	}
	return parts[0], nil
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
