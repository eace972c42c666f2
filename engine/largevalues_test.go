package engine

import (
	"bytes"
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// TestLargeValues: values of many megabytes, which compress so well that more of them than a 32-bit offset can tell
// belong into one file, go through a bulk load and a compaction in bounded memory. What is too large is refused by the
// write that brings it.
func TestLargeValues(t *testing.T) {
	if testing.Short() {
		t.Skip("writes gigabytes")
	}
	const rows, size = 36, 64 << 20 // more than 2^31 bytes
	db, err := Open(t.TempDir(), Options{Durability: OS, NoAutoCompaction: true})
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(&Schema{
		TableName:  "t",
		Columns:    []Column{{Name: "id", Type: Type{Kind: KindBigInt}}, {Name: "s", Type: Type{Kind: KindVarchar}}},
		PrimaryKey: []int{0},
	}))
	defer boundHeap(t, 3<<29)()
	buf := append(bytes.Repeat([]byte{'x'}, size), "00"...)
	value := func(id int64) []byte { return strconv.AppendInt(buf[:size], 10+id, 10) }
	w, err := db.NewWrite()
	must(t, err)
	for id := range int64(rows) {
		must(t, w.Put([]Value{Int(id), Bytes(value(id))}))
	}
	_, err = w.Commit()
	must(t, err)
	_, err = db.Put([]Value{Int(0), Bytes(make([]byte, base.MaxValueBytes+1))})
	wantCode(t, err, CodeInvalidArgument)
	_, err = db.Put([]Value{Int(rows), Bytes(value(rows))})
	must(t, err)
	_, err = db.Delete([]Value{Int(0)})
	must(t, err)
	must(t, db.Compact())
	s, err := db.Snapshot()
	must(t, err)
	defer s.Close()
	if deleted := s.Files()[0].Deleted; deleted > 0 {
		t.Fatalf("%d deleted rows are left", deleted)
	}
	it, err := s.Scan(ScanOptions{})
	must(t, err)
	defer it.Close()
	id := int64(1)
	for {
		c, err := it.Next()
		must(t, err)
		if c == nil {
			break
		}
		for i := range c.N {
			if got := c.Cols[1].Value(i).Bytes; c.Cols[0].Value(i).Int64() != id || !bytes.Equal(got, value(id)) {
				t.Fatalf("row %d: key %d with %d bytes", id, c.Cols[0].Value(i).Int64(), len(got))
			}
			id++
		}
	}
	if id != rows+1 {
		t.Fatalf("the rows end at key %d, not %d", id-1, rows)
	}
}

// boundHeap watches what the Go heap holds until the function that it returns is called, which fails the test if that
// was more than limit at the end of any collection.
func boundHeap(t *testing.T, limit uint64) func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	most := uint64(0)
	go func() {
		defer wg.Done()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(done)
		wg.Wait()
		t.Logf("the heap held %d MiB at most", most>>20)
		if most > limit {
			t.Errorf("the heap held %d MiB, more than %d", most>>20, limit>>20)
		}
	}
}
