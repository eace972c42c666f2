package engine

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// A commit over several tables of which one is too large for the log: each table's rows are in files by then, and each
// gets a manifest, which cannot all be renamed at one moment. So the manifests, and the catalog if tables come, are staged
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
	if len(record) < intentHeader || !isUUID(string(record[1:1+tagBytes])) {
		return nil, base.Errorf(base.CodeCorruption, "an intent of %d bytes without a tag", len(record))
	}
	rest := record[1+tagBytes:]
	n := &intent{
		tag: string(record[1 : 1+tagBytes]), first: binary.LittleEndian.Uint64(rest), catalog: binary.LittleEndian.Uint64(rest[8:]),
	}
	count := binary.LittleEndian.Uint32(rest[16:])
	rest = rest[20:]
	if count == 0 || uint64(len(rest)) != uint64(count)*intentPartBytes || n.first == 0 || n.first+base.Seq(count) > base.MaxSeq {
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

// commitTogether commits writes to different tables, all of them or none, and returns the last sequence number. It ends
// them in every case.
func (d *database) commitTogether(writes []*Write) (base.Seq, error) {
	defer func() {
		for _, w := range writes {
			w.Close()
		}
	}()
	large := false
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
		var batches []*batch
		for _, w := range writes {
			if err := w.drainBlocks(); err != nil {
				return 0, err
			}
			batches = append(batches, &w.batch)
		}
		return d.applyAll(batches)
	}
	j := &joint{d: d, intent: intent{tag: newUUID()}}
	for _, w := range writes {
		l, err := w.asLoad()
		if err != nil {
			return 0, err
		}
		if l != nil {
			j.loads = append(j.loads, l)
		}
	}
	if len(j.loads) == 1 {
		return j.loads[0].commit()
	}
	for _, l := range j.loads {
		if err := l.prepare(); err != nil {
			return 0, err
		}
	}
	return j.commit()
}

// asLoad makes a bulk load of whatever the write has, nil for nothing.
func (w *Write) asLoad() (*load, error) {
	if l, ok := w.load.(*load); ok {
		return l, nil
	}
	if w.load != nil {
		return nil, base.Errorf(base.CodeInvalidArgument, "a statement of a transaction is committed with that")
	}
	blocks := w.blocks
	w.blocks, w.blockBytes = nil, 0
	if w.batch.n > 0 {
		first, err := w.batchBlock()
		if err != nil {
			for _, b := range blocks {
				b.Free()
			}
			return nil, err
		}
		blocks = append([]*Block{first}, blocks...)
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
	loads  []*load // by table
	parts  []*jointPart
	listed *catalog // the next catalog, nil where it stays
	staged bool     // the catalog is
	logged bool
}

// jointPart is what the commit does to one table.
type jointPart struct {
	l    *load
	s    *readState // before
	next *manifest.Manifest
	dvs  *dvWriter
	// staged says that the manifest is.
	staged bool
}

// commit keeps all other writers out.
func (j *joint) commit() (base.Seq, error) {
	d := j.d
	slices.SortFunc(j.loads, func(a, b *load) int { return cmp.Compare(a.c.id, b.c.id) })
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if err := d.writable(); err != nil {
		return 0, err
	}
	if err := d.retireActives(); err != nil {
		return 0, err
	}
	names := map[string]bool{}
	for _, l := range j.loads {
		if err := l.inPlace(); err != nil {
			return 0, err
		}
		name := foldName(l.w.table.schema.TableName)
		if names[name] {
			return 0, base.Errorf(base.CodeAlreadyExists, "two tables %q are to be created", l.w.table.schema.TableName)
		}
		names[name] = true
		if err := l.c.waitFlushed(); err != nil {
			return 0, err
		}
	}
	for _, l := range j.loads {
		l.c.commitMu.Lock()
		defer l.c.commitMu.Unlock()
	}
	defer j.close()
	if err := j.stage(); err != nil {
		return 0, err
	}
	if err := j.log(); err != nil {
		return 0, err
	}
	if err := j.publish(); err != nil {
		return 0, d.fail(err) // it is durable, and published by the next open
	}
	j.install()
	d.collectAll()
	return d.lastSeq, nil
}

// stage writes the manifests, and the catalog if tables come.
func (j *joint) stage() error {
	d := j.d
	j.intent.first = d.lastSeq + 1
	for i, l := range j.loads {
		p := &jointPart{l: l, s: l.c.current()}
		j.parts = append(j.parts, p)
		next, ch, err := l.change(p.s, j.intent.first+base.Seq(i))
		if err != nil {
			return err
		}
		l.c.stamp(p.s.manifest, next)
		p.next, p.dvs = next, &dvWriter{core: l.c, version: next.Version}
		if err := l.c.listFiles(p.s, next, ch, p.dvs); err != nil {
			return err
		}
		p.staged = true
		if err := l.c.store.Stage(next, j.intent.tag); err != nil {
			return err
		}
		j.intent.parts = append(j.intent.parts, intentPart{table: l.c.id, version: next.Version})
		if d.tables[l.c.id] != l.c {
			if j.listed == nil {
				j.listed = d.catalog.next()
			}
			j.listed.add(l.c.id)
		}
	}
	if j.listed == nil {
		return nil
	}
	if len(j.listed.ids)+1 > maxTables {
		return base.Errorf(base.CodeInvalidArgument, "%s holds %d tables: the limit is %d", d.root, len(d.tables), maxTables)
	}
	j.intent.catalog = j.listed.version
	j.staged = true
	if err := j.listed.writeAs(d.fs, d.root, stagedCatalog(j.intent.tag)); err != nil {
		return err
	}
	return d.fs.SyncDir(d.root)
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
		if err := p.l.c.store.Publish(p.next.Version, j.intent.tag); err != nil {
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
	last := j.intent.last()
	for _, p := range j.parts {
		p.dvs.committed = true
		p.l.c.committed(p.s.manifest, p.next)
	}
	d.lastSeq, d.loggedSeq = last, last
	var fresh []*core
	d.mu.Lock()
	for _, p := range j.parts {
		c := p.l.c
		c.state, c.table = c.newState(p.s, p.next, p.l.w.table, nil), p.l.w.table
		c.stateVersion.Add(1)
		if d.tables[c.id] != c {
			d.tables[c.id] = c
			fresh = append(fresh, c)
		}
	}
	if j.listed != nil {
		d.catalog = j.listed
	}
	d.visible = last
	d.flushDone.Broadcast()
	d.mu.Unlock()
	for _, p := range j.parts {
		p.s.unref() // the core's reference
		p.l.published()
		p.l.c.kickCompaction()
	}
	for _, c := range fresh {
		c.startWorkers()
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
			p.l.c.store.Unstage(p.next.Version, j.intent.tag)
		}
		p.s.unref()
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
			if tag, ok := strings.CutSuffix(rest, ".staged"); ok && isUUID(tag) {
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
