package objfs

// A scan reads each column of a row group from front to back, several columns in turn. So a file watches several places
// that reads come to one behind the other, and reads ahead of each: twice as far each time.

// maxStreams bounds the places that are watched in one file.
const maxStreams = 64

// stream is a place that reads come to one behind the other.
type stream struct {
	last    int64 // the block read last
	fetched int64 // the first block that was not asked for
	window  int64 // how many blocks are read ahead next
	steps   int   // how often it moved on: a point read touches two blocks that follow each other, too
}

type streams []stream // the one used last comes last

// span is a run of blocks.
type span struct {
	first int64
	n     int64
}

// follow takes note of a read of blocks and says what to read ahead.
func (f *blockFile) follow(first, last, size int64) (ahead span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.streams) - 1; i >= 0; i-- {
		s := f.streams[i]
		if first != s.last && first != s.last+1 {
			continue
		}
		if last > s.last {
			s.last = last
			s.fetched = max(s.fetched, last+1)
			s.steps++
			if s.steps > 1 && s.fetched-last <= (s.window+1)/2 {
				ahead = span{first: s.fetched, n: s.window}
				s.fetched += s.window
				s.window = min(s.window*2, int64(f.fs.run))
			}
		}
		f.streams = append(append(f.streams[:i], f.streams[i+1:]...), s)
		return ahead.within(size)
	}
	if len(f.streams) == maxStreams {
		f.streams = append(f.streams[:0], f.streams[1:]...)
	}
	f.streams = append(f.streams, stream{last: last, fetched: last + 1, window: min(last-first+2, int64(f.fs.run))})
	return span{}
}

// within cuts a run at the end of the object.
func (s span) within(size int64) span {
	if size != unknownSize {
		s.n = min(s.n, lastBlock(size)+1-s.first)
	}
	return s
}

// readAhead reads a run in the background, unless enough of that is going on.
func (f *blockFile) readAhead(s span, size int64) {
	if s.n <= 0 {
		return
	}
	select {
	case f.fs.ahead <- struct{}{}:
	default:
		return // the reader will do it
	}
	from := blockID{key: f.key, size: size, index: s.first}
	c := f.fs.claimBlocks(from, int(s.n))
	if len(c.mine) == 0 {
		<-f.fs.ahead
		return
	}
	go func() {
		defer func() { <-f.fs.ahead }()
		f.fs.fetch(f.name, from, c)
	}()
}
