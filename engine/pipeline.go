package engine

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// The commit pipeline. Writers hand their batches in; one of them, the leader, takes all that wait, appends them to the
// log, syncs once, puts them into the memtable while the disk is at work, and makes them visible; then the next writer in
// the queue leads. So concurrent writers share one fsync, and batches become visible in the order of their sequence
// numbers.

// maxGroupBytes bounds what one leader takes, so that the first writer of a group does not wait for all others.
const maxGroupBytes = 8 << 20

type commitRequest struct {
	parts []*batch // of different tables, each with rows
	seq   base.Seq // the last sequence number, once done
	err   error
	// wake gets true when the request has to lead, false when it is done.
	wake chan bool
	// withdrawn says that the writer was interrupted when a leader had its request already.
	withdrawn atomic.Bool
}

// interrupt is that of the writer, nil where it has none.
func (r *commitRequest) interrupt() func() bool { return r.parts[0].interrupt }

// size returns the bytes of the log record.
func (r *commitRequest) size() (n int) {
	for _, b := range r.parts {
		n += len(b.data)
	}
	return n
}

// memBytes bounds what the rows take in memtables.
func (r *commitRequest) memBytes() (n int) {
	for _, b := range r.parts {
		n += b.memBytes
	}
	return n
}

// apply commits a batch and returns its last sequence number. It returns when the batch is visible and as durable as
// the options ask for.
func (d *database) apply(b *batch) (base.Seq, error) { return d.applyAll([]*batch{b}) }

// applyAll commits batches of different tables, all of them or none, with one log record: they become visible at once,
// and a crash leaves all of them or none. It returns the last sequence number.
func (d *database) applyAll(batches []*batch) (base.Seq, error) {
	req := &commitRequest{wake: make(chan bool, 1)}
	for _, b := range batches {
		if b.n > 0 {
			req.parts = append(req.parts, b)
		}
	}
	if len(req.parts) == 0 {
		return d.visibleSeq(), d.writable()
	}
	if n := req.size(); n > base.MaxBatchBytes {
		return 0, base.Errorf(base.CodeInvalidArgument, "a batch of %d bytes: the limit is %d", n, base.MaxBatchBytes)
	}
	d.queueMu.Lock()
	d.queue = append(d.queue, req)
	lead := !d.leading
	d.leading = true
	crowd := d.crowd
	d.queueMu.Unlock()
	if lead || d.awaitTurn(req) {
		if crowd {
			d.gather()
		}
		d.leadGroup()
	}
	return req.seq, req.err
}

// awaitTurn waits until a request has to lead, which is true, or is done. An interrupt takes it out of the queue; where a
// leader has it already, that one does not wait for room on its behalf.
func (d *database) awaitTurn(req *commitRequest) (lead bool) {
	interrupt := req.interrupt()
	if interrupt == nil {
		return <-req.wake
	}
	const askEvery = 50 * time.Millisecond
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case lead := <-req.wake:
			return lead
		case <-tick.C:
			if interrupt() && d.withdraw(req) {
				return false
			}
		}
	}
}

// withdraw ends a request that waits in the queue. False: a leader has it.
func (d *database) withdraw(req *commitRequest) bool {
	req.withdrawn.Store(true)
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	i := slices.Index(d.queue, req)
	if i < 0 {
		return false
	}
	d.queue = slices.Delete(d.queue, i, i+1)
	req.err = interruptedError()
	select {
	case <-req.wake: // it was to lead
		d.passOn()
	default:
	}
	return true
}

// passOn makes the next request in the queue lead. It runs under queueMu.
func (d *database) passOn() {
	if len(d.queue) > 0 {
		d.queue[0].wake <- true
	} else {
		d.leading = false
	}
}

func interruptedError() error { return base.Errorf(base.CodeCancelled, "interrupted") }

// stopWaiting returns what a request whose turn it is asks while it waits for room: its own interrupt where its writer
// leads, else whether the writer has withdrawn it.
func (r *commitRequest) stopWaiting(leads bool) func() error {
	interrupt := r.interrupt()
	if interrupt == nil {
		return nil
	}
	return func() error {
		if leads && interrupt() || r.withdrawn.Load() {
			return interruptedError()
		}
		return nil
	}
}

// gather lets the writers whose group was just committed hand their next batches in, as long as more come: they are
// awake. Without it the first one of them would lead a group of its own, and the others wait for two syncs.
func (d *database) gather() {
	const rounds = 4
	before := 0
	for range rounds {
		runtime.Gosched()
		d.queueMu.Lock()
		n := len(d.queue)
		d.queueMu.Unlock()
		if n == before {
			return
		}
		before = n
	}
}

// leadGroup commits the requests at the head of the queue, its own first, then passes leadership on.
func (d *database) leadGroup() {
	d.slowDown()
	d.linger()
	group := d.takeGroup()
	start := time.Now()
	d.writeMu.Lock()
	if d.objects != nil {
		d.commitObjects(group)
	} else {
		d.commitGroup(group)
	}
	d.writeMu.Unlock()
	d.charge(group, start)

	for _, r := range group[1:] {
		r.wake <- false
	}
	d.queueMu.Lock()
	d.passOn()
	d.queueMu.Unlock()
}

func (d *database) takeGroup() []*commitRequest {
	// Where writers must stop, those behind the first one are better off in the queue: they can still leave it.
	alone := d.anyMustStop()
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	n, size := 0, 0
	for n < len(d.queue) && (n == 0 || !alone) && (n == 0 || size+d.queue[n].size() <= maxGroupBytes) {
		size += d.queue[n].size()
		n++
	}
	d.crowd = n > 1
	group := d.queue[:n:n]
	d.queue = append([]*commitRequest(nil), d.queue[n:]...)
	return group
}

// commitGroup runs under writeMu. Requests that find room in the memtables share a sync.
func (d *database) commitGroup(group []*commitRequest) {
	leader := group[0]
	for len(group) > 0 {
		err := d.makeRoom(group[0].parts, group[0].stopWaiting(group[0] == leader))
		for _, b := range group[0].parts {
			if err == nil {
				err = b.core.checkUnchanged(b, nil, d.visibleSeq())
			}
		}
		if err != nil {
			group[0].err = err
			group = group[1:]
			continue
		}
		n := d.roomFor(group)
		if err := d.writeGroup(group[:n]); err != nil {
			for _, r := range group[:n] {
				r.err = err
			}
		}
		group = group[n:]
	}
}

// roomFor returns how many requests, the first of which has room, find room in the memtables as they are. It runs under
// writeMu.
func (d *database) roomFor(group []*commitRequest) int {
	if len(group) == 1 {
		return 1
	}
	taken := map[*core]int{}
	total := d.activesBytes()
	for i, r := range group {
		total += r.memBytes()
		if i > 0 && total > d.opts.MemtableBytes {
			return i
		}
		for _, b := range r.parts {
			c := b.core
			taken[c] += b.memBytes
			if i > 0 && (b.checked || b.table != c.table || c.active == nil || c.active.free() < taken[c]) {
				return i
			}
		}
	}
	return len(group)
}

// writeGroup logs batches that fit the active memtables and applies them. Where the log cannot take them (a full disk,
// say) it is rewound, and writing may be tried again. After a failed sync the database takes no more writes: what reached
// the disk is known only after a re-open.
func (d *database) writeGroup(group []*commitRequest) error {
	before := d.log.Size()
	last, size, err := d.appendGroup(group)
	if err != nil {
		return err
	}
	rows := int(last - d.lastSeq)
	insert := sync.OnceValue(func() error {
		for _, r := range group {
			for _, b := range r.parts {
				if err := applyToMemtable(b.core.active, b.data); err != nil {
					return err
				}
			}
		}
		return nil
	})
	err = d.syncBeside(rows, size, insert)
	if err != nil {
		d.log.TakeBack(before)
	}
	// Rows that are in the memtable but not durable are not published, and a database that failed flushes no more.
	if e := insert(); err == nil {
		err = e
	}
	if err != nil {
		return d.fail(err)
	}
	d.lastSeq, d.loggedSeq = last, last
	d.publish(group, last)
	d.stats.walBytes.Add(int64(size))
	d.stats.rowsWritten.Add(int64(rows))
	d.stats.groups.Add(1)
	return nil
}

// appendGroup gives the batches their sequence numbers and appends them to the log, a record for each request.
func (d *database) appendGroup(group []*commitRequest) (last base.Seq, size int, err error) {
	last = d.lastSeq
	payloads := make([][]byte, len(group))
	for i, r := range group {
		for _, b := range r.parts {
			b.seal(last + 1)
			last += base.Seq(b.n)
			b.last = last
		}
		r.seq = last
		payloads[i] = joinBatches(r.parts)
		size += len(payloads[i])
	}
	before := d.log.Size()
	if err := d.log.AppendGroup(payloads); err != nil {
		if d.log.Rewind(before) != nil {
			return 0, 0, d.fail(err)
		}
		return 0, 0, err
	}
	return last, size, nil
}

// syncBeside makes the log durable, if the options ask for it. Another goroutine runs insert meanwhile, if it comes to it
// in time; for few rows it is not worth waking one.
func (d *database) syncBeside(rows, bytes int, insert func() error) error {
	const few = 64
	if d.opts.Durability != Sync {
		d.syncLater(bytes)
		return nil
	}
	if rows >= few {
		go func() { _ = insert() }() // the caller asks for the result
	}
	d.stats.walSyncs.Add(1)
	return d.log.Sync()
}

// syncLater has the sync loop sync the log, if much was written since it last did.
func (d *database) syncLater(bytes int) {
	const much = 8 << 20
	d.logDirty.Store(true)
	if d.unsynced += bytes; d.unsynced < much {
		return
	}
	d.unsynced = 0
	select {
	case d.syncWork <- struct{}{}:
	default:
	}
}

// applyToMemtable inserts the rows of a sealed batch.
func applyToMemtable(e *memEntry, data []byte) error {
	r, err := readBatch(data)
	if err != nil {
		return err
	}
	return r.apply(e)
}

// apply inserts the rows.
func (r batchReader) apply(e *memEntry) error {
	for i := range r.n {
		op, key, value, err := r.next()
		if err != nil {
			return err
		}
		if err := e.mt.Add(key, r.first+base.Seq(i), op, value); err != nil {
			return err
		}
	}
	return nil
}

// publish makes what was inserted for a group visible, up to seq, in all tables at once.
func (d *database) publish(group []*commitRequest, seq base.Seq) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begins := false
	for _, r := range group {
		for _, b := range r.parts {
			e := b.core.active
			if e.firstSeq == 0 {
				e.firstSeq, begins = b.last-base.Seq(b.n)+1, true
				if d.mirror != nil {
					e.firstAt = time.Now()
				}
			}
			e.visible = e.mt.Len()
			e.lastSeq = b.last
			b.core.stateVersion.Add(1)
		}
	}
	d.visible = seq
	d.mirror.wrote(begins)
}

// makeRoom makes the active memtables have room for batches of different tables; it runs under writeMu. Together the
// active memtables have at most the size of one: when that is reached all of them are retired, and a log begins anew.
// Writers wait here when flushes or compactions fall behind, without writeMu, so that nobody else has to wait.
func (d *database) makeRoom(parts []*batch, stop func() error) error {
	for {
		if err := d.takes(parts); err != nil {
			return err
		}
		full, missing := d.lacksRoom(parts)
		if !full && !missing {
			return nil
		}
		cores := coresOf(parts)
		if !d.mustStop(cores) {
			if full {
				if err := d.retireActives(); err != nil {
					return err
				}
			}
			return d.startMemtables(parts)
		}
		d.writeMu.Unlock()
		err := d.waitForRoom(cores, func() stallReason { return d.hardLimit(cores) }, stop)
		d.writeMu.Lock()
		if err != nil {
			return err
		}
	}
}

// takes returns an error where batches cannot be committed any more. It runs under writeMu.
func (d *database) takes(parts []*batch) error {
	if err := d.writable(); err != nil {
		return err
	}
	for _, b := range parts {
		if err := b.inPlace(); err != nil {
			return err
		}
	}
	return nil
}

// inPlace returns an error where the table is not the one any more that the rows are of. It runs under writeMu.
func (b *batch) inPlace() error {
	if b.core.table == nil || b.table != b.core.table {
		return base.Errorf(base.CodeConflict, "the table in %s was dropped, replaced or altered while rows for it were on their way", b.core.dir)
	}
	return nil
}

func coresOf(parts []*batch) []*core {
	cores := make([]*core, len(parts))
	for i, b := range parts {
		cores[i] = b.core
	}
	return cores
}

// lacksRoom reports whether the active memtables are too full for batches, and whether some of those that they need, or
// the log, are missing.
func (d *database) lacksRoom(parts []*batch) (full, missing bool) {
	missing = d.log == nil
	used, need := d.activesBytes(), 0
	for _, b := range parts {
		need += b.memBytes
		switch e := b.core.active; {
		case e == nil:
			missing = true
		case e.free() < b.memBytes:
			full = true
		}
	}
	return full || used > 0 && used+need > d.opts.MemtableBytes, missing
}

// startMemtables starts the log and the memtables that batches need and that are missing.
func (d *database) startMemtables(parts []*batch) error {
	if d.log == nil {
		if err := d.openLog(); err != nil {
			return err
		}
	}
	for _, b := range parts {
		if b.core.active == nil {
			if err := b.core.startMemtable(max(d.opts.MemtableBytes, b.memBytes+memtableSlack)); err != nil {
				return err
			}
		}
	}
	return nil
}

// memtableSlack covers what an empty memtable takes for itself.
const memtableSlack = 64 << 10
