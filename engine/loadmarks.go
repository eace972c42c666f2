package engine

import (
	"bytes"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/sst"
)

// What a load supersedes is looked up when its files are complete: of each pair of files, the keys of the one with fewer
// rows are walked, in order, and found in the other one. The table's files are looked at while others write; what
// flushes and compactions bring meanwhile is looked at in the next round, and only what comes after the last one, under
// the locks of the commit.

// resolveRounds bounds the rounds: a table whose files all change all the time must not keep a load from its commit.
const resolveRounds = 4

// resolve looks up what the load supersedes in its own streamed files and in those that the table has now.
func (l *load) resolve() error {
	for range resolveRounds {
		more, err := l.resolveRound()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// markTask is one file to look rows up in, and where they go.
type markTask struct {
	file *liveFile
	by   []*loadFile
	dead *roaring.Bitmap
}

func (l *load) resolveRound() (more bool, err error) {
	s := l.c.current()
	defer s.unref()
	var tasks []*markTask
	if !l.resolvedOwn {
		for _, f := range l.streamed {
			tasks = append(tasks, &markTask{file: f.file, by: l.merged})
		}
	}
	for _, f := range s.files {
		if l.marks[f.dataFile] == nil && l.w.creates == nil {
			tasks = append(tasks, &markTask{file: f, by: l.all()})
		}
	}
	if len(tasks) == 0 {
		return false, nil
	}
	if err := l.lookUp(tasks); err != nil {
		return false, err
	}
	if !l.resolvedOwn {
		for i, f := range l.streamed {
			if f.dead == nil {
				f.dead = roaring.New()
			}
			f.dead.Or(tasks[i].dead)
		}
		tasks = tasks[len(l.streamed):]
		l.resolvedOwn = true
	}
	for _, t := range tasks {
		l.marks[t.file.dataFile] = t.dead
	}
	return true, nil
}

// lookUp does tasks side by side.
func (l *load) lookUp(tasks []*markTask) error {
	next := make(chan *markTask, len(tasks))
	for _, t := range tasks {
		next <- t
	}
	close(next)
	work := make([]func() error, min(runtime.GOMAXPROCS(0), mergeParts, len(tasks)))
	for i := range work {
		work[i] = func() (err error) {
			for t := range next {
				if t.dead, err = l.supersededBy(t.file, t.by); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return l.together(work...)
}

// supersededBy returns the rows of f whose keys are in one of the files.
func (l *load) supersededBy(f *liveFile, files []*loadFile) (*roaring.Bitmap, error) {
	dead := roaring.New()
	for _, by := range files {
		if bytes.Compare(by.meta.KeyMin, f.meta.KeyMax) > 0 || bytes.Compare(by.meta.KeyMax, f.meta.KeyMin) < 0 {
			continue
		}
		walked, searched := by.file, f
		mark := func(_, found int64) { dead.Add(uint32(found)) }
		if f.meta.Rows < by.meta.Rows {
			walked, searched = f, by.file
			mark = func(at, _ int64) { dead.Add(uint32(at)) }
		}
		if err := l.matchKeys(walked, searched, mark); err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// matchKeys calls hit with the positions of each key that two files have in common, ascending.
func (l *load) matchKeys(walked, searched *liveFile, hit func(at, found int64)) error {
	w, err := walked.open(l.w.table.schema)
	if err != nil {
		return err
	}
	r, err := searched.open(l.w.table.schema)
	if err != nil {
		return err
	}
	keys := newKeyWalk(w, l.w.table, searched.meta.KeyMin, searched.meta.KeyMax, &l.stopped)
	defer keys.close()
	err = r.FindMany(keys.next, func(_ int, pos int64) error {
		hit(keys.pos(), pos)
		return nil
	})
	if keys.err != nil {
		return keys.err
	}
	return err
}

// keyWalk yields the keys of a file in order, from one key to another, both included.
type keyWalk struct {
	it      *sst.Iter
	keyCols []int
	stopped interface{ Load() bool }
	cols    *Columns
	first   int64 // the position of the batch's first row
	at      int   // behind the row of key
	key     []byte
	err     error
}

func newKeyWalk(r *sst.Reader, t *table, from, to []byte, stopped interface{ Load() bool }) *keyWalk {
	return &keyWalk{
		it: r.NewIter(sst.IterOptions{
			Projection: t.schema.PrimaryKey, Lower: from, LowerInclusive: true, Upper: to, UpperInclusive: true,
		}),
		keyCols: t.keySchema.PrimaryKey, stopped: stopped,
	}
}

func (k *keyWalk) next() ([]byte, bool) {
	for k.err == nil && (k.cols == nil || k.at == k.cols.N) {
		if k.stopped.Load() {
			k.err = errStopped
			return nil, false
		}
		k.at = 0
		if k.cols, k.first, k.err = k.it.Next(); k.cols == nil {
			return nil, false
		}
	}
	if k.err != nil {
		return nil, false
	}
	k.key = k.cols.AppendKey(k.key[:0], k.keyCols, k.at)
	k.at++
	return k.key, true
}

// pos returns the position of the row whose key was yielded last.
func (k *keyWalk) pos() int64 { return k.first + int64(k.at) - 1 }

func (k *keyWalk) close() { k.it.Close() }
