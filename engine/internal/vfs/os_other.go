//go:build unix && !linux

package vfs

import (
	"os"
	"syscall"
)

func dataSync(f *os.File) error { return f.Sync() }

func preallocate(*os.File, int64) error { return syscall.EOPNOTSUPP }

func renameExclusive(from, to string) error { return linkAndRemove(from, to) }
