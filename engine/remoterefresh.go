package engine

import (
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// refreshRemote brings a read-only database in an object store up to date: the file TABLES, and of each table a listing of
// its manifests. tail.mu is held. Each table is shown as of a commit of its own, so nothing has to be read twice. What goes while it is
// looked for belonged to a table that was dropped meanwhile: then it is looked for again, some times.
func (d *database) refreshRemote() error {
	const attempts = 6
	for i := 0; ; i++ {
		err := d.tryRefreshRemote()
		if err == nil || base.CodeOf(err) != base.CodeNotFound || i == attempts {
			return err
		}
		d.mu.Lock()
		some := d.main.state != nil || len(d.tables) > 1
		d.mu.Unlock()
		if !some {
			return err // there is no database
		}
		time.Sleep(time.Millisecond << (2 * i))
	}
}

// refreshedWithin reports whether the database was brought up to date less than an interval ago.
func (d *database) refreshedWithin(interval time.Duration) bool {
	age := time.Since(time.Unix(0, d.refreshed.Load()))
	return age >= 0 && age < interval
}

func (d *database) tryRefreshRemote() error {
	v, err := d.readManifests()
	defer v.release()
	if err != nil {
		return err
	}
	if err := d.pinView(v); err != nil {
		return err
	}
	if err := d.adoptView(v); err != nil {
		return err
	}
	d.installView(v)
	d.refreshed.Store(time.Now().UnixNano())
	return nil
}

// mayFollow reports whether a read that failed is worth another try on a newer state.
func (db *DB) mayFollow(err error) bool { return db.readOnly && isGone(err) }

// following runs a read on the newest state. Where that finds files gone, because the state is older than what a mirror
// keeps, it looks for a newer one and reads that, some times; a file that the newest state names is missing, which is
// an error.
func (db *DB) following(read func(s *readState, seq base.Seq) error) error {
	const attempts = 4
	for i := 1; ; i++ {
		s, seq, err := db.pinState()
		if err != nil {
			return err
		}
		err = read(s, seq)
		shown := s.manifest
		s.unref()
		if err == nil || i == attempts || !s.core.readOnly || !isGone(err) {
			return err
		}
		if e := db.Refresh(); e != nil {
			return err
		}
		now, _, e := db.pinState()
		if e != nil {
			return e
		}
		same := now.manifest == shown
		now.unref()
		if same {
			return err
		}
	}
}

// maxListings is how many tables a refresh asks for at a time.
const maxListings = 8

// newestOf reads the newest manifest of each table, of which known has those that are shown now.
func newestOf(cores []*core, known map[*core]*manifest.Manifest) (map[*core]*manifest.Manifest, error) {
	found := make([]*manifest.Manifest, len(cores))
	ask := func(i int) (err error) {
		c := cores[i]
		m := known[c]
		if m == nil {
			found[i], err = c.store.Newest()
		} else if found[i], err = c.store.Changed(m); found[i] == nil {
			found[i] = m
		}
		return err
	}
	var errs []error
	if len(cores) == 1 || !cores[0].remote() {
		errs = make([]error, len(cores))
		for i := range cores {
			if errs[i] = ask(i); errs[i] != nil {
				break
			}
		}
	} else {
		errs = base.Each(len(cores), maxListings, ask)
	}
	out := make(map[*core]*manifest.Manifest, len(cores))
	for i, c := range cores {
		if errs[i] != nil {
			return out, errs[i]
		}
		out[c] = found[i]
	}
	return out, nil
}
