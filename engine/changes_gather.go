package engine

import (
	"bytes"
	"encoding/binary"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// changeGather turns the versions of rows that a plan names into changes.
type changeGather struct {
	f        *Changes
	plan     *changePlan
	versions *rowSorter
	asked    int // versions since an interrupt was asked for
	// total and did are the rows to read, and those read.
	total, did int64
	buf        []byte
	rec        []byte

	// group are keys with their versions whose rows in the base are looked up together.
	group      []keyVersions
	groupBytes int
}

// keyVersions are the versions of one key that are newer than the base, oldest first.
type keyVersions struct {
	key      []byte
	versions []rowVersion
}

type rowVersion struct {
	seq   base.Seq
	flags byte
	rec   []byte
}

// Flags of a version, the first byte of its value in the sorter; the record follows.
const (
	versionPut = 1 << iota
	// versionMerged says that versions of its key after since may have been merged into it.
	versionMerged
)

// maxLookupKeys and maxLookupBytes bound what is looked up together.
const (
	maxLookupKeys  = 8192
	maxLookupBytes = 8 << 20
)

func newChangeGather(f *Changes, plan *changePlan) *changeGather {
	g := &changeGather{f: f, plan: plan}
	for _, file := range plan.files {
		g.total += file.meta.Rows
	}
	g.total += int64(plan.now.MemoryRows())
	return g
}

// read takes note of rows that were read, each of which is written once more.
func (g *changeGather) read(rows int) {
	const share = 0.7 // of reading
	if g.did += int64(rows); g.f.o.Progress != nil && g.total > 0 {
		g.f.o.Progress(share * min(float64(g.did)/float64(g.total), 1))
	}
}

func (g *changeGather) run() (err error) {
	p := g.plan
	if p.since >= p.until {
		return nil
	}
	if g.versions, err = newRowSorter(p.c.temporaryFS(), g.f.dir.make); err != nil {
		return err
	}
	defer g.versions.close()
	for _, f := range p.files {
		if err := g.addFile(f); err != nil {
			return err
		}
	}
	if err := g.addMemory(); err != nil {
		return err
	}
	return g.pairUp()
}

// tick asks for an interrupt now and then.
func (g *changeGather) tick() error {
	const askEvery = 1024
	if g.asked++; g.asked%askEvery != 0 {
		return nil
	}
	return g.f.interrupted()
}

// add adds a version; rec is nil for a deletion.
func (g *changeGather) add(key []byte, seq base.Seq, flags byte, rec []byte) error {
	g.buf = append(g.buf[:0], key...)
	g.buf = binary.BigEndian.AppendUint64(g.buf, seq)
	g.rec = append(append(g.rec[:0], flags), rec...)
	if err := g.versions.add(g.buf, g.rec); err != nil {
		return err
	}
	return g.tick()
}

func (g *changeGather) addMemory() error {
	s := g.plan.now
	for i, e := range s.state.mems {
		if s.visible[i] == 0 {
			continue
		}
		it := e.mt.NewAllIter()
		for it.First(); it.Valid(); it.Next() {
			if it.Seq() > g.plan.until || it.Seq() <= g.plan.baseSeq {
				continue
			}
			flags := byte(0)
			if it.Op() == base.OpPut {
				flags = versionPut
			}
			if err := g.add(it.Key(), it.Seq(), flags, it.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *changeGather) addFile(f changeFile) error {
	t := g.plan.table
	r, err := f.open(t.schema)
	if err != nil {
		return err
	}
	it := r.NewIter(sst.IterOptions{Hidden: true, BatchBytes: fileBatchBytes})
	defer it.Close()
	merged := byte(0)
	if f.meta.SeqMin <= g.plan.since {
		merged = versionMerged
	}
	var key, rec []byte
	cells := make([]row.Cell, len(t.schema.Columns))
	for {
		cols, first, err := it.Next()
		if err != nil || cols == nil {
			return err
		}
		if err := g.f.interrupted(); err != nil {
			return err
		}
		g.read(cols.N)
		for i := range cols.N {
			seq := cols.Seqs[i]
			if f.meta.SeqInherited {
				seq = f.meta.SeqMax
			}
			if seq > g.plan.until || seq <= g.plan.baseSeq {
				continue
			}
			key = cols.AppendKey(key[:0], t.schema.PrimaryKey, i)
			if cols.Ops[i] == base.OpDelete {
				if err := g.add(key, seq, merged, nil); err != nil {
					return err
				}
				continue
			}
			if f.superseded != nil && f.superseded.Contains(uint32(first)+uint32(i)) {
				continue
			}
			for c := range cells {
				cells[c] = row.Cell{Col: &cols.Cols[c], Row: i}
			}
			rec = t.layout.AppendCells(rec[:0], cells)
			if err := g.add(key, seq, merged|versionPut, rec); err != nil {
				return err
			}
		}
	}
}

// pairUp walks the versions by key.
func (g *changeGather) pairUp() error {
	walk := g.versions.sorted()
	for walk.First(); walk.Valid(); walk.Next() {
		if err := g.tick(); err != nil {
			return err
		}
		k, v := walk.Key(), walk.Value()
		n := len(k) - 8
		last := len(g.group) - 1
		if last < 0 || !bytes.Equal(g.group[last].key, k[:n]) {
			if len(g.group) >= maxLookupKeys || g.groupBytes >= maxLookupBytes {
				if err := g.flush(); err != nil {
					return err
				}
			}
			// Keys and values of a buffer stay, and so do those of a run as long as somebody holds them.
			g.group = append(g.group, keyVersions{key: k[:n:n]})
			last = len(g.group) - 1
		}
		e := &g.group[last]
		version := rowVersion{seq: binary.BigEndian.Uint64(k[n:]), flags: v[0], rec: v[1:]}
		if len(e.versions) > 0 && version.seq <= g.plan.since {
			e.versions = e.versions[:0] // an older one is of no use
		}
		e.versions = append(e.versions, version)
		g.groupBytes += len(k) + len(v)
		if len(e.versions) > maxLookupKeys {
			if err := g.shorten(); err != nil {
				return err
			}
		}
	}
	if err := walk.Err(); err != nil {
		return err
	}
	return g.flush()
}

// shorten emits the changes of the last key so far, which has very many, and leaves its newest version as what was before
// those that follow.
func (g *changeGather) shorten() error {
	last := g.group[len(g.group)-1]
	if err := g.flush(); err != nil {
		return err
	}
	newest := last.versions[len(last.versions)-1]
	newest.seq = min(newest.seq, g.plan.since)
	g.group = append(g.group, keyVersions{key: last.key, versions: []rowVersion{newest}})
	g.groupBytes = len(newest.rec)
	return nil
}

// flush emits the changes of the group.
func (g *changeGather) flush() error {
	before, err := g.lookUp()
	if err != nil {
		return err
	}
	for i, e := range g.group {
		if err := g.emit(e, before[i]); err != nil {
			return err
		}
	}
	g.group, g.groupBytes = g.group[:0], 0
	return nil
}

// lookUp returns the rows of the group in the base, nil where there is none.
func (g *changeGather) lookUp() ([][]byte, error) {
	s := g.plan.base
	if s == nil {
		return make([][]byte, len(g.group)), nil
	}
	m := &multiGet{state: s, seq: g.plan.baseSeq, keys: make([]askedKey, len(g.group)), records: make([][]byte, len(g.group))}
	for i := range g.group {
		m.keys[i] = askedKey{g.group[i].key, i}
	}
	err := m.run()
	return m.records, err
}

// emit emits the changes of one key; before is its row in the base.
func (g *changeGather) emit(e keyVersions, before []byte) error {
	for _, v := range e.versions {
		put := v.flags&versionPut != 0
		if v.seq > g.plan.since {
			var err error
			switch {
			case put && before == nil:
				err = g.f.emit(e.key, v.seq, ChangeInsert, nil, v.rec)
			case put:
				err = g.f.emit(e.key, v.seq, ChangeUpdate, before, v.rec)
			case before != nil:
				err = g.f.emit(e.key, v.seq, ChangeDelete, before, nil)
			case v.flags&versionMerged != 0:
				err = g.f.emit(e.key, v.seq, ChangeDelete, nil, nil)
			}
			if err != nil {
				return err
			}
		}
		if before = nil; put {
			before = v.rec
		}
	}
	return nil
}
