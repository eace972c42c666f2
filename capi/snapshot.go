package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"
	"time"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// snapshot is what MeruSnapshot stands for, with what it owns in C memory: both are made at first use and freed at
// release.
type snapshot struct {
	s    *engine.Snapshot
	part *engine.Part // where only a range of keys is shown

	mu      sync.Mutex
	files   []engine.FileInfo
	indices []int            // of the files, in the engine's snapshot
	memory  *object          // texts, keys and positions
	infos   []C.MeruFileInfo // but for deleted
	data    []C.MeruDataFile // a path that is NULL: not asked for yet
	deletes []*fileDeletes
}

// fileDeletes are the positions of one file.
type fileDeletes struct {
	mu        sync.Mutex
	known     bool
	positions []C.uint32_t
}

//export merugo_snapshot_acquire
func merugo_snapshot_acquire(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "snapshot"); err != nil {
			return err
		}
		s, err := snapshotOf(h)
		if err != nil {
			return err
		}
		giveSnapshot(s, out)
		return nil
	})
}

// giveSnapshot gives a snapshot of a whole table a handle.
func giveSnapshot(s *engine.Snapshot, out *C.uintptr_t) {
	files := s.Files()
	all := make([]int, len(files))
	for i := range all {
		all[i] = i
	}
	*out = handles.add(newSnapshot(s, nil, files, all))
}

//export merugo_snapshot_at
func merugo_snapshot_at(h C.uintptr_t, version C.int64_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return acquireOld(h, out, func(db *engine.DB) (*engine.Snapshot, error) { return db.SnapshotAt(int64(version)) })
	})
}

//export merugo_snapshot_as_of
func merugo_snapshot_as_of(h C.uintptr_t, micros C.int64_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return acquireOld(h, out, func(db *engine.DB) (*engine.Snapshot, error) {
			return db.SnapshotAsOf(time.UnixMicro(int64(micros)))
		})
	})
}

func acquireOld(h C.uintptr_t, out *C.uintptr_t, acquire func(*engine.DB) (*engine.Snapshot, error)) error {
	if err := need(out, "snapshot"); err != nil {
		return err
	}
	db, err := lookupDB(h)
	if err != nil {
		return err
	}
	s, err := acquire(db)
	if err == nil {
		giveSnapshot(s, out)
	}
	return err
}

// snapshotOf takes a snapshot of the newest state of a database. The caller closes it.
func snapshotOf(h C.uintptr_t) (*engine.Snapshot, error) {
	db, err := lookupDB(h)
	if err != nil {
		return nil, err
	}
	return db.Snapshot()
}

// newSnapshot wraps a snapshot, or a part of one, with the files that it has.
func newSnapshot(s *engine.Snapshot, part *engine.Part, files []engine.FileInfo, indices []int) *snapshot {
	snap := &snapshot{s: s, part: part, files: files, indices: indices, deletes: make([]*fileDeletes, len(files))}
	for i := range snap.deletes {
		snap.deletes[i] = new(fileDeletes)
	}
	return snap
}

func (s *snapshot) memoryRows() int {
	if s.part != nil {
		return s.part.MemoryRows()
	}
	return s.s.MemoryRows()
}

func (s *snapshot) liveRows() int64 {
	if s.part != nil {
		return s.part.LiveRows()
	}
	return s.s.LiveRows()
}

func (s *snapshot) scan(o engine.ScanOptions) (*engine.RowIter, error) { return s.s.Scan(o) }

func (s *snapshot) overlay(o engine.ScanOptions) (*engine.RowIter, error) {
	if s.part == nil {
		return s.s.OverlayRange(o)
	}
	if len(o.Lower) > 0 || len(o.Upper) > 0 || o.Reverse || o.Limit > 0 {
		return nil, invalid("argument range: the overlay of a part has no range of its own")
	}
	return s.part.Overlay(o.Projection), nil
}

//export merugo_snapshot_release
func merugo_snapshot_release(h C.uintptr_t) {
	quiet(func() {
		snap, err := remove[snapshot](h, "snapshot")
		if err != nil {
			return
		}
		snap.s.Close()
		snap.mu.Lock()
		defer snap.mu.Unlock()
		if snap.memory != nil {
			snap.memory.discard()
			snap.memory = nil
		}
	})
}

// owned returns the object that holds the snapshot's C memory; it runs under mu.
func (s *snapshot) owned() (_ *object, err error) {
	if s.memory == nil {
		s.memory, err = newObject(1, 0)
	}
	return s.memory, err
}

// fileInfos describes all files in C memory; it runs under mu.
func (s *snapshot) fileInfos() ([]C.MeruFileInfo, error) {
	if s.infos != nil || len(s.files) == 0 {
		return s.infos, nil
	}
	o, err := s.owned()
	if err != nil {
		return nil, err
	}
	infos := make([]C.MeruFileInfo, len(s.files))
	for i, f := range s.files {
		infos[i] = C.MeruFileInfo{
			size: C.uint64_t(f.Size), rows: C.uint64_t(f.Rows), level: C.int32_t(f.Level),
			seq_min: C.uint64_t(f.SeqMin), seq_max: C.uint64_t(f.SeqMax),
		}
		if infos[i].path, err = o.text(f.Path); err != nil {
			return nil, err
		}
		if infos[i].key_min, err = keyView(o, f.KeyMin); err != nil {
			return nil, err
		}
		if infos[i].key_max, err = keyView(o, f.KeyMax); err != nil {
			return nil, err
		}
	}
	s.infos = infos
	return infos, nil
}

func keyView(o *object, key []byte) (C.MeruBytesView, error) {
	p, err := o.bytes(key)
	return C.MeruBytesView{data: (*C.uint8_t)(p), len: C.uintptr_t(len(key))}, err
}

// hidden returns the positions of file i in C memory. Files are resolved at the same time by the threads that ask.
func (s *snapshot) hidden(i int) ([]C.uint32_t, error) {
	d := s.deletes[i]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.positions, nil
	}
	rows, err := s.s.Deletes(s.indices[i])
	if err != nil {
		return nil, err // it may be over at the next scan of the transaction
	}
	if len(rows) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		o, err := s.owned()
		if err != nil {
			return nil, err
		}
		positions, err := allocSlice[C.uint32_t](o, len(rows))
		if err != nil {
			return nil, err
		}
		copy(unsafe.Slice((*uint32)(unsafe.SliceData(positions)), len(rows)), rows)
		d.positions = positions
	}
	d.known = true
	return d.positions, nil
}

// countHidden returns how many rows of file i the snapshot does not show. The engine's count is of the deletion vector
// alone, so where there are rows in memory, what they supersede is looked up; a scan needs that too.
func (s *snapshot) countHidden(i int) (int64, error) {
	if s.s.MemoryRows() == 0 {
		return s.files[i].Deleted, nil
	}
	rows, err := s.s.Deletes(s.indices[i])
	return int64(len(rows)), err
}

//export merugo_snapshot_info
func merugo_snapshot_info(h C.uintptr_t, out *C.MeruSnapshotInfo, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "info"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		store(out, C.MeruSnapshotInfo{
			looked_up: cBool(snap.part != nil && snap.part.Direct()), version: C.int64_t(snap.s.Version()), seq: C.uint64_t(snap.s.Seq()), file_count: C.uint64_t(len(snap.files)),
			live_rows: C.uint64_t(snap.liveRows()), memory_rows: C.uint64_t(snap.memoryRows()),
		})
		return nil
	})
}

//export merugo_snapshot_schema
func merugo_snapshot_schema(h C.uintptr_t, out, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "schema"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		return giveSchema(snap.s.Schema(), out)
	})
}

// lookupFile returns a snapshot that has a file of that index.
func lookupFile(h, index C.uintptr_t) (*snapshot, error) {
	snap, err := lookup[snapshot](h, "snapshot")
	if err == nil && uint64(index) >= uint64(len(snap.files)) {
		err = invalid("argument index is %d: the snapshot has %d files", uint64(index), len(snap.files))
	}
	return snap, err
}

//export merugo_snapshot_file
func merugo_snapshot_file(h C.uintptr_t, index C.uintptr_t, out *C.MeruFileInfo, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "info"); err != nil {
			return err
		}
		snap, err := lookupFile(h, index)
		if err != nil {
			return err
		}
		deleted, err := snap.countHidden(int(index))
		if err != nil {
			return err
		}
		snap.mu.Lock()
		defer snap.mu.Unlock()
		infos, err := snap.fileInfos()
		if err == nil {
			info := infos[index]
			info.deleted = C.uint64_t(deleted)
			store(out, info)
		}
		return err
	})
}

//export merugo_snapshot_deletes
func merugo_snapshot_deletes(h C.uintptr_t, index C.uintptr_t, positions, count, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(positions, "positions"); err != nil {
			return err
		}
		if err := need(count, "count"); err != nil {
			return err
		}
		snap, err := lookupFile(h, index)
		if err != nil {
			return err
		}
		rows, err := snap.hidden(int(index))
		if err == nil {
			*positions = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(rows))))
			*count = C.uintptr_t(len(rows))
		}
		return err
	})
}

// goProjection reads column indices: nil, which is all columns, for NULL.
func goProjection(columns *C.uint32_t, n C.uintptr_t, s *engine.Schema) ([]int, error) {
	if columns == nil {
		if n != 0 {
			return nil, invalid("argument columns is NULL, column_count is %d", uint64(n))
		}
		return nil, nil
	}
	if n > maxPlainColumns {
		return nil, invalid("argument column_count is %d: the limit is %d", uint64(n), maxPlainColumns)
	}
	out := make([]int, n)
	for i, c := range unsafe.Slice(columns, n) {
		if uint64(c) >= uint64(len(s.Columns)) {
			return nil, invalid("argument columns: there is no column %d in table %q, which has %d", uint32(c), s.TableName, len(s.Columns))
		}
		out[i] = int(c)
	}
	return out, nil
}

//export merugo_snapshot_overlay
func merugo_snapshot_overlay(h C.uintptr_t, r *C.MeruScanRange, columns *C.uint32_t, n C.uintptr_t, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return streamRange(h, r, columns, n, 0, out, (*snapshot).overlay)
	})
}

//export merugo_scan_arrow
func merugo_scan_arrow(h C.uintptr_t, r *C.MeruScanRange, columns *C.uint32_t, n C.uintptr_t, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		return streamRange(h, r, columns, n, scanBatchRows, out, (*snapshot).scan)
	})
}

// streamRange puts a stream over what scan returns into *out.
func streamRange(h C.uintptr_t, r *C.MeruScanRange, columns *C.uint32_t, n C.uintptr_t, batchRows int, out *C.struct_ArrowArrayStream,
	scan func(*snapshot, engine.ScanOptions) (*engine.RowIter, error),
) error {
	if err := need(out, "out"); err != nil {
		return err
	}
	snap, err := lookup[snapshot](h, "snapshot")
	if err != nil {
		return err
	}
	s := snap.s.Schema()
	o := engine.ScanOptions{BatchRows: batchRows}
	if o.Projection, err = goProjection(columns, n, s); err != nil {
		return err
	}
	if r != nil {
		if err := goRange(r, s, &o); err != nil {
			return err
		}
	}
	it, err := scan(snap, o)
	if err != nil {
		return err
	}
	return giveStream(it, s, o.Projection, out)
}

// scanBatchRows is what merutable.h promises for the batches of meru_scan_arrow().
const scanBatchRows = 65_536

func goRange(r *C.MeruScanRange, s *engine.Schema, o *engine.ScanOptions) (err error) {
	if o.Lower, err = keyValues(r.lower, r.lower_count, s, "range.lower", false); err != nil {
		return err
	}
	if o.Upper, err = keyValues(r.upper, r.upper_count, s, "range.upper", false); err != nil {
		return err
	}
	o.LowerExclusive, o.UpperExclusive, o.Reverse = r.lower_exclusive != 0, r.upper_exclusive != 0, r.reverse != 0
	const all = 1<<63 - 1
	o.Limit = int64(min(r.limit, all))
	return nil
}

//export merugo_snapshot_get
func merugo_snapshot_get(h C.uintptr_t, key *C.struct_ArrowArray, schema *C.struct_ArrowSchema, found *C.int, out *C.struct_ArrowArray, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		defer C.capi_array_release(key)
		if err := need(found, "found"); err != nil {
			return err
		}
		if err := need(out, "out"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		s := snap.s.Schema()
		return withRow(key, schema, "key", engine.KeySchema(s), func(keys *engine.Columns) error {
			vals := make([]engine.Value, len(keys.Cols))
			for i := range vals {
				vals[i] = keys.Cols[i].Value(0)
			}
			cols, ok, err := snap.s.Get(vals)
			if err != nil {
				return err
			}
			if ok {
				if err := exportBatch(cols, s, nil, out); err != nil {
					return err
				}
			}
			*found = 0
			if ok {
				*found = 1
			}
			return nil
		})
	})
}
