package wal

import (
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

const (
	// bufferBytes bounds what is gathered for one write call, and so what a Writer keeps in memory.
	bufferBytes = 256 << 10
	// reserveMin and reserveMax bound how far ahead space is preallocated: as much as the log has, within these.
	// Preallocation makes the sync of a small record about a quarter cheaper, as the size stays the same (ext4, virtual
	// SSD: median 95 instead of 131 microseconds).
	reserveMin = 256 << 10
	reserveMax = 16 << 20
)

// Writer appends records to a log. Its methods may be called from any goroutine; a Sync does not hold up Append.
//
// After a failed write or sync every call returns that error: what reached the disk is unknown. After a failed write,
// never after a failed sync, Rewind brings the writer back to life.
type Writer struct {
	fs   vfs.FS
	path string
	num  uint64

	// syncMu is held across a sync and taken before mu, so that Rewind and Close do not take the file away from one.
	syncMu sync.Mutex

	mu       sync.Mutex
	f        vfs.File
	buf      []byte
	size     int64 // end of the last whole frame
	pos      int64 // end of what was written; beyond size while a frame is under way or after a failed write
	synced   int64 // known to be durable up to here
	reserved int64 // preallocated up to here
	// noReserve stops preallocation where the file system does not have it or is nearly full.
	noReserve bool
	err       error
	// final says that err is not to be recovered from.
	final  bool
	closed bool
}

// Create makes log num, at least 1, in dir and syncs the directory. A log of that name must not exist, unless it is an
// empty one that a failed Create left.
func Create(fs vfs.FS, dir string, num uint64) (*Writer, error) {
	path := fs.Join(dir, Name(num))
	if num == 0 {
		return nil, base.Errorf(base.CodeInvalidArgument, "%s: log numbers start at 1", path)
	}
	switch info, err := fs.Stat(path); {
	case err == nil && info.Size > HeaderBytes:
		return nil, base.Errorf(base.CodeAlreadyExists, "%s: there is a log of this number already", path)
	case err != nil && base.CodeOf(err) != base.CodeNotFound:
		return nil, err
	}
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{fs: fs, path: path, num: num, f: f, buf: appendFileHeader(nil, num)}
	if err = w.flush(); err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		_ = f.Close()
		_ = fs.Remove(path) // best effort: the next Create takes it over
		return nil, err
	}
	w.size = w.pos
	return w, nil
}

// Append writes one record, of at most base.MaxBatchBytes, in one write call (two for a large one). It does not sync.
// The payload is not kept.
func (w *Writer) Append(payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.admit(payload); err != nil {
		return err
	}
	w.reserve(FrameOverhead + int64(len(payload)))
	return w.finish(w.encode(payload))
}

// AppendGroup is Append for several records, which share write calls. After an error none of them counts, though a
// replay may find some: see Rewind.
func (w *Writer) AppendGroup(payloads [][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	need := int64(0)
	for _, p := range payloads {
		if err := w.admit(p); err != nil {
			return err
		}
		need += FrameOverhead + int64(len(p))
	}
	w.reserve(need)
	for _, p := range payloads {
		if err := w.encode(p); err != nil {
			return w.finish(err)
		}
	}
	return w.finish(nil)
}

// admit returns why a record cannot be appended, or nil. It changes nothing.
func (w *Writer) admit(payload []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(payload) > base.MaxBatchBytes {
		return base.Errorf(base.CodeInvalidArgument, "%s: a record of %d bytes: the limit is %d", w.path, len(payload), base.MaxBatchBytes)
	}
	return nil
}

// encode puts a frame into the buffer, and writes when the buffer is full. A large payload goes to the file without
// being copied.
func (w *Writer) encode(payload []byte) error {
	if len(w.buf) > 0 && len(w.buf)+FrameOverhead+len(payload) > bufferBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	offset := w.pos + int64(len(w.buf))
	w.buf = appendFrameHeader(w.buf, w.num, offset, offset-w.synced, payload)
	if len(w.buf)+len(payload) <= bufferBytes {
		w.buf = append(w.buf, payload...)
		return nil
	}
	// The two writes meet at the end of a sector: recovery takes it that a sector holds whole writes, or a frame's
	// middle (see torn).
	first := bufferBytes - len(w.buf)
	first -= int((w.pos + bufferBytes) % sectorBytes)
	w.buf = append(w.buf, payload[:first]...)
	if err := w.flush(); err != nil {
		return err
	}
	return w.write(payload[first:])
}

func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *Writer) write(p []byte) error {
	n, err := w.f.Write(p)
	w.pos += int64(n)
	if err == nil && n != len(p) {
		err = base.Errorf(base.CodeIO, "write %s: %d of %d bytes written", w.path, n, len(p))
	}
	return err
}

// finish writes what is left in the buffer, and completes the frames or keeps the error.
func (w *Writer) finish(err error) error {
	if err == nil {
		err = w.flush()
	}
	w.buf = w.buf[:0]
	if err != nil {
		w.err = err
		return err
	}
	w.size = w.pos
	return nil
}

// reserve preallocates for n more bytes, and then some. It is only for speed: where it fails, the write says what is
// wrong.
func (w *Writer) reserve(n int64) {
	if w.noReserve || w.size+n <= w.reserved {
		return
	}
	target := w.size + n + min(max(w.size, reserveMin), reserveMax)
	if vfs.Preallocate(w.f, target) != nil {
		w.noReserve = true
		return
	}
	w.reserved = target
}

// Sync makes all records that were appended before the call durable. Where they are it does nothing.
func (w *Writer) Sync() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	f, target, err, idle := w.f, w.size, w.err, w.synced == w.size
	w.mu.Unlock()
	if err != nil || idle {
		return err
	}
	err = f.Sync()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err, w.final = err, true
		return err
	}
	w.synced = max(w.synced, target)
	return nil
}

// Size returns the length of the log in bytes up to the end of the last record appended.
func (w *Writer) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// Rewind removes the records that were appended since Size returned size, and what a failed Append left, from the file,
// and makes what stays durable. Records that a Sync covered cannot be removed. After a failed Append the writer is usable
// again; after a failed Sync, or when Rewind itself fails, it is not.
func (w *Writer) Rewind(size int64) error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.final {
		return w.err
	}
	if size < max(w.synced, HeaderBytes) || size > w.size {
		return base.Errorf(base.CodeInvalidArgument, "%s: rewind to %d, which is not in %d..%d", w.path, size, max(w.synced, HeaderBytes), w.size)
	}
	if err := w.rewind(size); err != nil {
		w.err, w.final = err, true
		return err
	}
	w.size, w.pos, w.synced, w.reserved = size, size, size, size
	w.noReserve, w.err = false, nil
	return nil
}

// TakeBack is for after a failed Sync: it removes, as far as the file system still does what it is told, the records that
// were appended since Size returned size, for they were not acknowledged. The writer stays unusable.
func (w *Writer) TakeBack(size int64) {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.final && !w.closed && size >= max(w.synced, HeaderBytes) {
		_ = w.fs.Truncate(w.path, size) // the failed sync is what is reported
	}
}

func (w *Writer) rewind(size int64) error {
	if err := w.f.Close(); err != nil {
		return err
	}
	if err := w.fs.Truncate(w.path, size); err != nil {
		return err
	}
	f, err := w.fs.OpenAppend(w.path)
	if err != nil {
		return err
	}
	w.f = f
	return nil
}

// Close closes the file. It makes nothing durable: Sync first. What was preallocated stays: cutting it off would take a
// sync, while writers wait for the next log. After a failed write or sync it returns that error. Later calls of any
// method return CodeClosed.
func (w *Writer) Close() error {
	w.syncMu.Lock()
	defer w.syncMu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	err := w.err
	if e := w.f.Close(); err == nil {
		err = e
	}
	w.buf, w.closed = nil, true
	w.err, w.final = base.Errorf(base.CodeClosed, "%s is closed", w.path), true
	return err
}
