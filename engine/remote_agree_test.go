package engine

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/vfs"
)

var readersFor = flag.Duration("readers", 0, "how long readers of a mirror are compared with its primary, instead of a moment")

// fingerprint is of all rows of a snapshot, in order.
func fingerprint(s *Snapshot) (string, error) {
	it, err := s.Scan(ScanOptions{})
	if err != nil {
		return "", err
	}
	defer it.Close()
	h, n := fnv.New64a(), 0
	for {
		c, err := it.Next()
		if err != nil {
			return "", err
		}
		if c == nil {
			return fmt.Sprintf("%d rows, %x", n, h.Sum64()), nil
		}
		for i := range c.N {
			fmt.Fprintln(h, rowOf(c, i))
		}
		n += c.N
	}
}

// agreement is a primary with a mirror, and readers that compare what they see there with what the primary has under the
// same version.
type agreement struct {
	t       *testing.T
	db      *DB
	open    func() (*DB, error) // as another process does
	stop    atomic.Bool
	faulty  bool // reads may fail
	patient bool // nothing is reclaimed that a reader may hold

	compared, gone, skipped atomic.Int64
}

// TestReadersOfMirror: whatever the primary does, a reader sees a committed state, exactly.
func TestReadersOfMirror(t *testing.T) {
	mem := func() (objstore.Store, func() (*DB, error)) {
		store := objstore.NewMem()
		return store, func() (*DB, error) {
			log := newRequestLog(store)
			log.noWrites = true
			return tryOpenRemote(log, Options{CacheBytes: 1 << 20})
		}
	}
	t.Run("kept", func(t *testing.T) { runAgreement(t, &agreement{patient: true}, mem) })
	t.Run("reclaimed at once", func(t *testing.T) { runAgreement(t, &agreement{}, mem) })
	t.Run("faults", func(t *testing.T) {
		runAgreement(t, &agreement{patient: true, faulty: true}, func() (objstore.Store, func() (*DB, error)) {
			store := objstore.NewMem()
			return store, func() (*DB, error) {
				log := newRequestLog(store)
				log.noWrites = true
				n := 0 // guarded by the log's lock
				log.setFail(func(objstore.Op, string) error {
					if n++; n%13 == 0 {
						return base.Errorf(base.CodeObjectStore, "503 slow down")
					}
					return nil
				})
				return tryOpenRemote(log, Options{CacheBytes: -1})
			}
		})
	})
	t.Run("directory", func(t *testing.T) {
		runAgreement(t, &agreement{patient: true}, func() (objstore.Store, func() (*DB, error)) {
			fs := vfs.NewMem()
			return objstore.NewDir(fs, "/mirror"), func() (*DB, error) {
				return Open("/mirror", Options{ReadOnly: true, fs: vfs.NewCountingFS(fs)})
			}
		})
	})
}

func runAgreement(t *testing.T, a *agreement, make func() (objstore.Store, func() (*DB, error))) {
	d := 1500 * time.Millisecond
	if *readersFor > 0 {
		d = *readersFor / 4
	} else if testing.Short() {
		d /= 3
	}
	store, open := make()
	o := Options{
		MemtableBytes: 1 << 20, L0Files: 2, TargetFileBytes: 20_000, BaseLevelBytes: 60_000, LevelMultiplier: 2,
		RetainFor: 30 * time.Second, GCGrace: -1, MirrorFlush: -1, MirrorRetain: time.Hour,
	}
	if !a.patient {
		o.MirrorRetain = -1
	}
	if *readersFor > 0 && a.patient {
		o.MirrorRetain = 20 * time.Second
	}
	o.UseMirror(store)
	a.t, a.db, a.open = t, openMem(t, vfs.NewMem(), o), open
	defer a.db.Free()
	waitMirrored(t, a.db)
	var writer, readers sync.WaitGroup
	writer.Go(a.write)
	for i := range 3 {
		readers.Go(func() { a.read(uint64(i)) })
	}
	time.Sleep(d)
	a.stop.Store(true)
	writer.Wait()
	readers.Wait()
	waitFor(t, "states were compared", func() bool { return a.compared.Load() > 0 || t.Failed() })
	waitMirrored(t, a.db)
	if r, err := open(); err == nil {
		a.compare(r, 0)
		r.Free()
	} else if !a.tolerates(err) {
		t.Error(err)
	}
	t.Logf("%d states compared, %d reclaimed under a snapshot, %d not kept by the primary", a.compared.Load(), a.gone.Load(), a.skipped.Load())
	if a.patient && a.gone.Load() > 0 {
		t.Errorf("%d snapshots lost their files", a.gone.Load())
	}
}

// write changes the root table and others until told to stop.
func (a *agreement) write() {
	rng := rand.New(rand.NewPCG(11, 12))
	for i := int64(0); !a.stop.Load(); i++ {
		if err := a.step(rng, i); err != nil {
			a.t.Errorf("writing: %v", err)
			return
		}
	}
}

func (a *agreement) step(rng *rand.Rand, i int64) error {
	db := a.db
	switch rng.IntN(40) {
	case 0, 1, 2, 3, 4, 5:
		return db.Flush()
	case 6:
		return db.Compact()
	case 7:
		s := testSchema()
		s.TableName = fmt.Sprintf("other%d", rng.IntN(3))
		if err := db.CreateTable(s); err != nil && base.CodeOf(err) != base.CodeAlreadyExists {
			return err
		}
		return nil
	case 8:
		return onOther(db, rng, func(o *DB) error { return o.DropTable() })
	case 9, 10, 11:
		return onOther(db, rng, func(o *DB) error { return putSome(o, rng, i) })
	case 12:
		w, err := db.NewWrite()
		if err != nil {
			return err
		}
		defer w.Close()
		for range 50 {
			if err := w.Delete(testKey(rng.Int64N(3000))); err != nil {
				return err
			}
		}
		_, err = w.Commit()
		return err
	}
	return putSome(db, rng, i)
}

func putSome(db *DB, rng *rand.Rand, i int64) error {
	rows := make([][]Value, 1+rng.IntN(100))
	for k := range rows {
		rows[k] = testRow(rng.Int64N(3000), i)
	}
	_, err := db.PutBatch(rows)
	return err
}

func onOther(db *DB, rng *rand.Rand, do func(o *DB) error) error {
	o, err := db.OpenTable(fmt.Sprintf("other%d", rng.IntN(3)))
	if base.CodeOf(err) == base.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer o.Free()
	return do(o)
}

// read follows the mirror with an engine of its own, which is opened anew now and then.
func (a *agreement) read(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 13))
	for !a.stop.Load() {
		r, err := a.open()
		if a.tolerates(err) {
			continue
		}
		if err != nil {
			a.t.Errorf("opening: %v", err)
			return
		}
		last := int64(0)
		for i := 0; i < 20 && !a.stop.Load() && !a.t.Failed(); i++ {
			if err := r.Refresh(); err != nil && !a.tolerates(err) {
				a.t.Errorf("refresh: %v", err)
			}
			last = a.compare(r, last)
			a.get(r, rng)
		}
		r.Free()
		if a.t.Failed() {
			return
		}
	}
}

// tolerates reports whether an error is one of those that the store was told to make.
func (a *agreement) tolerates(err error) bool {
	return a.faulty && err != nil && strings.Contains(err.Error(), "503 slow down")
}

// get reads without a snapshot of its own: whatever is reclaimed, it finds a state that is there.
func (a *agreement) get(r *DB, rng *rand.Rand) {
	for range 5 {
		id := rng.Int64N(3000)
		row, found, err := r.Get(testKey(id))
		if a.tolerates(err) {
			continue
		}
		if err != nil {
			a.t.Errorf("get %d: %v", id, err)
		} else if found && row[1].Int64() != id {
			a.t.Errorf("get %d: %v", id, row)
		}
	}
}

// compare compares all tables that a reader sees, and returns the version of the root one, which never falls.
func (a *agreement) compare(r *DB, last int64) int64 {
	for _, info := range r.Tables() {
		v := a.compareTable(r, info)
		if info.ID == 0 && v != 0 {
			if v < last {
				a.t.Errorf("version %d after %d", v, last)
			}
			last = v
		}
	}
	return last
}

func (a *agreement) compareTable(r *DB, info TableInfo) int64 {
	there, err := r.OpenTableID(info.ID)
	if err != nil {
		return 0 // it was dropped just now
	}
	defer there.Free()
	s, err := there.Snapshot()
	if err != nil {
		a.t.Errorf("snapshot: %v", err)
		return 0
	}
	defer s.Close()
	got, err := fingerprint(s)
	if a.tolerates(err) {
		return s.Version()
	}
	if err != nil {
		if a.patient || !isGone(err) || !strings.Contains(err.Error(), "reclaimed") || !strings.Contains(err.Error(), remoteURL) {
			a.t.Errorf("scan of version %d of %s: %v", s.Version(), info.Dir, err)
		}
		a.gone.Add(1)
		return s.Version()
	}
	here, err := a.db.OpenTableID(info.ID)
	if err != nil {
		a.skipped.Add(1)
		return s.Version()
	}
	defer here.Free()
	local, err := here.SnapshotAt(s.Version())
	if err != nil {
		if base.CodeOf(err) != base.CodeNotFound {
			a.t.Errorf("version %d at the primary: %v", s.Version(), err)
		}
		a.skipped.Add(1)
		return s.Version()
	}
	defer local.Close()
	want, err := fingerprint(local)
	if err != nil || got != want {
		a.t.Errorf("version %d of %s: the mirror has %s, the primary %s, %v", s.Version(), info.Dir, got, want, err)
	}
	if s.Seq() != local.Seq() {
		a.t.Errorf("version %d: sequence number %d at the mirror, %d at the primary", s.Version(), s.Seq(), local.Seq())
	}
	a.compared.Add(1)
	return s.Version()
}
