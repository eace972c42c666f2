package main

/*
#include "capi.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// What scans ask of a snapshot's files and rows in memory, one after the other.

//export merugo_snapshot_data_file
func merugo_snapshot_data_file(h C.uintptr_t, index C.uintptr_t, out *C.MeruDataFile, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "file"); err != nil {
			return err
		}
		snap, err := lookupFile(h, index)
		if err != nil {
			return err
		}
		file, err := snap.dataFile(int(index))
		if err == nil {
			store(out, file)
		}
		return err
	})
}

// dataFile describes file i in C memory.
func (s *snapshot) dataFile(i int) (C.MeruDataFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		s.data = make([]C.MeruDataFile, len(s.files))
	}
	if s.data[i].path != nil {
		return s.data[i], nil
	}
	o, err := s.owned()
	if err != nil {
		return C.MeruDataFile{}, err
	}
	f := &s.files[i]
	d := C.MeruDataFile{
		size: C.uint64_t(f.Size), rows: C.uint64_t(f.Rows), deleted: C.uint64_t(f.Deleted), level: C.int32_t(f.Level),
		place: C.uint64_t(s.indices[i]), seq_min: C.uint64_t(f.SeqMin), seq_max: C.uint64_t(f.SeqMax),
	}
	if d.key_min, err = keyView(o, f.KeyMin); err != nil {
		return d, err
	}
	if d.path, err = o.text(f.Path); err == nil {
		s.data[i] = d
	}
	return d, err
}

//export merugo_snapshot_count
func merugo_snapshot_count(h C.uintptr_t, rows *C.uint64_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(rows, "rows"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		n, err := snap.s.CountRows()
		if err == nil {
			*rows = C.uint64_t(n)
		}
		return err
	})
}

//export merugo_snapshot_overlay_pieces
func merugo_snapshot_overlay_pieces(h C.uintptr_t, count *C.uintptr_t, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(count, "count"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		if snap.part != nil {
			*count = C.uintptr_t(snap.part.OverlayPieces())
		} else {
			*count = C.uintptr_t(snap.s.OverlayPieces())
		}
		return nil
	})
}

//export merugo_snapshot_overlay_piece
func merugo_snapshot_overlay_piece(h, piece C.uintptr_t, columns *C.uint32_t, n C.uintptr_t, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "out"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		s := snap.s.Schema()
		own := n // behind the table's own columns may stand hidden ones
		var hidden []int
		for columns != nil && n <= maxPlainColumns && own > 0 && int(unsafe.Slice(columns, n)[own-1]) >= engine.SeqColumn(s) {
			own--
			hidden = append([]int{int(unsafe.Slice(columns, n)[own])}, hidden...)
		}
		projection, err := goProjection(columns, own, s)
		if err != nil {
			return err
		}
		if hidden != nil {
			if slices.Max(hidden) > engine.NumberColumn(s) {
				return invalid("argument columns: there is no column %d in table %q", slices.Max(hidden), s.TableName)
			}
			projection, s = append(projection, hidden...), engine.WithHiddenColumns(s)
		}
		read := snap.s.OverlayPiece
		if snap.part != nil {
			read = snap.part.OverlayPiece
		}
		it, err := read(int(min(uint64(piece), engine.MaxPieces)), projection)
		if err != nil {
			return err
		}
		return giveStream(it, s, projection, out)
	})
}

//export merugo_snapshot_column_stats
func merugo_snapshot_column_stats(h, column C.uintptr_t, exact C.uint8_t, out *C.MeruColumnStats, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "stats"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		at := int(min(uint64(column), maxPlainColumns))
		stats := snap.s.ColumnStats
		if exact != 0 {
			stats = snap.s.ExactBounds
		}
		st, err := stats(at)
		if err != nil {
			return err
		}
		store(out, cColumnStats(st))
		return nil
	})
}

func cColumnStats(st engine.ColumnStats) C.MeruColumnStats {
	return C.MeruColumnStats{
		has_bounds: cBool(st.HasBounds), has_null: cBool(st.HasNull), min: C.uint64_t(st.Min.Lo), max: C.uint64_t(st.Max.Lo),
		distinct: C.uint64_t(st.Distinct),
	}
}

//export merugo_snapshot_file_stats
func merugo_snapshot_file_stats(h, column C.uintptr_t, files *C.uintptr_t, count C.uintptr_t, out *C.MeruColumnStats, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if count == 0 {
			return nil
		}
		if err := need(files, "files"); err != nil {
			return err
		}
		if err := need(out, "stats"); err != nil {
			return err
		}
		snap, err := lookup[snapshot](h, "snapshot")
		if err != nil {
			return err
		}
		if uint64(count) > uint64(len(snap.files)) {
			return invalid("argument count is %d: the snapshot has %d files", uint64(count), len(snap.files))
		}
		places := make([]int, count)
		for i, at := range unsafe.Slice(files, count) {
			if uint64(at) >= uint64(len(snap.files)) {
				return invalid("argument files: index %d: the snapshot has %d files", uint64(at), len(snap.files))
			}
			places[i] = snap.indices[at]
		}
		stats, err := snap.s.FileStats(int(min(uint64(column), maxPlainColumns)), places)
		if err != nil {
			return err
		}
		for i, st := range stats {
			unsafe.Slice(out, count)[i] = cColumnStats(st)
		}
		return nil
	})
}

func cBool(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}
