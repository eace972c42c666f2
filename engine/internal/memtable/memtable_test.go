package memtable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// version is one entry of the model.
type version struct {
	key   string
	seq   base.Seq
	op    base.Op
	value string
}

// model is a memtable as a slice, ordered by key and newest first.
type model []version

func (m model) sorted() model {
	s := slices.Clone(m)
	slices.SortStableFunc(s, func(a, b version) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		switch {
		case a.seq > b.seq:
			return -1
		case a.seq < b.seq:
			return 1
		}
		return 0
	})
	return s
}

// visible returns the newest version of each key with at most max as its sequence number.
func (m model) visible(max base.Seq) model {
	var out model
	for _, v := range m.sorted() {
		if v.seq <= max && (len(out) == 0 || out[len(out)-1].key != v.key) {
			out = append(out, v)
		}
	}
	return out
}

func newMemtable(t testing.TB, capacity int) *Memtable {
	t.Helper()
	m, err := New(capacity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Unref)
	return m
}

func fill(t testing.TB, m *Memtable, versions model) {
	t.Helper()
	for _, v := range versions {
		if err := m.Add([]byte(v.key), v.seq, v.op, []byte(v.value)); err != nil {
			t.Fatal(err)
		}
	}
}

// anyIter is what Iter and MergeIter have in common.
type anyIter interface {
	First()
	SeekGE(key []byte)
	Next()
	Valid() bool
	Key() []byte
	Seq() base.Seq
	Op() base.Op
	Value() []byte
}

// rest collects what an iterator yields from where it stands.
func rest(it anyIter) model {
	var out model
	for ; it.Valid(); it.Next() {
		out = append(out, version{string(it.Key()), it.Seq(), it.Op(), string(it.Value())})
	}
	return out
}

// restBack collects what an iterator yields going back, in the order of keys.
func restBack(it interface {
	anyIter
	Prev()
},
) model {
	var out model
	for ; it.Valid(); it.Prev() {
		out = append(out, version{string(it.Key()), it.Seq(), it.Op(), string(it.Value())})
	}
	slices.Reverse(out)
	return out
}

// keyMakers make random keys of kinds that stress different paths of the comparison.
var keyMakers = map[string]func(r *rand.Rand) string{
	"integers": func(r *rand.Rand) string {
		return string([]byte{0x80, 0, 0, 0, 0, 0, byte(r.IntN(2)), byte(r.IntN(256))})
	},
	"short with zeros": func(r *rand.Rand) string {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = byte(r.IntN(2))
		}
		return string(b)
	},
	"long shared prefix": func(r *rand.Rand) string { return fmt.Sprintf("a rather long prefix %d", r.IntN(300)) },
	"nested":             func(r *rand.Rand) string { return strings.Repeat("ab", r.IntN(30)) + strings.Repeat("\x00", r.IntN(3)) },
	"extremes": func(r *rand.Rand) string {
		return strings.Repeat("\xff", r.IntN(20)) + strings.Repeat("\x00", r.IntN(20))
	},
}

func randomVersions(r *rand.Rand, n int, makeKey func(r *rand.Rand) string) model {
	m := make(model, n)
	for i := range m {
		m[i] = version{makeKey(r), base.Seq(i + 1), base.OpPut, fmt.Sprintf("value %d", i)}
		if r.IntN(5) == 0 {
			m[i].op, m[i].value = base.OpDelete, ""
		}
	}
	if r.IntN(2) == 0 { // sequence numbers need not ascend
		for i := range m {
			j := r.IntN(i + 1)
			m[i].seq, m[j].seq = m[j].seq, m[i].seq
		}
	}
	return m
}

// unlessShort is how many random cases a test has.
func unlessShort(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func TestMemtableAgainstModel(t *testing.T) {
	for name, makeKey := range keyMakers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(unlessShort(20, 5)) {
				r := rand.New(rand.NewPCG(seed, 1))
				checkAgainstModel(t, r, randomVersions(r, r.IntN(600), makeKey), makeKey)
			}
		})
	}
}

func checkAgainstModel(t *testing.T, r *rand.Rand, versions model, makeKey func(r *rand.Rand) string) {
	t.Helper()
	m := newMemtable(t, 1<<20)
	fill(t, m, versions)
	if m.Len() != len(versions) {
		t.Fatalf("Len is %d, not %d", m.Len(), len(versions))
	}
	checkTree(t, m)
	all := m.NewAllIter()
	all.First()
	if got := rest(all); !slices.Equal(got, versions.sorted()) {
		t.Fatalf("all versions:\n%v\nwant\n%v", got, versions.sorted())
	}
	all.Last()
	if got := restBack(all); !slices.Equal(got, versions.sorted()) {
		t.Fatalf("all versions, back:\n%v\nwant\n%v", got, versions.sorted())
	}
	for range 10 {
		at := base.Seq(r.IntN(len(versions) + 2))
		want := versions.visible(at)
		it := m.NewIter(at)
		if it.Valid() {
			t.Fatal("a new iterator is valid")
		}
		it.First()
		if got := rest(it); !slices.Equal(got, want) {
			t.Fatalf("at %d:\n%v\nwant\n%v", at, got, want)
		}
		it.Last()
		if got := restBack(it); !slices.Equal(got, want) {
			t.Fatalf("back from the last at %d:\n%v\nwant\n%v", at, got, want)
		}
		for range 10 {
			key := makeKey(r)
			from, exact := slices.BinarySearchFunc(want, key, func(v version, k string) int { return strings.Compare(v.key, k) })
			it.SeekGE([]byte(key))
			if got := rest(it); !slices.Equal(got, want[from:]) {
				t.Fatalf("SeekGE(%q) at %d:\n%v\nwant\n%v", key, at, got, want[from:])
			}
			it.SeekLT([]byte(key))
			if got := restBack(it); !slices.Equal(got, want[:from]) {
				t.Fatalf("SeekLT(%q) at %d:\n%v\nwant\n%v", key, at, got, want[:from])
			}
			value, op, seq, ok := m.Get([]byte(key), at)
			if ok != exact || ok && (version{key, seq, op, string(value)}) != want[from] {
				t.Fatalf("Get(%q) at %d: %q, %d, %d, %t", key, at, value, op, seq, ok)
			}
		}
	}
	checkArrivals(t, r, m, versions)
}

func checkArrivals(t *testing.T, r *rand.Rand, m *Memtable, versions model) {
	t.Helper()
	for range 10 {
		from, to := r.IntN(len(versions)+1), r.IntN(len(versions)+10)
		i := from
		m.Arrivals(from, to, func(key []byte, seq base.Seq, op base.Op) {
			if v := versions[i]; string(key) != v.key || seq != v.seq || op != v.op {
				t.Fatalf("arrival %d is %q, %d, %d, not %v", i, key, seq, op, v)
			}
			i++
		})
		if want := max(from, min(to, len(versions))); i != want {
			t.Fatalf("Arrivals(%d, %d) of %d ended at %d", from, to, len(versions), i)
		}
	}
}

func TestMergeIter(t *testing.T) {
	for name, makeKey := range keyMakers {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(unlessShort(20, 5)) {
				r := rand.New(rand.NewPCG(seed, 2))
				versions := randomVersions(r, r.IntN(600), makeKey)
				for i := range versions {
					versions[i].seq = base.Seq(i + 1)
				}
				tables := 1 + r.IntN(10)
				at := base.Seq(r.IntN(len(versions) + 2))
				var iters []*Iter
				for i := tables - 1; i >= 0; i-- {
					m := newMemtable(t, 1<<20)
					fill(t, m, versions[len(versions)*i/tables:len(versions)*(i+1)/tables])
					iters = append(iters, m.NewIter(at))
				}
				it, want := NewMergeIter(iters...), versions.visible(at)
				it.First()
				if got := rest(it); !slices.Equal(got, want) {
					t.Fatalf("seed %d at %d:\n%v\nwant\n%v", seed, at, got, want)
				}
				key := makeKey(r)
				from, _ := slices.BinarySearchFunc(want, key, func(v version, k string) int { return strings.Compare(v.key, k) })
				it.SeekGE([]byte(key))
				if got := rest(it); !slices.Equal(got, want[from:]) {
					t.Fatalf("seed %d SeekGE(%q):\n%v\nwant\n%v", seed, key, got, want[from:])
				}
				it.Last()
				if got := restBack(it); !slices.Equal(got, want) {
					t.Fatalf("seed %d back from the last:\n%v\nwant\n%v", seed, got, want)
				}
				it.SeekLT([]byte(key))
				if got := restBack(it); !slices.Equal(got, want[:from]) {
					t.Fatalf("seed %d SeekLT(%q):\n%v\nwant\n%v", seed, key, got, want[:from])
				}
			}
		})
	}
}

func TestFull(t *testing.T) {
	m := newMemtable(t, 100<<10)
	r := rand.New(rand.NewPCG(1, 3))
	want := model{}
	total := 0
	for seq := base.Seq(1); ; seq++ {
		key, value := fmt.Sprintf("%x", r.Uint64()), strings.Repeat("v", r.IntN(300))
		fits, before := m.Fits(len(key), len(value)), m.Bytes()
		err := m.Add([]byte(key), seq, base.OpPut, []byte(value))
		if fits != (err == nil) {
			t.Fatalf("Fits said %t, Add %v", fits, err)
		}
		if err != nil {
			if !errors.Is(err, ErrFull) || m.Bytes() != before || m.Len() != len(want) {
				t.Fatalf("%v, %d bytes, %d entries", err, m.Bytes(), m.Len())
			}
			break
		}
		want = append(want, version{key, seq, base.OpPut, value})
		total += EntryBytes(len(key), len(value))
		if m.Bytes() != total || total > m.Capacity() {
			t.Fatalf("%d bytes of %d, not %d", m.Bytes(), m.Capacity(), total)
		}
	}
	it := m.NewIter(base.MaxSeq)
	it.First()
	if got := rest(it); !slices.Equal(got, want.sorted()) {
		t.Fatal("the full memtable does not hold what was added")
	}
	for m.Fits(0, 0) { // to the last byte
		if err := m.Add(nil, 1, base.OpPut, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExtremes(t *testing.T) {
	m := newMemtable(t, 64<<20)
	key, value := bytes.Repeat([]byte{0xff}, base.MaxKeyBytes), bytes.Repeat([]byte{1}, 32<<20)
	versions := model{
		{"", 7, base.OpPut, "empty key"},
		{"empty value", 8, base.OpPut, ""},
		{"gone", base.MaxSeq, base.OpDelete, ""},
		{string(key), 9, base.OpPut, string(value)},
	}
	fill(t, m, versions)
	it := m.NewAllIter()
	it.First()
	if !slices.Equal(rest(it), versions.sorted()) {
		t.Fatal("extreme keys and values are not what was added")
	}
	if v, _, _, ok := m.Get([]byte("empty value"), 8); !ok || v == nil {
		t.Fatal("an empty value is not nil")
	}
	if v, _, _, ok := m.Get([]byte("gone"), base.MaxSeq); !ok || v != nil {
		t.Fatal("a tombstone has a value")
	}
	if err := m.Add([]byte("k"), base.MaxSeq+1, base.OpPut, nil); base.CodeOf(err) != base.CodeInvalidArgument || errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	for _, capacity := range []int{-1, maxCapacity + 1} {
		if _, err := New(capacity); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Fatal(err)
		}
	}
	empty := newMemtable(t, 0)
	if err := empty.Add(nil, 1, base.OpPut, nil); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}
