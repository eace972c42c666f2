package engine

import (
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/objstore"
)

// distant is a store whose every request takes 30 ms longer, as a bucket in the same region may.
func distant(inner objstore.Store) *requestLog {
	log := newRequestLog(inner)
	log.setDelay(30 * time.Millisecond)
	return log
}

func BenchmarkRemoteScan(b *testing.B) {
	store, size, _ := largeMirror(b, 1_000_000, Options{})
	b.SetBytes(size)
	for b.Loop() {
		log := distant(store)
		db := openRemote(b, log, Options{})
		s, err := db.Snapshot()
		must(b, err)
		log.take()
		it, err := s.Scan(ScanOptions{})
		must(b, err)
		for c, err := it.Next(); c != nil; c, err = it.Next() {
			must(b, err)
		}
		it.Close()
		s.Close()
		b.ReportMetric(float64(len(log.take())), "requests/op")
		db.Free()
	}
}

func BenchmarkRemoteColdGet(b *testing.B) {
	store, _, _ := largeMirror(b, 1_000_000, Options{})
	for b.Loop() {
		log := distant(store)
		db := openRemote(b, log, Options{})
		_, found, err := db.Get([]Value{Int(654_321), String("g")})
		must(b, err)
		if !found {
			b.Fatal("not found")
		}
		b.ReportMetric(float64(len(log.take())), "requests/op")
		db.Free()
	}
}

func BenchmarkRemoteGets(b *testing.B) {
	store, _, _ := largeMirror(b, 1_000_000, Options{})
	log := distant(store)
	db := openRemote(b, log, Options{})
	log.take()
	id := int64(0)
	for b.Loop() {
		id = (id + 7_919_993) % 1_000_000
		_, found, err := db.Get([]Value{Int(id), String("g")})
		must(b, err)
		if !found {
			b.Fatal("not found")
		}
	}
	b.ReportMetric(float64(len(log.take()))/float64(b.N), "requests/op")
}
