// Package vfs is the engine's only door to the operating system's files.
//
// [OS] is the real thing. The others make the engine testable from the first day: [MemFS] keeps files in memory and can
// show what a power cut would leave ([MemFS.CrashClone]), [ErrorFS] injects failures, [CountingFS] counts operations and
// can stop the world between two of them.
//
// Every error is a base.Error whose message names the operation and the path: CodeNotFound, CodeAlreadyExists,
// CodeNoSpace (disk or quota full), CodeLocked, CodeReadOnly (a read-only file system or a missing permission, on
// operations that write), else CodeIO. Only File.ReadAt also returns a bare io.EOF, as io.ReaderAt asks for.
package vfs

import (
	"io"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// File is an open file. Files are written front to back only: Write continues where the last one ended, from the end of
// the file as it was when it was opened.
//
// One goroutine at a time may Write or Preallocate; others may ReadAt, Sync and ask for the Size meanwhile. A file that
// is written through one handle must not be written through another one.
type File interface {
	io.ReaderAt
	io.Writer
	io.Closer
	// Sync makes what was written before, and the size, survive a power cut. It does not make the name survive: see
	// FS.SyncDir. After a failed Sync nothing is known about what was written since the last good one, and trying again
	// does not help: the kernel may have dropped the data.
	Sync() error
	// Size returns the length in bytes that a reader sees, preallocated bytes included.
	Size() (int64, error)
	// Name returns the path that the file was opened by.
	Name() string
}

// Preallocator is what a File may implement besides. Use [Preallocate].
type Preallocator interface {
	// Preallocate makes the file at least size bytes long; the new bytes read as zeros until they are written. Where the
	// next Write goes does not change. Syncing writes into preallocated space is cheaper: the size stays the same.
	Preallocate(size int64) error
}

// Preallocate calls the Preallocate method of f, or returns CodeUnsupported where there is none.
func Preallocate(f File, size int64) error {
	if p, ok := f.(Preallocator); ok {
		return p.Preallocate(size)
	}
	return base.Errorf(base.CodeUnsupported, "preallocate %s: not supported by this file system", f.Name())
}

// SizedOpener is what an FS may implement besides. Use [OpenSized].
type SizedOpener interface {
	// OpenSized opens an existing file whose size is known, for reading, without asking for the size.
	OpenSized(name string, size int64) (File, error)
}

// OpenSized opens a file of size bytes, CodeCorruption for one of another size; where asking is dear that is only noticed
// when it is read.
func OpenSized(fs FS, name string, size int64) (File, error) {
	if s, ok := fs.(SizedOpener); ok {
		return s.OpenSized(name, size)
	}
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	found, err := f.Size()
	if err == nil && found != size {
		err = base.Errorf(base.CodeCorruption, "%s: the file has %d bytes, %d were written", name, found, size)
	}
	if err != nil {
		_ = f.Close() // nothing was written through it
		return nil, err
	}
	return f, nil
}

// Info describes a file or directory.
type Info struct {
	Size    int64 // bytes
	ModTime time.Time
	IsDir   bool
}

// FS is a file system. Its methods may be called from any goroutine.
type FS interface {
	// Create makes an empty file, or empties an existing one, for reading and appending. The parent must exist.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenAppend opens an existing file for reading and appending at its end.
	OpenAppend(name string) (File, error)
	// Truncate sets the size of an existing file, in bytes, and syncs it. Bytes that are added are zeros.
	Truncate(name string, size int64) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename atomically gives a file or directory a new name, replacing a file of that name.
	Rename(from, to string) error
	// RenameExclusive is Rename, but fails with CodeAlreadyExists, atomically, where the new name is taken. It is for
	// files.
	RenameExclusive(from, to string) error
	// MkdirAll makes a directory and those above it; it is no error where they exist.
	MkdirAll(dir string) error
	// RemoveAll removes a file or a directory with everything in it; it is no error where there is none.
	RemoveAll(dir string) error
	// List returns the names in a directory, without their directory, in byte order.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (Info, error)
	// SyncDir makes the creations, renames and removals directly inside a directory survive a power cut. The directory's
	// own name is an entry of its parent, which is synced separately.
	SyncDir(dir string) error
	// Lock takes the exclusive lock that a file stands for, making the file if needed and writing the holder's
	// description into it. It never waits: where the lock is taken, in this process or another, it fails with CodeLocked
	// and the description found in the file. Closing the result releases the lock, as does the end of the process. The
	// file stays: removing it would let two processes lock two files of one name.
	Lock(name, holder string) (io.Closer, error)
	// LockShared locks an existing file against TryLockExclusive, for many holders at a time, with no more than the right
	// to read it. It never waits: CodeLocked while somebody holds the file exclusively, CodeNotFound also where the file
	// was removed or replaced before the lock was there, CodeUnsupported where the file system has no such locks. Closing
	// the result releases the lock, as does the end of the process. A name that is locked may still be removed.
	LockShared(name string) (io.Closer, error)
	// TryLockExclusive locks an existing file against LockShared; the same errors, CodeLocked while others hold it.
	TryLockExclusive(name string) (io.Closer, error)
	// Join joins path elements.
	Join(elem ...string) string
}

// Op is a kind of file system operation, for [ErrorFS] and [CountingFS].
type Op int

// The operations. OpRead, OpWrite, OpSync, OpPreallocate, OpSize and OpClose are those of a File, OpUnlock closes a lock.
const (
	OpCreate Op = iota
	OpOpen
	OpOpenAppend
	OpTruncate
	OpRemove
	OpRename
	OpRenameExclusive
	OpMkdirAll
	OpRemoveAll
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpLockShared
	OpTryLock
	OpUnlock
	OpRead
	OpWrite
	OpSync
	OpPreallocate
	OpSize
	OpClose
	numOps
)

var opNames = [numOps]string{
	"create", "open", "open for append", "truncate", "remove", "rename", "rename exclusively", "make directory",
	"remove tree", "list", "stat", "sync directory", "lock", "lock shared",
	"lock exclusively", "unlock", "read", "write", "sync", "preallocate", "size", "close",
}

// String returns the name used in error messages.
func (o Op) String() string {
	if o < 0 || o >= numOps {
		return "unknown operation"
	}
	return opNames[o]
}

// Mutates reports whether the operation may change what a power cut leaves behind.
func (o Op) Mutates() bool {
	switch o {
	case OpOpen, OpOpenAppend, OpList, OpStat, OpLockShared, OpTryLock, OpUnlock, OpRead, OpSize, OpClose:
		return false
	}
	return true
}

// maxHolderBytes bounds the description in a lock file.
const maxHolderBytes = 1 << 10

func clipHolder(holder string) string {
	if len(holder) > maxHolderBytes {
		return holder[:maxHolderBytes]
	}
	return holder
}

func lockedError(name, holder string) error {
	if holder == "" {
		holder = "a holder that left no description"
	}
	return base.Errorf(base.CodeLocked, "%s is locked by %s", name, holder)
}
