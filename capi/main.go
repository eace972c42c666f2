// Package main is the C interface of merutable: it translates the calls of include/merutable.h into those of package
// engine, and decides nothing itself. It is built as a C library (-buildmode=c-shared or c-archive).
//
// The functions of the header are C functions (exports*.c), which refuse forked children and call the Go halves here,
// merugo_…, one file for each kind of handle. Rules of the house:
//
//   - Every Go half runs inside [call] or [quiet], which turn panics into errors.
//   - Handles are numbers, see handle.go: a freed or foreign one is an error, not a crash.
//   - What goes out is C memory (object.go, arrow.go). What comes in is read during the call and not kept.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../include -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Werror=incompatible-pointer-types
#include "capi.h"
*/
import "C"

func main() {}
