package main

/*
#include "capi.h"
*/
import "C"

import (
	"sync"

	"github.com/merutable/merutable/engine"
)

// A handle that a caller holds is a number out of a table, dressed as a pointer that points nowhere: its upper 16 bits
// are no address on any machine that we build for. Numbers are never used twice. So a handle that was freed, one of
// another kind and a pointer to something else are all found out, and none is ever followed.
const (
	handleTag  = 0x4d52 << 48
	handleStep = 16 // keeps the low bits zero, as in a pointer
)

// handleTable maps handles to objects, all kinds together.
type handleTable struct {
	mu      sync.RWMutex
	last    uint64
	objects map[uint64]any
}

var handles = handleTable{objects: map[uint64]any{}}

// The kinds of objects behind handles; write, txn, block, tableSchema, snapshot, stream and options have their own files.
type database struct{ db *engine.DB }

// add gives an object a handle.
func (t *handleTable) add(object any) C.uintptr_t {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last += handleStep
	h := handleTag | t.last
	t.objects[h] = object
	return C.uintptr_t(h)
}

// lookup returns the object behind a handle; argument names it in the error.
func lookup[T any](h C.uintptr_t, argument string) (*T, error) {
	handles.mu.RLock()
	object := handles.objects[uint64(h)]
	handles.mu.RUnlock()
	return asKind[T](h, object, argument)
}

// remove takes a handle out of the table and returns its object.
func remove[T any](h C.uintptr_t, argument string) (*T, error) {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	object, err := asKind[T](h, handles.objects[uint64(h)], argument)
	if err == nil {
		delete(handles.objects, uint64(h))
	}
	return object, err
}

func asKind[T any](h C.uintptr_t, object any, argument string) (*T, error) {
	switch o := object.(type) {
	case *T:
		return o, nil
	case nil:
		if h == 0 {
			return nil, invalid("argument %s is NULL", argument)
		}
		return nil, invalid("argument %s is not a handle of this library, or was freed", argument)
	}
	return nil, invalid("argument %s is a handle of another kind: %s", argument, describe(object))
}

// lookupDB returns the engine's handle behind a database handle.
func lookupDB(h C.uintptr_t) (*engine.DB, error) {
	d, err := lookup[database](h, "db")
	if err != nil {
		return nil, err
	}
	return d.db, nil
}

// count returns how many handles are open, by kind.
func (t *handleTable) count() map[string]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := map[string]int{"database": 0, "openOptions": 0, "tableSchema": 0, "write": 0, "txn": 0, "block": 0, "snapshot": 0, "snapshotSet": 0, "file": 0, "stream": 0}
	for _, o := range t.objects {
		n[describe(o)]++
	}
	return n
}
