// Package engine is merutable's table engine: tables in a directory, whose rows change all the time and are read
// analytically at once.
//
// # Basics
//
// Writes go to a log and a memtable; full memtables are flushed to Parquet files. A flush finds the older versions of
// the keys that it writes and marks them in the deletion vectors of the files that hold them, in the same manifest
// commit; rows that record a deletion are marked in the vector of their own file. So the data files minus their
// deletion vectors have exactly one row per live key, for this engine and for every other reader.
//
//	db, err := engine.Open("people.meru", engine.Options{})
//	err = db.CreateTable(&engine.Schema{ … })
//	seq, err := db.Put([]engine.Value{engine.Int(1), engine.String("Ada")})
//	row, found, err := db.Get([]engine.Value{engine.Int(1)})
//	err = db.Close()
//	db.Free()
//
// A [DB] stands for one table of a directory, the one in its root unless it comes from [DB.OpenTable]. All tables share a
// log, and commits over several of them are atomic.
//
// One [Snapshot] serves every reader. It pins a version of the manifest, the memtables and a sequence number.
//
// # Invariants
//
//   - Everything in a memtable is newer than everything in data files. Flushes go oldest first; a bulk load flushes the
//     memtables before it commits.
//   - The manifest commit is the only linearization point for files. What no manifest names is garbage.
//   - A log is removed only after durable manifests cover it, of all tables with rows in it. A later log never survives without an earlier one: a
//     log is synced before the next one is created, at every level of durability.
//   - Batches become visible in the order of their sequence numbers, each whole.
//
// # Caveats
//
// One process writes a directory at a time; others read it. After an error of the log or of a manifest commit the engine
// takes no writes until it is opened again, since what reached the disk is known only then. Reads go on.
package engine
