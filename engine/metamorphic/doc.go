// Package metamorphic runs random histories of operations against the engine under many configurations, and compares
// every answer with a model: sorted maps. Options must change how fast an answer comes, never what it is.
//
// # Histories
//
// A history is a list of operations ([Op]): writes of every size, reads of every kind, flushes, compactions, snapshots
// that are held, reader handles, changes of the schema, re-opens, power cuts, full disks. Each operation has its own seed and finds its
// objects (a held snapshot, say) in what there is when it runs, so that any part of a history is a history. That is
// what [Shrink] builds on: it drops operations as long as the failure stays. [Generate] makes a history from a seed,
// [History.String] and [Parse] are its text form.
//
// # What must hold
//
// [Run] executes a history in a file system in memory that knows what was synced ([vfs.MemFS]). After a power cut the
// table must have all acknowledged changes, the one under way whole or not at all; at the durability levels interval
// and os it may lack the last ones, but what it has is a prefix. A change that failed left nothing. A snapshot shows
// the same rows for as long as it is held. In every state a key stands exactly once in the data files minus their
// deletion vectors plus the rows in memory, and the files of a level below the first do not overlap.
//
// [RunConcurrent] has no model: many goroutines write, read and maintain at once, and every snapshot must satisfy
// invariants that their atomic changes keep.
package metamorphic
