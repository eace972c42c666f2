package engine

import "sync/atomic"

// counters are the core's running totals.
type counters struct {
	rowsWritten, walBytes, walSyncs, groups atomic.Int64
	flushes, flushErrors, flushNanos        atomic.Int64
	bytesFlushed, commits, loads            atomic.Int64
	loadSpilled                             atomic.Int64
}

// Stats are counters since the engine was opened, and gauges, of all tables of the database together. The JSON names are
// stable.
type Stats struct {
	// Version is the number of the manifest of the handle's table, 0 where there never was one. Seq is the newest visible
	// sequence number, Tables how many tables there are.
	Version int64  `json:"version"`
	Seq     uint64 `json:"seq"`
	Tables  int64  `json:"tables"`

	MemtableBytes    int64 `json:"memtable_bytes"`    // of the active memtables
	MemtableEntries  int64 `json:"memtable_entries"`  // of the active memtables
	MemtableCapacity int64 `json:"memtable_capacity"` // bytes at which they are flushed
	ImmutableCount   int64 `json:"immutable_memtables"`
	DataFiles        int64 `json:"data_files"`
	DataBytes        int64 `json:"data_bytes"`
	FileRows         int64 `json:"file_rows"`    // deleted ones included
	DeletedRows      int64 `json:"deleted_rows"` // marked in deletion vectors
	RowsWritten      int64 `json:"rows_written"`
	WALBytes         int64 `json:"wal_bytes"`
	WALSyncs         int64 `json:"wal_syncs"`
	CommitGroups     int64 `json:"commit_groups"` // how many times the log was written
	Flushes          int64 `json:"flushes"`
	FlushErrors      int64 `json:"flush_errors"`
	FlushNanos       int64 `json:"flush_nanos"`
	FlushedBytes     int64 `json:"flushed_bytes"`
	Loads            int64 `json:"bulk_loads"`
	LoadSpilledBytes int64 `json:"bulk_load_spilled_bytes"` // written to temporary files
	Commits          int64 `json:"manifest_commits"`
	WriteStalls      int64 `json:"write_stalls"` // how often writers stopped: the sum of stops_*

	ReadStats
	TxnStats
	CompactionStats
	WriteStallStats
	GarbageStats
	MemoryStats
	ObjectStats

	// Mirror is how the mirror is doing.
	Mirror MirrorStatus `json:"mirror"`
}

// Stats returns the engine's counters and gauges.
func (db *DB) Stats() Stats {
	db.mu.RLock()
	defer db.mu.RUnlock()
	c := db.c
	st := Stats{
		RowsWritten: c.stats.rowsWritten.Load(), WALBytes: c.stats.walBytes.Load(), WALSyncs: c.stats.walSyncs.Load(),
		CommitGroups: c.stats.groups.Load(), Flushes: c.stats.flushes.Load(), FlushErrors: c.stats.flushErrors.Load(),
		FlushNanos: c.stats.flushNanos.Load(), FlushedBytes: c.stats.bytesFlushed.Load(), Loads: c.stats.loads.Load(),
		Commits: c.stats.commits.Load(), WriteStallStats: c.stalls.stats(),
		MemtableCapacity: int64(c.opts.MemtableBytes),
	}
	st.ReadStats = c.readStats()
	st.TxnStats = c.txns.stats()
	st.ObjectStats = c.objectStats()
	st.LoadSpilledBytes = c.stats.loadSpilled.Load()
	st.Mirror = c.mirrorStatus()
	st.WriteStalls = st.StopsImmutables + st.StopsL0 + st.StopsPending
	c.mu.Lock()
	defer c.mu.Unlock()
	st.Seq = c.visible
	if c.state != nil && c.state.manifest != nil {
		st.Version = c.state.manifest.Version
	}
	st.MemoryLimit = c.opts.MemoryLimit
	for _, t := range c.all() {
		t.addGauges(&st)
	}
	for _, t := range c.tables {
		if t.hasTable() {
			st.Tables++
		}
	}
	return st
}

// addGauges adds what a table has at this moment, and what is counted for each table. It runs under mu.
func (c *core) addGauges(st *Stats) {
	st.CompactionStats.add(c.compactionStats())
	st.GarbageStats.add(c.gc.stats(), c.id == 0)
	if c.active != nil {
		st.MemtableBytes += int64(c.active.mt.Bytes())
		st.MemtableEntries += int64(c.active.mt.Len())
	}
	if c.state == nil {
		return
	}
	for _, e := range c.state.mems {
		st.MemtablesBytes += int64(e.mt.Bytes())
		if e != c.active {
			st.ImmutableCount++
		}
	}
	for _, f := range c.state.files {
		st.DataFiles++
		st.DataBytes += f.meta.Size
		st.FileRows += f.meta.Rows
		st.DeletedRows += f.meta.Deleted
	}
}

// Version returns the version of the engine.
func Version() string { return "0.1.0" }
