package main

/*
#include "capi.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

// maxMessage bounds the text of an error, in bytes: names, labels and traces may be long.
const maxMessage = 16 << 10

// call runs the body of an exported function. Its error, or its panic, becomes the status and, where cerr is not NULL,
// a message in C memory.
func call(cerr *C.uintptr_t, body func() error) C.int {
	err := protect(body)
	if cerr != nil {
		*cerr = 0
		if err != nil {
			*cerr = cString(message(err))
		}
	}
	return C.int(engine.CodeOf(err))
}

// quiet runs the body of an exported function that cannot report errors.
func quiet(body func()) {
	_ = protect(func() error { // the caller sees the zero result
		body()
		return nil
	})
}

// protect turns a panic of body into an error with its trace. A bad address is a panic too: the caller's pointers are
// read here, and a host must survive a mistake of one of its parts.
func protect(body func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = engine.Errorf(engine.CodeUnknown, "internal error: %v\n%s", r, debug.Stack())
		}
	}()
	return body()
}

func message(err error) string {
	text := err.Error()
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " ..."
	}
	return strings.ReplaceAll(text, "\x00", "\\0")
}

// invalid makes the error about an argument.
func invalid(format string, args ...any) error {
	return engine.Errorf(engine.CodeInvalidArgument, format, args...)
}

// need returns an error for a NULL argument.
func need[T any](p *T, argument string) error {
	if p == nil {
		return invalid("argument %s is NULL", argument)
	}
	return nil
}

// errNoMemory is returned where malloc() is at its end.
func errNoMemory(bytes int) error {
	return engine.Errorf(engine.CodeUnknown, "out of memory: %d bytes could not be allocated", bytes)
}

// goText copies a C string that is a name, path or SQL text; maxBytes bounds how far it is read.
func goText(s *C.char, argument string, maxBytes int) (string, error) {
	if s == nil {
		return "", invalid("argument %s is NULL", argument)
	}
	n := int(C.strnlen(s, C.size_t(maxBytes)+1))
	if n > maxBytes {
		return "", invalid("argument %s has more than %d bytes", argument, maxBytes)
	}
	text := C.GoStringN(s, C.int(n))
	if !utf8.ValidString(text) {
		return "", invalid("argument %s is not valid UTF-8: %q", argument, text)
	}
	return text, nil
}

// Limits of texts that come in, in bytes.
const (
	maxPathText  = 1 << 16
	maxNameText  = 1 << 16 // the engine's own limit is lower, and its error better
	maxLabelText = 1 << 20
	maxSQLText   = 1 << 20
)

// cString copies a string to C memory as the number that an out parameter takes; 0 where memory ran out.
func cString(s string) C.uintptr_t {
	p := C.capi_string(unsafe.Pointer(unsafe.StringData(s)), C.size_t(len(s)))
	return C.uintptr_t(uintptr(unsafe.Pointer(p)))
}

// store writes a struct to the caller's memory byte by byte. An assignment would make Go's collector look at what stood
// there before, and that may be anything.
func store[T any](dst *T, v T) {
	size := unsafe.Sizeof(v)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(dst)), size), unsafe.Slice((*byte)(unsafe.Pointer(&v)), size))
}

// describe names the type of a value for messages.
func describe(v any) string { return strings.TrimPrefix(fmt.Sprintf("%T", v), "*main.") }
