package memtable

import (
	"math/rand/v2"
	"testing"

	"github.com/merutable/merutable/engine/internal/base"
)

// fuzzVersions turns bytes into writes: each takes a length byte, a byte of choices, and as many bytes of key; the first
// bytes of the key before may be kept.
func fuzzVersions(data []byte) model {
	var out model
	var key []byte
	for len(data) >= 2 && len(out) < 2000 {
		n, choice := int(data[0])%12, data[1]
		data = data[2:]
		n = min(n, len(data))
		key = append(key[:min(len(key), int(choice>>3))], data[:n]...)
		data = data[n:]
		v := version{key: string(key), seq: base.Seq(len(out) + 1), op: base.OpPut, value: string(key[len(key)/2:])}
		if choice&3 == 0 {
			v.op, v.value = base.OpDelete, ""
		}
		out = append(out, v)
	}
	return out
}

func FuzzMemtable(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 11))
	for range 10 {
		data := make([]byte, r.IntN(4000))
		for i := range data {
			data[i] = byte(r.IntN(256) >> r.IntN(8))
		}
		f.Add(data, uint64(len(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		versions := fuzzVersions(data)
		r := rand.New(rand.NewPCG(seed, 12))
		if seed%2 == 1 {
			r.Shuffle(len(versions), func(i, j int) { versions[i].seq, versions[j].seq = versions[j].seq, versions[i].seq })
		}
		checkAgainstModel(t, r, versions, func(r *rand.Rand) string {
			if len(versions) == 0 {
				return "k"
			}
			k := versions[r.IntN(len(versions))].key
			return k[:r.IntN(len(k)+1)]
		})
		for i := range versions {
			versions[i].seq = 0
		}
		checkBuffer(t, newRowBuffer(t, 1<<20), versions)
	})
}
