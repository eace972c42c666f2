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
	// NaNColumns are the columns of the schema that hold a NaN somewhere, ascending. The row groups that hold one have
	// no bounds of the column, so nobody may make bounds of the file from those of the others.
	NaNColumns []int
}

// Write writes the rows of src to a new file and syncs it; the directory entry is the caller's to sync. On any error
// the file is removed. No rows give CodeInvalidArgument: there are no empty files.
func Write(fs vfs.FS, path string, o WriterOptions, src RowSource) (FileInfo, error) {
	w, err := NewWriter(fs, path, o)
	if err != nil {
		return FileInfo{}, err
	}
	for src.Next() {
		if err := w.appendRow(src); err != nil {
			w.Abort()
			return FileInfo{}, err
		}
	}
	if err := src.Err(); err != nil {
		w.Abort()
		return FileInfo{}, err
	}
	return w.Finish()
}

// Writer writes one data file, row group by row group: while one is encoded, on a goroutine of the writer's, the next
// one is gathered. So it holds two row groups in memory, whatever the size of the file. A Writer is for one goroutine
// at a time, and ends with Finish or Abort.
type Writer struct {
	fs      vfs.FS
	file    vfs.File
	path    string
	o       WriterOptions
	enc     encoder
	index   keyIndexBuilder
	info    FileInfo
	lastKey []byte
	key     []byte // of the row at hand
	// fixedBytes is what the values of fixed size of a row take, varCols are the other columns.
	fixedBytes int
	varCols    []int
	groups     groups
	// err is the first error. Nothing works after it but Finish, which returns it, and Abort.
	err    error
	closed bool
}

// NewWriter creates a file and its writer.
func NewWriter(fs vfs.FS, path string, o WriterOptions) (*Writer, error) {
	o = o.withDefaults()
	w := &Writer{fs: fs, path: path, o: o, enc: encoder{path: path, o: o}}
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	w.file = f
	w.enc.init(f)
	w.groups.init(&w.enc)
	for i, c := range o.Schema.Columns {
		if c.Type.IsVariable() {
			w.varCols = append(w.varCols, i)
		}
		w.fixedBytes += c.Type.FixedSize()
	}
	return w, nil
}

// Rows returns how many rows were taken.
func (w *Writer) Rows() int64 { return w.info.Rows }

// Append adds rows from to to-1 of cols, which it copies. cols has all columns of the schema in order, with valid
// values as a data file or row.FromArrow yields them, and sequence numbers, unless the file inherits them; without
// operations all rows are puts. Keys must ascend, within a call and from call to call, or CodeInvalidArgument is
// returned. After an error the file cannot be finished.
func (w *Writer) Append(cols *row.Columns, from, to int) error {
	if err := w.usable(); err != nil {
		return err
	}
	w.err = w.append(cols, from, to)
	return w.err
}

func (w *Writer) usable() error {
	if w.err == nil && w.closed {
		return base.Errorf(base.CodeClosed, "%s: the writer is closed", w.path)
	}
	return w.err
}

func (w *Writer) append(cols *row.Columns, from, to int) error {
	if err := w.check(cols, from, to); err != nil {
		return err
	}
	for {
		n, err := w.admit(cols, from, to)
		if err != nil {
			return err
		}
		b := w.groups.open.builder
		b.AppendRange(cols, from, from+n)
		if w.o.InheritSeq {
			clear(b.Columns().Seqs[b.Len()-n:])
		}
		if from += n; from == to {
			return nil
		}
		if err := w.groups.next(); err != nil {
			return err
		}
	}
}

// admit takes note of the rows that still belong into the open row group and returns how many.
func (w *Writer) admit(cols *row.Columns, from, to int) (int, error) {
	for i := from; i < to; i++ {
		size := w.rowBytes(cols, i)
		if w.groups.full(size) {
			return i - from, nil
		}
		w.key = cols.AppendKey(w.key[:0], w.o.Schema.PrimaryKey, i)
		seq, op := base.Seq(0), base.OpPut
		if cols.Seqs != nil {
			seq = cols.Seqs[i]
		}
		if cols.Ops != nil {
			op = cols.Ops[i]
		}
		if err := w.note(w.key, seq, op, size); err != nil {
			return 0, err
		}
	}
	return to - from, nil
}

// rowBytes returns how many bytes a row's values take.
func (w *Writer) rowBytes(cols *row.Columns, i int) int {
	n := w.fixedBytes
	for _, c := range w.varCols {
		o := cols.Cols[c].Offsets
		n += int(o[i+1] - o[i])
	}
	return n
}

func (w *Writer) check(cols *row.Columns, from, to int) error {
	switch {
	case from < 0 || to > cols.N || from > to:
		return base.Errorf(base.CodeInvalidArgument, "%s: rows %d to %d of a batch of %d", w.path, from, to, cols.N)
	case len(cols.Cols) != len(w.o.Schema.Columns):
		return base.Errorf(base.CodeInvalidArgument, "%s: a batch of %d columns, the table has %d", w.path, len(cols.Cols),
			len(w.o.Schema.Columns))
	case cols.Seqs == nil && !w.o.InheritSeq:
		return base.Errorf(base.CodeInvalidArgument, "%s: a batch without sequence numbers", w.path)
	}
	return nil
}

// appendRow adds the row at which src stands.
func (w *Writer) appendRow(src RowSource) error {
	if err := w.usable(); err != nil {
		return err
	}
	w.err = func() error {
		key, seq, op, rec := src.Key(), src.Seq(), src.Op(), src.Value()
		if w.groups.full(len(rec)) {
			if err := w.groups.next(); err != nil {
				return err
			}
		}
		if err := w.note(key, seq, op, len(rec)); err != nil {
			return err
		}
		if w.o.InheritSeq {
			seq = 0
		}
		if op == base.OpDelete {
			return w.groups.open.builder.AppendTombstoneKey(key, seq)
		}
		w.groups.open.builder.AppendRecord(rec, seq, op)
		return nil
	}()
	return w.err
}

// maxFileRows keeps positions inside the 32 bits of a deletion vector.
const maxFileRows = 1<<32 - 1

// note takes note of the next row, whose values are added to the open row group thereafter.
func (w *Writer) note(key []byte, seq base.Seq, op base.Op, size int) error {
	pos := w.info.Rows
	if pos >= maxFileRows {
		return base.Errorf(base.CodeInvalidArgument, "%s: more than %d rows in one file", w.path, int64(maxFileRows))
	}
	if pos == 0 {
		w.info.KeyMin = bytes.Clone(key)
		w.info.SeqMin, w.info.SeqMax = seq, seq
	} else if bytes.Compare(w.lastKey, key) >= 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: the key of row %d is not above the one before it", w.path, pos)
	}
	w.info.SeqMin, w.info.SeqMax = min(w.info.SeqMin, seq), max(w.info.SeqMax, seq)
	w.lastKey = append(w.lastKey[:0], key...)
	if w.groups.open.add(len(key), size, w.o.KeyBlockRows) {
		w.index.add(pos, key)
	}
	if op == base.OpDelete {
		if w.info.Tombstones == nil {
			w.info.Tombstones = roaring.New()
		}
		w.info.Tombstones.Add(uint32(pos))
	}
	w.info.Rows++
	return nil
}

// Finish writes what is left, the footer, syncs and closes the file and describes it; the directory entry is the
// caller's to sync. On an error the file is removed. A file without rows is one.
func (w *Writer) Finish() (FileInfo, error) {
	if err := w.usable(); err != nil {
		w.Abort()
		return FileInfo{}, err
	}
	if w.err = w.finish(); w.err != nil {
		w.Abort()
		return FileInfo{}, w.err
	}
	w.closed = true
	if w.err = w.file.Close(); w.err != nil {
		_ = w.fs.Remove(w.path) // as in Abort
		return FileInfo{}, w.err
	}
	return w.info, nil
}

func (w *Writer) finish() error {
	if w.info.Rows == 0 {
		return base.Errorf(base.CodeInvalidArgument, "%s: a data file without rows is not written", w.path)
	}
	if err := w.groups.finish(); err != nil {
		return err
	}
	w.info.KeyMax = bytes.Clone(w.lastKey)
	w.info.NaNColumns = w.enc.nanColumns()
	size, err := w.enc.finish(w.index.finish(w.info.Rows, w.lastKey))
	if err != nil {
		return err
	}
	w.info.Size = size
	return w.file.Sync()
}

// Abort gives the file up: it is closed and removed. After Finish, and when called again, it does nothing.
func (w *Writer) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	w.groups.stop()
	_ = w.file.Close()
	_ = w.fs.Remove(w.path) // the first error is the one to report; a file that stays is an orphan that open sweeps
}
