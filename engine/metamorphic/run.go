package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// hooks are for the tests of this package: they make the engine look faulty, and tell what a history went through. The
// zero value does nothing.
type hooks struct {
	wrapFS  func(vfs.FS) vfs.FS                                  // what the writer's file system goes through
	deletes func(s *engine.Snapshot, file int) ([]uint32, error) // instead of Snapshot.Deletes
	lose    func(e edit) bool                                    // edits that the engine is not told
	seen    func(event string, n int64)
}

// run is one execution of a history.
type run struct {
	keys   int64
	config Config
	hooks  hooks
	disk   *disk
	db     *engine.DB
	// opening counts openings; seq and version are the newest that were seen since the last one.
	opening int
	seq     uint64
	version int64

	held    []held
	past    []past
	walks   []*walk
	readers []*reader
	txns    []*openTxn

	// mu guards what follows against the goroutine that finds the power cut.
	mu sync.Mutex
	// since are the states that a power cut may go back to: the last one is the current one, and with durability sync
	// the only one.
	since []*state
	// inFlight is the state that the change under way makes. maybe is one whose change failed in a way that leaves open
	// what is on the disk.
	inFlight, maybe *state
	// atCut are the states that the database may come back in after the power cut.
	atCut []*state
}

type held struct {
	s       *engine.Snapshot
	state   *state
	opening int
}

type reader struct {
	db    *engine.DB
	state *state
}

// Run executes a history and returns how the engine and the model differ, naming the operation.
func Run(h History) error { return runHooked(h, hooks{}) }

func runHooked(h History, hk hooks) (err error) {
	config, err := ConfigByName(h.Config)
	if err != nil {
		return err
	}
	empty := &state{cells: map[int64]cell{}}
	r := &run{keys: h.Keys, config: config, hooks: hk, since: []*state{empty}}
	defer func() { r.end() }()
	r.newDisk(vfs.NewMem())
	if err := r.open(); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := r.create(); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for i, op := range append(h.Ops[:len(h.Ops):len(h.Ops)], epilogue...) {
		if err := r.step(op); err != nil {
			return fmt.Errorf("operation %d, %s: %w", i, op, err)
		}
	}
	if err := r.checkGarbage(); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	return nil
}

// epilogue ends every history: whatever it left must be readable, and must survive.
var epilogue = []Op{{Kind: OpDiskRelief}, {Kind: OpCheck}, {Kind: OpClose}, {Kind: OpCompact}, {Kind: OpCheck}}

func (r *run) newDisk(mem *vfs.MemFS) {
	r.disk = newDisk(mem, r.hooks.wrapFS, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.atCut = r.candidates()
	})
}

// candidates are the states that a power cut at this moment may leave. It runs under mu.
func (r *run) candidates() []*state {
	out := append([]*state(nil), r.since...)
	for _, s := range []*state{r.inFlight, r.maybe} {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

func (r *run) current() *state { return r.since[len(r.since)-1] }

func (r *run) begin(next *state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight = next
}

// succeeded makes the change under way count.
func (r *run) succeeded(durable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if durable || r.config.Options.Durability == engine.Sync {
		r.since = nil
	}
	r.since = append(r.since, r.inFlight)
	r.inFlight = nil
}

// failed drops the change under way; unknown says that it may be on the disk all the same.
func (r *run) failed(unknown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if unknown {
		r.maybe = r.inFlight
	}
	r.inFlight = nil
}

// durable takes note that the current state survives power cuts from now on.
func (r *run) durable() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = []*state{r.current()}
}

// step executes an operation and deals with what it brought upon the machine.
func (r *run) step(op Op) error {
	err := r.do(op, rand.New(rand.NewPCG(op.Seed, uint64(op.Kind))))
	full, syncFailed := r.disk.trouble()
	switch {
	case err == nil:
	case syncFailed && engine.CodeOf(err) == engine.CodeIO: // it takes no writes until it is opened again
		r.saw("failed syncs", 1)
		if err := r.restart(); err != nil {
			return fmt.Errorf("opened after a failed sync: %w", err)
		}
	case full && engine.CodeOf(err) == engine.CodeNoSpace:
		r.saw("full disks", 1)
	default:
		return err
	}
	if r.disk.afterCut() != nil {
		if err := r.recover(); err != nil {
			return fmt.Errorf("after the power cut: %w", err)
		}
	}
	return r.checkStats()
}

// saw tells the hook that something happened n times.
func (r *run) saw(event string, n int64) {
	if r.hooks.seen != nil && n > 0 {
		r.hooks.seen(event, n)
	}
}

func (r *run) do(op Op, rng *rand.Rand) error {
	switch op.Kind {
	case OpPut, OpDelete:
		return r.single(op, rng)
	case OpBatch, OpLoad:
		return r.change(r.edits(op.N, rng), nil, nil)
	case OpGuarded:
		return r.guarded(op, rng)
	case OpCancel:
		return r.cancelled(op, rng)
	case OpFlush:
		return r.maintain(r.db.Flush)
	case OpCompact, OpCompactRange, OpGarbage:
		return r.compact(op, rng)
	case OpSnapshot:
		return r.hold()
	case OpReadHeld, OpRelease:
		return r.readHeld(op.Kind == OpRelease, rng)
	case OpRemember:
		return r.remember()
	case OpTravel:
		return r.travel(rng)
	case OpChanges:
		return r.changes(rng)
	case OpWalk, OpStep:
		return r.walk(op, rng)
	case OpScan, OpGet, OpMultiGet, OpCheck:
		return r.read(op, rng)
	case OpDiskFull:
		r.disk.setFull(op.N, rng)
	case OpDiskRelief:
		return r.relieve()
	case OpSyncFails:
		r.disk.failSync(op.N)
	case OpCrash:
		r.disk.cut(rng)
	case OpCrashIn:
		r.disk.setCut(op.N, rng)
	case OpClose, OpKill:
		return r.reopen(op.Kind == OpClose)
	case OpReaderOpen, OpReaderCheck, OpReaderRefresh, OpReaderFree:
		return r.reader(op.Kind, rng)
	case OpDrop:
		return r.drop(op.N > 0)
	case OpAlter:
		return r.alter(rng)
	case OpReplace:
		return r.replace(op, rng)
	case OpTxnBegin, OpTxnWrite, OpTxnRead, OpTxnEnd:
		return r.transaction(op, rng)
	default:
		return fmt.Errorf("operation %s is unknown", op.Kind)
	}
	return nil
}
