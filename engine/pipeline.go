package engine

import (
	"runtime"
	"sync"
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
	batch *batch
	seq   base.Seq // the last sequence number, once done
	err   error
	// wake gets true when the request has to lead, false when it is done.
	wake chan bool
}

// apply commits a batch and returns its last sequence number. It returns when the batch is visible and as durable as
// the options ask for.
func (c *core) apply(b *batch) (base.Seq, error) {
	if b.n == 0 {
		return c.visibleSeq(), c.writable()
	}
	if len(b.data) > base.MaxBatchBytes {
		return 0, base.Errorf(base.CodeInvalidArgument, "a batch of %d bytes: the limit is %d", len(b.data), base.MaxBatchBytes)
	}
	req := &commitRequest{batch: b, wake: make(chan bool, 1)}
	c.queueMu.Lock()
	c.queue = append(c.queue, req)
	lead := !c.leading
	c.leading = true
	crowd := c.crowd
	c.queueMu.Unlock()
	if lead || <-req.wake {
		if crowd {
			c.gather()
		}
		c.leadGroup()
	}
	return req.seq, req.err
}

// gather lets the writers whose group was just committed hand their next batches in, as long as more come: they are
// awake. Without it the first one of them would lead a group of its own, and the others wait for two syncs.
func (c *core) gather() {
	const rounds = 4
	before := 0
	for range rounds {
		runtime.Gosched()
		c.queueMu.Lock()
		n := len(c.queue)
		c.queueMu.Unlock()
		if n == before {
			return
		}
		before = n
	}
}

// leadGroup commits the requests at the head of the queue, its own first, then passes leadership on.
func (c *core) leadGroup() {
	c.slowDown()
	group := c.takeGroup()
	start := time.Now()
	c.writeMu.Lock()
	c.commitGroup(group)
	c.writeMu.Unlock()
	c.charge(group, start)

	for _, r := range group[1:] {
		r.wake <- false
	}
	c.queueMu.Lock()
	if len(c.queue) > 0 {
		c.queue[0].wake <- true
	} else {
		c.leading = false
	}
	c.queueMu.Unlock()
}

func (c *core) takeGroup() []*commitRequest {
	c.queueMu.Lock()
	defer c.queueMu.Unlock()
	n, size := 0, 0
	for n < len(c.queue) && (n == 0 || size+len(c.queue[n].batch.data) <= maxGroupBytes) {
		size += len(c.queue[n].batch.data)
		n++
	}
	c.crowd = n > 1
	group := c.queue[:n:n]
	c.queue = append([]*commitRequest(nil), c.queue[n:]...)
	return group
}

// commitGroup runs under writeMu. Requests that share a memtable share a sync.
func (c *core) commitGroup(group []*commitRequest) {
	for len(group) > 0 {
		err := c.makeRoom(group[0].batch)
		if err == nil {
			err = c.checkUnchanged(group[0].batch)
		}
		if err != nil {
			group[0].err = err
			group = group[1:]
			continue
		}
		n, free := 0, c.active.mt.Capacity()-c.active.mt.Bytes()
		for n < len(group) && (n == 0 || group[n].batch.memBytes <= free && group[n].batch.table == c.table && !group[n].batch.checked) {
			free -= group[n].batch.memBytes
			n++
		}
		if err := c.writeGroup(group[:n]); err != nil {
			for _, r := range group[:n] {
				r.err = err
			}
		}
		group = group[n:]
	}
}

// writeGroup logs batches that fit the active memtable and applies them. Where the log cannot take them (a full disk, say)
// it is rewound, and writing may be tried again. After a failed sync the core takes no more writes: what reached the disk
// is known only after a re-open.
func (c *core) writeGroup(group []*commitRequest) error {
	before := c.log.Size()
	last, size, err := c.appendGroup(group)
	if err != nil {
		return err
	}
	rows := int(last - c.lastSeq)
	insert := sync.OnceValue(func() error {
		for _, r := range group {
			if err := applyToMemtable(c.active, r.batch.data); err != nil {
				return err
			}
		}
		return nil
	})
	err = c.syncBeside(rows, size, insert)
	if err != nil {
		c.log.TakeBack(before)
	}
	// Rows that are in the memtable but not durable are not published, and a core that failed flushes no more.
	if e := insert(); err == nil {
		err = e
	}
	if err != nil {
		return c.fail(err)
	}
	c.lastSeq = last
	c.publish(c.active, last)
	c.stats.walBytes.Add(int64(size))
	c.stats.rowsWritten.Add(int64(rows))
	c.stats.groups.Add(1)
	return nil
}

// appendGroup gives the batches their sequence numbers and appends them to the log.
func (c *core) appendGroup(group []*commitRequest) (last base.Seq, size int, err error) {
	last = c.lastSeq
	payloads := make([][]byte, len(group))
	for i, r := range group {
		r.batch.seal(last+1, c.table.schema.SchemaID)
		last += base.Seq(r.batch.n)
		r.seq = last
		payloads[i] = r.batch.data
		size += len(r.batch.data)
	}
	before := c.log.Size()
	if err := c.log.AppendGroup(payloads); err != nil {
		if c.log.Rewind(before) != nil {
			return 0, 0, c.fail(err)
		}
		return 0, 0, err
	}
	return last, size, nil
}

// syncBeside makes the log durable, if the options ask for it. Another goroutine runs insert meanwhile, if it comes to it
// in time; for few rows it is not worth waking one.
func (c *core) syncBeside(rows, bytes int, insert func() error) error {
	const few = 64
	if c.opts.Durability != Sync {
		c.syncLater(bytes)
		return nil
	}
	if rows >= few {
		go func() { _ = insert() }() // the caller asks for the result
	}
	c.stats.walSyncs.Add(1)
	return c.log.Sync()
}

// syncLater has the sync loop sync the log, if much was written since it last did.
func (c *core) syncLater(bytes int) {
	const much = 8 << 20
	c.logDirty.Store(true)
	if c.unsynced += bytes; c.unsynced < much {
		return
	}
	c.unsynced = 0
	select {
	case c.syncWork <- struct{}{}:
	default:
	}
}

func applyToMemtable(e *memEntry, data []byte) error {
	r, err := readBatch(data)
	if err != nil {
		return err
	}
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

// publish makes all entries of e visible, up to seq.
func (c *core) publish(e *memEntry, seq base.Seq) {
	c.mu.Lock()
	e.visible = e.mt.Len()
	e.lastSeq = seq
	c.visible = seq
	c.stateVersion.Add(1)
	c.mu.Unlock()
}

// makeRoom makes the active memtable have room for a batch; it runs under writeMu. Writers wait here when flushes or
// compactions fall behind, without writeMu, so that nobody else has to wait.
func (c *core) makeRoom(b *batch) error {
	n := b.memBytes
	for {
		if err := c.writable(); err != nil {
			return err
		}
		if c.table == nil || b.table != c.table {
			return base.Errorf(base.CodeConflict, "the table in %s was dropped, replaced or altered while rows for it were on their way", c.dir)
		}
		if c.active != nil && c.active.mt.Capacity()-c.active.mt.Bytes() >= n {
			return nil
		}
		if !c.mustStop() {
			return c.rotate(max(c.opts.MemtableBytes, n+memtableSlack))
		}
		c.writeMu.Unlock()
		err := c.waitForRoom(c.hardLimit, nil)
		c.writeMu.Lock()
		if err != nil {
			return err
		}
	}
}

// memtableSlack covers what an empty memtable takes for itself.
const memtableSlack = 64 << 10
