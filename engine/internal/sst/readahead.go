package sst

// readAhead decodes batches on a goroutine of its own. There are two: one that the caller has, one that is decoded
// meanwhile. A batch goes through full to the caller and comes back through free.
type readAhead struct {
	walk *walker
	free chan *batch
	full chan decoded
	quit chan struct{}
	// ended is closed when the goroutine is; started says that there is one.
	ended   chan struct{}
	started bool
}

type decoded struct {
	b   *batch // nil at the end
	err error
}

func newReadAhead(w *walker) *readAhead {
	return &readAhead{
		walk: w, free: make(chan *batch, 2), full: make(chan decoded), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// next takes back the caller's batch, nil at first, and returns the next one, nil at the end. After the end, and after
// an error, it is not called again, and the goroutine is gone.
func (a *readAhead) next(used *batch) (*batch, error) {
	if !a.started {
		a.started = true
		a.free <- a.walk.newBatch()
		a.free <- a.walk.newBatch()
		go a.run()
	} else {
		a.free <- used
	}
	d := <-a.full
	return d.b, d.err
}

func (a *readAhead) run() {
	defer close(a.ended)
	for {
		var b *batch
		select {
		case b = <-a.free:
		case <-a.quit:
			return
		}
		more, err := a.walk.next(b)
		if !more {
			b = nil
		}
		select {
		case a.full <- decoded{b: b, err: err}:
		case <-a.quit:
			return
		}
		if b == nil {
			return
		}
	}
}

// stop ends the goroutine, once it is done with the batch that it is at.
func (a *readAhead) stop() {
	if !a.started {
		return
	}
	select {
	case <-a.quit:
	default:
		close(a.quit)
	}
	<-a.ended
}
