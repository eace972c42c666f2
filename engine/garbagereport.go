package engine

import "time"

// GarbageReason says why a file is garbage.
type GarbageReason string

// The reasons. Files of the last one are not the engine's: it leaves them alone.
const (
	GarbageManifest   GarbageReason = "old manifest"         // superseded, and its time is over
	GarbageSuperseded GarbageReason = "superseded"           // no kept manifest names it any more
	GarbageOrphan     GarbageReason = "orphan"               // no manifest ever named it
	GarbageLeftover   GarbageReason = "leftover of a commit" // one that did not happen
	GarbageLog        GarbageReason = "obsolete log"         // its rows are in files
	GarbageTemporary  GarbageReason = "leftover of a load"   // a directory of sorted runs; its size is not counted
	GarbageUnknown    GarbageReason = "unknown"              // not made by the engine; never removed
)

// GarbageReport says what a collection found.
type GarbageReport struct {
	DryRun bool
	// Items are the files found, in no order.
	Items []GarbageItem
	// Files and Bytes are how many of Items were removed, or would be in a dry run, and their size.
	Files, Bytes int64
	// KeptManifests is how many manifests there are afterwards, the newest ones included, and OldestVersion the first one of
	// the handle's table. ReaderPins of them are there only because readers in other processes use them.
	KeptManifests int
	OldestVersion int64
	ReaderPins    int
}

// GarbageItem is a file that a collection found.
type GarbageItem struct {
	Path   string // absolute
	Bytes  int64
	Reason GarbageReason
	// Err is why the file is still there, nil where it was removed, or would be.
	Err error
}

// CollectGarbage removes at once what may go, of all tables of the database: superseded manifests and files that no snapshot, no reader in another
// process and no retention needs, logs whose rows are in files, and orphans of crashes. In a dry run it only tells.
// Files that the engine did not make are listed and left alone.
func (db *DB) CollectGarbage(dryRun bool) (GarbageReport, error) {
	if err := db.writable(); err != nil {
		return GarbageReport{}, err
	}
	db.c.mu.Lock()
	tables := db.c.all()
	db.c.mu.Unlock()
	total := GarbageReport{DryRun: dryRun}
	for _, c := range tables {
		p := c.newPass(dryRun)
		_, err := p.run(true)
		total.add(&p.report, c == db.c)
		if err != nil {
			return total, err
		}
		c.collectGarbage() // of a dropped table the directory may go now
	}
	return total, nil
}

// add adds what a pass over one table found. own says that it is the table that the report is asked of.
func (r *GarbageReport) add(one *GarbageReport, own bool) {
	r.Items = append(r.Items, one.Items...)
	r.Files += one.Files
	r.Bytes += one.Bytes
	r.KeptManifests += one.KeptManifests
	r.ReaderPins += one.ReaderPins
	if own {
		r.OldestVersion = one.OldestVersion
	}
}

// GarbageStats are the figures of garbage collection. A read-only engine has none.
type GarbageStats struct {
	KeptManifests int64 `json:"kept_manifests"` // the newest included
	OldestVersion int64 `json:"oldest_version"` // of a manifest of the root table that is kept
	// ReaderPins is how many manifests the last collection left only because readers in other processes use them.
	ReaderPins   int64 `json:"reader_pins"`
	GarbageFiles int64 `json:"garbage_files"` // that only older manifests name
	FilesRemoved int64 `json:"files_removed"`
	BytesRemoved int64 `json:"bytes_removed"`
	// LastCollectionMS is how long the last collection took, in milliseconds.
	LastCollectionMS int64 `json:"last_collection_ms"`
}

func (g *collector) stats() GarbageStats {
	kept, oldest := g.history.kept(nil)
	return GarbageStats{
		KeptManifests: int64(kept), OldestVersion: oldest, ReaderPins: g.readerPins.Load(),
		GarbageFiles: int64(g.history.waiting()), FilesRemoved: g.filesRemoved.Load(), BytesRemoved: g.bytesRemoved.Load(),
		LastCollectionMS: g.lastNanos.Load() / int64(time.Millisecond),
	}
}

// add adds the figures of another table; root says that it is the one in the root.
func (g *GarbageStats) add(t GarbageStats, root bool) {
	g.KeptManifests += t.KeptManifests
	if root {
		g.OldestVersion = t.OldestVersion
	}
	g.ReaderPins += t.ReaderPins
	g.GarbageFiles += t.GarbageFiles
	g.FilesRemoved += t.FilesRemoved
	g.BytesRemoved += t.BytesRemoved
	g.LastCollectionMS = max(g.LastCollectionMS, t.LastCollectionMS)
}
