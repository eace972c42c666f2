package engine

import (
	"errors"

	"github.com/merutable/merutable/engine/internal/memtable"
	"github.com/merutable/merutable/engine/internal/spill"
)

// loadRuns gathers the rows of a bulk load whose keys do not ascend. Rows go to one buffer; each full buffer is a run,
// which is sorted in the background while the next one is filled. A load that fits into loadBuffers of them stays in
// memory. Of a larger one, runs are written to temporary files, so that the buffers are free again.
//
// Runs stand in the order in which their rows came: of equal keys the row of the last run counts. So many runs of one
// generation in a row are merged into one of the next: neither open files nor what a merge reads at a time grows with
// the load.
type loadRuns struct {
	l    *load
	fill *memtable.RowBuffer // takes rows; nil: none yet
	made int                 // buffers
	free chan *memtable.RowBuffer

	// job is the result of the background work under way, nil if there is none. That work owns what follows.
	job      chan error
	runs     []*loadRun
	spilling bool
}

// loadRun is one sorted run, in memory or in a file.
type loadRun struct {
	buffer     *memtable.RowBuffer
	file       *spill.Run
	generation int
}

const (
	// loadBuffers is how many row buffers a load has: one takes rows, one is sorted and spilled, and one is ready.
	loadBuffers = 3
	// mergeRuns is how many runs of one generation make one of the next.
	mergeRuns = 32
	// maxLoadBuffer is the largest size of a row buffer, in bytes.
	maxLoadBuffer = 64 << 20
)

func newLoadRuns(l *load) *loadRuns {
	return &loadRuns{l: l, free: make(chan *memtable.RowBuffer, loadBuffers)}
}

// loadBufferSize is the size of a row buffer: that of a memtable, for which the memory budget has room.
func (o *Options) loadBufferSize() int {
	if o.loadBufferBytes > 0 {
		return o.loadBufferBytes
	}
	return min(o.MemtableBytes, maxLoadBuffer)
}

// add takes the rows of a block.
func (r *loadRuns) add(b *Block) error {
	if err := b.toRows(); err != nil {
		return err
	}
	for {
		if err := r.needBuffer(); err != nil {
			return err
		}
		err := r.fill.AddAll(b.rows)
		if !errors.Is(err, memtable.ErrFull) {
			return err
		}
		if err := r.retire(); err != nil {
			return err
		}
	}
}

// needBuffer makes sure that there is a buffer to fill.
func (r *loadRuns) needBuffer() (err error) {
	switch {
	case r.fill != nil:
		return nil
	case r.made < loadBuffers:
		size := r.l.c.opts.loadBufferSize()
		if r.fill, err = memtable.NewRowBuffer(size); err == nil {
			r.made++
			// Large mappings, which get huge pages: sorting visits the rows at random.
			err = r.fill.Reserve(1, size)
		}
		return err
	case r.job == nil:
		r.fill = <-r.free
		return nil
	}
	select {
	case r.fill = <-r.free:
	case err = <-r.job:
		r.job = nil
		if err == nil {
			r.fill = <-r.free // it freed one, or there would be memory for more
		}
	}
	return err
}

// retire makes a run of what was filled, and sorts it in the background.
func (r *loadRuns) retire() error {
	if err := r.wait(); err != nil {
		return err
	}
	run := &loadRun{buffer: r.fill}
	r.runs = append(r.runs, run)
	r.fill = nil
	inMemory := 0
	for _, x := range r.runs {
		if x.buffer != nil {
			inMemory++
		}
	}
	r.spilling = r.spilling || inMemory == loadBuffers
	r.job = make(chan error, 1)
	go func() {
		run.buffer.Sort()
		if r.spilling {
			r.job <- r.spill()
		} else {
			r.job <- nil
		}
	}()
	return nil
}

// wait waits for the background work and returns how it ended.
func (r *loadRuns) wait() error {
	if r.job == nil {
		return nil
	}
	err := <-r.job
	r.job = nil
	return err
}

// spill writes the runs in memory to files.
func (r *loadRuns) spill() error {
	for _, run := range r.runs {
		if run.buffer == nil {
			continue
		}
		file, err := r.write(run.buffer.NewIter())
		if err != nil {
			return err
		}
		run.file = file
		run.buffer.Reset()
		r.free <- run.buffer
		run.buffer = nil
	}
	for r.mergeGeneration() {
		if err := r.mergeLast(); err != nil {
			return err
		}
	}
	return nil
}

// mergeGeneration reports whether the last runs are enough of one generation to be merged.
func (r *loadRuns) mergeGeneration() bool {
	n := len(r.runs)
	return n >= mergeRuns && r.runs[n-mergeRuns].generation == r.runs[n-1].generation
}

// mergeLast makes one run of the last ones.
func (r *loadRuns) mergeLast() error {
	first := len(r.runs) - mergeRuns
	old := r.runs[first:]
	sources := make([]spill.Source, 0, len(old))
	for _, run := range old {
		sources = append(sources, run.file.NewIter())
	}
	file, err := r.write(spill.NewMerge(sources...))
	if err != nil {
		return err
	}
	generation := old[0].generation + 1
	for _, run := range old {
		if err := run.file.Remove(); err != nil {
			_ = file.Remove() // the first error counts; close removes the directory
			return err
		}
	}
	r.runs = append(r.runs[:first], &loadRun{file: file, generation: generation})
	return nil
}

// write writes sorted rows to a temporary file.
func (r *loadRuns) write(src spill.Source) (*spill.Run, error) {
	path, err := r.l.dir.file()
	if err != nil {
		return nil, err
	}
	w, err := spill.Create(r.l.c.temporaryFS(), path)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	n := 0
	for src.First(); src.Valid(); src.Next() {
		if n++; n%outputRows == 0 && r.l.stopped.Load() {
			return nil, errStopped
		}
		if err := w.Add(src.Key(), src.Op(), src.Value()); err != nil {
			return nil, err
		}
	}
	if err := src.Err(); err != nil {
		return nil, err
	}
	run, err := w.Finish()
	if err == nil {
		r.l.c.stats.loadSpilled.Add(run.Bytes())
	}
	return run, err
}

// finish sorts what is left. No rows may be added any more.
func (r *loadRuns) finish() error {
	if err := r.wait(); err != nil {
		return err
	}
	if r.fill == nil {
		return nil
	}
	if r.fill.Len() == 0 {
		r.free <- r.fill
		r.fill = nil
		return nil
	}
	r.fill.Sort()
	r.runs = append(r.runs, &loadRun{buffer: r.fill})
	r.fill = nil
	return nil
}

// source returns a walk over all rows. Each call makes another one, for another goroutine.
func (r *loadRuns) source() spill.Source {
	sources := make([]spill.Source, 0, len(r.runs))
	for _, run := range r.runs {
		if run.buffer != nil {
			sources = append(sources, run.buffer.NewIter())
		} else {
			sources = append(sources, run.file.NewIter())
		}
	}
	if len(sources) == 1 {
		return sources[0]
	}
	return spill.NewMerge(sources...)
}

// samples calls fn with keys from all runs, and how many rows each stands for.
func (r *loadRuns) samples(fn func(key []byte, rows int64)) {
	const perRun = 256
	for _, run := range r.runs {
		if run.buffer != nil {
			weight := max(1, int64(run.buffer.Len()/perRun))
			run.buffer.Sample(perRun, func(key []byte) { fn(key, weight) })
			continue
		}
		step := max(1, run.file.Blocks()/perRun)
		for i := 0; i < run.file.Blocks(); i += step {
			fn(run.file.FirstKey(i), run.file.Rows()*int64(step)/int64(run.file.Blocks()))
		}
	}
}

// rows returns how many rows there are, before those of equal keys are dropped.
func (r *loadRuns) rows() (n int64) {
	for _, run := range r.runs {
		if run.buffer != nil {
			n += int64(run.buffer.Len())
		} else {
			n += run.file.Rows()
		}
	}
	return n
}

// close ends the background work and frees everything but the files, which go with their directory.
func (r *loadRuns) close() {
	_ = r.wait() // an error that counts was returned before
	if r.fill != nil {
		r.fill.Close()
	}
	for _, run := range r.runs {
		if run.buffer != nil {
			run.buffer.Close()
		} else {
			_ = run.file.Remove() // its directory goes too
		}
	}
	for len(r.free) > 0 {
		(<-r.free).Close()
	}
	r.fill, r.runs = nil, nil
}
