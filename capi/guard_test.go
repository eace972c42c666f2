package main

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/merutable/merutable/engine"
)

func TestProtectTurnsPanicsIntoErrors(t *testing.T) {
	var nilMap map[string]int
	var nilStruct *struct{ a [10]int }
	cases := map[string]func() error{
		"a value":      func() error { panic("oops") },
		"an error":     func() error { panic(errors.New("oops")) },
		"nil map":      func() error { nilMap["x"] = 1; return nil },
		"nil pointer":  func() error { nilStruct.a[3] = 1; return nil },
		"out of range": func() error { return errors.New(strings.Repeat("x", []int{1}[len(nilMap)+1])) },
		"bad address":  func() error { *(*int)(farAway()) = 1; return nil },
	}
	for name, body := range cases {
		err := protect(body)
		if engine.CodeOf(err) != engine.CodeUnknown {
			t.Errorf("%s: %v has code %d", name, err, engine.CodeOf(err))
		}
		if text := message(err); !strings.Contains(text, "internal error") || !strings.Contains(text, "guard_test.go") {
			t.Errorf("%s: the message has no trace: %s", name, text)
		}
	}
	if err := protect(func() error { return nil }); err != nil {
		t.Errorf("no panic: %v", err)
	}
	want := invalid("argument %s", "x")
	if err := protect(func() error { return want }); err != want {
		t.Errorf("an error came back as %v", err)
	}
}

// farAway returns an address where nothing is mapped. It is not Go's, so it is kept from Go's checks of pointers.
func farAway() unsafe.Pointer {
	const nowhere = uintptr(0x7f0000000010)
	address := nowhere
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

func TestCallReportsStatus(t *testing.T) {
	if got := call(nil, func() error { return nil }); got != 0 {
		t.Errorf("success is %d", got)
	}
	if got := call(nil, func() error { return invalid("x") }); int(got) != int(engine.CodeInvalidArgument) {
		t.Errorf("an invalid argument is %d", got)
	}
	if got := call(nil, func() error { return errors.New("bare") }); int(got) != int(engine.CodeUnknown) {
		t.Errorf("an error without a code is %d", got)
	}
	if got := call(nil, func() error { panic("oops") }); int(got) != int(engine.CodeUnknown) {
		t.Errorf("a panic is %d", got)
	}
	quiet(func() { panic("oops") }) // comes back
}

func TestMessagesAreBounded(t *testing.T) {
	long := message(errors.New(strings.Repeat("é", maxMessage)))
	if len(long) > maxMessage+len(" ...") || !strings.HasSuffix(long, " ...") {
		t.Errorf("a long message has %d bytes", len(long))
	}
	if got := message(errors.New("a\x00b")); got != `a\0b` {
		t.Errorf("a zero byte became %q", got)
	}
}
