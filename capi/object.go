package main

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"
)

// object is a result in C memory while it is filled: a root struct, and space that is freed with it. The C half is in
// object.c.
type object struct {
	root  unsafe.Pointer
	space []byte // unused
	next  int    // size of the next block
}

// objectBlock is the least that an object grows by, in bytes.
const objectBlock = 16 << 10

// maxBlock is up to where the blocks of a growing object double.
const maxBlock = 1 << 20

// newObject makes a zeroed root of rootSize bytes with room for reserve bytes more.
func newObject(rootSize uintptr, reserve int) (*object, error) {
	var space unsafe.Pointer
	root := C.capi_object_new(C.size_t(rootSize), C.size_t(reserve), &space)
	if root == nil {
		return nil, errNoMemory(int(rootSize) + reserve)
	}
	return &object{root: root, space: unsafe.Slice((*byte)(space), reserve)}, nil
}

// newObjectOf makes an object whose root is a T.
func newObjectOf[T any](reserve int) (*object, *T, error) {
	var zero T
	o, err := newObject(unsafe.Sizeof(zero), reserve)
	if err != nil {
		return nil, nil, err
	}
	return o, (*T)(o.root), nil
}

// handle returns the root as the number that an out parameter takes.
func (o *object) handle() C.uintptr_t { return C.uintptr_t(uintptr(o.root)) }

// discard frees what was not handed out.
func (o *object) discard() { C.capi_object_free(o.root) }

// aligned rounds a size up so that what follows is aligned.
func aligned(n int) int { return (n + 15) &^ 15 }

// alloc returns n zeroed bytes of the object, aligned for every type.
func (o *object) alloc(n int) (unsafe.Pointer, error) {
	n = aligned(max(n, 1))
	if n > len(o.space) {
		o.next = min(max(o.next*2, objectBlock), maxBlock)
		size := max(n, o.next)
		p := C.capi_object_grow(o.root, C.size_t(size))
		if p == nil {
			return nil, errNoMemory(size)
		}
		fresh := unsafe.Slice((*byte)(p), size)
		if size-n < len(o.space) { // what is left of the old block is larger
			return p, nil
		}
		o.space = fresh
	}
	p := unsafe.Pointer(unsafe.SliceData(o.space))
	o.space = o.space[n:]
	return p, nil
}

// allocSlice returns n zeroed Ts of the object, nil for none.
func allocSlice[T any](o *object, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	var zero T
	p, err := o.alloc(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(p), n), nil
}

// bytes copies b into the object.
func (o *object) bytes(b []byte) (unsafe.Pointer, error) {
	p, err := o.alloc(len(b))
	if err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*byte)(p), max(len(b), 1)), b)
	return p, nil
}

// text copies s into the object as a C string.
func (o *object) text(s string) (*C.char, error) {
	p, err := o.alloc(len(s) + 1) // zeroed: the end is there already
	if err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*byte)(p), len(s)+1), s)
	return (*C.char)(p), nil
}
