package engine

import (
	"bytes"
	"slices"
	"sort"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// MaxMultiGet is how many keys one multi-get takes at most.
const MaxMultiGet = 1 << 20

// maxMultiGetBytes bounds the rows that it returns.
const maxMultiGetBytes = 1 << 30

// MultiGet looks many keys up at once, each given in key order, in any order and with repetitions. It answers as Get
// does: found has an entry a key, and rows has the rows of the keys that were found, in the order of the keys, with all
// columns. It costs less than as many gets: what keys share of a file is read once. CodeInvalidArgument for more than a
// million keys, or where their rows have more than 1 GiB.
func (s *Snapshot) MultiGet(keys [][]Value) (rows *Columns, found []bool, err error) {
	if err := s.pin(); err != nil {
		return nil, nil, err
	}
	defer s.state.unref()
	return s.state.multiGet(keys, s.seq)
}

// MultiGet is [Snapshot.MultiGet] in the newest state.
func (db *DB) MultiGet(keys [][]Value) (rows *Columns, found []bool, err error) {
	s, seq, err := db.pinState()
	if err != nil {
		return nil, nil, err
	}
	defer s.unref()
	rows, found, err = s.multiGet(keys, seq)
	if err != nil && db.mayFollow(err) {
		err = db.following(func(s *readState, seq base.Seq) (err error) {
			rows, found, err = s.multiGet(keys, seq)
			return err
		})
	}
	return rows, found, err
}

// MultiGetColumns is MultiGet for a batch of keys: the key columns, in key order.
func (s *Snapshot) MultiGetColumns(keys *Columns) (rows *Columns, found []bool, err error) {
	if err := s.pin(); err != nil {
		return nil, nil, err
	}
	defer s.state.unref()
	g, err := s.askColumns(keys, false)
	if err != nil {
		return nil, nil, err
	}
	rows, found = g.answer()
	return rows, found, nil
}

// Contains says for each of a batch of keys, the key columns in key order, whether there is a row. It reads no rows.
func (s *Snapshot) Contains(keys *Columns) (found []bool, err error) {
	if err := s.pin(); err != nil {
		return nil, err
	}
	defer s.state.unref()
	g, err := s.askColumns(keys, true)
	if err != nil {
		return nil, err
	}
	return g.found(), nil
}

// askColumns looks the keys of a batch up in a snapshot that the caller has pinned.
func (s *Snapshot) askColumns(keys *Columns, keysOnly bool) (*multiGet, error) {
	t := s.state.table
	if len(keys.Cols) != len(t.schema.PrimaryKey) {
		return nil, base.Errorf(base.CodeSchemaMismatch, "a batch of keys has %d columns, the primary key of table %q has %d",
			len(keys.Cols), t.schema.TableName, len(t.schema.PrimaryKey))
	}
	g, err := newMultiGet(s.state, s.seq, keys.N)
	if err != nil {
		return nil, err
	}
	g.keysOnly = keysOnly
	// One buffer for all keys: they lie in it one behind the other.
	ends := make([]int, keys.N)
	var buf []byte
	for i := range keys.N {
		buf = keys.AppendKey(buf, t.keySchema.PrimaryKey, i)
		ends[i] = len(buf)
	}
	start := 0
	for i, end := range ends {
		g.keys[i] = askedKey{buf[start:end:end], i}
		start = end
	}
	return g, g.run()
}

// multiGet is one multi-get. The records alias memtables, or are shared.
type multiGet struct {
	state *readState
	seq   base.Seq
	keys  []askedKey // ascending
	// records has the record of each key as it was asked, nil where there is none.
	records [][]byte
	bytes   int
	// keysOnly says that it takes no records: present stands for them.
	keysOnly bool
}

// present is the record of a key that is there, where nobody asks for the row.
var present = []byte{}

type askedKey struct {
	key []byte
	at  int // among the keys as they were asked
}

func (s *readState) multiGet(keys [][]Value, seq base.Seq) (*Columns, []bool, error) {
	g, err := newMultiGet(s, seq, len(keys))
	if err != nil {
		return nil, nil, err
	}
	for i, k := range keys {
		key, err := appendKey(nil, s.table, k)
		if err != nil {
			return nil, nil, base.Wrapf(base.CodeOf(err), err, "key %d", i)
		}
		g.keys[i] = askedKey{key, i}
	}
	if err := g.run(); err != nil {
		return nil, nil, err
	}
	rows, found := g.answer()
	return rows, found, nil
}

// newMultiGet makes one for n keys, which the caller fills in.
func newMultiGet(s *readState, seq base.Seq, n int) (*multiGet, error) {
	if n > MaxMultiGet {
		return nil, base.Errorf(base.CodeInvalidArgument, "%d keys in one multi-get: the limit is %d", n, MaxMultiGet)
	}
	return &multiGet{state: s, seq: seq, keys: make([]askedKey, n), records: make([][]byte, n)}, nil
}

// found says which keys there are.
func (g *multiGet) found() []bool {
	found := make([]bool, len(g.records))
	for i, r := range g.records {
		found[i] = r != nil
	}
	return found
}

// answer returns the rows that were found, and for which keys.
func (g *multiGet) answer() (*Columns, []bool) {
	records := make([][]byte, 0, len(g.records))
	for _, r := range g.records {
		if r != nil {
			records = append(records, r)
		}
	}
	t := g.state.table
	out := row.NewColumns(t.schema, nil)
	t.layout.AppendColumns(out, row.AllColumns(t.schema), records)
	return out, g.found()
}

// run sorts the keys and finds their records.
func (g *multiGet) run() error {
	slices.SortStableFunc(g.keys, func(a, b askedKey) int { return bytes.Compare(a.key, b.key) })
	distinct := slices.CompactFunc(slices.Clone(g.keys), func(a, b askedKey) bool { return bytes.Equal(a.key, b.key) })
	wanted, err := g.fromMemory(distinct)
	for _, files := range g.state.index.runs {
		if err != nil || len(wanted) == 0 {
			break
		}
		wanted, err = g.fromRun(files, wanted)
	}
	if err != nil {
		return err
	}
	for i := 1; i < len(g.keys); i++ { // a key that was asked again comes right behind
		if k, before := g.keys[i], g.keys[i-1]; bytes.Equal(k.key, before.key) {
			if err := g.set(k, g.records[before.at]); err != nil {
				return err
			}
		}
	}
	hits := int64(0)
	for _, r := range g.records {
		if r != nil {
			hits++
		}
	}
	g.state.core.reads.countGets(int64(len(g.keys)), hits)
	g.state.core.reads.multiGets.Add(1)
	return nil
}

func (g *multiGet) set(k askedKey, record []byte) error {
	if g.keysOnly && record != nil {
		record = present
	}
	g.records[k.at] = record
	if g.bytes += len(record); g.bytes > maxMultiGetBytes {
		return base.Errorf(base.CodeInvalidArgument, "the rows of one multi-get have more than %d bytes: ask for fewer keys", maxMultiGetBytes)
	}
	return nil
}

// fromMemory looks the keys up in the memtables and the row cache. It returns those that files are to be asked for.
func (g *multiGet) fromMemory(keys []askedKey) (wanted []askedKey, err error) {
	s := g.state
	for _, k := range keys {
		value, op, ok := s.findInMemory(k.key, g.seq)
		switch {
		case ok && op == base.OpDelete:
			s.core.reads.memtableHits.Add(1)
			continue
		case ok:
			s.core.reads.memtableHits.Add(1)
		default:
			if value, ok = s.cached(k.key); !ok {
				wanted = append(wanted, k)
				continue
			}
		}
		if err := g.set(k, value); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

// fromRun looks the keys up in the files of a run. It returns those that were not there.
func (g *multiGet) fromRun(run []int, keys []askedKey) (wanted []askedKey, err error) {
	for len(keys) > 0 {
		f := holding(g.state.files, run, keys[0].key)
		if f == nil {
			wanted, keys = append(wanted, keys[0]), keys[1:]
			continue
		}
		n := sort.Search(len(keys), func(i int) bool { return bytes.Compare(keys[i].key, f.meta.KeyMax) > 0 })
		if err := g.fromFile(f, keys[:n]); err != nil {
			return nil, err
		}
		for _, k := range keys[:n] {
			if g.records[k.at] == nil {
				wanted = append(wanted, k)
			}
		}
		keys = keys[n:]
	}
	return wanted, nil
}

// fromFile looks keys up in one file: first where they stand, in one walk, then their rows.
func (g *multiGet) fromFile(f *liveFile, keys []askedKey) error {
	type place struct {
		k   askedKey
		pos int64
	}
	s := g.state
	r, err := f.open(s.table.schema)
	if err != nil {
		return err
	}
	dead, err := f.deleted(s.core.dir)
	if err != nil {
		return err
	}
	var places []place
	next := 0
	err = r.FindMany(func() ([]byte, bool) {
		if next == len(keys) {
			return nil, false
		}
		next++
		return keys[next-1].key, true
	}, func(i int, pos int64) error {
		if !dead.Contains(uint32(pos)) {
			places = append(places, place{keys[i], pos})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if g.keysOnly {
		for _, p := range places {
			g.records[p.k.at] = present
		}
		return nil
	}
	rows := r.NewRowReader(s.table.layout)
	for _, p := range places {
		record, err := rows.Append(nil, p.pos)
		if err != nil {
			return err
		}
		s.cache(p.k.key, f, p.pos, record, !rows.Read())
		if err := g.set(p.k, record); err != nil {
			return err
		}
	}
	return nil
}
