// A Go program as a host: the library brings a second Go runtime into its process.
//
//	gohost LIBRARY DIR
//
// Both runtimes want SIGURG for themselves. If the library kept it, the host's collector would wait for ever for a
// goroutine in a tight loop.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include "merutable.h"

static int (*open_fn)(const MeruOpenOptions *, MeruRuntime *, MeruHandle **, char **);
static int (*put_fn)(MeruHandle *, const MeruRow *, uint64_t *, char **);
static int (*get_fn)(const MeruHandle *, const MeruValue *, uintptr_t, int *, MeruRow **, char **);
static void (*row_free_fn)(MeruRow *);
static int (*close_free_fn)(MeruHandle *, char **);

static const char *load(const char *path) {
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		return dlerror();
	}
	*(void **)&open_fn = dlsym(lib, "meru_open");
	*(void **)&put_fn = dlsym(lib, "meru_put");
	*(void **)&get_fn = dlsym(lib, "meru_get");
	*(void **)&row_free_fn = dlsym(lib, "meru_row_free");
	*(void **)&close_free_fn = dlsym(lib, "meru_close_free");
	return open_fn && put_fn && get_fn && row_free_fn && close_free_fn ? NULL : "a function is missing";
}

static int open_db(const char *path, MeruHandle **db, char **err) {
	MeruColumnDef columns[2] = {{"id", MeruColumnType_Int64, 0, 0, NULL, NULL}, {"n", MeruColumnType_Int64, 0, 1, NULL, NULL}};
	uintptr_t key[1] = {0};
	MeruOpenOptions o = {{"go", columns, 2, key, 1}, path, NULL, 0, 0};
	return open_fn(&o, NULL, db, err);
}

// Writes (id, n) and reads it back; the status, or -1 where another value came.
static int round_trip(MeruHandle *db, int64_t id, int64_t n, char **err) {
	MeruValue f[2] = {{MeruColumnType_Int64, 0, {0}}, {MeruColumnType_Int64, 0, {0}}};
	f[0].inner.v_int64 = id;
	f[1].inner.v_int64 = n;
	MeruRow row = {f, 2}, *got = NULL;
	int found = 0, status = put_fn(db, &row, NULL, err);
	if (status == 0) {
		status = get_fn(db, f, 1, &found, &got, err);
	}
	if (status == 0 && (!found || got->fields[1].inner.v_int64 != n)) {
		status = -1;
	}
	row_free_fn(got);
	return status;
}

static int close_db(MeruHandle *db, char **err) { return close_free_fn(db, err); }
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// pauseMax is how long one collection of the host may take.
const pauseMax = 5 * time.Second

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gohost LIBRARY DIR")
		os.Exit(2)
	}
	if why := C.load(C.CString(os.Args[1])); why != nil {
		fmt.Println("FAIL go: load:", C.GoString(why))
		os.Exit(1)
	}
	failed := false
	for _, c := range []struct {
		name string
		run  func(db *C.MeruHandle) error
	}{
		{"goroutines of the host in the library", goroutines},
		{"the host's collector and preemption", preempt},
		{"the host's panics and signals", panicsAndSignals},
	} {
		err := withDB(os.Args[2], c.run)
		if err != nil {
			failed = true
			fmt.Printf("FAIL go: %s: %v\n", c.name, err)
		} else {
			fmt.Printf("PASS go: %s\n", c.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func status(code C.int, message *C.char) error {
	if code == 0 {
		return nil
	}
	text := "no message"
	if message != nil {
		text = C.GoString(message)
		C.free(unsafe.Pointer(message))
	}
	return fmt.Errorf("status %d: %s", code, text)
}

func withDB(dir string, run func(db *C.MeruHandle) error) error {
	path := C.CString(dir + "/go")
	defer C.free(unsafe.Pointer(path))
	var db *C.MeruHandle
	var message *C.char
	if err := status(C.open_db(path, &db, &message), message); err != nil {
		return err
	}
	err := run(db)
	if e := status(C.close_db(db, &message), message); err == nil {
		err = e
	}
	return err
}

func roundTrip(db *C.MeruHandle, id, n int) error {
	var message *C.char
	return status(C.round_trip(db, C.int64_t(id), C.int64_t(n), &message), message)
}

func goroutines(db *C.MeruHandle) error {
	errs := make(chan error, 16)
	for g := range cap(errs) {
		go func() {
			for i := range 100 {
				if err := roundTrip(db, g, i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

var sink atomic.Int64

func preempt(db *C.MeruHandle) error {
	go func() { // until the program ends; only a signal can interrupt it
		for x := 0; ; x++ {
			if x < 0 {
				sink.Add(1)
			}
		}
	}()
	var done atomic.Bool
	worker := make(chan error, 1)
	go func() {
		for i := 0; !done.Load(); i++ {
			if err := roundTrip(db, i%100, i); err != nil {
				worker <- err
				return
			}
		}
		worker <- nil
	}()
	collected := make(chan struct{})
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		go func() {
			runtime.GC()
			collected <- struct{}{}
		}()
		select {
		case <-collected:
		case <-time.After(pauseMax):
			return fmt.Errorf("a collection took more than %s", pauseMax)
		}
	}
	done.Store(true)
	return <-worker
}

func panicsAndSignals(db *C.MeruHandle) error {
	if err := recovered(); err != nil {
		return err
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGUSR1)
	defer signal.Stop(came)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-came:
	case <-time.After(pauseMax):
		return fmt.Errorf("a signal did not come")
	}
	return roundTrip(db, 1, 1)
}

// recovered makes a nil dereference, which is a SIGSEGV, and wants it as a panic of this runtime.
func recovered() (err error) {
	defer func() {
		if recover() == nil {
			err = fmt.Errorf("a nil dereference was no panic")
		}
	}()
	var p *struct{ a [16]int }
	p.a[sink.Load()%2]++
	return nil
}
