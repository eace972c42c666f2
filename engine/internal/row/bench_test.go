package row

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
)

const benchRows = 1_000_000

// benchSchema is the table of the performance targets: a key, a short name, a number and a payload.
func benchSchema() *base.Schema {
	s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{
		{Name: "id", Type: kind(base.KindBigInt)},
		{Name: "name", Type: kind(base.KindVarchar), Nullable: true},
		{Name: "v", Type: kind(base.KindDouble), Nullable: true},
		{Name: "payload", Type: kind(base.KindVarchar), Nullable: true},
	}}
	s.AssignFieldIDs()
	return s
}

func benchColumns() *Columns {
	c := NewColumns(benchSchema(), nil)
	rng := rand.New(rand.NewSource(1))
	payload := make([]byte, 100)
	c.N = benchRows
	for i := 0; i < benchRows; i++ {
		for k := range payload {
			payload[k] = 'a' + byte(rng.Intn(26))
		}
		c.Cols[0].Fixed = append(c.Cols[0].Fixed, le64(int64(i))...)
		c.Cols[2].Fixed = append(c.Cols[2].Fixed, le64(rng.Int63())...)
		c.Cols[1].Data = fmt.Appendf(c.Cols[1].Data, "name-%011d", i)
		c.Cols[1].Offsets = append(c.Cols[1].Offsets, int64(len(c.Cols[1].Data)))
		c.Cols[3].Data = append(c.Cols[3].Data, payload...)
		c.Cols[3].Offsets = append(c.Cols[3].Offsets, int64(len(c.Cols[3].Data)))
	}
	return c
}

func perRowMetric(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkArrowIn(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	rec, err := c.ToArrow(s, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if _, err := FromArrow(s, rec); err != nil {
			b.Fatal(err)
		}
	}
	perRowMetric(b)
}

func BenchmarkEncode(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	l := NewLayout(s)
	rec, err := c.ToArrow(s, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	key, value := make([]byte, 0, 100), make([]byte, 0, 1000)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		in, err := FromArrow(s, rec)
		if err != nil {
			b.Fatal(err)
		}
		for r := 0; r < in.N; r++ {
			key = in.AppendKey(key[:0], s.PrimaryKey, r)
			value = in.AppendRecord(value[:0], l, r)
		}
	}
	perRowMetric(b)
}

func BenchmarkTranspose(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	l := NewLayout(s)
	recs := make([][]byte, c.N)
	var arena []byte
	for i := range recs {
		if cap(arena)-len(arena) < 1000 {
			arena = make([]byte, 0, 1<<20)
		}
		at := len(arena)
		arena = c.AppendRecord(arena, l, i)
		recs[i] = arena[at:len(arena):len(arena)]
	}
	random := append([][]byte(nil), recs...)
	rand.New(rand.NewSource(2)).Shuffle(len(random), func(i, j int) { random[i], random[j] = random[j], random[i] })
	const batch = 8192
	seqs, ops := make([]base.Seq, batch), make([]base.Op, batch)
	for _, c := range []struct {
		name string
		recs [][]byte
		many bool
	}{{"one by one", recs, false}, {"many", recs, true}, {"many, random order", random, true}, {"one by one, random order", random, false}} {
		b.Run(c.name, func(b *testing.B) {
			builder := NewBuilder(s, nil)
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				for from := 0; from < len(recs); from += batch {
					part := c.recs[from:min(from+batch, len(recs))]
					builder.Reset()
					if c.many {
						builder.AppendRecords(part, seqs[:len(part)], ops[:len(part)])
						continue
					}
					for _, r := range part {
						builder.AppendRecord(r, 0, base.OpPut)
					}
				}
			}
			perRowMetric(b)
		})
	}
}

func BenchmarkArrowOut(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	for name, mem := range map[string]memory.Allocator{"shared": nil, "copied": memory.NewGoAllocator()} {
		b.Run(name, func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				rec, err := c.ToArrow(s, nil, mem)
				if err != nil {
					b.Fatal(err)
				}
				rec.Release()
			}
			perRowMetric(b)
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	l := NewLayout(s)
	rec := c.AppendRecord(nil, l, 5)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := l.Check(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, c := benchSchema(), benchColumns()
	l := NewLayout(s)
	vals := make([]base.Value, len(c.Cols))
	for i := range vals {
		vals[i] = c.Cols[i].Value(5)
	}
	buf := make([]byte, 0, 1000)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		buf, _ = l.Append(buf[:0], vals)
	}
}
