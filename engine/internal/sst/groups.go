package sst

import "github.com/merutable/merutable/engine/internal/row"

// groups gathers rows into row groups and gives each full one to the encoder, which works beside it.
type groups struct {
	enc   *encoder
	open  *group // being gathered
	spare *group
	work  chan *group // to the goroutine that encodes, once there is one
	done  chan encoded
	busy  *group // being encoded
	err   error  // of an encoding that ended
	// raw is the bytes of the rows of the encoded row groups, file what they take in the file.
	raw, file int64
	sample    sample
}

// group is the rows of a row group and the starts of its blocks of the key index.
type group struct {
	builder *row.Builder
	rows    int
	bytes   int
	blocks  []int
	// keyBytes is of the keys of the last block.
	keyBytes int
}

type encoded struct {
	g    *group
	file int64 // what the file's row groups take so far
	err  error
}

func (s *groups) init(enc *encoder) {
	s.enc = enc
	s.open = s.newGroup()
}

func (s *groups) newGroup() *group { return &group{builder: row.NewBuilder(s.enc.o.Schema, nil)} }

// full reports whether a row of that many bytes belongs into the next row group. A row group has one row at least.
func (s *groups) full(bytes int) bool {
	return s.open.rows >= s.enc.o.RowGroupRows || s.open.rows > 0 && s.open.bytes+bytes > s.enc.o.RowGroupBytes
}

// next gives the open row group, which is full, to the encoder, once that is done with the one before, and opens
// another.
func (s *groups) next() error {
	if err := s.wait(); err != nil {
		return err
	}
	if s.work == nil {
		s.work, s.done = make(chan *group), make(chan encoded, 1)
		go func() {
			for g := range s.work {
				err := s.enc.rowGroup(g)
				s.done <- encoded{g: g, file: s.enc.size(), err: err}
			}
		}()
	}
	s.busy = s.open
	s.work <- s.open
	if s.open, s.spare = s.spare, nil; s.open == nil {
		s.open = s.newGroup()
	}
	return nil
}

// wait waits for the row group that is being encoded.
func (s *groups) wait() error {
	if s.busy == nil {
		return s.err
	}
	return s.ended(<-s.done)
}

// poll takes note of a row group that is encoded by now.
func (s *groups) poll() {
	if s.busy == nil {
		return
	}
	select {
	case e := <-s.done:
		_ = s.ended(e) // the next wait returns it
	default:
	}
}

func (s *groups) ended(e encoded) error {
	s.busy = nil
	if s.err = e.err; s.err != nil {
		return s.err
	}
	s.raw += int64(e.g.bytes)
	s.file = e.file
	e.g.reset()
	s.spare = e.g
	return nil
}

// finish encodes what is left.
func (s *groups) finish() error {
	defer s.stop()
	if err := s.wait(); err != nil {
		return err
	}
	// The last row group needs no goroutine, and most files of level 0 have few.
	return s.enc.rowGroup(s.open)
}

// stop ends the goroutine: nothing writes to the file after it.
func (s *groups) stop() {
	_ = s.wait() // an error that counted was returned before
	if s.work != nil {
		close(s.work)
		s.work = nil
	}
}

// add counts a row and reports whether it starts a block of the key index: with the row group's first row, and where
// the block before it is full.
func (g *group) add(keyBytes, bytes, blockRows int) (block bool) {
	if n := len(g.blocks); n == 0 || g.rows-g.blocks[n-1] >= blockRows || g.keyBytes >= maxKeyBlockBytes {
		g.blocks = append(g.blocks, g.rows)
		g.keyBytes = 0
		block = true
	}
	g.keyBytes += keyBytes
	g.rows++
	g.bytes += bytes
	return block
}

func (g *group) reset() {
	g.builder.Reset()
	g.rows, g.bytes, g.keyBytes, g.blocks = 0, 0, 0, g.blocks[:0]
}
