package engine

import (
	"log/slog"
	"sync"
	"time"

	"github.com/merutable/merutable/engine/internal/mirror"
)

// What the mirror lacks, and since when. Ages are differences of the monotonic clock, so a wall clock that jumps changes
// none of them.

// MirrorStatus says how a database's mirror is doing. The JSON names are stable. All tables of the database count
// together.
type MirrorStatus struct {
	// Destination is the URL, "" where there is no mirror.
	Destination string `json:"destination"`
	// State is off, idle (the mirror has all that is in files), uploading, retrying (the last request failed), or stopped
	// (the destination is another database's; LastError says more).
	State string `json:"state"`
	// Seq is the largest sequence number up to which every row is at the mirror: 0 until that is known. It is never above
	// VisibleSeq, the newest that readers here see.
	Seq        uint64 `json:"mirror_seq"`
	VisibleSeq uint64 `json:"visible_seq"`
	// LagSecs is the age of the oldest row or commit that is not at the mirror, 0 where all is. What was not there when the
	// database was opened counts from then on.
	LagSecs float64 `json:"mirror_lag_secs"`
	// Alert: the lag is above max_lag_alert_secs.
	Alert bool `json:"alert"`
	// BytesPending and FilesPending are of the files of the newest snapshots that are not at the mirror. Rows in memory are
	// in no file yet.
	BytesPending int64 `json:"bytes_pending"`
	FilesPending int64 `json:"files_pending"`
	// What was uploaded since the database was opened, and how many requests failed and were tried again.
	BytesUploaded     int64 `json:"bytes_uploaded"`
	FilesUploaded     int64 `json:"files_uploaded"`
	ManifestsUploaded int64 `json:"manifests_uploaded"`
	Retries           int64 `json:"retries"`
	// LastError is the last failure, "" where there was none; LastErrorAt and LastSuccessAt are wall clock times, RFC 3339,
	// "" where there was none.
	LastError     string `json:"last_error"`
	LastErrorAt   string `json:"last_error_at"`
	LastSuccessAt string `json:"last_success_at"`
}

// MirrorStatus returns how the mirror is doing.
func (db *DB) MirrorStatus() MirrorStatus {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.c.mirrorStatus()
}

func (d *database) mirrorStatus() MirrorStatus {
	g := d.mirror
	if g == nil {
		return MirrorStatus{State: "off", VisibleSeq: d.visibleSeq()}
	}
	s := g.m.Status() // before what is visible: it is not above that
	out := MirrorStatus{
		Destination: g.destination, State: string(s.State), Seq: s.Seq, BytesUploaded: s.BytesUploaded, FilesUploaded: s.FilesUploaded,
		ManifestsUploaded: s.ManifestsUploaded, Retries: s.Retries, LastError: s.LastError,
		LastErrorAt: timeOrNone(s.LastErrorAt), LastSuccessAt: timeOrNone(s.LastSuccess),
	}
	d.mu.Lock()
	out.VisibleSeq = d.visible
	since, behind := g.since()
	states := map[uint32]*readState{}
	for id, c := range d.tables {
		if c.state != nil && c.state.manifest != nil {
			c.state.ref()
			states[id] = c.state
		}
	}
	d.mu.Unlock()
	if behind {
		out.LagSecs = max(time.Since(since).Seconds(), 0)
	}
	out.Alert = g.lag.on()
	g.m.Pending(func(has func(id uint32, rel string) bool) {
		for id, state := range states {
			out.addPending(state, func(rel string) bool { return has(id, rel) })
		}
	})
	for _, state := range states {
		state.unref()
	}
	return out
}

func timeOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// addPending adds the files of a state that the mirror does not have. The size of a file of deletion vectors is not known
// without asking the disk: what of it is in use is.
func (s *MirrorStatus) addPending(state *readState, has func(rel string) bool) {
	vectors := map[string]int64{}
	for _, f := range state.files {
		if !has(f.meta.Path) {
			s.FilesPending++
			s.BytesPending += f.meta.Size
		}
		if dv := f.meta.DVPath; dv != "" {
			if _, known := vectors[dv]; known || !has(dv) {
				vectors[dv] += f.meta.DVLength
			}
		}
	}
	for _, bytes := range vectors {
		s.FilesPending++
		s.BytesPending += bytes
	}
}

// since returns when the oldest came that is not at the mirror. It runs under mu.
func (g *mirroring) since() (time.Time, bool) {
	at, behind := g.rows.Oldest()
	if other, also := g.commits.Oldest(); also && (!behind || other.Before(at)) {
		at, behind = other, true
	}
	return at, behind
}

// lagAlert is the warning about the lag, once an episode.
type lagAlert struct {
	mu    sync.Mutex
	alert bool
	since time.Time // when the episode began
	worst time.Duration
}

func (a *lagAlert) on() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.alert
}

// watch flushes rows that have become too old in memory, and warns where the mirror is behind.
func (g *mirroring) watch() {
	d := g.d
	defer d.workers.Done()
	for {
		var alarm <-chan time.Time
		wait := min(g.flushAged(), g.checkLag())
		var t *time.Timer
		if wait < never {
			t = time.NewTimer(wait)
			alarm = t.C
		}
		select {
		case <-d.stop:
			return
		case <-g.kick:
		case <-alarm:
		}
		if t != nil {
			t.Stop()
		}
	}
}

// never is a time to wait that does not end.
const never = time.Duration(1<<63 - 1)

// flushAged flushes the rows in memory if some are older than mirror_flush_secs, and returns after how long the next ones
// may be.
func (g *mirroring) flushAged() time.Duration {
	d := g.d
	limit := d.opts.MirrorFlush
	if limit <= 0 || g.m.Status().State == mirror.Stopped {
		return never
	}
	oldest, waiting := g.oldestActive()
	if oldest.IsZero() {
		return never
	}
	if left := limit - time.Since(oldest); left > 0 {
		return left
	}
	if waiting >= d.opts.MaxImmutables {
		return time.Second // flushes fail, or do not keep up
	}
	d.writeMu.Lock()
	if d.writable() == nil {
		_ = d.retireActives() // an error ends all writes, and is told to the next one
	}
	d.writeMu.Unlock()
	return never
}

// oldestActive returns the time of the oldest row in active memtables, zero where there is none, and how many memtables
// wait for a flush.
func (g *mirroring) oldestActive() (oldest time.Time, waiting int) {
	d := g.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed || d.failure != nil {
		return oldest, 0
	}
	for _, c := range d.tables {
		for _, e := range c.unflushed() {
			if e != c.active {
				waiting++
			} else if e.visible > 0 && (oldest.IsZero() || e.firstAt.Before(oldest)) {
				oldest = e.firstAt
			}
		}
	}
	return oldest, waiting
}

// checkLag warns once when the lag is above the bound, and tells when it is below again. It returns after how long it may
// be above.
func (g *mirroring) checkLag() time.Duration {
	d := g.d
	limit := d.opts.MaxLagAlert
	if limit <= 0 {
		return never
	}
	d.mu.Lock()
	since, behind := g.since()
	d.mu.Unlock()
	lag := time.Duration(0)
	if behind {
		lag = max(time.Since(since), 0)
	}
	a := &g.lag
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worst = max(a.worst, lag)
	above := lag > limit
	switch {
	case above && !a.alert:
		a.alert, a.since, a.worst = true, time.Now(), lag
		s := g.m.Status()
		logEventOf(d.root, slog.LevelWarn, "mirror_lag", "the mirror is behind", slog.String("destination", g.destination),
			slog.Float64("lag_secs", lag.Seconds()), slog.Float64("max_lag_alert_secs", limit.Seconds()),
			slog.String("state", string(s.State)), slog.String("last_error", s.LastError))
	case !above && a.alert:
		a.alert = false
		logEventOf(d.root, slog.LevelInfo, "mirror_lag_end", "the mirror has caught up", slog.String("destination", g.destination),
			slog.Float64("lag_secs", lag.Seconds()), slog.Float64("worst_lag_secs", a.worst.Seconds()),
			slog.Float64("alert_secs", time.Since(a.since).Seconds()))
	}
	if !behind || above {
		return never
	}
	return limit - lag + time.Millisecond
}
