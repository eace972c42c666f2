package engine

import (
	"bytes"
	"runtime"
	"slices"

	"github.com/merutable/merutable/engine/internal/spill"
)

// loadStream writes blocks whose keys ascend to files, beside whoever makes the blocks.
type loadStream struct {
	out   *loadOutput
	in    chan *Block
	done  chan error // how it ended
	ended bool
	err   error
}

// streamAhead is how many blocks wait for the files.
const streamAhead = 2

func newLoadStream(l *load) *loadStream {
	s := &loadStream{out: l.newOutput(), in: make(chan *Block, streamAhead), done: make(chan error, 1)}
	go func() { s.done <- s.run() }()
	return s
}

func (s *loadStream) run() error {
	defer s.out.abort()
	for b := range s.in {
		err := s.out.addBlock(b)
		b.Free()
		if err != nil {
			return err
		}
	}
	return s.out.finish()
}

// add takes a block. An error may be about one of those before.
func (s *loadStream) add(b *Block) error {
	moved := *b
	*b = Block{}
	select {
	case s.in <- &moved:
		return nil
	case s.err = <-s.done:
		s.ended = true
		moved.Free()
		return s.err
	}
}

// finish waits until all is in files, which are then to be found in out, and those that were finished before an error
// too. A second call returns the same.
func (s *loadStream) finish() error {
	if s.in == nil {
		return s.err
	}
	close(s.in)
	if !s.ended {
		s.err = <-s.done
	}
	for b := range s.in { // after an error
		b.Free()
	}
	s.ended, s.in = true, nil
	return s.err
}

const (
	// mergeParts is how many goroutines merge at most.
	mergeParts = 4
	// minPartRows is how many rows are worth a goroutine, and files, of their own.
	minPartRows = 128 << 10
)

// merge writes the runs to files, as many ranges of keys at a time as there are processors.
func (l *load) merge() error {
	rows := l.runs.rows()
	if rows == 0 {
		return nil
	}
	parts := max(1, min(int64(runtime.GOMAXPROCS(0)), mergeParts, rows/minPartRows))
	bounds := l.runs.split(int(parts))
	outputs := make([]*loadOutput, len(bounds)+1)
	work := make([]func() error, len(outputs))
	for i := range outputs {
		var from, to []byte
		if i > 0 {
			from = bounds[i-1]
		}
		if i < len(bounds) {
			to = bounds[i]
		}
		out := l.newOutput()
		outputs[i] = out
		work[i] = func() error { return out.mergeRange(l.runs.source(), from, to) }
	}
	err := l.together(work...)
	for _, out := range outputs {
		l.merged = append(l.merged, out.files...)
	}
	if err == nil {
		l.runs.close() // the memory serves the lookups, and the disk the commit
	}
	return err
}

// split returns up to n-1 ascending keys that cut the rows into parts of about one size.
func (r *loadRuns) split(n int) [][]byte {
	if n < 2 {
		return nil
	}
	type sample struct {
		key  []byte
		rows int64
	}
	var all []sample
	total := int64(0)
	r.samples(func(key []byte, rows int64) {
		all = append(all, sample{key, rows})
		total += rows
	})
	slices.SortFunc(all, func(a, b sample) int { return bytes.Compare(a.key, b.key) })
	var bounds [][]byte
	seen := int64(0)
	for i, s := range all {
		next := total * int64(len(bounds)+1) / int64(n)
		if seen >= next && len(bounds) < n-1 && i > 0 && bytes.Compare(all[i-1].key, s.key) < 0 {
			bounds = append(bounds, bytes.Clone(s.key))
		}
		seen += s.rows
	}
	return bounds
}

// mergeRange writes the rows from one key to another, without the latter; nil stands for no bound.
func (o *loadOutput) mergeRange(src spill.Source, from, to []byte) error {
	defer o.abort()
	if from == nil {
		src.First()
	} else {
		src.SeekGE(from)
	}
	for ; src.Valid() && (to == nil || bytes.Compare(src.Key(), to) < 0); src.Next() {
		if err := o.addRow(src.Key(), src.Op(), src.Value()); err != nil {
			return err
		}
	}
	if err := src.Err(); err != nil {
		return err
	}
	return o.finish()
}
