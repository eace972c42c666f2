package engine

import (
	"errors"
	"math"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/wal"
)

// Recovery: the logs hold what is not in files yet, of all tables. The newest log says which of the logs before it had
// rows that were not in files when it was begun (logHead); together with what the manifests say of that today, this is
// where replay begins. From there on every log must be there, and each must take up where the one before ended.

// replayedLog is a log as far as it was read.
type replayedLog struct {
	num  uint64
	head *logHead // nil until it was read
	last base.Seq // of the last row, or before the first one
	// entries are the memtables with its rows, oldest first; the last one of each table grows.
	entries map[*core][]*memEntry
}

func (l *replayedLog) unref() {
	for _, list := range l.entries {
		for _, e := range list {
			e.mt.Unref()
		}
	}
	l.entries = nil
}

// replayPlan says which logs are to be replayed.
type replayPlan struct {
	dir     string
	numbers []uint64 // all there are, ascending
	first   uint64   // the first that is needed
	heads   map[uint64]*logHead
}

// withRows returns the logs that may have rows that are not in files.
func (p *replayPlan) withRows() []uint64 {
	var out []uint64
	for _, n := range p.numbers {
		if n >= p.first {
			out = append(out, n)
		}
	}
	return out
}

// errHeadRead ends the reading of a log whose head was found.
var errHeadRead = errors.New("the head was read")

// readHead returns the head of a log, nil where the log has no whole record.
func (d *database) readHead(path string, num uint64) (head *logHead, err error) {
	_, err = wal.ReplayFrom(d.fs, path, num, wal.Position{}, func(_ int64, record []byte) error {
		h, err := readLogHead(record, num)
		if err != nil {
			return base.Wrapf(base.CodeCorruption, err, "%s", path)
		}
		head = h
		return errHeadRead
	})
	if errors.Is(err, errHeadRead) {
		err = nil
	}
	return head, err
}

// planReplay decides which logs of a directory are to be replayed, and checks that none is missing among them.
func (d *database) planReplay(dir string) (*replayPlan, error) {
	numbers, err := listLogs(d.fs, dir, d.oldestLog())
	if err != nil || len(numbers) == 0 {
		return &replayPlan{dir: dir}, err
	}
	p := &replayPlan{dir: dir, numbers: numbers, heads: map[uint64]*logHead{}}
	// The newest log may be torn before its head is whole. The one before was synced before it was begun.
	newest := len(numbers) - 1
	for ; newest >= 0 && newest >= len(numbers)-2; newest-- {
		num := numbers[newest]
		head, err := d.readHead(d.fs.Join(dir, wal.Name(num)), num)
		if err != nil {
			return nil, err
		}
		if head != nil {
			p.heads[num] = head
			break
		}
	}
	if len(p.heads) == 0 { // nothing was ever written to the only one, or replay says what is wrong
		p.first = numbers[0]
		return p, nil
	}
	num := numbers[newest]
	p.first = d.firstNeeded(num, p.heads[num])
	return p, d.checkChain(p, num)
}

// oldestLog returns the first log that may be needed, as the manifests say.
func (d *database) oldestLog() uint64 {
	n := uint64(math.MaxUint64)
	for _, c := range d.tables {
		if c.table != nil {
			n = min(n, c.minLog)
		}
	}
	return n
}

// firstNeeded returns the first log that has rows which are not in files, as the head of a later log and the manifests
// say.
func (d *database) firstNeeded(num uint64, head *logHead) uint64 {
	first := num
	for _, s := range head.unflushed {
		if c := d.tables[s.table]; c != nil && c.table != nil && c.minLog <= s.last {
			first = min(first, max(s.first, c.minLog))
		}
	}
	return first
}

// checkChain checks that the logs from the first needed one to num are all there.
func (d *database) checkChain(p *replayPlan, num uint64) error {
	for num > p.first {
		path := d.fs.Join(p.dir, wal.Name(num))
		head := p.heads[num]
		if head == nil {
			var err error
			if head, err = d.readHead(path, num); err != nil {
				return err
			}
			if head == nil {
				return base.Errorf(base.CodeCorruption, "%s: no whole record: only the newest log may end so", path)
			}
			p.heads[num] = head
		}
		if _, found := slices.BinarySearch(p.numbers, head.prev); !found {
			return base.Errorf(base.CodeCorruption, "%s: log %d, which is the one before it and has rows that are not in data files, is missing", path, head.prev)
		}
		num = head.prev
	}
	return nil
}

// recoverLogs replays the logs that the manifests do not cover into memtables, and cuts a torn tail off. The logs stay
// until flushes cover them; new writes go to a new log. It returns the memtables of each table, newest first.
func (d *database) recoverLogs() (map[*core][]*memEntry, error) {
	numbers, err := listLogs(d.fs, d.walDir, 0)
	if err != nil {
		return nil, err
	}
	if n := len(numbers); n > 0 {
		d.nextLog = max(d.nextLog, numbers[n-1]+1)
	}
	plan, err := d.planReplay(d.walDir)
	if err != nil {
		return nil, err
	}
	mems := map[*core][]*memEntry{}
	var before *replayedLog
	logs := plan.withRows()
	for i, num := range logs {
		l := &replayedLog{num: num}
		err := d.recoverLog(l, before, i == len(logs)-1)
		for c, list := range l.entries {
			for _, e := range list {
				mems[c] = append([]*memEntry{e}, mems[c]...)
			}
		}
		if err != nil {
			releaseMems(mems)
			return nil, err
		}
		if l.head != nil {
			before = l
			d.prevLog, d.loggedSeq = num, l.last
		}
	}
	for _, list := range mems {
		// Heads of logs count a table's memtable that took writes as one with rows in all logs of that time. So must the
		// manifest that it gets: a log in which it has none is removed without it, and would be missed later.
		list[0].lastLog = logs[len(logs)-1]
	}
	return mems, nil
}

func releaseMems(mems map[*core][]*memEntry) {
	for _, list := range mems {
		for _, e := range list {
			e.mt.Unref()
		}
	}
}

// recoverLog replays one log, which follows another one or is the first that is needed.
func (d *database) recoverLog(l, before *replayedLog, last bool) error {
	path := d.fs.Join(d.walDir, wal.Name(l.num))
	valid, err := wal.Replay(d.fs, path, l.num, last, func(offset int64, record []byte) error {
		isHead := l.head == nil
		if err := d.replayRecord(l, record); err != nil {
			return inRecord(err, path, offset)
		}
		if !isHead {
			return nil
		}
		return inRecord(d.follows(l.head, before), path, offset)
	})
	if err != nil || !last {
		return err
	}
	return d.cutTail(path, valid)
}

// inRecord says where a record is that something is wrong with.
func inRecord(err error, path string, offset int64) error {
	if err == nil {
		return nil
	}
	return base.Wrapf(base.CodeOf(err), err, "%s: record at offset %d", path, offset)
}

// follows checks that a log takes up where the one before left off: a log that ends between two records looks whole by
// itself.
func (d *database) follows(head *logHead, before *replayedLog) error {
	if before != nil {
		if head.prev != before.num || head.prevSeq != before.last {
			return base.Errorf(base.CodeCorruption, "it follows log %d with the sequence number %d at its end, but log %d ends with %d (a log is missing or cut short)",
				head.prev, head.prevSeq, before.num, before.last)
		}
		return nil
	}
	// All that was written before is in files, or of tables that were dropped.
	if head.seq > d.lastSeq {
		return base.Errorf(base.CodeCorruption, "it begins after sequence number %d, but %d is the last one in files (a log is missing, or another database's)",
			head.seq, d.lastSeq)
	}
	return nil
}

// replayRecord checks one log record and applies it. The caller makes it visible.
func (d *database) replayRecord(l *replayedLog, record []byte) error {
	if l.head == nil {
		head, err := readLogHead(record, l.num)
		if err != nil {
			return err
		}
		l.head, l.last = head, head.seq
		return nil
	}
	if len(record) > 0 && record[0] == recordIntent {
		return d.replayIntent(l, record)
	}
	parts, err := readBatches(record)
	if err != nil {
		return err
	}
	for _, r := range parts {
		if r.first != l.last+1 {
			return base.Errorf(base.CodeCorruption, "it has the sequence numbers from %d on, but %d is the last one before it", r.first, l.last)
		}
		l.last = r.last()
		if err := d.replayBatch(l, r); err != nil {
			return err
		}
		d.lastSeq = max(d.lastSeq, l.last)
	}
	return nil
}

// replayBatch applies the rows of a table, unless they are in files.
func (d *database) replayBatch(l *replayedLog, r batchReader) error {
	c := d.tables[r.table]
	if c == nil || c.table == nil {
		if c == nil && d.catalog.dropped(r.table) || c != nil && l.num < c.minLog {
			return nil // the table was dropped
		}
		if d.readOnly {
			return base.Errorf(base.CodeConflict, "the table of rows in the log came to be just now")
		}
		return base.Errorf(base.CodeCorruption, "it has rows of table %d, which is not there", r.table)
	}
	var cur *memEntry
	if list := l.entries[c]; len(list) > 0 {
		cur = list[len(list)-1]
	}
	if l.num < c.minLog || cur == nil && r.last() <= c.lastFlushed {
		// In files. A reader that has older rows of this log in memory must take these too: memory hides files.
		return nil
	}
	if cur == nil && r.first <= c.lastFlushed {
		return base.Errorf(base.CodeCorruption, "it has the sequence numbers %d to %d, and the files all up to %d", r.first, r.last(), c.lastFlushed)
	}
	need, err := c.checkRows(r)
	if err != nil {
		return err
	}
	if cur == nil || cur.free() < need {
		mt, err := memtable.New(max(d.opts.MemtableBytes, need+memtableSlack))
		if err != nil {
			return err
		}
		cur = &memEntry{mt: mt, log: l.num, lastLog: l.num, firstSeq: r.first}
		if l.entries == nil {
			l.entries = map[*core][]*memEntry{}
		}
		l.entries[c] = append(l.entries[c], cur)
	}
	cur.lastSeq = r.last()
	return r.apply(cur)
}

// checkRows checks the rows of a batch, and returns what they take in a memtable.
func (c *core) checkRows(r batchReader) (need int, err error) {
	for range r.n {
		op, key, value, err := r.next()
		if err != nil {
			return 0, err
		}
		if op == base.OpPut {
			if err := c.table.layout.Check(value); err != nil {
				return 0, base.Wrapf(base.CodeCorruption, err, "a row of table %q", c.table.schema.TableName)
			}
		}
		need += memtable.EntryBytes(len(key), len(value))
	}
	return need, nil
}

// unfinished is the error at a commit over several tables of which not everything was published yet.
type unfinished struct{ *intent }

func (u unfinished) Error() string {
	return "the commit " + u.tag + " over several tables is not all published"
}

// replayIntent checks that what a commit over several tables had staged is there.
func (d *database) replayIntent(l *replayedLog, record []byte) error {
	n, err := readIntent(record)
	if err != nil {
		return err
	}
	if n.first != l.last+1 {
		return base.Errorf(base.CodeCorruption, "it has the sequence numbers from %d on, but %d is the last one before it", n.first, l.last)
	}
	missing := n.catalog > d.catalog.version
	for _, p := range n.parts {
		if c := d.tables[p.table]; c != nil {
			missing = missing || c.atVersion < p.version
		} else {
			missing = missing || !d.catalog.dropped(p.table)
		}
	}
	if missing {
		if d.readOnly {
			return unfinished{n}
		}
		return base.Errorf(base.CodeCorruption, "it is of a commit over several tables, of which a manifest or the catalog is missing")
	}
	l.last = n.last()
	d.lastSeq = max(d.lastSeq, l.last)
	return nil
}

// lastIntent returns the last commit over several tables in the newest log, nil where there is none: one that was cut short
// by a crash is the last record of that log. What is returned is durable.
func (d *database) lastIntent() (last *intent, err error) {
	dir, err := d.recordedLogDir()
	if err != nil {
		return nil, err
	}
	numbers, err := listLogs(d.fs, dir, 0)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	num := numbers[len(numbers)-1]
	path := d.fs.Join(dir, wal.Name(num))
	valid, err := wal.Replay(d.fs, path, num, true, func(_ int64, record []byte) error {
		if len(record) == 0 || record[0] != recordIntent {
			return nil
		}
		var err error
		last, err = readIntent(record)
		return err
	})
	if err != nil || last == nil {
		return nil, err
	}
	return last, d.fs.Truncate(path, valid) // which syncs it, as cutTail does
}
