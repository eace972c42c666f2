package manifest

import (
	"context"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// ownCommits is what an [ObjectStore] knows of the commits that were made through it. They come one at a time.
type ownCommits struct {
	patience time.Duration
	began    time.Time // when the last one did; zero where nothing is known of it
}

const (
	// LeastGrace is for how long at least a writer keeps a manifest in an object store that was superseded, whatever its
	// options say: what a writer that lost its place relies on.
	LeastGrace = time.Minute
	// sureFor is how long after the begin of a commit the next version cannot have come and gone again: far below
	// LeastGrace, for clocks differ.
	sureFor = 10 * time.Second
)

// SetPatience sets how long a commit tries to find out what became of it; the default is [DefaultPatience].
func (s *ObjectStore) SetPatience(d time.Duration) { s.patience = d }

// Forget makes the next commit look whether it follows the newest version, as one does that comes after a long time. It
// must not run beside one.
func (s *ObjectStore) Forget() { s.began = time.Time{} }

// maxGivenUp bounds how many versions that were given up a commit goes past: each is of another writer that died.
const maxGivenUp = 16

// Commit implements [Store]: the object of the version is put if there is none. CodeConflict: another writer has committed
// that version; nothing was written, and nothing that is built on the version before can be. A version of a commit over
// several tables that was given up is what the one before it is: then m gets the version behind it.
func (s *ObjectStore) Commit(m *Manifest) error {
	patience := s.patience
	if patience == 0 {
		patience = DefaultPatience
	}
	for i := 0; ; i++ {
		taken, err := s.put(m, patience)
		if taken && i < maxGivenUp && s.isGivenUp(m.Version) {
			s.Forget()
			m.Version++
			continue
		}
		if base.CodeOf(err) == base.CodeConflict {
			return base.Wrapf(base.CodeConflict, err, "version %d of the table in %s is another writer's: this one takes no writes until the database is opened anew",
				m.Version, s.name)
		}
		return err
	}
}

// put puts the object of a version; taken says that another writer's is there.
func (s *ObjectStore) put(m *Manifest, patience time.Duration) (taken bool, err error) {
	data, err := Encode(m)
	if err != nil {
		return false, notCommitted{err}
	}
	began := time.Now()
	info, err := PutOnce(s.store, s.key(m.Version), data, patience)
	if err != nil {
		return base.CodeOf(err) == base.CodeConflict, err
	}
	if err := s.inTurn(m.Version, patience); err != nil {
		return false, err
	}
	s.began = began
	m.stamp = stamp{size: info.Size, etag: info.ETag}
	return false, nil
}

// isGivenUp reports whether a version that is there surely is one of a commit that was given up, for good.
func (s *ObjectStore) isGivenUp(version int64) bool {
	there, err := s.read(version, 0)
	if err != nil || there.Properties[PropIntent] == "" {
		return false
	}
	committed, _, err := readIntent(context.Background(), s.store, there.Properties[PropIntent])
	return err == nil && !committed
}

// inTurn makes sure that a version which was just put follows the newest one. If another writer has committed it long ago
// its manifest may have been reclaimed, and the name be free again. Manifests are reclaimed in their order, so the one
// before is gone then as well.
func (s *ObjectStore) inTurn(version int64, patience time.Duration) error {
	if recent(s.began, time.Now()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		alone, err := s.follows(ctx, version)
		if err == nil && !alone {
			_ = s.store.Delete(ctx, s.key(version)) // of no harm if it stays
			return conflict(s.store, s.key(version))
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return base.Wrapf(base.CodeOf(err), err, "%s: nobody knows whether it is the newest, opening the database anew tells", s.key(version))
		case <-time.After(pause):
		}
	}
}

// recent reports whether a commit that began some time ago did so less than sureFor ago. The monotonic clock may stand still
// while the machine is suspended, the other one may be set: both have to say so.
func recent(began, now time.Time) bool {
	if began.IsZero() {
		return false
	}
	wall := now.Round(0).Sub(began.Round(0))
	return now.Sub(began) < sureFor && 0 <= wall && wall < sureFor
}

// follows reports whether the version before is there; where there is none, whether no later one is.
func (s *ObjectStore) follows(ctx context.Context, version int64) (bool, error) {
	if version == 1 {
		found, err := s.list()
		return len(found) == 0 || found[len(found)-1].version <= version, err
	}
	_, err := s.store.Head(ctx, s.key(version-1))
	if base.CodeOf(err) == base.CodeNotFound {
		return false, nil
	}
	return true, err
}
