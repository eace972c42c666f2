package metamorphic

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestText: a history survives its text form, and what is no history is refused with its line.
func TestText(t *testing.T) {
	h := Generate(3, 100)
	again, err := Parse("# a comment\n\n" + h.String())
	if err != nil || fmt.Sprint(h) != fmt.Sprint(again) {
		t.Fatalf("%v\n%s\nbecame\n%s", err, h, again)
	}
	for _, bad := range []string{
		"", "put n=1 seed=2", textHeader, textHeader + "\nconfig tiny\nkeys 3\nput n=1", textHeader + "\nconfig tiny\nkeys 0",
		textHeader + "\nconfig tiny\nkeys 3\nconquer n=1 seed=2",
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a history", bad)
		}
	}
	for _, name := range []string{"", "huge", "random-x"} {
		if _, err := ConfigByName(name); err == nil {
			t.Errorf("%q is a configuration", name)
		}
	}
}

// TestShrink: what is left are the operations that the failure takes, as small as it takes them.
func TestShrink(t *testing.T) {
	h := Generate(5, 300)
	fails := func(h History) error {
		flush := slices.IndexFunc(h.Ops, func(o Op) bool { return o.Kind == OpFlush })
		if flush >= 0 && slices.ContainsFunc(h.Ops[flush:], func(o Op) bool { return o.Kind == OpBatch && o.N > 5 }) {
			return errors.New("a batch of more than 5 after a flush")
		}
		return nil
	}
	short, err := Shrink(h, 1, fails)
	if err == nil || len(short.Ops) != 2 || short.Ops[0].Kind != OpFlush || short.Ops[1].N > 11 {
		t.Fatalf("%v:\n%s", err, short)
	}
	if short, err := Shrink(h, 2, func(History) error { return nil }); err != nil || len(short.Ops) != len(h.Ops) {
		t.Fatalf("a good history shrank to %d operations: %v", len(short.Ops), err)
	}
}
