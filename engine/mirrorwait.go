package engine

import (
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/mirror"
)

// WaitForMirror waits until the mirror has everything that is in files now, rows and changes of tables alike; rows in memory
// it does not wait for. It reports whether that came to be before the timeout; where there is no mirror, or it has stopped,
// it does not, at once, nor does it when the database is closed meanwhile. interrupt, if not nil, is asked on the caller's goroutine; true ends the call with CodeCancelled.
func (db *DB) WaitForMirror(timeout time.Duration, interrupt func() bool) (bool, error) {
	db.mu.RLock()
	d := db.c.database
	db.mu.RUnlock()
	g := d.mirror
	if g == nil {
		return false, nil
	}
	seq, commit := g.inFiles()
	const often = 10 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for end := time.Now().Add(timeout); ; {
		ended := g.m.Ended() // before the status, which is the last one then
		switch s := g.m.Status(); {
		case s.Seq >= seq && s.Commit >= commit:
			return true, nil
		case s.State == mirror.Stopped || ended || !time.Now().Before(end):
			return false, nil
		case interrupt != nil && interrupt():
			return false, base.Errorf(base.CodeCancelled, "interrupted while waiting for the mirror")
		}
		<-tick.C
	}
}

// inFiles returns up to which sequence number all rows are in files, and how many commits there were.
func (g *mirroring) inFiles() (base.Seq, uint64) {
	d := g.d
	d.mu.Lock()
	defer d.mu.Unlock()
	seq := d.visible
	for _, c := range d.live() {
		if c.state == nil {
			continue
		}
		for _, e := range c.state.mems {
			if e.visible > 0 {
				seq = min(seq, e.firstSeq-1)
			}
		}
	}
	return seq, g.commit
}
