package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// openTxn is a transaction under way, with what it must see.
type openTxn struct {
	txn     *Txn
	sees    model
	began   model
	version int // of the history at its begin
	wrote   map[int64]bool
}

// txnHistory is a database with transactions and what it must hold: the committed rows, and when each key was last
// written by a commit.
type txnHistory struct {
	t       *testing.T
	rng     *rand.Rand
	db      *DB
	m       model
	version int
	changed map[int64]int
	open    []*openTxn
	keys    int64
}

func (h *txnHistory) begin() {
	txn, err := h.db.Begin()
	must(h.t, err)
	h.open = append(h.open, &openTxn{
		txn: txn, sees: maps.Clone(h.m), began: maps.Clone(h.m), version: h.version, wrote: map[int64]bool{},
	})
}

func (h *txnHistory) pick() (int, *openTxn) {
	i := h.rng.IntN(len(h.open))
	return i, h.open[i]
}

// change fills a write with random rows; apply gets each.
func (h *txnHistory) change(w *Write, n int, apply func(id, payload int64, put bool)) {
	for range n {
		id := h.rng.Int64N(h.keys)
		if h.rng.IntN(4) == 0 {
			must(h.t, w.Delete(testKey(id)))
			apply(id, 0, false)
			continue
		}
		payload := h.rng.Int64N(1 << 40)
		must(h.t, w.Put(testRow(id, payload)))
		apply(id, payload, true)
	}
}

// statement adds rows to a transaction, or gives them up at the end.
func (h *txnHistory) statement(n int) {
	_, o := h.pick()
	w, err := o.txn.NewWrite(h.db)
	must(h.t, err)
	defer w.Close()
	next := maps.Clone(o.sees)
	touched := map[int64]bool{}
	h.change(w, n, func(id, payload int64, put bool) {
		touched[id] = true
		if delete(next, id); put {
			next[id] = payload
		}
	})
	if h.rng.IntN(8) == 0 {
		return
	}
	if h.rng.IntN(4) == 0 {
		h.read(o) // it does not see the statement yet
	}
	_, err = w.Commit()
	must(h.t, err)
	o.sees = next
	maps.Copy(o.wrote, touched)
}

func (h *txnHistory) read(o *openTxn) {
	s, err := o.txn.Snapshot(h.db)
	must(h.t, err)
	defer s.Close()
	checkSnapshot(h.t, s, o.sees)
	for range 5 {
		id := h.rng.Int64N(h.keys)
		row, found, err := s.Get(testKey(id))
		must(h.t, err)
		payload, want := o.sees[id]
		if found != want || found && !equalRows(rowOf(row, 0), testRow(id, payload)) {
			h.t.Fatalf("a get of %d in a transaction: found %v %v, want %v %d", id, found, row, want, payload)
		}
		p, err := s.Part(ScanOptions{Lower: []Value{Int(id)}, Upper: []Value{Int(id + 20)}})
		must(h.t, err)
		checkPartRange(h.t, p, o.sees, id, id+20)
		p.Close()
	}
}

// checkPartRange compares what a part shows with the model.
func checkPartRange(t *testing.T, p *Part, m model, lo, hi int64) {
	t.Helper()
	seen := 0
	add := func(row []Value) {
		id := row[1].Int64()
		if payload, ok := m[id]; !ok || !equalRows(row, testRow(id, payload)) {
			t.Fatalf("a part shows %v, want %v %d", row, ok, payload)
		}
		if id >= lo && id <= hi {
			seen++
		}
	}
	for _, i := range p.Files() {
		f := p.s.state.files[i]
		dead, err := p.s.findHidden(i)
		must(t, err)
		reader, err := f.open(p.s.state.table.schema)
		must(t, err)
		for pos := int64(0); pos < f.meta.Rows; pos++ {
			if !dead.Contains(uint32(pos)) {
				cols, err := reader.ReadRow(pos, nil)
				must(t, err)
				add(rowOf(cols, 0))
			}
		}
	}
	for _, row := range collect(t, p.Overlay(nil)) {
		add(row)
	}
	want := 0
	for id := lo; id <= hi; id++ {
		if _, ok := m[id]; ok {
			want++
		}
	}
	if seen != want {
		t.Fatalf("a part shows %d rows of keys %d to %d, want %d", seen, lo, hi, want)
	}
}

// committed notes that a change has become visible.
func (h *txnHistory) committed(keys map[int64]bool, result model) {
	h.version++
	for id := range keys {
		h.changed[id] = h.version
		if delete(h.m, id); true {
			if payload, ok := result[id]; ok {
				h.m[id] = payload
			}
		}
	}
}

// end commits or rolls back. A commit must fail exactly where a key that it wrote was changed since its begin; where
// that key was and is absent, what came and went between may be forgotten.
func (h *txnHistory) end() {
	i, o := h.pick()
	h.open = append(h.open[:i:i], h.open[i+1:]...)
	if h.rng.IntN(4) == 0 {
		o.txn.Rollback()
		return
	}
	must, may := false, false
	for id := range o.wrote {
		if h.changed[id] > o.version {
			_, was := o.began[id]
			_, is := h.m[id]
			may = true
			must = must || was || is
		}
	}
	_, err := o.txn.Commit()
	switch {
	case err == nil && must:
		h.t.Fatalf("a commit went through that overwrites changes of others")
	case err == nil:
		h.committed(o.wrote, o.sees)
	case base.CodeOf(err) != CodeConflict || !may:
		h.t.Fatalf("commit: %v (a conflict is possible: %v)", err, may)
	}
}

func (h *txnHistory) autocommit(n int) {
	w, err := h.db.NewWrite()
	must(h.t, err)
	defer w.Close()
	next, touched := maps.Clone(h.m), map[int64]bool{}
	h.change(w, n, func(id, payload int64, put bool) {
		touched[id] = true
		if delete(next, id); put {
			next[id] = payload
		}
	})
	_, err = w.Commit()
	must(h.t, err)
	h.committed(touched, next)
}

// TestTransactions runs random histories of many transactions at a time against a model.
func TestTransactions(t *testing.T) {
	for seed := range uint64(unlessShort(8, 2)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			fs, o := vfs.FS(vfs.NewMem()), Options{MemtableBytes: minMemtableBytes}
			if seed%2 == 0 {
				o = smallLevels(o)
			}
			h := &txnHistory{t: t, rng: rand.New(rand.NewPCG(seed, 9)), m: model{}, changed: map[int64]int{}, keys: 300}
			if seed%3 == 0 {
				h.keys = 5000
			}
			h.db = openMem(t, fs, o)
			defer func() { h.db.Free() }()
			h.run(fs, o, 300)
		})
	}
}

func (h *txnHistory) run(fs vfs.FS, o Options, steps int) {
	for range steps {
		switch p := h.rng.IntN(100); {
		case p < 15 && len(h.open) < 6:
			h.begin()
		case p < 45 && len(h.open) > 0:
			h.statement(h.rng.IntN(6))
		case p < 48 && len(h.open) > 0:
			h.statement(6000)
		case p < 60 && len(h.open) > 0:
			_, o := h.pick()
			h.read(o)
		case p < 75 && len(h.open) > 0:
			h.end()
		case p < 83:
			h.autocommit(h.rng.IntN(4))
		case p < 84:
			h.autocommit(6000)
		case p < 90:
			must(h.t, h.db.Flush())
		case p < 93:
			must(h.t, h.db.Compact())
		case p < 95:
			check(h.t, h.db, h.m)
		case p < 96: // a re-open; transactions end with it
			h.reopen(fs, o)
		}
	}
	for len(h.open) > 0 {
		h.end()
	}
	check(h.t, h.db, h.m)
	h.checkNothingLeft()
}

func (h *txnHistory) reopen(fs vfs.FS, o Options) {
	h.db.Free()
	for _, o := range h.open {
		_, err := o.txn.Commit()
		if err == nil && len(o.wrote) > 0 {
			h.t.Fatal("a transaction was committed through a closed handle")
		}
	}
	h.open = nil
	h.db = openMem(h.t, fs, o)
}

func (h *txnHistory) checkNothingLeft() {
	st := h.db.Stats()
	if st.OpenTransactions != 0 || st.TransactionMemory != 0 || st.TransactionFileBytes != 0 {
		h.t.Fatalf("after the last transaction: %+v", st.TxnStats)
	}
}
