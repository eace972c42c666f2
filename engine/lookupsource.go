package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// lookupSource yields the rows of some keys, which it looks up: a few at a time, so that large rows are not all in memory
// at once.
type lookupSource struct {
	scan    *RowIter
	seq     base.Seq
	keys    []keyRange // to be looked up yet; each is one key
	found   []askedKey
	records [][]byte // of found
	ahead   int      // how many keys to look up at a time
}

// The rows looked up at a time have about lookAheadBytes.
const (
	maxLookAhead   = 512
	lookAheadBytes = 4 << 20
)

func newLookupSource(it *RowIter, seq base.Seq, keys []keyRange) *lookupSource {
	return &lookupSource{scan: it, seq: seq, keys: keys, ahead: 4}
}

func (k *lookupSource) key() []byte {
	switch {
	case len(k.found) > 0:
		return k.found[0].key
	case len(k.keys) > 0:
		return k.keys[0].lower
	}
	return nil
}

func (k *lookupSource) rank() sourceRank {
	if len(k.found) > 0 {
		return fromFile
	}
	return unread
}

// read looks the next keys up.
func (k *lookupSource) read() error {
	s := k.scan.state
	n := min(len(k.keys), k.ahead)
	if n == 1 {
		record, found, err := s.lookUp(k.keys[0].lower, k.seq)
		if found {
			k.found, k.records = []askedKey{{key: k.keys[0].lower}}, [][]byte{record}
		}
		k.keys = k.keys[1:]
		return err
	}
	g := &multiGet{state: s, seq: k.seq, keys: make([]askedKey, n), records: make([][]byte, n)}
	for i := range g.keys {
		g.keys[i] = askedKey{k.keys[i].lower, i}
	}
	if err := g.run(); err != nil {
		return err
	}
	k.keys = k.keys[n:]
	k.found, k.records = k.found[:0], k.records[:0]
	for i, record := range g.records {
		if record != nil {
			k.found, k.records = append(k.found, g.keys[i]), append(k.records, record)
		}
	}
	s.core.reads.countGets(int64(n), int64(len(k.found)))
	if g.bytes < lookAheadBytes {
		k.ahead = min(2*k.ahead, maxLookAhead)
	} else {
		k.ahead = max(k.ahead/2, 1)
	}
	return nil
}

func (k *lookupSource) close() {}

// emit ignores the limit: there is no other source beside this one.
func (k *lookupSource) emit(out *row.Columns, _ []byte, n int) int {
	n = min(n, len(k.found))
	k.scan.state.table.layout.AppendColumns(out, k.scan.project, k.records[:n])
	k.found, k.records = k.found[n:], k.records[n:]
	return n
}
