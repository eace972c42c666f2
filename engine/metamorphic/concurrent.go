package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The keys of a concurrent run. Writers move amounts between accounts, one change for two accounts and the writer's own
// counter, decided on in a snapshot. A loader rewrites a block of rows as a whole, each time with the next round as
// payload; in some rounds it deletes the upper half.
const (
	accounts     = 40
	startBalance = 1000
	writers      = 3
	firstCounter = 1000
	firstBlock   = 2000
	blockRows    = 1600
)

// concurrent is a run of many goroutines on one database.
type concurrent struct {
	config Config
	mem    *vfs.MemFS
	fs     vfs.FS
	db     *engine.DB

	done atomic.Bool // writers and loader have ended, or something failed
	mu   sync.Mutex
	err  error
}

// RunConcurrent lets writers, a loader, readers and maintenance run at once until each writer has made so many
// transfers, and returns how a snapshot broke an invariant: amounts only move, what a writer or loader did is not
// undone, and a key stands once.
func RunConcurrent(seed uint64, config Config, transfers, rounds int) error {
	c := &concurrent{config: config, mem: vfs.NewMem()}
	c.fs = c.mem
	if err := c.open(); err != nil {
		return err
	}
	defer func() { c.db.Free() }()
	if err := c.begin(); err != nil {
		return err
	}
	var work, watch sync.WaitGroup
	for w := range writers {
		c.spawn(&work, func() error { return c.transfer(w, rand.New(rand.NewPCG(seed, uint64(w))), transfers) })
	}
	c.spawn(&work, func() error { return c.load(rounds) })
	for i := range 2 {
		c.spawn(&watch, func() error { return c.watch(c.db, rand.New(rand.NewPCG(seed, uint64(100+i)))) })
	}
	c.spawn(&watch, c.watchFromOutside)
	c.spawn(&watch, c.holdOne)
	c.spawn(&watch, func() error { return c.maintain(rand.New(rand.NewPCG(seed, 200))) })
	work.Wait()
	c.done.Store(true)
	watch.Wait()
	if c.err != nil {
		return c.err
	}
	return c.finish(transfers, rounds)
}

func (c *concurrent) open() (err error) {
	o := c.config.Options
	o.UseFS(c.fs)
	c.db, err = engine.Open(dir, o)
	return err
}

// spawn runs fn on a goroutine of its own; the first error ends all.
func (c *concurrent) spawn(wg *sync.WaitGroup, fn func() error) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := fn(); err != nil {
			c.mu.Lock()
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
			c.done.Store(true)
		}
	}()
}

func (c *concurrent) begin() error {
	if err := c.db.CreateTable(schema()); err != nil {
		return err
	}
	var rows [][]engine.Value
	for id := range int64(accounts) {
		rows = append(rows, rowOf(id, startBalance))
	}
	for w := range int64(writers) {
		rows = append(rows, rowOf(firstCounter+w, 0))
	}
	_, err := c.db.PutBatch(rows)
	return err
}

// transfer moves amounts. A change whose accounts another writer was faster with is decided anew.
func (c *concurrent) transfer(w int, rng *rand.Rand, transfers int) error {
	for n := int64(1); n <= int64(transfers) && !c.done.Load(); {
		err := c.transferOnce(firstCounter+int64(w), n, rng)
		switch {
		case err == nil:
			n++
		case engine.CodeOf(err) != engine.CodeConflict:
			return fmt.Errorf("writer %d: %w", w, err)
		}
	}
	return nil
}

func (c *concurrent) transferOnce(counter, n int64, rng *rand.Rand) error {
	from := rng.Int64N(accounts)
	to := (from + 1 + rng.Int64N(accounts-1)) % accounts
	amount := rng.Int64N(50)
	s, err := c.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := c.db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.SetSnapshot(s); err != nil {
		return err
	}
	for _, move := range []edit{{id: from, payload: -amount}, {id: to, payload: amount}} {
		balance, found, err := payloadOf(s, move.id)
		if err != nil || !found {
			return fmt.Errorf("account %d: found is %v: %w", move.id, found, err)
		}
		if err := w.Put(rowOf(move.id, balance+move.payload)); err != nil {
			return err
		}
	}
	if err := w.Put(rowOf(counter, n)); err != nil {
		return err
	}
	_, err = w.Commit()
	return err
}

func payloadOf(s *engine.Snapshot, id int64) (payload int64, found bool, err error) {
	cols, found, err := s.Get(keyOf(id))
	if err != nil || !found {
		return 0, false, err
	}
	payload = cols.Cols[colPayload].Value(0).Int64()
	return payload, true, checkRow(cols, 0, allColumns, id, payload)
}

// load rewrites the block.
func (c *concurrent) load(rounds int) error {
	for round := int64(1); round <= int64(rounds) && !c.done.Load(); round++ {
		w, err := c.db.NewWrite()
		if err != nil {
			return fmt.Errorf("loader: %w", err)
		}
		for i := int64(0); i < blockRows && err == nil; i++ {
			if i >= blockSize(round) {
				err = w.Delete(keyOf(firstBlock + i))
				continue
			}
			err = w.Put(rowOf(firstBlock+i, round))
		}
		if err == nil {
			_, err = w.Commit()
		}
		w.Close()
		if err != nil {
			return fmt.Errorf("loader, round %d: %w", round, err)
		}
	}
	return nil
}

// blockSize is how many rows the block has after a round.
func blockSize(round int64) int64 {
	switch {
	case round == 0:
		return 0
	case round%3 == 2:
		return blockRows / 2
	}
	return blockRows
}

// maintain does at random what the background does too.
func (c *concurrent) maintain(rng *rand.Rand) error {
	for !c.done.Load() {
		if err := maintainOnce(c.db, rng); err != nil {
			return fmt.Errorf("maintenance: %w", err)
		}
		if st := c.db.Stats(); st.DeletedRows > st.FileRows {
			return fmt.Errorf("stats: %+v", st)
		}
	}
	return nil
}

// holdOne keeps one snapshot all the time: what it shows must stay.
func (c *concurrent) holdOne() error {
	s, err := c.db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	first, err := scanAll(s)
	if err != nil {
		return err
	}
	for !c.done.Load() {
		rows, err := scanAll(s)
		if err != nil {
			return fmt.Errorf("a held snapshot: %w", err)
		}
		if !maps.Equal(first, rows) {
			return fmt.Errorf("a held snapshot changed: %s", difference(stateOf(first), rows, "", true))
		}
	}
	return nil
}

// watch takes snapshot after snapshot.
func (c *concurrent) watch(db *engine.DB, rng *rand.Rand) error {
	var last progress
	for first := true; first || !c.done.Load(); first = false {
		if err := watchOnce(db, &last, rng); err != nil {
			return err
		}
	}
	return nil
}

// watchFromOutside watches as another process does.
func (c *concurrent) watchFromOutside() error {
	o := c.config.Options
	o.UseFS(vfs.NewErrorFS(c.mem, func(vfs.Op, string) error { return nil }))
	o.ReadOnly = true
	db, err := engine.Open(dir, o)
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	defer db.Free()
	var last progress
	rng := rand.New(rand.NewPCG(1, 1))
	for first := true; first || !c.done.Load(); first = false {
		if err := watchOnce(db, &last, rng); err != nil {
			return fmt.Errorf("reader: %w", err)
		}
		if err := db.Refresh(); err != nil {
			return fmt.Errorf("refresh of a reader: %w", err)
		}
	}
	return nil
}

// finish opens the database again and compares what is left with what was done.
func (c *concurrent) finish(transfers, rounds int) error {
	if err := c.db.Close(); err != nil {
		return err
	}
	c.db.Free()
	if err := c.open(); err != nil {
		return err
	}
	last := progress{round: int64(rounds)}
	for i := range last.counters {
		last.counters[i] = int64(transfers)
	}
	want := last
	if err := watchOnce(c.db, &last, rand.New(rand.NewPCG(1, 1))); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if last != want {
		return fmt.Errorf("opened again, it has %+v instead of %+v", last, want)
	}
	return nil
}
