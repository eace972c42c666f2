// Package mirror copies a database to an object store in the background, so that the store has the newest committed
// snapshots of its tables, in the layout of a database directory.
//
// What a reader of the store may rely on at any moment: a manifest is there after everything that it names; the manifests
// of a table come in the order of their versions; the catalog names tables that are there. docs/MIRROR.md has the whole.
//
// # The protocol
//
// A [Cut] is what the database holds at one moment, kept from removal as long as it is open. Its data files and deletion
// vectors that the store does not have go up side by side, each only if it is absent. When the store has confirmed all of
// them the manifests of the cut's tables are put, each only if it is absent, then the catalog, if it is another one. Then
// the newest cut is taken: those between are skipped. While the last files of a cut are on their way a second one may be
// begun, so that nothing waits for one slow file; one that is complete makes an older one pointless. Two cuts are open at
// most, which bounds what is kept from removal, and none while the store does not answer.
//
// Nothing is remembered but what the store confirms: after a crash one listing tells what is there.
package mirror

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Source is the database that is mirrored. Its methods are called from any goroutine.
type Source interface {
	// Cut returns what there is now. The caller closes it.
	Cut() (*Cut, error)
	// CatalogVersion returns the version of a catalog, given its bytes.
	CatalogVersion(data []byte) (uint64, error)
}

// Cut is what a database holds at one moment, and all of whose files stay until Close.
type Cut struct {
	// Seq is the largest sequence number up to which all rows are in the files of the cut.
	Seq uint64
	// Commit is the number of commits that the cut has.
	Commit uint64
	// Catalog is the file of the tables besides the root one, nil where there is none.
	Catalog []byte
	// NextTable is above all ids that tables ever had.
	NextTable uint32
	// Tables are those with a manifest, by id.
	Tables []*Table
	// Close lets the files go.
	Close func()
}

// Table is one table of a cut.
type Table struct {
	ID       uint32 // 0 is the root table
	Manifest *manifest.Manifest
	Dir      TableDir
}

// TableDir has the files of a table.
type TableDir interface {
	// Open opens a file that the cut's manifest names.
	Open(rel string) (File, error)
	// ManifestBytes returns the file of a version's manifest, CodeNotFound where it is gone.
	ManifestBytes(version int64) ([]byte, error)
	// Record returns what SetRecord last kept, nil for nothing.
	Record() ([]byte, error)
	// SetRecord keeps data beside the table, durably.
	SetRecord(data []byte) error
}

// File is a file that does not change.
type File interface {
	io.ReaderAt
	Size() (int64, error)
	Close() error
}

// Options of a mirror.
type Options struct {
	// Parallelism is how many objects are sent at a time, at least 1.
	Parallelism int
	// Retain is how long what is superseded stays for readers.
	Retain time.Duration
	// Now is the wall clock, for what people read and for the ages of objects that were there before. The default is
	// time.Now. Nothing else depends on it.
	Now func() time.Time
	// Published is called when the store has all of a cut; Failed for each error that is tried again; Stopped for the one
	// that ends the mirror. They must not call the mirror.
	Published func(seq, commit uint64)
	Failed    func(err error)
	Stopped   func(err error)
}

// State is what a mirror is doing.
type State string

// The states.
const (
	Idle      State = "idle"
	Uploading State = "uploading"
	Retrying  State = "retrying"
	Stopped   State = "stopped"
)

// Status is a mirror at one moment.
type Status struct {
	State State
	// Seq and Commit are of the cut that the store last had all of.
	Seq, Commit   uint64
	BytesUploaded int64
	FilesUploaded, ManifestsUploaded,
	Retries int64
	LastError                string // "" where there was none
	LastErrorAt, LastSuccess time.Time
}

// Mirror keeps a store up to date. Use [Start].
type Mirror struct {
	store   objstore.Store
	answers atomic.Int64 // of the store that were no failures
	failing atomic.Bool  // the last jobs failed: the loop wants to know of an answer
	src     Source
	opt     Options

	wake   chan struct{}
	dirty  atomic.Bool     // there may be something newer than the newest cut
	ctx    context.Context // of all that it does
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing of the mirror runs any more

	// mu guards what is asked from outside.
	mu        sync.Mutex
	status    Status
	changed   chan struct{} // closed and replaced when the status changes
	confirmed map[string]int64
	listed    map[string]int64 // as confirmed, not compared with ours yet
	// suspect are objects that may be there: sending them failed.
	suspect map[string]int64

	loop loop // of run alone
	// remotes is what is known of the store's tables, and catalog of its catalog. The control job alone, of which one runs
	// at a time, has them.
	remotes map[uint32]*remote
	catalog catalogCopy
	// lastSeen is when the newest object of the listing came, by the store's clock.
	lastSeen time.Time
}

// Start begins to mirror a database. It returns at once, and asks nothing of the store itself.
func Start(store objstore.Store, src Source, opt Options) *Mirror {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Mirror{
		src: src, opt: opt, wake: make(chan struct{}, 1), ctx: ctx, cancel: cancel, ended: make(chan struct{}),
		changed: make(chan struct{}), confirmed: map[string]int64{}, listed: map[string]int64{}, suspect: map[string]int64{}, remotes: map[uint32]*remote{},
	}
	m.store = &counted{Store: store, answers: &m.answers, came: func() {
		if m.failing.Load() {
			m.nudge()
		}
	}}
	m.opt.Parallelism = max(opt.Parallelism, 1)
	if m.opt.Now == nil {
		m.opt.Now = time.Now
	}
	m.status.State = Uploading
	m.dirty.Store(true)
	m.loop.results = make(chan result)
	go m.run(ctx)
	return m
}

// Notify says that there is something new. It never waits.
func (m *Mirror) Notify() {
	m.dirty.Store(true)
	m.nudge()
}

// nudge has the loop look at what it can do.
func (m *Mirror) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Stop ends the mirror. It waits until nothing of it runs any more, but not longer than patience: a store that does not
// let go of a request keeps the files that it reads.
func (m *Mirror) Stop(patience time.Duration) {
	m.cancel()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-m.ended:
	case <-t.C:
	}
}

// Wait waits until the store has all of what a cut with that number of commits, and rows up to seq, has. False: the
// context ended before, or the store does not answer or is not ours.
func (m *Mirror) Wait(ctx context.Context, seq, commit uint64) bool {
	for {
		m.mu.Lock()
		s, changed := m.status, m.changed
		m.mu.Unlock()
		switch {
		case s.Seq >= seq && s.Commit >= commit:
			return true
		case s.State == Retrying || s.State == Stopped:
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-m.ended:
			return false
		}
	}
}

// Ended reports whether the mirror was told to stop: nothing more comes to the store, but what is on its way.
func (m *Mirror) Ended() bool { return m.ctx.Err() != nil }

// Status returns how the mirror is doing.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// Pending calls fn, in one go, with a function that reports whether the store has a file of a table.
func (m *Mirror) Pending(fn func(has func(id uint32, rel string) bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn(func(id uint32, rel string) bool {
		key := tablePrefix(id) + rel
		_, there := m.confirmed[key]
		if !there {
			_, there = m.listed[key]
		}
		return there
	})
}

// String names the destination.
func (m *Mirror) String() string { return m.store.String() }

// update changes the status.
func (m *Mirror) update(fn func(s *Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn(&m.status)
	close(m.changed)
	m.changed = make(chan struct{})
}
