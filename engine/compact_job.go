package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/compact"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/sst"
)

// compactJob is one compaction: it streams the live rows of its inputs, as they are at its start, in key order into new
// files, and replaces the inputs by those in one commit. Each live key has exactly one live row over all files, so the
// merge compares no versions, and a deletion is a row that is dead in its own file and does not come along. What other
// commits delete from the inputs while the job runs is deleted from the outputs in the job's own commit: the job knows
// where each row went.
type compactJob struct {
	c     *core
	kind  compact.Kind
	level int // of the outputs
	span  compact.Span
	// lower and upper bound the keys of the rows that the job takes, nil for no bound. Of an input that has others too
	// those stay: the ones that were taken are deleted from it.
	lower, upper []byte
	// pin has the inputs as they are at the start. It changes under compactions.mu, before the job begins.
	pin       *readState
	interrupt func() bool
	// progress, if not nil, is told how many rows of the inputs the job has read.
	progress func(rows float64)
	read     float64

	chains  []*chain
	outputs []*compactOutput
	// size is what the outputs will take together, estimated.
	size int64
}

// errStale ends a job whose inputs left the table meanwhile: the table was dropped.
var errStale = errors.New("the inputs of the compaction left the table")

// newCompactJob pins the inputs. The caller registers the job, and ends it with finishJob.
func (c *core) newCompactJob(s *readState, p *compact.Job, interrupt func() bool) *compactJob {
	j := &compactJob{c: c, kind: p.Kind, level: p.Level, lower: p.Lower, upper: p.Upper, interrupt: interrupt}
	files := make([]*liveFile, len(p.Inputs))
	for i, n := range p.Inputs {
		files[i] = s.files[n]
	}
	j.span = compact.Span{Level: p.Level, Min: files[0].meta.KeyMin, Max: files[0].meta.KeyMax}
	for _, f := range files {
		if bytes.Compare(f.meta.KeyMin, j.span.Min) < 0 {
			j.span.Min = f.meta.KeyMin
		}
		if bytes.Compare(f.meta.KeyMax, j.span.Max) > 0 {
			j.span.Max = f.meta.KeyMax
		}
	}
	j.pin = s.only(files)
	return j
}

// run does the job. It returns nil where the table was dropped meanwhile.
func (j *compactJob) run() error {
	m := &j.c.compactions.counters
	start := time.Now()
	err := j.do()
	if errors.Is(err, errStale) {
		return nil
	}
	if err == nil {
		m.done(j, time.Since(start))
	}
	return err
}

func (j *compactJob) do() error {
	if j.kind == compact.Drop || j.kind == compact.Move {
		return j.commit()
	}
	err := j.repin()
	if err == nil {
		err = j.merge()
	}
	if err == nil {
		err = j.commit()
	}
	if err != nil {
		j.discard()
	}
	for _, o := range j.outputs {
		j.c.pending.remove(o.meta.Path)
	}
	return err
}

// repin takes the inputs as they are now: the job may have waited for others that share them. What has left the table
// has no live rows any more, for nobody else takes inputs of a job.
func (j *compactJob) repin() error {
	s := j.c.current()
	defer s.unref()
	if s.table != j.pin.table {
		return errStale
	}
	var files []*liveFile
	for _, f := range s.files {
		if slices.ContainsFunc(j.pin.files, func(in *liveFile) bool { return in.dataFile == f.dataFile }) {
			files = append(files, f)
		}
	}
	pin := s.only(files)
	j.c.compactions.mu.Lock()
	pin, j.pin = j.pin, pin
	j.c.compactions.mu.Unlock()
	pin.unref()
	return nil
}

func (j *compactJob) discard() {
	for _, o := range j.outputs {
		j.c.discard(&o.newFile)
	}
}

// compactOutput is a file that a job wrote.
type compactOutput struct {
	newFile
	// from has, for each chain of inputs, the positions of the rows that came from there.
	from []*roaring.Bitmap
}

// outputWriter writes one output of a job.
type outputWriter struct {
	*compactOutput
	dataPath
	w        *sst.Writer
	reported int64 // bytes, of which the limiter knows
	// short has, for each chain, the positions of rows that came in short runs and are not in from yet.
	short [][]uint32
}

// maxOutputRows bounds a file whose rows take next to nothing.
const maxOutputRows = 64 << 20

func (j *compactJob) newOutput() (*outputWriter, error) {
	c := j.c
	p, err := c.nameDataFile(j.level)
	if err != nil {
		return nil, err
	}
	o := &outputWriter{compactOutput: &compactOutput{}, dataPath: p}
	for range j.chains {
		o.from = append(o.from, roaring.New())
		o.short = append(o.short, nil)
	}
	o.w, err = sst.NewWriter(c.fs, p.path, sst.WriterOptions{Schema: j.pin.table.schema, Level: j.level})
	if err != nil {
		c.pending.remove(p.rel)
		return nil, err
	}
	return o, nil
}

// append takes rows from to to-1 of a chain's batch.
func (o *outputWriter) append(src *chain, n int) error {
	at := uint64(o.w.Rows())
	if err := o.w.Append(src.cols, src.at, src.at+n); err != nil {
		return err
	}
	// A bitmap takes a range at the price of some hundred positions.
	const shortRun, most = 128, 4096
	if n > shortRun {
		o.gather(src.number)
		o.from[src.number].AddRange(at, at+uint64(n))
		return nil
	}
	for i := range uint32(n) {
		o.short[src.number] = append(o.short[src.number], uint32(at)+i)
	}
	if len(o.short[src.number]) >= most {
		o.gather(src.number)
	}
	return nil
}

// gather adds the positions of short runs to the bitmap of their chain.
func (o *outputWriter) gather(chain int) {
	o.from[chain].AddMany(o.short[chain])
	o.short[chain] = o.short[chain][:0]
}

func (j *compactJob) kindText() string {
	switch j.kind {
	case compact.Move:
		return "move"
	case compact.Drop:
		return "drop"
	}
	return "merge"
}

// finish makes the file durable and adds it to the outputs of the job.
func (j *compactJob) finish(o *outputWriter) error {
	info, err := o.w.Finish()
	if err == nil {
		err = j.c.fs.SyncDir(o.dir)
	}
	if err != nil {
		j.abort(o)
		return err
	}
	o.meta = o.describe(j.pin.table, info)
	o.meta.Level = j.level
	for i, bm := range o.from {
		o.gather(i)
		bm.RunOptimize()
	}
	o.short = nil
	j.outputs = append(j.outputs, o.compactOutput)
	return nil
}

// abort gives an output up that was not finished.
func (j *compactJob) abort(o *outputWriter) {
	o.w.Abort()
	_ = j.c.fs.Remove(o.path) // if it was finished; what stays is an orphan
	j.c.pending.remove(o.rel)
}

// prepare does what can be done of a commit without keeping others from theirs: it marks what was deleted so far, and
// makes the answers about the outputs.
func (j *compactJob) prepare() (answers, error) {
	s := j.c.current()
	defer s.unref()
	inputs, err := j.inputsIn(s)
	if err != nil {
		return nil, err
	}
	if err := j.markDeleted(inputs); err != nil {
		return nil, err
	}
	return j.translateAnswers(s.mems), nil
}

// commit replaces the inputs by the outputs.
func (j *compactJob) commit() error {
	known, err := j.prepare()
	if err == nil {
		err = j.replace(known)
	}
	return err
}

// replace is the part of a commit that keeps others from theirs.
func (j *compactJob) replace(known answers) error {
	c := j.c
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	if err := c.writable(); err != nil {
		return err
	}
	s := c.current()
	defer s.unref()
	inputs, err := j.inputsIn(s)
	if err != nil || len(inputs) == 0 {
		return err
	}
	next := s.manifest.Next()
	next.Properties[manifest.PropJob] = "compact"
	ch := change{removed: map[*dataFile]bool{}, levels: map[*dataFile]int{}, dead: map[*dataFile]*roaring.Bitmap{}}
	var dropped base.Seq
	if j.kind == compact.Move {
		for _, f := range inputs {
			if f.meta.Level != j.level && j.free(s, nil, f.meta.KeyMin, f.meta.KeyMax) {
				ch.levels[f.dataFile] = j.level
			}
		}
		if len(ch.levels) == 0 {
			return nil
		}
	} else {
		if err := j.markDeleted(inputs); err != nil {
			return err
		}
		if err := j.take(inputs, &ch); err != nil {
			return err
		}
		for _, f := range inputs {
			if ch.removed[f.dataFile] && f.meta.Deleted > 0 {
				dropped = max(dropped, f.meta.SeqMax)
			}
		}
		for _, o := range slices.Backward(j.outputs) {
			if !j.free(s, &ch, o.meta.KeyMin, o.meta.KeyMax) {
				o.meta.Level = 0
			}
			ch.added = append(ch.added, &o.newFile)
		}
	}
	if err := c.commitFiles(s, next, ch); err != nil {
		return err
	}
	c.logEvent(slog.LevelInfo, "compaction", "files were replaced by others",
		slog.String("kind", j.kindText()), slog.Int("level", j.level), slog.Int("files_in", len(inputs)),
		slog.Int("files_out", len(j.outputs)), slog.Int64("version", next.Version))
	c.installFiles(next, nil, func(ns *readState) {
		ns.droppedSeq = max(ns.droppedSeq, dropped)
		known.install(ns)
	})
	c.collectGarbage()
	return nil
}

// inputsIn returns the inputs as they are in s.
func (j *compactJob) inputsIn(s *readState) ([]*liveFile, error) {
	now := make(map[*dataFile]*liveFile, len(s.files))
	for _, f := range s.files {
		now[f.dataFile] = f
	}
	inputs := make([]*liveFile, len(j.pin.files))
	for i, f := range j.pin.files {
		if inputs[i] = now[f.dataFile]; inputs[i] == nil {
			return nil, errStale
		}
	}
	return inputs, nil
}

// take removes the inputs, or deletes from them the rows that the job has taken where there are others.
func (j *compactJob) take(inputs []*liveFile, ch *change) error {
	taken := map[*dataFile]*roaring.Bitmap{}
	for _, chain := range j.chains {
		for _, in := range chain.inputs {
			taken[in.file.dataFile] = in.span()
		}
	}
	for _, f := range inputs {
		if j.lower == nil && j.upper == nil {
			ch.removed[f.dataFile] = true
			continue
		}
		dead, err := f.deleted(j.c.dir)
		if err != nil {
			return err
		}
		if int64(dead.OrCardinality(taken[f.dataFile])) == f.meta.Rows {
			ch.removed[f.dataFile] = true
		} else {
			ch.dead[f.dataFile] = taken[f.dataFile]
		}
	}
	return nil
}

// free reports whether the keys from lo to hi meet no file on the level of the outputs that stays there; ch says which
// do not, nil that all inputs do not. A bulk load may have put one there meanwhile. Then the file goes to level 0,
// where it is as right as anywhere.
func (j *compactJob) free(s *readState, ch *change, lo, hi []byte) bool {
	goes := func(f *liveFile) bool {
		if ch != nil {
			return ch.removed[f.dataFile]
		}
		return slices.ContainsFunc(j.pin.files, func(in *liveFile) bool { return in.dataFile == f.dataFile })
	}
	return j.level == 0 || !slices.ContainsFunc(s.files, func(f *liveFile) bool {
		meets := bytes.Compare(lo, f.meta.KeyMax) <= 0 && bytes.Compare(f.meta.KeyMin, hi) <= 0
		return f.meta.Level == j.level && meets && !goes(f)
	})
}
