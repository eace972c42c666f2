package memtable

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

func newRowBuffer(t testing.TB, capacity int) *RowBuffer {
	t.Helper()
	b, err := NewRowBuffer(capacity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func bufferRows(b *RowBuffer) model {
	var out model
	it := b.NewIter()
	for it.First(); it.Valid(); it.Next() {
		out = append(out, version{string(it.Key()), 0, it.Op(), string(it.Value())})
	}
	return out
}

// checkBuffer adds rows, sorts, and compares with a map.
func checkBuffer(t *testing.T, b *RowBuffer, rows model) {
	t.Helper()
	last := map[string]version{}
	for _, v := range rows {
		if err := b.Add([]byte(v.key), v.op, []byte(v.value)); err != nil {
			t.Fatal(err)
		}
		v.seq = 0
		last[v.key] = v
	}
	b.Sort()
	b.Sort()
	var want model
	for _, k := range slices.Sorted(maps.Keys(last)) {
		want = append(want, last[k])
	}
	if got := bufferRows(b); !slices.Equal(got, want) {
		t.Fatalf("%v\nwant\n%v", got, want)
	}
	if b.Len() != len(rows) {
		t.Fatalf("Len is %d, not %d", b.Len(), len(rows))
	}
	if len(want) == 0 {
		if b.MinKey() != nil || b.MaxKey() != nil {
			t.Fatal("an empty buffer has bounds")
		}
		return
	}
	if string(b.MinKey()) != want[0].key || string(b.MaxKey()) != want[len(want)-1].key {
		t.Fatalf("bounds %q and %q, want %q and %q", b.MinKey(), b.MaxKey(), want[0].key, want[len(want)-1].key)
	}
}

func TestRowBuffer(t *testing.T) {
	for name, makeKey := range keyMakers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(unlessShort(20, 5)) {
				r := rand.New(rand.NewPCG(seed, 4))
				b := newRowBuffer(t, 4<<20)
				for range 4 {
					rows := randomVersions(r, r.IntN(3000), makeKey)
					switch r.IntN(4) {
					case 0: // strictly ascending
						rows = rows.visible(base.MaxSeq)
					case 1: // ascending with equal keys
						slices.SortStableFunc(rows, func(a, b version) int { return strings.Compare(a.key, b.key) })
					}
					checkBuffer(t, b, rows)
					b.Reset()
				}
			}
		})
	}
}

func TestRowBufferFull(t *testing.T) {
	b := newRowBuffer(t, 100<<10)
	for range 3 {
		n := 0
		for ; ; n++ {
			err := b.Add(fmt.Appendf(nil, "%08d", n^5), base.OpPut, make([]byte, 100))
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if b.Bytes() > b.Capacity() || b.Bytes()+RowBytes(8, 100) <= b.Capacity() || b.Len() != n {
			t.Fatalf("full at %d of %d bytes, %d of %d rows", b.Bytes(), b.Capacity(), b.Len(), n)
		}
		b.Sort()
		if got := bufferRows(b); len(got) != n {
			t.Fatalf("%d rows of %d", len(got), n)
		}
		b.Reset()
		// One row of any size fits alone.
		if err := b.Add([]byte("big"), base.OpPut, make([]byte, 5<<20)); err != nil {
			t.Fatal(err)
		}
		if err := b.Add([]byte("small"), base.OpPut, nil); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		b.Sort()
		if got := bufferRows(b); len(got) != 1 || len(got[0].value) != 5<<20 {
			t.Fatal("the big row is not there")
		}
		b.Reset()
	}
	if err := b.Add(make([]byte, base.MaxKeyBytes+1), base.OpPut, nil); base.CodeOf(err) != base.CodeInvalidArgument || errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

// TestRowBufferLongKeys sorts keys of which each is a prefix of the next: the worst that sorting by prefixes can meet.
func TestRowBufferLongKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	b := newRowBuffer(t, 64<<20)
	rows := make(model, 1000)
	for i := range rows {
		rows[i] = version{key: strings.Repeat("a", r.IntN(700)*80), op: base.OpPut, value: fmt.Sprint(i)}
	}
	checkBuffer(t, b, rows)
}

// TestRowBufferAddAll compares buffers put together from parts with one that took all rows itself.
func TestRowBufferAddAll(t *testing.T) {
	for name, makeKey := range keyMakers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(unlessShort(30, 6)) {
				r := rand.New(rand.NewPCG(seed, 6))
				var rows model
				whole, parts := newRowBuffer(t, 64<<20), newRowBuffer(t, 64<<20)
				all := randomVersions(r, 1+r.IntN(3000), makeKey)
				if r.IntN(2) == 0 {
					all = all.visible(base.MaxSeq) // strictly ascending
				}
				for len(all) > 0 {
					n := 1 + r.IntN(len(all))
					part := newRowBuffer(t, 16<<20)
					if err := part.Reserve(n, RowBytes(8, 8)); err != nil {
						t.Fatal(err)
					}
					for _, v := range all[:n] {
						for _, b := range []*RowBuffer{whole, part} {
							if err := b.Add([]byte(v.key), v.op, []byte(v.value)); err != nil {
								t.Fatal(err)
							}
						}
						v.seq = 0
						rows = append(rows, v)
					}
					all = all[n:]
					if err := parts.AddAll(part); err != nil {
						t.Fatal(err)
					}
					part.Close()
				}
				checkEach(t, parts, rows)
				whole.Sort()
				parts.Sort()
				if parts.Len() != whole.Len() || parts.Bytes() != whole.Bytes() || parts.Ascending() != whole.Ascending() {
					t.Fatalf("%d rows of %d bytes, want %d of %d", parts.Len(), parts.Bytes(), whole.Len(), whole.Bytes())
				}
				want := bufferRows(whole)
				if got := bufferRows(parts); !slices.Equal(got, want) {
					t.Fatalf("%v\nwant\n%v", got, want)
				}
				checkSeek(t, r, parts, want)
			}
		})
	}
}

// checkEach compares a buffer that was not sorted with the rows in the order of their arrival.
func checkEach(t *testing.T, b *RowBuffer, want model) {
	t.Helper()
	var got model
	err := b.Each(func(key []byte, op base.Op, value []byte) error {
		got = append(got, version{string(key), 0, op, string(value)})
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v: %v\nwant\n%v", err, got, want)
	}
}

// checkSeek seeks keys that are there and others, and takes samples.
func checkSeek(t *testing.T, r *rand.Rand, b *RowBuffer, want model) {
	t.Helper()
	it := b.NewIter()
	for range 20 {
		key := want[r.IntN(len(want))].key
		if r.IntN(2) == 0 {
			key += "\x00"
		}
		at, _ := slices.BinarySearchFunc(want, key, func(v version, k string) int { return strings.Compare(v.key, k) })
		it.SeekGE([]byte(key))
		if it.Valid() != (at < len(want)) || it.Valid() && string(it.Key()) != want[at].key {
			t.Fatalf("seek %q: valid %v, want row %d of %d", key, it.Valid(), at, len(want))
		}
	}
	n := 1 + r.IntN(10)
	var keys []string
	b.Sample(n, func(key []byte) { keys = append(keys, string(key)) })
	if len(keys) < min(n, len(want)) || len(keys) > 2*n || !slices.IsSorted(keys) || keys[0] != want[0].key {
		t.Fatalf("%d samples of %d rows: %q", n, len(want), keys)
	}
}

// TestRowBufferAddAllReused adds a buffer whose first chunk is from a use before, and too small for this one.
func TestRowBufferAddAllReused(t *testing.T) {
	b, o := newRowBuffer(t, 16<<20), newRowBuffer(t, 16<<20)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	const rows = 200
	for _, from := range []int{300_000, 100_000} { // the keys of one part have more in common than those of both
		for i := range rows {
			if err := o.Add(key(from+i^1), base.OpPut, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.AddAll(o); err != nil {
			t.Fatal(err)
		}
		o.Reset()
		if err := o.Reserve(1, 2*firstChunkBytes); err != nil {
			t.Fatal(err)
		}
	}
	b.Sort()
	got := bufferRows(b)
	if len(got) != 2*rows || !slices.IsSortedFunc(got, func(x, y version) int { return strings.Compare(x.key, y.key) }) {
		t.Fatalf("%d rows, or not in order: %v", len(got), got)
	}
}

func TestRowBufferAddAllFull(t *testing.T) {
	b, o := newRowBuffer(t, 100<<10), newRowBuffer(t, 1<<20)
	if err := o.Add([]byte("big"), base.OpPut, make([]byte, 200<<10)); err != nil {
		t.Fatal(err)
	}
	if err := b.Add([]byte("small"), base.OpPut, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.AddAll(o); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if b.Len() != 1 || o.Len() != 1 {
		t.Fatalf("%d and %d rows after an error", b.Len(), o.Len())
	}
	b.Reset()
	if err := b.AddAll(o); err != nil || b.Len() != 1 {
		t.Fatalf("an empty buffer takes what is too large for it: %v", err)
	}
}
