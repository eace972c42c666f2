package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/sst"
)

// read reads the current state, or a held snapshot now and then.
func (r *run) read(op Op, rng *rand.Rand) error {
	if op.Kind == OpCheck {
		return r.checkAll()
	}
	if !r.current().hasTable {
		return nil
	}
	want := r.current()
	s, err := r.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if len(r.held) > 0 && rng.IntN(3) == 0 {
		h := r.held[rng.IntN(len(r.held))]
		return r.readOne(op, rng, h.s, h.state)
	}
	return r.readOne(op, rng, s, want)
}

func (r *run) readOne(op Op, rng *rand.Rand, s *engine.Snapshot, want *state) error {
	switch op.Kind {
	case OpScan:
		for range op.N {
			if err := r.scan(s, want, rng); err != nil {
				return err
			}
		}
	case OpGet:
		for range op.N {
			if err := checkGet(s, want, rng.Int64N(r.keys+1)); err != nil {
				return err
			}
		}
	case OpMultiGet:
		return r.multiGet(s, want, op.N, rng)
	}
	return nil
}

func checkGet(s *engine.Snapshot, want *state, id int64) error {
	cols, found, err := s.Get(keyOf(id))
	if err != nil {
		return err
	}
	_, there := want.get(id)
	if found != there {
		return fmt.Errorf("get of key %d: found is %v, not %v", id, found, there)
	}
	if !found {
		return nil
	}
	return want.checkRow(cols, 0, want.projection(), id)
}

// multiGet looks many keys up at once, some of them twice.
func (r *run) multiGet(s *engine.Snapshot, want *state, n int, rng *rand.Rand) error {
	ids := make([]int64, n)
	keys := make([][]engine.Value, n)
	for i := range ids {
		ids[i] = rng.Int64N(r.keys + 1)
		keys[i] = keyOf(ids[i])
	}
	rows, found, err := s.MultiGet(keys)
	if err != nil {
		return err
	}
	if len(found) != n {
		return fmt.Errorf("multi-get of %d keys: %d answers", n, len(found))
	}
	at := 0
	for i, id := range ids {
		_, there := want.get(id)
		if found[i] != there {
			return fmt.Errorf("multi-get of key %d: found is %v, not %v", id, found[i], there)
		}
		if !there {
			continue
		}
		if at == rows.N {
			return fmt.Errorf("multi-get of key %d: it has only %d rows", id, rows.N)
		}
		if err := want.checkRow(rows, at, want.projection(), id); err != nil {
			return fmt.Errorf("multi-get: %w", err)
		}
		at++
	}
	if at != rows.N {
		return fmt.Errorf("multi-get: %d rows instead of %d", rows.N, at)
	}
	return nil
}

// scan reads a random range in a random way.
func (r *run) scan(s *engine.Snapshot, want *state, rng *rand.Rand) error {
	lo, hi := rng.Int64N(r.keys+2)-1, rng.Int64N(r.keys+2)-1
	if rng.IntN(4) > 0 && lo > hi {
		lo, hi = hi, lo
	}
	o := engine.ScanOptions{LowerExclusive: rng.IntN(2) == 0, UpperExclusive: rng.IntN(2) == 0}
	if rng.IntN(4) > 0 {
		o.Lower = keyOf(lo)[:1+rng.IntN(2)]
	}
	if rng.IntN(4) > 0 {
		o.Upper = keyOf(hi)[:1+rng.IntN(2)]
	}
	o.Reverse = rng.IntN(2) == 0
	if rng.IntN(3) == 0 {
		o.Limit = 1 + rng.Int64N(r.keys)
	}
	if rng.IntN(2) == 0 {
		o.BatchRows = 1 + rng.IntN(100)
	}
	projection := want.projection()
	if n := len(projection); rng.IntN(2) == 0 {
		projection = rng.Perm(n)[:1+rng.IntN(n)]
		o.Projection = projection
	}
	var ids []int64
	for _, id := range want.live() {
		below := len(o.Lower) > 0 && (id < lo || id == lo && o.LowerExclusive)
		above := len(o.Upper) > 0 && (id > hi || id == hi && o.UpperExclusive)
		if !below && !above {
			ids = append(ids, id)
		}
	}
	if o.Reverse {
		slices.Reverse(ids)
	}
	if o.Limit > 0 {
		ids = ids[:min(int64(len(ids)), o.Limit)]
	}
	if err := checkScan(s, o, projection, want, ids); err != nil {
		return fmt.Errorf("scan %+v: %w", o, err)
	}
	return nil
}

func checkScan(s *engine.Snapshot, o engine.ScanOptions, projection []int, want *state, ids []int64) error {
	it, err := s.Scan(o)
	if err != nil {
		return err
	}
	defer it.Close()
	n := 0
	for {
		c, err := it.Next()
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		for i := range c.N {
			if n == len(ids) {
				return fmt.Errorf("more than the %d rows there are", len(ids))
			}
			if err := want.checkRow(c, i, projection, ids[n]); err != nil {
				return fmt.Errorf("row %d: %w", n, err)
			}
			n++
		}
	}
	if n < len(ids) {
		return fmt.Errorf("%d rows instead of %d: key %d is the first that is missing", n, len(ids), ids[n])
	}
	return nil
}

// checkAll compares the newest state.
func (r *run) checkAll() error {
	s, err := r.db.Snapshot()
	if !r.current().hasTable {
		if engine.CodeOf(err) != engine.CodeNotFound {
			return fmt.Errorf("a snapshot without a table: %w, not CodeNotFound", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return r.checkSnapshot(s, r.current())
}

// checkSnapshot compares a whole snapshot: by a scan, by some gets, and as the DuckDB extension reads.
func (r *run) checkSnapshot(s *engine.Snapshot, want *state) error {
	if err := checkScan(s, engine.ScanOptions{}, want.projection(), want, want.live()); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	for id := range min(r.keys, 5) {
		if err := checkGet(s, want, id*r.keys/5); err != nil {
			return err
		}
	}
	files := s.Files()
	if err := checkLevels(files); err != nil {
		return err
	}
	for _, f := range files {
		r.saw(fmt.Sprintf("sights of a file in level %d", f.Level), 1)
	}
	return r.checkParts(s, want)
}

// checkParts reads files, deletion vectors and the overlay: each key must be there exactly once.
func (r *run) checkParts(s *engine.Snapshot, want *state) error {
	seen := map[int64]string{}
	add := func(c *engine.Columns, i int, where string) error {
		id := c.Cols[colID].Value(i).Int64()
		if before, twice := seen[id]; twice {
			return fmt.Errorf("key %d is in %s and in %s", id, before, where)
		}
		seen[id] = where
		if _, found := want.get(id); !found {
			return fmt.Errorf("key %d is in %s, though it has no row", id, where)
		}
		if err := want.checkRow(c, i, want.projection(), id); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	}
	for i, f := range s.Files() {
		dead, err := r.deletes(s, i)
		if err != nil {
			return err
		}
		if !slices.IsSorted(dead) || len(dead) > 0 && int64(dead[len(dead)-1]) >= f.Rows {
			return fmt.Errorf("the deleted rows of %s are not ascending, or not all below %d", f.Path, f.Rows)
		}
		err = r.eachRow(s, f, want.projection(), func(c *engine.Columns, i int, pos int64) error {
			if _, hidden := slices.BinarySearch(dead, uint32(pos)); hidden {
				return nil
			}
			return add(c, i, f.Path)
		})
		if err != nil {
			return err
		}
	}
	it := s.Overlay(nil)
	defer it.Close()
	for {
		c, err := it.Next()
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		for i := range c.N {
			if err := add(c, i, "memory"); err != nil {
				return err
			}
		}
	}
	if len(seen) != len(want.live()) {
		return fmt.Errorf("files and memory have %d rows instead of %d", len(seen), len(want.live()))
	}
	return nil
}

func (r *run) deletes(s *engine.Snapshot, i int) ([]uint32, error) {
	if r.hooks.deletes != nil {
		return r.hooks.deletes(s, i)
	}
	return s.Deletes(i)
}

// eachRow reads a data file as a stranger would.
func (r *run) eachRow(s *engine.Snapshot, f engine.FileInfo, projection []int, fn func(c *engine.Columns, i int, pos int64) error) error {
	file, err := sst.Open(r.disk.mem, f.Path, f.Size, s.Schema(), sst.NewCache(0))
	if err != nil {
		return err
	}
	defer file.Close()
	it := file.NewIter(sst.IterOptions{Projection: projection})
	defer it.Close()
	rows := int64(0)
	for {
		c, first, err := it.Next()
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		for i := range c.N {
			if err := fn(c, i, first+int64(i)); err != nil {
				return err
			}
		}
		rows += int64(c.N)
	}
	if rows != f.Rows {
		return fmt.Errorf("%s has %d rows instead of %d", f.Path, rows, f.Rows)
	}
	return nil
}
