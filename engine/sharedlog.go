package engine

import (
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/wal"
)

// The log is one for all tables. A memtable may have rows in several logs that follow each other: each time another
// table's memtable is retired alone the log ends, and the next one begins with the next write. A log goes when no table
// has rows in it that are not in files.

// logHead is the first record of a log. It says what must be there besides the log itself, so that a log that is gone,
// or that ends between two records, is noticed: what is read after it would be right by itself.
//
//	kind                        u8 = recordHead
//	previous log                u64 LE, 0 for none
//	last sequence number in it  u64 LE
//	last sequence number given  u64 LE; the first row of the log has the next one
//	count                       u32 LE
//	for each table with rows that are in older logs and not in files:
//	  table id u32 LE, first and last of those logs u64 LE
type logHead struct {
	prev      uint64
	prevSeq   base.Seq
	seq       base.Seq
	unflushed []logSpan
}

// logSpan are the logs that have a table's rows which are not in files.
type logSpan struct {
	table       uint32
	first, last uint64
}

const (
	headBytes = 1 + 3*8 + 4
	spanBytes = 4 + 2*8
)

func (h *logHead) encode() []byte {
	b := append(make([]byte, 0, headBytes+spanBytes*len(h.unflushed)), recordHead)
	for _, v := range []uint64{h.prev, h.prevSeq, h.seq} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.unflushed)))
	for _, s := range h.unflushed {
		b = binary.LittleEndian.AppendUint32(b, s.table)
		b = binary.LittleEndian.AppendUint64(b, s.first)
		b = binary.LittleEndian.AppendUint64(b, s.last)
	}
	return b
}

func readLogHead(record []byte, num uint64) (*logHead, error) {
	if len(record) < headBytes || record[0] != recordHead {
		return nil, base.Errorf(base.CodeCorruption, "the log does not begin with its head")
	}
	u64 := binary.LittleEndian.Uint64
	h := &logHead{prev: u64(record[1:]), prevSeq: u64(record[9:]), seq: u64(record[17:])}
	rest := record[headBytes:]
	n := binary.LittleEndian.Uint32(record[25:])
	if uint64(len(rest)) != uint64(n)*spanBytes || h.prev >= num || h.prevSeq > h.seq || h.seq >= base.MaxSeq {
		return nil, base.Errorf(base.CodeCorruption, "the head of the log: previous log %d, sequence numbers %d and %d, %d tables in %d bytes",
			h.prev, h.prevSeq, h.seq, n, len(rest))
	}
	for ; len(rest) > 0; rest = rest[spanBytes:] {
		s := logSpan{table: binary.LittleEndian.Uint32(rest), first: u64(rest[4:]), last: u64(rest[12:])}
		if s.first > s.last || s.last >= num {
			return nil, base.Errorf(base.CodeCorruption, "the head of the log: table %d has rows in the logs %d to %d", s.table, s.first, s.last)
		}
		h.unflushed = append(h.unflushed, s)
	}
	return h, nil
}

// openLog begins a log. It runs under writeMu, with no log open. The log before was synced when it was closed, at every
// durability level: a later log must never survive without an earlier one.
func (d *database) openLog() error {
	if err := d.prepareLogDir(); err != nil {
		return err
	}
	w, err := wal.Create(d.fs, d.walDir, d.nextLog)
	if err != nil {
		return err
	}
	head := d.logHead()
	if err := w.Append(head.encode()); err != nil {
		_ = w.Close() // the error of the append counts
		if d.fs.Remove(d.fs.Join(d.walDir, wal.Name(d.nextLog))) != nil {
			d.nextLog++ // the number is taken
		}
		return err
	}
	d.log = w
	d.prevLog, d.loggedSeq = d.nextLog, d.lastSeq
	d.nextLog++
	return nil
}

// logHead makes the head of the next log.
func (d *database) logHead() logHead {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := logHead{prev: d.prevLog, prevSeq: d.loggedSeq, seq: d.lastSeq}
	for id, c := range d.tables {
		s := logSpan{table: id}
		for _, e := range c.unflushed() {
			if e == c.active {
				s.last = d.nextLog - 1
			}
			if s.first == 0 || e.log < s.first {
				s.first = e.log
			}
			s.last = max(s.last, e.lastLog)
		}
		if s.first > 0 {
			h.unflushed = append(h.unflushed, s)
		}
	}
	return h
}

// unflushed returns the memtables of the current state. It runs under mu.
func (c *core) unflushed() []*memEntry {
	if c.state == nil {
		return nil
	}
	return c.state.mems
}

// closeLog ends the log and makes it durable. It runs under writeMu.
func (d *database) closeLog() error {
	if d.log == nil {
		return nil
	}
	if err := d.log.Sync(); err != nil {
		return d.fail(err)
	}
	err := d.log.Close()
	d.log = nil
	if err != nil {
		return d.fail(err)
	}
	d.mu.Lock()
	d.logFloor = d.nextLog
	d.mu.Unlock()
	return nil
}

// currentLog returns the log that the next row goes to. It runs under writeMu.
func (d *database) currentLog() uint64 {
	if d.log != nil {
		return d.nextLog - 1
	}
	return d.nextLog
}

// retireActives makes all active memtables immutable, and ends the log. It runs under writeMu.
func (d *database) retireActives() error {
	if err := d.closeLog(); err != nil {
		return err
	}
	for c := range d.actives {
		c.retired()
	}
	d.kickFlush()
	return nil
}

// activesBytes returns what the active memtables take. It runs under writeMu.
func (d *database) activesBytes() int {
	const leastBytes = 16 << 10 // of one that is nearly empty
	n := leastBytes * max(len(d.actives)-1, 0)
	for c := range d.actives {
		n += c.active.mt.Bytes()
	}
	return n
}

// neededLog returns the first log that is needed. It runs under mu.
func (d *database) neededLog() uint64 {
	n := d.logFloor
	for _, c := range d.tables {
		for _, e := range c.unflushed() {
			n = min(n, e.log)
		}
	}
	return n
}
