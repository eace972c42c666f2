package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// A commit over several tables of which one is too large for the log, or comes, or goes: each table's rows are in files by
// then, and each gets a manifest, which cannot all be renamed at one moment. So the manifests, and the catalog if tables come, are staged
// first, durably; then a record in the log says that they are to count: that is the commit. Then they are published, one
// after the other. Nobody here sees any of them before all are. What a crash leaves unpublished the next open publishes,
// and readers in other processes show what was before the commit as long as not all of it is there.

// intent is that log record:
//
//	kind                   u8 = recordIntent
//	tag                    36 bytes, of the staged files
//	first sequence number  u64 LE
//	catalog version        u64 LE, 0: it stays
//	count                  u32 LE; that many sequence numbers are taken too, one for each table
//	for each table: id u32 LE, version of its manifest u64 LE
type intent struct {
	tag     string
	first   base.Seq
	catalog uint64
	parts   []intentPart
}

type intentPart struct {
	table   uint32
	version int64
}

const (
	tagBytes        = 36
	intentHeader    = 1 + tagBytes + 8 + 8 + 4
	intentPartBytes = 4 + 8
)

func (n *intent) last() base.Seq { return n.first + base.Seq(len(n.parts)) - 1 }

func (n *intent) encode() []byte {
	b := append([]byte{recordIntent}, n.tag...)
	b = binary.LittleEndian.AppendUint64(b, n.first)
	b = binary.LittleEndian.AppendUint64(b, n.catalog)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(n.parts)))
	for _, p := range n.parts {
		b = binary.LittleEndian.AppendUint32(b, p.table)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.version))
	}
	return b
}

func readIntent(record []byte) (*intent, error) {
	if len(record) < intentHeader || !manifest.IsUUID(string(record[1:1+tagBytes])) {
		return nil, base.Errorf(base.CodeCorruption, "an intent of %d bytes without a tag", len(record))
	}
	rest := record[1+tagBytes:]
	n := &intent{
		tag: string(record[1 : 1+tagBytes]), first: binary.LittleEndian.Uint64(rest), catalog: binary.LittleEndian.Uint64(rest[8:]),
	}
	count := binary.LittleEndian.Uint32(rest[16:])
	rest = rest[20:]
	if count == 0 && n.catalog == 0 || uint64(len(rest)) != uint64(count)*intentPartBytes || n.first == 0 || n.first+base.Seq(count) > base.MaxSeq {
		return nil, base.Errorf(base.CodeCorruption, "an intent of %d tables in %d bytes, sequence number %d", count, len(rest), n.first)
	}
	for ; len(rest) > 0; rest = rest[intentPartBytes:] {
		p := intentPart{table: binary.LittleEndian.Uint32(rest), version: int64(binary.LittleEndian.Uint64(rest[4:]))}
		if p.version < 1 {
			return nil, base.Errorf(base.CodeCorruption, "an intent with version %d of table %d", p.version, p.table)
		}
		n.parts = append(n.parts, p)
	}
	return n, nil
}

// droppedTable is a table that is to go.
type droppedTable struct {
	c     *core
	table *table // as which it is known
}

// commitTogether commits writes to different tables, and drops others, all of it or nothing, and returns the last
// sequence number. It ends the writes in every case.
func (d *database) commitTogether(writes []*Write, drops ...droppedTable) (base.Seq, error) {
	defer func() {
		for _, w := range writes {
			w.Close()
		}
	}()
	large := len(drops) > 0
	for _, w := range writes {
		if err := w.usable(); err != nil {
			return 0, err
		}
		if err := w.closeOpen(); err != nil {
			return 0, err
		}
		large = large || w.load != nil
	}
	if !large {
		return d.applyWrites(writes)
	}
	j := &joint{d: d, intent: intent{tag: newUUID()}}
	for _, w := range writes {
		l, err := w.asLoad()
		if err != nil {
			return 0, err
		}
		if l != nil {
			j.parts = append(j.parts, &jointPart{c: l.c, l: l, expected: l.expectedTable(), t: w.table})
		}
	}
	if len(j.parts) == 1 && len(drops) == 0 {
		return j.parts[0].l.commit()
	}
	for _, p := range j.parts {
		if err := p.l.prepare(); err != nil {
			return 0, err
		}
	}
	for _, t := range drops {
		j.parts = append(j.parts, &jointPart{c: t.c, expected: t.table})
	}
	return j.commit()
}

// applyWrites commits writes that are few rows each.
func (d *database) applyWrites(writes []*Write) (base.Seq, error) {
	batches := make([]*batch, len(writes))
	for i, w := range writes {
		if err := w.drainBlocks(); err != nil {
			return 0, err
		}
		batches[i] = &w.batch
	}
	for _, w := range writes {
		if err := w.interrupted(); err != nil {
			return 0, err
		}
	}
	return d.applyAll(batches)
}

// asLoad makes a bulk load of whatever the write has, nil for nothing.
func (w *Write) asLoad() (*load, error) {
	if l, ok := w.load.(*load); ok {
		return l, nil
	}
	if w.load != nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "a statement of a transaction is committed with that")
	}
	blocks, err := w.takeBlocks()
	if err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, nil
	}
	l, err := newLoad(w, blocks)
	w.load = l
	return l, err
}

// joint is such a commit under way.
type joint struct {
	d      *database
	intent intent
	parts  []*jointPart // by table
	listed *catalog     // the next catalog, nil where it stays
	staged bool         // the catalog is
	// unlisted says that listed has no table any more that goes, which is in a manifest of its own (objecttogether.go).
	unlisted bool
	logged   bool
}

// jointPart is what the commit does to one table.
type jointPart struct {
	c        *core
	l        *load      // nil: the table goes
	expected *table     // what must be there; nil: no table
	t        *table     // what is there then
	s        *readState // before
	// next is the manifest, nil where the catalog alone drops the table.
	next   *manifest.Manifest
	dvs    *dvWriter
	staged bool // the manifest is
}

// commit keeps all other writers out.
func (j *joint) commit() (base.Seq, error) {
	d := j.d
	slices.SortFunc(j.parts, func(a, b *jointPart) int { return cmp.Compare(a.c.id, b.c.id) })
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if err := d.writable(); err != nil {
		return 0, err
	}
	if err := d.retireActives(); err != nil {
		return 0, err
	}
	for _, p := range j.parts {
		if err := j.inPlace(p); err != nil {
			return 0, err
		}
		if p.l == nil {
			continue // its rows go with it
		}
		if err := p.c.waitFlushed(nil); err != nil {
			return 0, err
		}
	}
	for _, p := range j.parts {
		p.c.commitMu.Lock()
		defer p.c.commitMu.Unlock()
	}
	defer j.close()
	if err := j.persist(); err != nil {
		return 0, err
	}
	j.install()
	d.collectAll()
	return d.lastSeq, nil
}

// persist makes it durable: that is the commit.
func (j *joint) persist() error {
	if j.d.remote() {
		return j.putAll()
	}
	if err := j.stage(); err != nil {
		return err
	}
	if err := j.log(); err != nil {
		return err
	}
	if err := j.publish(); err != nil {
		return j.d.fail(err) // it is durable, and published by the next open
	}
	return nil
}

// inPlace returns an error where a part cannot be done any more.
func (j *joint) inPlace(p *jointPart) error {
	if p.c.table != p.expected {
		if p.expected == nil {
			return base.Errorf(base.CodeConflict, "a table was created in %s meanwhile", p.c.dir)
		}
		return replacedMeanwhile(p.expected)
	}
	if p.l == nil || p.l.w.creates == nil && p.l.w.alters == nil {
		return nil
	}
	name := p.t.schema.TableName
	for _, other := range j.parts {
		if other != p && other.t != nil && foldName(other.t.schema.TableName) == foldName(name) {
			return base.Errorf(base.CodeAlreadyExists, "two tables %q would be there", name)
		}
	}
	other := j.d.find(name)
	goes := func(q *jointPart) bool {
		return q.c == other && (q.t == nil || foldName(q.t.schema.TableName) != foldName(name))
	}
	if other != nil && other != p.c && !slices.ContainsFunc(j.parts, goes) {
		return base.Errorf(base.CodeConflict, "a table %q was created in %s meanwhile", name, j.d.root)
	}
	return nil
}

// stage writes the manifests, and the catalog if tables come or go.
func (j *joint) stage() error {
	d := j.d
	j.intent.first = d.lastSeq + 1
	for _, p := range j.parts {
		p.s = p.c.current()
		if p.l != nil || p.c.id == 0 {
			if err := j.stageManifest(p); err != nil {
				return err
			}
		}
		known := d.tables[p.c.id] == p.c
		if known == (p.t != nil) || p.c.id == 0 {
			continue
		}
		if j.listed == nil {
			j.listed = d.catalog.next()
		}
		if known {
			j.listed.remove(p.c.id)
			j.listed.nextID = max(j.listed.nextID, p.c.id+1)
		} else {
			j.listed.add(p.c.id)
		}
	}
	if j.listed == nil {
		return nil
	}
	if len(j.listed.ids)+1 > maxTables {
		return base.Errorf(base.CodeInvalidArgument, "%s would hold %d tables: the limit is %d", d.root, len(j.listed.ids)+1, maxTables)
	}
	j.listed.lastSeq = max(j.listed.lastSeq, j.intent.last())
	j.intent.catalog = j.listed.version
	j.staged = true
	if err := j.listed.writeAs(d.fs, d.root, stagedCatalog(j.intent.tag)); err != nil {
		return err
	}
	return d.fs.SyncDir(d.root)
}

// stageManifest writes the manifest of a part.
func (j *joint) stageManifest(p *jointPart) error {
	if err := j.makeManifest(p); err != nil {
		return err
	}
	p.staged = true
	return p.c.store.Stage(p.next, j.intent.tag)
}

// makeManifest makes the manifest of a part, which takes the next sequence number, and writes deletion vectors.
func (j *joint) makeManifest(p *jointPart) (err error) {
	c, seq := p.c, j.intent.first+base.Seq(len(j.intent.parts))
	var ch change
	if p.l != nil {
		if p.next, ch, err = p.l.change(p.s, seq); err != nil {
			return err
		}
		p.dvs = &dvWriter{core: c, version: p.next.Version}
		if err := c.listFiles(p.s, p.next, ch, p.dvs); err != nil {
			return err
		}
	} else {
		p.next = c.nextManifest("drop")
		p.next.Schema, p.next.Dropped, p.next.Files = nil, true, nil
		p.next.MinLog, p.next.FlushedSeq = c.nextLog, seq
	}
	c.stamp(p.s.manifest, p.next)
	j.intent.parts = append(j.intent.parts, intentPart{table: c.id, version: p.next.Version})
	return nil
}

// log appends the intent, durably: that is the commit.
func (j *joint) log() error {
	d := j.d
	if err := d.openLog(); err != nil {
		return err
	}
	before := d.log.Size()
	if err := d.log.Append(j.intent.encode()); err != nil {
		if d.log.Rewind(before) != nil {
			return d.fail(err)
		}
		return err
	}
	j.logged = true
	if err := d.log.Sync(); err != nil {
		d.log.TakeBack(before)
		return d.fail(err)
	}
	return nil
}

// publish makes what was staged count.
func (j *joint) publish() error {
	for _, p := range j.parts {
		if p.next == nil {
			continue
		}
		if err := p.c.store.Publish(p.next.Version, j.intent.tag); err != nil {
			return err
		}
	}
	if j.listed == nil {
		return nil
	}
	return j.d.publishCatalog(j.intent.tag)
}

// install shows it to readers, all at once.
func (j *joint) install() {
	d := j.d
	for _, p := range j.parts {
		if p.dvs != nil {
			p.dvs.committed = true
		}
		if p.next != nil {
			p.c.committed(p.s.manifest, p.next)
		}
	}
	last := j.intent.last()
	d.lastSeq, d.loggedSeq = last, last
	d.mu.Lock()
	var fresh, gone []*core
	for _, p := range j.parts {
		c := p.c
		m := p.next
		if m == nil {
			m = p.s.manifest
			gone = append(gone, c)
			delete(d.tables, c.id)
		} else if d.tables[c.id] != c {
			fresh = append(fresh, c)
			d.tables[c.id] = c
		} else if p.t == nil && c.id != 0 && j.unlisted {
			delete(d.tables, c.id)
			d.leaving[c] = struct{}{}
		}
		c.state, c.table = c.newState(p.s, m, p.t, nil), p.t
		c.stateVersion.Add(1)
	}
	if j.listed != nil {
		d.catalog = j.listed
	}
	d.visible = last
	d.mirror.changed()
	d.flushDone.Broadcast()
	d.mu.Unlock()
	for _, p := range j.parts {
		p.s.unref() // the core's reference
		if p.l != nil {
			p.l.published()
		}
		p.c.kickCompaction()
	}
	for _, c := range fresh {
		c.startWorkers()
	}
	for _, c := range gone {
		_ = c.commitDrop(d.catalog) // the table is gone all the same; its files are found at the next open
		c.collectGarbage()
	}
}

// close gives up what was not committed.
func (j *joint) close() {
	d := j.d
	for _, p := range j.parts {
		if p.dvs != nil {
			p.dvs.close()
		}
		if p.staged && !j.logged {
			p.c.store.Unstage(p.next.Version, j.intent.tag)
		}
		if p.s != nil {
			p.s.unref()
		}
	}
	if j.staged && !j.logged {
		_ = d.fs.Remove(d.fs.Join(d.root, stagedCatalog(j.intent.tag))) // swept at the next open
	}
}

// collectAll wakes the collectors of all tables.
func (d *database) collectAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.tables {
		c.collectGarbage()
	}
}

// stagedCatalog is the name of a catalog that is staged.
func stagedCatalog(tag string) string { return catalogFileName + "." + tag + ".staged" }

// publishCatalog makes a staged catalog the one that counts. Where that was done before it does nothing.
func (d *database) publishCatalog(tag string) error {
	staged := d.fs.Join(d.root, stagedCatalog(tag))
	if _, err := d.fs.Stat(staged); base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	if err := d.fs.Rename(staged, d.fs.Join(d.root, catalogFileName)); err != nil {
		return err
	}
	return d.fs.SyncDir(d.root)
}

// redo publishes what a commit over several tables that was cut short by a crash has left staged. It runs before anything
// else is read of the tables.
func (d *database) redo() error {
	tags, err := d.stagedTags()
	if err != nil || len(tags) == 0 {
		return err
	}
	last, err := d.lastIntent()
	if err != nil {
		return err
	}
	if last != nil && tags[last.tag] {
		for _, p := range last.parts {
			if err := newCore(d, p.table).store.Publish(p.version, last.tag); err != nil {
				return err
			}
		}
		if err := d.publishCatalog(last.tag); err != nil {
			return err
		}
	}
	for tag := range tags { // what is left of it in tables the collector sweeps
		if last == nil || tag != last.tag {
			_ = d.fs.Remove(d.fs.Join(d.root, stagedCatalog(tag)))
		}
	}
	return nil
}

// stagedTags returns the tags of what is staged.
func (d *database) stagedTags() (map[string]bool, error) {
	tags := map[string]bool{}
	names, err := d.listDir(d.root)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if rest, ok := strings.CutPrefix(n, catalogFileName+"."); ok {
			if tag, ok := strings.CutSuffix(rest, ".staged"); ok && manifest.IsUUID(tag) {
				tags[tag] = true
			}
		}
	}
	for _, id := range append([]uint32{0}, d.catalog.ids...) {
		staged, err := newCore(d, id).store.StagedTags()
		if err != nil {
			return nil, err
		}
		for _, tag := range staged {
			tags[tag] = true
		}
	}
	return tags, nil
}
