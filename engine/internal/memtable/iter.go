package memtable

import "github.com/merutable/merutable/engine/internal/base"

// Iter walks a memtable in key order. It is one goroutine's; the caller holds a reference to the memtable as long as it
// is used. Entries that are added meanwhile may be seen or not: bound the sequence number for a stable view.
type Iter struct {
	m   *Memtable
	max base.Seq
	all bool
	e   entry // nil: not positioned, or at the end
}

// NewIter returns an iterator over the newest version of each key with a sequence number of at most max, tombstones
// included. It stands nowhere: call First or SeekGE.
func (m *Memtable) NewIter(max base.Seq) *Iter { return &Iter{m: m, max: max} }

// NewAllIter returns an iterator over all versions: by key, newest first.
func (m *Memtable) NewAllIter() *Iter { return &Iter{m: m, max: base.MaxSeq, all: true} }

// First moves to the first entry.
func (it *Iter) First() {
	it.e = it.follow(it.m.head)
	it.settle()
}

// SeekGE moves to the first entry with a key of at least key.
func (it *Iter) SeekGE(key []byte) {
	it.e = it.m.seek(key, base.MaxSeq)
	it.settle()
}

// Next moves to the next key (of NewAllIter: the next version). The iterator must be valid.
func (it *Iter) Next() {
	last := it.e
	it.e = it.follow(last)
	if !it.all {
		for it.e != nil && sameKey(it.e, last) {
			it.e = it.follow(it.e)
		}
	}
	it.settle()
}

// settle skips versions that are too new.
func (it *Iter) settle() {
	for it.e != nil && entrySeq(it.e) > it.max {
		it.e = it.follow(it.e)
	}
}

func (it *Iter) follow(e entry) entry {
	off := loadNext(e, 0)
	if off == 0 {
		return nil
	}
	return it.m.at(off)
}

// Valid reports whether the iterator stands on an entry.
func (it *Iter) Valid() bool { return it.e != nil }

// Key returns the key. It aliases the memtable's memory, like Value.
func (it *Iter) Key() []byte { return entryKey(it.e) }

// Seq returns the sequence number.
func (it *Iter) Seq() base.Seq { return entrySeq(it.e) }

// Op returns what the version does: base.OpPut or base.OpDelete.
func (it *Iter) Op() base.Op { return entryOp(it.e) }

// Value returns the value, nil for a tombstone.
func (it *Iter) Value() []byte { return entryValue(it.e) }
