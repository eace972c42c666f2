// Package memtable holds rows in memory: the memtable, a skip list that takes writes and serves reads at once, and the
// row buffer of a bulk load, which is filled, sorted and read once. Both keep their rows outside of Go's heap, in
// anonymous mappings: the collector neither scans nor counts them, and the memory goes back to the system the moment
// that it is no longer used. Pages that were never written take no memory.
//
// # Memtable
//
// One arena holds the head of the list and then the entries in the order of their arrival. They are linked into a skip
// list ordered by key and, for one key, newest first. Offsets into the arena are counted in words of 8 bytes, so 32 bits
// reach 32 GiB. An entry (see entry.go) starts with the first 8 key bytes as a number, most significant first: nearly
// all comparisons end there.
//
// One writer at a time adds entries; any number of readers runs beside it without locks. A reader sees an entry once the
// offset to it is stored in its predecessor, which happens last and atomically; entries never change or move afterwards.
// What was added is counted only after it is linked, so the first Len entries are complete in every view of the list.
//
// The writer remembers where its last insertion went on every level (see splice.go) and starts the next search there:
// keys in ascending order are inserted without any search.
//
// # Row buffer
//
// Rows are appended to mappings of growing size. Sorting makes an index of (8 key bytes, row) pairs, unless the keys came
// in strictly ascending order; then there is neither index nor sort (see rowsort.go).
package memtable
