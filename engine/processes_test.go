package engine

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// The table of TestProcesses: accounts between which amounts move in batches, a few rows that batches replace together,
// and many that bulk loads replace together. In every state the accounts add up, and the rows of a group are of one
// generation.
const (
	procAccounts = 64
	procStart    = 1000
	procSmall    = 1000 // the first id of the small group
	procSmallN   = 300
	procLarge    = 100_000 // the first id of the large one
	procLargeN   = 6000
)

// roleVar tells the test program that it is one of the processes of TestProcesses: "writer" or "reader", a colon, and a
// seed.
const (
	roleVar = "MERUTABLE_TEST_ROLE"
	dirVar  = "MERUTABLE_TEST_DIR"
)

// TestProcesses has one process write, flush, load and compact without any grace, while others read; now and then one
// of them is killed. No reader may ever see an error or half a change, and a snapshot must stay the same.
func TestProcesses(t *testing.T) {
	if role, seed, ok := strings.Cut(os.Getenv(roleVar), ":"); ok {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err == nil && role == "writer" {
			err = writerProcess(os.Getenv(dirVar), rand.New(rand.NewPCG(n, 1)))
		} else if err == nil {
			err = readerProcess(os.Getenv(dirVar), rand.New(rand.NewPCG(n, 2)))
		}
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	rounds := 24
	if testing.Short() {
		rounds = 6
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
	writer := startProcess(t, "writer", dir, rng.Uint64())
	writer.await(t)
	readers := make([]*process, 3)
	for i := range readers {
		readers[i] = startProcess(t, "reader", dir, rng.Uint64())
	}
	looked := 0
	for range rounds {
		// One of each has done something before the next is killed, however slow the machine is.
		for _, p := range append(slices.Clone(readers), writer) {
			p.await(t)
		}
		switch victim := rng.IntN(len(readers) * 2); {
		case victim < len(readers):
			looked += readers[victim].kill(t)
			readers[victim] = startProcess(t, "reader", dir, rng.Uint64())
		case victim == len(readers):
			writer.kill(t)
			writer = startProcess(t, "writer", dir, rng.Uint64())
		}
	}
	writer.finish(t)
	for _, r := range readers {
		looked += r.finish(t)
	}
	t.Logf("%d looks", looked)
	checkAfterProcesses(t, dir)
}

// checkAfterProcesses: with all readers gone nothing is left but what the newest manifest and the retained one name.
func checkAfterProcesses(t *testing.T, dir string) {
	db, err := Open(dir, frugal)
	must(t, err)
	defer db.Free()
	must(t, lookAt(db))
	collectNow(t, db)
	named := map[string]bool{}
	for _, v := range versionsOf(t, db) {
		m, err := db.c.store.At(v)
		must(t, err)
		paths(m, func(rel string) { named[vfs.OS.Join(dir, rel)] = true })
	}
	if len(versionsOf(t, db)) > 2 {
		t.Errorf("manifests %v are left", versionsOf(t, db))
	}
	for _, f := range tree(t, vfs.OS, vfs.OS.Join(dir, dataDir)) {
		if !named[f] && !db.c.pending.has(strings.TrimPrefix(f, dir+"/")) {
			t.Errorf("%s is left", f)
		}
	}
}

// process is a child. It prints a line for each thing it has done, and ends when its input does.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed at its end
	did   int
}

func startProcess(t *testing.T, role, dir string, seed uint64) *process {
	t.Helper()
	return startChild(t, "TestProcesses", fmt.Sprintf("%s=%s:%d", roleVar, role, seed), dirVar+"="+dir)
}

// startChild runs a test in a process of its own.
func startChild(t *testing.T, test string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	return startCommand(t, cmd)
}

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, lines: make(chan string)}
	cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	must(t, err)
	p.stdin = in
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	return p
}

// await waits until the process has done one more thing.
func (p *process) await(t *testing.T) {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		p.note(t, line, ok)
	case <-time.After(2 * time.Minute):
		t.Fatal("a process hangs")
	}
}

func (p *process) note(t *testing.T, line string, ok bool) {
	t.Helper()
	if !ok || line != "did" {
		t.Fatalf("a process said %q and ended: %v", line, !ok)
	}
	p.did++
}

// kill ends the process without notice and returns how much it did.
func (p *process) kill(t *testing.T) int {
	t.Helper()
	must(t, p.cmd.Process.Kill())
	for line := range p.lines {
		if line == "did" {
			p.did++
		} else if strings.HasPrefix(line, "failed") {
			t.Fatal(line)
		}
	}
	_ = p.cmd.Wait() // it was killed
	return p.did
}

// finish lets the process end.
func (p *process) finish(t *testing.T) int {
	t.Helper()
	must(t, p.stdin.Close())
	for line := range p.lines {
		p.note(t, line, true)
	}
	must(t, p.cmd.Wait())
	return p.did
}

// untilEOF calls do until standard input ends.
func untilEOF(do func() error) error {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		if err := do(); err != nil {
			return err
		}
		fmt.Println("did")
	}
}

func writerProcess(dir string, rng *rand.Rand) error {
	o := frugal
	o.NoAutoCompaction = false
	o.Durability = OS // processes are killed, the machine is not
	o.L0Files, o.BaseLevelBytes, o.TargetFileBytes = 2, 1<<18, 1<<16
	db, err := Open(dir, o)
	if err != nil {
		return err
	}
	defer db.Free()
	if !db.HasTable() {
		if err := db.CreateTable(testSchema()); err != nil {
			return err
		}
	}
	balance, err := balances(db)
	if err != nil {
		return err
	}
	err = untilEOF(func() error {
		switch p := rng.IntN(20); {
		case p < 10:
			return transfer(db, rng, balance)
		case p < 14:
			return replaceGroup(db, rng, procSmall, procSmallN)
		case p < 16:
			return replaceGroup(db, rng, procLarge, procLargeN)
		case p < 19:
			return db.Flush()
		}
		return db.Compact()
	})
	if err != nil {
		return err
	}
	return db.Close()
}

// balances reads the accounts, or makes them where the table is empty.
func balances(db *DB) ([]int64, error) {
	balance := make([]int64, procAccounts)
	rows := make([][]Value, procAccounts)
	for i := range balance {
		row, found, err := db.Get(testKey(int64(i)))
		if err != nil {
			return nil, err
		}
		if balance[i] = procStart; found {
			balance[i] = int64(doubleOf(row[3]))
		}
		rows[i] = accountRow(int64(i), balance[i])
	}
	_, err := db.PutBatch(rows)
	return balance, err
}

func transfer(db *DB, rng *rand.Rand, balance []int64) error {
	var rows [][]Value
	for range 1 + rng.IntN(4) {
		a, b, amount := rng.IntN(procAccounts), rng.IntN(procAccounts), rng.Int64N(50)
		balance[a] -= amount
		balance[b] += amount
		rows = append(rows, accountRow(int64(a), balance[a]), accountRow(int64(b), balance[b]))
	}
	_, err := db.PutBatch(rows)
	return err
}

func replaceGroup(db *DB, rng *rand.Rand, first, n int64) error {
	w, err := db.NewWrite()
	if err != nil {
		return err
	}
	defer w.Close()
	generation := rng.Int64N(1 << 40)
	for id := first; id < first+n; id++ {
		if err := w.Put(accountRow(id, generation)); err != nil {
			return err
		}
	}
	_, err = w.Commit()
	return err
}

func readerProcess(dir string, rng *rand.Rand) error {
	o := Options{ReadOnly: true}
	db, err := Open(dir, o)
	if err != nil {
		return err
	}
	defer func() { db.Free() }()
	var held *Snapshot
	var heldSum uint64
	return untilEOF(func() error {
		if rng.IntN(10) == 0 {
			db.Free()
			if db, err = Open(dir, o); err != nil {
				return err
			}
		}
		if err := db.Refresh(); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		if err := lookAt(db); err != nil {
			return err
		}
		if held == nil {
			if held, err = db.Snapshot(); err == nil {
				heldSum, err = addUp(held)
			}
			return err
		}
		sum, err := addUp(held)
		if err == nil && sum != heldSum {
			err = fmt.Errorf("the snapshot of version %d changed", held.Version())
		}
		if rng.IntN(6) == 0 {
			held.Close()
			held = nil
		}
		return err
	})
}

func lookAt(db *DB) error {
	s, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = addUp(s)
	return err
}

// addUp checks a snapshot by a scan and some gets, and returns a checksum of what it shows.
func addUp(s *Snapshot) (uint64, error) {
	fail := func(format string, args ...any) (uint64, error) {
		return 0, fmt.Errorf("version %d, sequence %d: %w", s.Version(), s.Seq(), fmt.Errorf(format, args...))
	}
	it, err := s.Scan(ScanOptions{})
	if err != nil {
		return fail("scan: %w", err)
	}
	defer it.Close()
	sum := fnv.New64a()
	total, rows, sizes := int64(0), map[int64]int64{}, map[int64]int{}
	for {
		c, err := it.Next()
		if err != nil {
			return fail("scan: %w", err)
		}
		if c == nil {
			break
		}
		for i := range c.N {
			id, x := c.Cols[1].Value(i).Int64(), int64(doubleOf(c.Cols[3].Value(i)))
			fmt.Fprintln(sum, id, x)
			if id < procAccounts {
				total += x
				rows[id] = x
				continue
			}
			first := int64(procSmall)
			if id >= procLarge {
				first = procLarge
			}
			if sizes[first]++; id == first {
				rows[first] = x
			} else if rows[first] != x {
				return fail("row %d is of another generation than row %d", id, first)
			}
		}
	}
	if len(rows) > 0 && total != procAccounts*procStart {
		return fail("%d rows, the accounts have %d", len(rows), total)
	}
	if n, m := sizes[procSmall], sizes[procLarge]; n != 0 && n != procSmallN || m != 0 && m != procLargeN {
		return fail("the groups have %d and %d rows", n, m)
	}
	for id, want := range rows { // a few, in random order
		cols, found, err := s.Get(testKey(id))
		if err != nil || !found || int64(doubleOf(cols.Cols[3].Value(0))) != want {
			return fail("get %d: %v, %v", id, found, err)
		}
		if id%5 == 0 {
			break
		}
	}
	return sum.Sum64(), nil
}
