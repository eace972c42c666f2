package objfs

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/merutable/merutable/engine/internal/base"
)

// fetch reads the blocks that are a claim's own: from disk, then from the store, adjacent ones in one request. It lands
// every one of them.
func (b *blocks) fetch(name string, first blockID, c *claim) {
	defer b.landRest(name, first, c, c.mine)
	var runs [][]int
	for _, i := range c.mine {
		id := first
		id.index += int64(i)
		if data := b.disk.get(b.identity, id); data != nil {
			b.stats.diskHits.Add(1)
			c.data[i] = data
			b.land(id, c.flights[i], data, nil)
			continue
		}
		if n := len(runs); n > 0 && len(runs[n-1]) < b.run && runs[n-1][len(runs[n-1])-1] == i-1 {
			runs[n-1] = append(runs[n-1], i)
		} else {
			runs = append(runs, []int{i})
		}
	}
	if len(runs) == 0 {
		return
	}
	var others sync.WaitGroup
	for _, run := range runs[1:] {
		others.Go(func() { b.fetchRun(name, first, c, run) })
	}
	b.fetchRun(name, first, c, runs[0])
	others.Wait()
}

// fetchRun reads adjacent blocks in one request and lands them.
func (b *blocks) fetchRun(name string, first blockID, c *claim, run []int) {
	defer b.landRest(name, first, c, run)
	from := first
	from.index += int64(run[0])
	data, err := b.request(name, from, len(run))
	for k, i := range run {
		id := first
		id.index += int64(i)
		var block []byte
		if err == nil {
			lo := min(k*blockBytes, len(data))
			// A copy: blocks leave the cache one by one.
			block = bytes.Clone(data[lo:min(lo+blockBytes, len(data))])
			if block == nil {
				block = []byte{}
			}
			c.data[i] = block
		}
		b.land(id, c.flights[i], block, err)
		if err == nil {
			b.disk.put(b.identity, id, block)
		}
	}
}

// landRest, deferred, ends a panic: blocks that did not land because of it land with an error. Readers wait for them, and
// the goroutine may be nobody's.
func (b *blocks) landRest(name string, first blockID, c *claim, places []int) {
	r := recover()
	if r == nil {
		return
	}
	err := named(base.PanicError(r), name)
	for _, i := range places {
		select {
		case <-c.flights[i].done:
		default:
			id := first
			id.index += int64(i)
			b.land(id, c.flights[i], nil, err)
		}
	}
}

// request reads n blocks of the store. Fewer bytes come where the object ends, which is an error where its size is known.
func (b *blocks) request(name string, from blockID, n int) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // it must land, whatever happens
			err = named(base.PanicError(r), name)
		}
	}()
	b.requests <- struct{}{}
	defer func() { <-b.requests }()
	at := from.index * blockBytes
	want := int64(n) * blockBytes
	if from.size != unknownSize {
		want = min(want, from.size-at)
	}
	data = make([]byte, want)
	got, err := b.store.ReadAt(context.Background(), from.key, data, at)
	b.stats.requests.Add(1)
	b.stats.bytes.Add(int64(got))
	switch {
	case int64(got) == want && (err == nil || err == io.EOF):
		return data, nil
	case err == io.EOF && from.size == unknownSize:
		return data[:got], nil
	case err == io.EOF:
		return nil, base.Errorf(base.CodeCorruption, "%s: the object has %d bytes, %d were written", name, at+int64(got), from.size)
	case err == nil:
		return nil, base.Errorf(base.CodeObjectStore, "%s: %d of %d bytes came", name, got, want)
	case base.CodeOf(err) == base.CodeNotFound:
		return nil, base.Wrapf(base.CodeNotFound, &Gone{cause: err}, "%s", name)
	}
	return nil, named(err, name)
}

// Gone is in the chain of the error about a data file or deletion vector that is not there.
type Gone struct{ cause error }

// Error implements error.
func (g *Gone) Error() string { return goneText + ": " + g.cause.Error() }

// Unwrap returns what the store said.
func (g *Gone) Unwrap() error { return g.cause }

// goneText says why an object that a manifest names may be missing.
const goneText = "the object is gone: it was superseded and reclaimed, once mirror_retain_secs (gc_grace_secs of a database that is " +
	"written here) were over, and a new snapshot reads without it; or it is lost"
