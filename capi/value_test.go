package main

import (
	"testing"

	"github.com/merutable/merutable/engine"
)

// Both directions of the table of types, and the promise that numbers are never reused.
func TestColumnTypes(t *testing.T) {
	if len(columnKinds) != len(columnTypes) {
		t.Errorf("%d kinds have %d types", len(columnTypes), len(columnKinds))
	}
	for kind := engine.KindBoolean; kind <= engine.KindFixedBinary; kind++ {
		ct, ok := columnTypes[kind]
		if !ok {
			t.Errorf("%s has no type in the C interface", kind)
		}
		if columnKinds[ct] != kind {
			t.Errorf("%s is type %d, which is %s", kind, ct, columnKinds[ct])
		}
	}
}

func TestWidened(t *testing.T) {
	for kind, low := range map[engine.Kind]int64{engine.KindUTinyInt: 0, engine.KindUHugeInt: 0, engine.KindHugeInt: -1 << 63} {
		c := &engine.Column{Name: "x", Type: engine.Type{Kind: kind}}
		if v, err := widened(low, c); err != nil || v.Int64() != low {
			t.Errorf("%d as %s: %v %v", low, kind, v, err)
		}
		if v, err := widened(-1, c); (err != nil) != (low == 0) {
			t.Errorf("-1 as %s: %v %v", kind, v, err)
		}
	}
}
