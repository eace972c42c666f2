package metamorphic

import (
	"math/rand/v2"
	"sync"
	"syscall"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// disk is the machine that the database runs on, from one power cut to the next.
type disk struct {
	mem *vfs.MemFS
	// fs is what the writer sees.
	fs vfs.FS
	// onCut is called when the power is cut, on the goroutine that was about to change the disk.
	onCut func()

	mu         sync.Mutex
	cutIn      int // changes until the power is cut; 0: never
	cutRand    *rand.Rand
	left       *vfs.MemFS // what the power cut left
	full       int        // how many of 100 writes fail
	fullRand   *rand.Rand
	syncIn     int  // syncs until one fails; 0: never
	syncFailed bool // one did
}

func newDisk(mem *vfs.MemFS, wrap func(vfs.FS) vfs.FS, onCut func()) *disk {
	d := &disk{mem: mem, onCut: onCut}
	inner := vfs.FS(mem)
	if wrap != nil {
		inner = wrap(inner)
	}
	d.fs = vfs.NewErrorFS(inner, d.inject)
	return d
}

// other is what a reader in another process sees: the engine takes each file system for a machine of its own.
func (d *disk) other() vfs.FS {
	return vfs.NewErrorFS(d.mem, func(vfs.Op, string) error { return nil })
}

func (d *disk) inject(op vfs.Op, _ string) error {
	if !op.Mutates() || op == vfs.OpLock {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cutIn > 0 {
		if d.cutIn--; d.cutIn == 0 {
			d.cutLocked(d.cutRand)
		}
	}
	switch op {
	case vfs.OpSync, vfs.OpSyncDir:
		if d.syncIn > 0 {
			if d.syncIn--; d.syncIn == 0 {
				d.syncFailed = true
				return syscall.EIO
			}
		}
	case vfs.OpCreate, vfs.OpWrite, vfs.OpPreallocate:
		if d.full > 0 && d.fullRand.IntN(100) < d.full {
			return &vfs.ShortWrite{N: d.fullRand.IntN(64), Err: syscall.ENOSPC}
		}
	}
	return nil
}

// cut cuts the power now.
func (d *disk) cut(rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutLocked(rng)
}

// cutLocked keeps what the disk has at this moment; the engine runs on until somebody looks.
func (d *disk) cutLocked(rng *rand.Rand) {
	if d.left == nil {
		d.left = d.mem.CrashClone(rng)
		d.onCut()
	}
}

func (d *disk) setCut(n int, rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutIn, d.cutRand = n, rng
}

func (d *disk) setFull(percent int, rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.fullRand = percent, rng
}

func (d *disk) failSync(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncIn = n
}

// repair ends all failures.
func (d *disk) repair() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.syncIn, d.syncFailed = 0, 0, false
}

// afterCut returns what a power cut left, nil if there was none.
func (d *disk) afterCut() *vfs.MemFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// trouble says which failures were injected: writes that fail at the moment, and a sync that failed.
func (d *disk) trouble() (full, syncFailed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full > 0, d.syncFailed
}

// dataFiles lists everything below the data directory of the database.
func (d *disk) dataFiles() ([]string, error) {
	var out []string
	levels, err := d.mem.List(dir + "/data")
	if engine.CodeOf(err) == engine.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, level := range levels {
		names, err := d.mem.List(dir + "/data/" + level)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			out = append(out, dir+"/data/"+level+"/"+n)
		}
	}
	return out, nil
}

const dir = "/db"
