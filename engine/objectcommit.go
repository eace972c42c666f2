package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/memtable"
)

// The commit pipeline of a database in an object store. There is no log: what the leader of the queue takes goes to a data
// file of level 0 for each table, the rows that it supersedes to deletion vectors, and the manifest that names them is the
// commit. Its object is put only if there is none of that name, so of two writers that take themselves for the only one,
// one finds that the other was first: it is fenced, and takes no more writes until it is opened anew. Rows are seen, and
// acknowledged, when their manifest is there; before that they are in a memtable that nobody knows of. So there is never
// anything in memory that is not in files, and whatever else changes a table finds it flushed.

// objectCommit is what one leader commits.
type objectCommit struct {
	d        *database
	requests []*commitRequest
	parts    []*objectPart // by table, each with rows
	last     base.Seq
	bytes    int // of the rows, as memtables count
	// tag is that of the intent where the parts are one change (objecttogether.go); "" where each is by itself.
	tag string
}

// objectPart is what it commits to one table.
type objectPart struct {
	c    *core
	e    *memEntry
	out  *newFile
	s    *readState         // before
	next *manifest.Manifest // nil until it is committed
	err  error
}

// linger gives others the time to hand their batches in, where the options say so.
func (d *database) linger() {
	if d.objects == nil || d.opts.CommitLinger <= 0 {
		return
	}
	timer := time.NewTimer(d.opts.CommitLinger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.stop:
	}
}

// commitObjects commits a group. It runs under writeMu.
func (d *database) commitObjects(group []*commitRequest) {
	leader := group[0]
	for len(group) > 0 {
		first := group[0]
		if err := d.awaitFileRoom(first.parts, first.stopWaiting(first == leader)); err != nil {
			first.err = err
			group = group[1:]
			continue
		}
		j, n := &objectCommit{d: d, last: d.lastSeq}, 1
		if len(first.parts) > 1 {
			j.takeAll(first)
		} else {
			n = j.take(group)
		}
		j.commit()
		j.close()
		group = group[n:]
	}
}

// awaitFileRoom waits, without writeMu, until the tables of a request may get another file on level 0.
func (d *database) awaitFileRoom(parts []*batch, stop func() error) error {
	cores := coresOf(parts)
	for {
		if err := d.takes(parts); err != nil {
			return err
		}
		if !d.mustStop(cores) {
			return nil
		}
		d.writeMu.Unlock()
		err := d.waitForRoom(cores, func() stallReason { return d.hardLimit(cores) }, stop)
		d.writeMu.Lock()
		if err != nil {
			return err
		}
	}
}

// take takes requests from the head of a group, the first of which has room, and returns how many are done with: those that
// conflict with what came before have their error.
func (j *objectCommit) take(group []*commitRequest) int {
	for i, r := range group {
		if i > 0 && (len(r.parts) > 1 || j.bytes+r.memBytes() > j.d.opts.MemtableBytes || j.d.mustStop(coresOf(r.parts))) {
			return i
		}
		if r.err = j.add(r.parts[0], group[i:]); r.err == nil {
			r.seq = j.last
			j.requests = append(j.requests, r)
		}
	}
	return len(group)
}

// add adds a batch; rest are the requests from that of the batch on.
func (j *objectCommit) add(b *batch, rest []*commitRequest) error {
	if err := b.inPlace(); err != nil {
		return err
	}
	p, known := j.part(b.core)
	if known {
		if err := b.core.checkUnchanged(b, p.e, j.last); err != nil {
			return err
		}
	} else {
		if err := b.core.checkUnchanged(b, nil, j.last); err != nil {
			return err
		}
		mt, err := memtable.New(min(b.core.bytesIn(rest), max(j.d.opts.MemtableBytes, b.memBytes)) + memtableSlack)
		if err != nil {
			return err
		}
		p = &objectPart{c: b.core, e: &memEntry{mt: mt, log: j.d.nextLog - 1, lastLog: j.d.nextLog - 1}}
		j.parts = append(j.parts, p)
	}
	b.seal(j.last + 1)
	if err := applyToMemtable(p.e, b.data); err != nil {
		return j.d.fail(err) // the memtable has a part of it; there was room for all
	}
	j.last += base.Seq(b.n)
	b.last, p.e.lastSeq = j.last, j.last
	j.bytes += b.memBytes
	return nil
}

func (j *objectCommit) part(c *core) (p *objectPart, known bool) {
	for _, p := range j.parts {
		if p.c == c {
			return p, true
		}
	}
	return nil, false
}

// bytesIn bounds what the rows of a table take of requests.
func (c *core) bytesIn(requests []*commitRequest) (n int) {
	for _, r := range requests {
		for _, b := range r.parts {
			if b.core == c {
				n += b.memBytes
			}
		}
	}
	return n
}

// commit makes what was taken durable and visible, each table by itself.
func (j *objectCommit) commit() {
	d := j.d
	if err := d.writable(); err != nil { // add failed
		for _, r := range j.requests {
			r.err = err
		}
		return
	}
	if len(j.requests) == 0 {
		return
	}
	d.lastSeq = j.last // whatever comes of it: no number is given twice
	j.each(func(p *objectPart) error { return p.write() })
	if err := j.firstError(); err != nil && j.tag != "" {
		j.failAll(err)
	}
	slices.SortFunc(j.parts, func(a, b *objectPart) int { return cmp.Compare(a.c.id, b.c.id) })
	for _, p := range j.parts {
		p.c.commitMu.Lock()
		defer p.c.commitMu.Unlock()
	}
	j.each(func(p *objectPart) error { return p.commit(j.tag) })
	if j.tag != "" {
		j.decide()
	}
	j.publish()
}

// each calls fn for the parts without an error, side by side, and keeps what it returns.
func (j *objectCommit) each(fn func(p *objectPart) error) {
	const atATime = 8
	errs := base.Each(len(j.parts), atATime, func(i int) error {
		if err := j.parts[i].err; err != nil {
			return err
		}
		return fn(j.parts[i])
	})
	for i, err := range errs {
		j.parts[i].err = err
	}
}

// write brings the rows into a data file, and looks up what they supersede.
func (p *objectPart) write() (err error) {
	if p.out, err = p.c.writeMemtable(p.c.table, p.e); err != nil {
		return err
	}
	_, err = p.c.lookUp(p.e, p.out)
	return err
}

// commit commits the manifest, as one of an intent where there is a tag. It runs under commitMu.
func (p *objectPart) commit(tag string) error {
	c := p.c
	p.s = c.current()
	next, ch, err := c.flushChange(p.s, p.e, p.out)
	if err != nil {
		return err
	}
	if tag != "" {
		next.Properties[manifest.PropIntent] = tag
	}
	if err := c.commitFiles(p.s, next, ch); err != nil {
		return err
	}
	p.next = next
	return nil
}

// publish makes what was committed visible, in all tables at once. It runs under writeMu and all commitMu.
func (j *objectCommit) publish() {
	d := j.d
	rows := 0
	d.mu.Lock()
	for _, p := range j.parts {
		if p.next != nil {
			p.c.state = p.c.newState(p.s, p.next, p.s.table, p.s.mems)
			p.c.stateVersion.Add(1)
			d.visible = j.last
			rows += p.e.mt.Len()
		}
	}
	d.flushDone.Broadcast()
	d.mu.Unlock()
	for _, p := range j.parts {
		if p.next != nil {
			p.s.unref() // the core's reference
			p.c.kickCompaction()
			p.c.collectGarbage()
		}
	}
	for _, r := range j.requests {
		p, _ := j.part(r.parts[0].core)
		r.err = p.err
	}
	d.stats.rowsWritten.Add(int64(rows))
	d.stats.groups.Add(1)
}

// close gives up what was not committed.
func (j *objectCommit) close() {
	for _, p := range j.parts {
		if p.out != nil {
			if p.next == nil {
				p.c.discard(p.out)
			}
			p.c.pending.remove(p.out.meta.Path)
		}
		if p.s != nil {
			p.s.unref()
		}
		p.e.mt.Unref()
	}
}
