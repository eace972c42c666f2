package sst

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// RowSource yields the rows of a file, ascending by encoded key, one row a key. What Key and Value return is borrowed
// until the next call of Next.
type RowSource interface {
	// Next moves to the next row and reports whether there is one.
	Next() bool
	Key() []byte
	Seq() base.Seq
	Op() base.Op
	// Value is the row's record (package row); nil for a tombstone.
	Value() []byte
	// Err returns what ended the rows early.
	Err() error
}

// FileInfo describes a file that was written.
type FileInfo struct {
	Size, Rows     int64
	KeyMin, KeyMax []byte
	SeqMin, SeqMax base.Seq
	// Tombstones holds the positions of the rows that are deletions; nil where there are none.
	Tombstones *roaring.Bitmap
}

// Write writes the rows of src to a new file and syncs it; the directory entry is the caller's to sync. It streams row
// group by row group. On any error the file is removed. No rows give CodeInvalidArgument: there are no empty files.
func Write(fs vfs.FS, path string, o WriterOptions, src RowSource) (FileInfo, error) {
	o = o.withDefaults()
	f, err := fs.Create(path)
	if err != nil {
		return FileInfo{}, err
	}
	w := &writer{path: path, o: o, enc: encoder{path: path, o: o}}
	w.open = w.newGroup()
	err = w.run(f, src)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = fs.Remove(path) // the first error is the one to report; a file that stays is an orphan that open sweeps
		return FileInfo{}, err
	}
	return w.info, nil
}

// writer gathers rows into row groups and gives each full one to the encoder, which works beside it: while one row group
// is written, the next one is gathered.
type writer struct {
	path  string
	o     WriterOptions
	enc   encoder
	index keyIndexBuilder
	info  FileInfo
	last  []byte // the last key

	open       *group // being gathered
	blockBytes int    // of the keys of its last block
	spare      *group
	work       chan *group // to the goroutine that encodes, once there is one
	done       chan encoded
	busy       bool // a row group is being encoded
}

// group is the rows of a row group and the starts of its blocks of the key index.
type group struct {
	builder *row.Builder
	blocks  []int
}

type encoded struct {
	g   *group
	err error
}

func (w *writer) newGroup() *group { return &group{builder: row.NewBuilder(w.o.Schema, nil)} }

func (w *writer) run(f vfs.File, src RowSource) error {
	defer w.stop()
	if err := w.enc.init(f); err != nil {
		return err
	}
	for src.Next() {
		if b := w.open.builder; b.Len() >= w.o.RowGroupRows || b.Bytes() >= w.o.RowGroupBytes {
			if err := w.handOver(); err != nil {
				return err
			}
		}
		if err := w.add(src); err != nil {
			return err
		}
	}
	if err := src.Err(); err != nil {
		return err
	}
	if err := w.wait(); err != nil {
		return err
	}
	w.info.Rows += int64(w.open.builder.Len())
	if w.info.Rows == 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: a data file without rows is not written", w.path)
	}
	// The last row group needs no goroutine, and most files of level 0 have few.
	if err := w.enc.rowGroup(w.open); err != nil {
		return err
	}
	w.info.KeyMax = bytes.Clone(w.last)
	size, err := w.enc.finish(w.index.finish(w.info.Rows, w.last))
	w.info.Size = size
	return err
}

// handOver gives the full row group to the encoder, once it is done with the one before.
func (w *writer) handOver() error {
	if err := w.wait(); err != nil {
		return err
	}
	w.info.Rows += int64(w.open.builder.Len())
	if w.work == nil {
		w.work, w.done = make(chan *group), make(chan encoded, 1)
		go func() {
			for g := range w.work {
				w.done <- encoded{g: g, err: w.enc.rowGroup(g)}
			}
		}()
	}
	w.work <- w.open
	w.busy = true
	if w.open, w.spare = w.spare, nil; w.open == nil {
		w.open = w.newGroup()
	}
	return nil
}

// wait waits for the row group that is being encoded.
func (w *writer) wait() error {
	if !w.busy {
		return nil
	}
	w.busy = false
	e := <-w.done
	if e.err != nil {
		return e.err
	}
	e.g.builder.Reset()
	e.g.blocks = e.g.blocks[:0]
	w.spare = e.g
	return nil
}

// stop ends the goroutine: nothing writes to the file after it.
func (w *writer) stop() {
	_ = w.wait() // an error that counted was returned before
	if w.work != nil {
		close(w.work)
	}
}

// maxFileRows keeps positions inside the 32 bits of a deletion vector.
const maxFileRows = 1<<32 - 1

// add takes one row.
func (w *writer) add(src RowSource) error {
	key, seq, op := src.Key(), src.Seq(), src.Op()
	pos := w.info.Rows + int64(w.open.builder.Len())
	if pos >= maxFileRows {
		return base.Errorf(base.CodeInvalidArgument, "%s: more than %d rows in one file", w.path, int64(maxFileRows))
	}
	if pos == 0 {
		w.info.KeyMin = bytes.Clone(key)
		w.info.SeqMin, w.info.SeqMax = seq, seq
	} else if bytes.Compare(w.last, key) >= 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: the key of row %d is not above the one before it", w.path, pos)
	}
	w.info.SeqMin, w.info.SeqMax = min(w.info.SeqMin, seq), max(w.info.SeqMax, seq)
	w.last = append(w.last[:0], key...)
	w.cutBlock(pos, key)
	if w.o.InheritSeq {
		seq = 0
	}
	if op == base.OpDelete {
		if w.info.Tombstones == nil {
			w.info.Tombstones = roaring.New()
		}
		w.info.Tombstones.Add(uint32(pos))
		return w.open.builder.AppendTombstoneKey(key, seq)
	}
	w.open.builder.AppendRecord(src.Value(), seq, op)
	return nil
}

// cutBlock starts a block of the key index where the open one is full, or with the row group's first row.
func (w *writer) cutBlock(pos int64, key []byte) {
	n := w.open.builder.Len()
	if n == 0 || n-w.open.blocks[len(w.open.blocks)-1] >= w.o.KeyBlockRows || w.blockBytes >= maxKeyBlockBytes {
		w.index.add(pos, key)
		w.open.blocks = append(w.open.blocks, n)
		w.blockBytes = 0
	}
	w.blockBytes += len(key)
}
