package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/row"
)

// loadSchema is the table of the design's targets.
func loadSchema() *Schema {
	return &Schema{
		TableName: "t",
		Columns: []Column{
			{Name: "id", Type: Type{Kind: KindBigInt}},
			{Name: "name", Type: Type{Kind: KindVarchar}, Nullable: true},
			{Name: "x", Type: Type{Kind: KindDouble}, Nullable: true},
			{Name: "payload", Type: Type{Kind: KindVarchar}, Nullable: true},
		},
		PrimaryKey: []int{0},
	}
}

// loadBatches makes n rows of loadSchema, in batches as the DuckDB extension sends them.
func loadBatches(n int, random bool) []*Columns {
	const batch = 16384
	r := rand.New(rand.NewPCG(1, 9))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	if random {
		r.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	text := func(n int) []byte {
		out := make([]byte, 0, n+16)
		for len(out) < n {
			out = fmt.Appendf(out, "%016x", r.Uint64())
		}
		return out[:n]
	}
	var out []*Columns
	for from := 0; from < n; from += batch {
		c := row.NewColumns(loadSchema(), nil)
		for _, id := range ids[from:min(from+batch, n)] {
			c.Cols[0].Fixed = binary.LittleEndian.AppendUint64(c.Cols[0].Fixed, uint64(id))
			c.Cols[2].Fixed = binary.LittleEndian.AppendUint64(c.Cols[2].Fixed, Double(float64(id%1000)/8).Lo)
			for col, size := range map[int]int{1: 16, 3: 100} {
				c.Cols[col].Data = append(c.Cols[col].Data, text(size)...)
				c.Cols[col].Offsets = append(c.Cols[col].Offsets, int64(len(c.Cols[col].Data)))
			}
			c.N++
		}
		out = append(out, c)
	}
	return out
}

// BenchmarkLoad loads a million rows. CPU is of all threads.
func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	for _, order := range []string{"ascending", "random"} {
		batches := loadBatches(n, order == "random")
		b.Run(order, func(b *testing.B) {
			cpu := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				db, err := Open(b.TempDir()+"/db", Options{NoAutoCompaction: true})
				must(b, err)
				must(b, db.CreateTable(loadSchema()))
				b.StartTimer()
				before := processorTime(b)
				w, err := db.NewWrite()
				must(b, err)
				for _, c := range batches {
					must(b, w.PutColumns(c))
				}
				_, err = w.Commit()
				must(b, err)
				cpu += processorTime(b) - before
				b.StopTimer()
				w.Close()
				b.ReportMetric(float64(db.Stats().DataBytes)/n, "B/row")
				must(b, db.Close())
				db.Free()
				b.StartTimer()
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
