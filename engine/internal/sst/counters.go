package sst

import "sync/atomic"

// Counters count the work of readers. Several readers may share them: see [Reader.CountTo].
type Counters struct {
	Pages     atomic.Int64 // data pages read and decoded for point reads
	Bytes     atomic.Int64 // read from files, scans included
	Probes    atomic.Int64 // questions to the bloom filters of a row group
	Negatives atomic.Int64 // probes that spared a page
	// FalsePositives are probes that let a key pass that the file does not have.
	FalsePositives atomic.Int64
}

// CountTo makes the reader count in c from now on, what it has counted so far included. It must be called before the
// reader is shared.
func (r *Reader) CountTo(c *Counters) {
	own := r.stats
	c.Pages.Add(own.Pages.Load())
	c.Bytes.Add(own.Bytes.Load())
	c.Probes.Add(own.Probes.Load())
	c.Negatives.Add(own.Negatives.Load())
	c.FalsePositives.Add(own.FalsePositives.Load())
	r.stats = c
}
