package engine

import (
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/compact"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// compactCounters are the running totals of compaction.
type compactCounters struct {
	running                      atomic.Int64 // a gauge
	jobs, moves, drops, errors   atomic.Int64
	bytesRead, bytesWritten      atomic.Int64
	rowsRead, rowsWritten, nanos atomic.Int64
	// pressure is what waits for compaction, of the manifest that was asked about last.
	pressure atomic.Pointer[pressure]
}

type pressure struct {
	of      *manifest.Manifest
	l0      int
	pending int64
}

// done counts a job that was committed.
func (m *compactCounters) done(j *compactJob, took time.Duration) {
	switch j.kind {
	case compact.Move:
		m.moves.Add(1)
		return
	case compact.Drop:
		m.drops.Add(1)
		return
	}
	for _, ch := range j.chains {
		for _, in := range ch.inputs {
			rows := int64(in.span().GetCardinality())
			m.rowsRead.Add(rows)
			m.bytesRead.Add(int64(float64(in.file.meta.Size) * float64(rows) / float64(in.file.meta.Rows)))
		}
	}
	for _, o := range j.outputs {
		m.bytesWritten.Add(o.meta.Size)
		m.rowsWritten.Add(o.meta.Rows)
	}
	m.nanos.Add(int64(took))
	m.jobs.Add(1)
}

// compactionPressure returns how many files level 0 has, and about how many bytes wait for compaction. It runs under
// mu.
func (c *core) compactionPressure() (l0 int, pendingBytes int64) {
	if c.state == nil || c.state.manifest == nil {
		return 0, 0
	}
	known := &c.compactions.counters.pressure
	p := known.Load()
	if p == nil || p.of != c.state.manifest {
		p = &pressure{of: c.state.manifest}
		p.l0, p.pending = compact.Pressure(describeFiles(c.state, nil), c.opts.compactOptions())
		known.Store(p)
	}
	return p.l0, p.pending
}

// CompactionStats are counters of compaction since the engine was opened, and gauges.
type CompactionStats struct {
	Compactions            int64 `json:"compactions"` // that wrote files; the others are moves and drops
	CompactionMoves        int64 `json:"compaction_moves"`
	CompactionDrops        int64 `json:"compaction_drops"` // commits that removed files without live rows
	CompactionErrors       int64 `json:"compaction_errors"`
	CompactionsRunning     int64 `json:"compactions_running"`
	CompactionNanos        int64 `json:"compaction_nanos"`
	CompactionBytesRead    int64 `json:"compaction_bytes_read"`
	CompactionBytesWritten int64 `json:"compaction_bytes_written"`
	CompactionRowsRead     int64 `json:"compaction_rows_read"` // deleted ones included
	CompactionRowsWritten  int64 `json:"compaction_rows_written"`
	// CompactionPendingBytes is about how much waits for compaction.
	CompactionPendingBytes int64 `json:"compaction_pending_bytes"`
	// Levels is what each level has.
	Levels [compact.Levels]LevelStats `json:"levels"`
}

// LevelStats is what a level has.
type LevelStats struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// compactionStats runs under mu.
func (c *core) compactionStats() CompactionStats {
	m := &c.compactions.counters
	st := CompactionStats{
		Compactions: m.jobs.Load(), CompactionMoves: m.moves.Load(), CompactionDrops: m.drops.Load(),
		CompactionErrors: m.errors.Load(), CompactionsRunning: m.running.Load(), CompactionNanos: m.nanos.Load(),
		CompactionBytesRead: m.bytesRead.Load(), CompactionBytesWritten: m.bytesWritten.Load(),
		CompactionRowsRead: m.rowsRead.Load(), CompactionRowsWritten: m.rowsWritten.Load(),
	}
	_, st.CompactionPendingBytes = c.compactionPressure()
	if c.state == nil {
		return st
	}
	for _, f := range c.state.files {
		if l := f.meta.Level; l < compact.Levels {
			st.Levels[l].Files++
			st.Levels[l].Bytes += f.meta.Size
		}
	}
	return st
}

// add adds the figures of another table.
func (st *CompactionStats) add(t CompactionStats) {
	st.Compactions += t.Compactions
	st.CompactionMoves += t.CompactionMoves
	st.CompactionDrops += t.CompactionDrops
	st.CompactionErrors += t.CompactionErrors
	st.CompactionsRunning += t.CompactionsRunning
	st.CompactionNanos += t.CompactionNanos
	st.CompactionBytesRead += t.CompactionBytesRead
	st.CompactionBytesWritten += t.CompactionBytesWritten
	st.CompactionRowsRead += t.CompactionRowsRead
	st.CompactionRowsWritten += t.CompactionRowsWritten
	st.CompactionPendingBytes += t.CompactionPendingBytes
	for l := range st.Levels {
		st.Levels[l].Files += t.Levels[l].Files
		st.Levels[l].Bytes += t.Levels[l].Bytes
	}
}
