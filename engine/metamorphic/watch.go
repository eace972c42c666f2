package metamorphic

import (
	"fmt"
	"math/rand/v2"

	"github.com/merutable/merutable/engine"
)

// progress is what a snapshot of a concurrent run shows of the work; it only grows.
type progress struct {
	counters [writers]int64
	round    int64
}

// watchOnce takes a snapshot and checks all invariants of a concurrent run.
func watchOnce(db *engine.DB, last *progress, rng *rand.Rand) error {
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	rows, err := scanAll(s)
	if err != nil {
		return err
	}
	next, err := checkInvariants(rows)
	if err != nil {
		return fmt.Errorf("version %d, sequence number %d: %w", s.Version(), s.Seq(), err)
	}
	for i, n := range next.counters {
		if n < last.counters[i] {
			return fmt.Errorf("writer %d is at %d, after %d", i, n, last.counters[i])
		}
	}
	if next.round < last.round {
		return fmt.Errorf("the block is at round %d, after %d", next.round, last.round)
	}
	*last = next
	if err := checkLevels(s.Files()); err != nil {
		return err
	}
	want := stateOf(rows)
	for range 3 {
		if err := checkGet(s, want, randomKey(rng)); err != nil {
			return err
		}
	}
	return checkPartsOnce(s, rows)
}

func randomKey(rng *rand.Rand) int64 {
	switch rng.IntN(3) {
	case 0:
		return rng.Int64N(accounts)
	case 1:
		return firstCounter + rng.Int64N(writers+1)
	}
	return firstBlock + rng.Int64N(blockRows)
}

func checkInvariants(rows map[int64]int64) (p progress, err error) {
	sum, inBlock, block := int64(0), 0, -1
	for id, payload := range rows {
		switch {
		case id < accounts:
			sum += payload
		case id < firstBlock:
			p.counters[id-firstCounter] = payload
		default:
			if p.round = payload; block >= 0 && block != int(payload) {
				return p, fmt.Errorf("the block has rows of round %d and %d", block, payload)
			}
			block = int(payload)
			inBlock++
		}
	}
	if sum != accounts*startBalance {
		return p, fmt.Errorf("the accounts have %d instead of %d", sum, accounts*startBalance)
	}
	if want := blockSize(p.round); int64(inBlock) != want {
		return p, fmt.Errorf("the block has %d rows instead of %d after round %d", inBlock, want, p.round)
	}
	if want := accounts + writers + inBlock; len(rows) != want {
		return p, fmt.Errorf("%d rows instead of %d", len(rows), want)
	}
	return p, nil
}

// scanAll reads a snapshot; the rows must ascend and each be that of its payload.
func scanAll(s *engine.Snapshot) (map[int64]int64, error) {
	it, err := s.Scan(engine.ScanOptions{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	rows := map[int64]int64{}
	last := int64(-1)
	for {
		c, err := it.Next()
		if err != nil || c == nil {
			return rows, err
		}
		for i := range c.N {
			id, payload := c.Cols[colID].Value(i).Int64(), c.Cols[colPayload].Value(i).Int64()
			if id <= last {
				return nil, fmt.Errorf("scan: key %d after %d", id, last)
			}
			last, rows[id] = id, payload
			if err := checkRow(c, i, allColumns, id, payload); err != nil {
				return nil, fmt.Errorf("scan: %w", err)
			}
		}
	}
}

// checkPartsOnce reads what the DuckDB extension is given, but for the files themselves: in files that are not marked
// deleted, plus the overlay, there are as many rows as a scan finds.
func checkPartsOnce(s *engine.Snapshot, rows map[int64]int64) error {
	live := int64(0)
	for i, f := range s.Files() {
		dead, err := s.Deletes(i)
		if err != nil {
			return err
		}
		live += f.Rows - int64(len(dead))
	}
	it := s.Overlay([]int{colID})
	defer it.Close()
	for {
		c, err := it.Next()
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		live += int64(c.N)
	}
	if live != int64(len(rows)) {
		return fmt.Errorf("files and memory have %d rows, a scan of the same snapshot %d", live, len(rows))
	}
	return nil
}

// stateOf makes a state of what was read.
func stateOf(rows map[int64]int64) *state {
	s := &state{hasTable: true, cells: make(map[int64]cell, len(rows))}
	for id, payload := range rows {
		s.cells[id] = cell{payload: payload, live: true}
	}
	return s
}
