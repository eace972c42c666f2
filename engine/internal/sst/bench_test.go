package sst

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The benchmarks' table is that of DESIGN.md: a BIGINT key, a name of 16 bytes, a DOUBLE and a payload of 100 bytes.
func benchSchema() *base.Schema {
	s := &base.Schema{TableName: "t", PrimaryKey: []int{0}, Columns: []base.Column{
		{Name: "id", Type: base.Type{Kind: base.KindBigInt}},
		{Name: "name", Type: base.Type{Kind: base.KindVarchar}, Nullable: true},
		{Name: "score", Type: base.Type{Kind: base.KindDouble}, Nullable: true},
		{Name: "payload", Type: base.Type{Kind: base.KindBlob}, Nullable: true},
	}}
	s.AssignFieldIDs()
	return s
}

// benchSource makes n rows with the keys 0, step, 2*step, …
type benchSource struct {
	n, at, step int
	rng         *rand.Rand
	layout      *row.Layout
	key, value  []byte
	payload     [100]byte
	seq         func(i int) base.Seq
}

func newBenchSource(n, step int) *benchSource {
	return &benchSource{
		n: n, at: -1, step: step, rng: rand.New(rand.NewSource(1)), layout: row.NewLayout(benchSchema()),
		seq: func(i int) base.Seq { return base.Seq(i*7919%n) + 1 },
	}
}

func (s *benchSource) Next() bool {
	if s.at++; s.at >= s.n {
		return false
	}
	id := int64(s.at * s.step)
	s.key = binary.BigEndian.AppendUint64(s.key[:0], uint64(id)^1<<63)
	for i := range s.payload {
		s.payload[i] = "0123456789abcdef"[s.rng.Int63()&15]
	}
	s.value, _ = s.layout.Append(s.value[:0], []base.Value{
		base.Int(id), base.String(fmt.Sprintf("name-%011d", s.rng.Intn(1e9))), base.Double(s.rng.Float64() * 1000), base.Bytes(s.payload[:]),
	})
	return true
}

func (s *benchSource) Key() []byte   { return s.key }
func (s *benchSource) Seq() base.Seq { return s.seq(s.at) }
func (s *benchSource) Op() base.Op   { return base.OpPut }
func (s *benchSource) Value() []byte { return s.value }
func (s *benchSource) Err() error    { return nil }

// replay yields rows made before, so that a benchmark measures the writer alone.
type replay struct {
	keys, values [][]byte
	at           int
}

func newReplay(n, step int) *replay {
	src := newBenchSource(n, step)
	r := &replay{at: -1}
	for src.Next() {
		r.keys = append(r.keys, append([]byte(nil), src.key...))
		r.values = append(r.values, append([]byte(nil), src.value...))
	}
	return r
}

func (s *replay) Next() bool    { s.at++; return s.at < len(s.keys) }
func (s *replay) Key() []byte   { return s.keys[s.at] }
func (s *replay) Seq() base.Seq { return base.Seq(s.at) + 1 }
func (s *replay) Op() base.Op   { return base.OpPut }
func (s *replay) Value() []byte { return s.values[s.at] }
func (s *replay) Err() error    { return nil }

// cpuTime is what the process has used of all processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkWrite(b *testing.B) {
	const n = 1_000_000
	src := newReplay(n, 3)
	r, _ := openBench(b, n, 0)
	rows := readRows(b, r)
	for level := range 2 {
		path := b.TempDir() + "/f.parquet"
		measure := func(name string, write func(o WriterOptions) (FileInfo, error)) {
			b.Run(fmt.Sprintf("L%d/%s", level, name), func(b *testing.B) {
				cpu := cpuTime(b)
				for range b.N {
					info, err := write(WriterOptions{Schema: benchSchema(), Level: level})
					must(b, err)
					b.ReportMetric(float64(info.Size)/n, "B/row")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
				b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N)/n, "cpu-ns/row")
			})
		}
		measure("records", func(o WriterOptions) (FileInfo, error) {
			src.at = -1
			return Write(vfs.OS, path, o, src)
		})
		measure("columns", func(o WriterOptions) (FileInfo, error) {
			w, err := NewWriter(vfs.OS, path, o)
			must(b, err)
			for at := 0; at < n; at += 8192 {
				must(b, w.Append(rows, at, min(at+8192, n)))
			}
			return w.Finish()
		})
	}
}

// benchReader opens a file of a million rows. MERUTABLE_BENCH_DIR names a directory that keeps it, for other readers
// to look at and for the next run to find.
func benchReader(b *testing.B, level int, cache *Cache) *Reader {
	dir := os.Getenv("MERUTABLE_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	s := benchSchema()
	path := fmt.Sprintf("%s/bench-L%d.parquet", dir, level)
	size := int64(0)
	if info, err := vfs.OS.Stat(path); err == nil {
		size = info.Size
	} else {
		info, err := Write(vfs.OS, path, WriterOptions{Schema: s, Level: level}, newBenchSource(1_000_000, 3))
		must(b, err)
		size = info.Size
	}
	r, err := Open(vfs.OS, path, size, s, cache)
	must(b, err)
	b.Cleanup(func() { r.Close() })
	return r
}

// openBench writes and opens a file of the benchmarks' table in memory.
func openBench(t testing.TB, n, level int) (*Reader, FileInfo) {
	fs := vfs.NewMem()
	info, err := Write(fs, "f.parquet", WriterOptions{Schema: benchSchema(), Level: level}, newBenchSource(n, 3))
	must(t, err)
	r, err := Open(fs, "f.parquet", info.Size, benchSchema(), nil)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, info
}

func benchKey(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)^1<<63) }

func BenchmarkGet(b *testing.B) {
	for level := 0; level < 2; level++ {
		for _, bytes := range []int64{0, 64 << 20, 1 << 30} {
			r := benchReader(b, level, NewCache(bytes))
			for _, hit := range []bool{true, false} {
				b.Run(fmt.Sprintf("L%d/cache=%dM/hit=%v", level, bytes>>20, hit), func(b *testing.B) {
					rng := rand.New(rand.NewSource(2))
					for i := 0; i < b.N; i++ {
						k := rng.Intn(1_000_000) * 3
						if !hit {
							k++
						}
						pos, found, err := r.Find(benchKey(k))
						if err != nil || found != hit {
							b.Fatal(found, err)
						}
						if found {
							if _, err := r.ReadRow(pos, nil); err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}

func BenchmarkFindMany(b *testing.B) {
	for _, cache := range []int64{0, 256 << 20} {
		r := benchReader(b, 1, NewCache(cache))
		for _, n := range []int{1000, 10_000, 300_000} {
			for _, off := range []int{0, 1} {
				b.Run(fmt.Sprintf("cache=%dM/keys=%d/absent=%d", cache>>20, n, off), func(b *testing.B) {
					pages, cpu := r.Stats().PagesRead, cpuTime(b)
					for range b.N {
						at, hits := 0, 0
						err := r.FindMany(func() ([]byte, bool) {
							if at == n {
								return nil, false
							}
							at++
							return benchKey((at-1)*(1_000_000/n)*3 + off), true
						}, func(int, int64) error { hits++; return nil })
						if err != nil || (hits == n) != (off == 0) {
							b.Fatal(hits, err)
						}
					}
					b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/key")
					b.ReportMetric(float64(r.Stats().PagesRead-pages)/float64(b.N), "pages")
				})
			}
		}
	}
}

func BenchmarkIter(b *testing.B) {
	for level := range 2 {
		r := benchReader(b, level, nil)
		for name, o := range map[string]IterOptions{
			"key":     {Projection: []int{0}},
			"numbers": {Projection: []int{0, 2}},
			"all":     {Hidden: true},
			"ahead":   {Hidden: true, ReadAhead: true},
			"reverse": {Hidden: true, Reverse: true},
		} {
			b.Run(fmt.Sprintf("L%d/%s", level, name), func(b *testing.B) {
				cpu := cpuTime(b)
				for range b.N {
					it := r.NewIter(o)
					rows := 0
					for {
						c, _, err := it.Next()
						must(b, err)
						if c == nil {
							break
						}
						rows += c.N
					}
					it.Close()
					if rows != 1_000_000 {
						b.Fatal(rows)
					}
				}
				b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds()/1e6, "Mrows/s")
				b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N)/1e6, "cpu-ns/row")
			})
		}
	}
}
