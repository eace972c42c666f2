package engine

import "time"

// A reader that nobody uses must not keep the writer from collecting garbage: a database that was attached read-only
// may be left alone for days. So a read-only core goes to rest when no snapshot has been taken for a while and none is
// left: it lets go of the manifest that it would show next. The next snapshot begins with a refresh, which pins the
// same one again if it is still there, or shows the newest.

// restAfter is the least time without a snapshot before a read-only core goes to rest; the most is twice that.
const restAfter = 30 * time.Second

// idleness is guarded by core.mu.
type idleness struct {
	resting bool
	uses    uint64 // snapshots taken
	seen    uint64 // uses when the timer was set
	timer   *time.Timer
	ended   bool
}

// awake takes note that the current manifest is pinned.
func (i *idleness) awake(check func()) {
	i.resting = false
	if i.timer == nil && !i.ended {
		i.seen = i.uses
		i.timer = time.AfterFunc(restAfter, check)
	}
}

// checkIdle runs when the timer fires.
func (c *core) checkIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := &c.idle
	switch {
	case i.ended:
	case i.seen == i.uses && c.restLocked():
		i.timer = nil
	default:
		i.seen = i.uses
		i.timer.Reset(restAfter)
	}
}

// rest makes a read-only database let go of its manifests at once, unless a snapshot needs them.
func (d *database) rest() {
	d.mu.Lock()
	for _, c := range d.tables {
		c.restLocked()
	}
	d.mu.Unlock()
}

func (c *core) restLocked() bool {
	// In an object store there are no locks to let go of, and what is shown is looked after by RefreshInterval alone.
	if !c.readOnly || c.remote() || c.state == nil || c.state.refs.Load() > 1 {
		return false
	}
	c.idle.resting = true
	c.pinned.unlockIdle(c.state.manifest)
	return true
}

// endIdle stops the timer for good.
func (c *core) endIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.end()
}

// end runs under mu.
func (i *idleness) end() {
	i.ended = true
	if i.timer != nil {
		i.timer.Stop()
	}
}
