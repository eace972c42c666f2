package engine

import (
	"bytes"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// chain is inputs of a job whose key ranges do not meet, in key order: one sorted sequence of rows. Its files are open
// one after the other, so a job holds a batch of rows for each chain, not for each file.
type chain struct {
	job    *compactJob
	number int // among the job's chains
	inputs []*jobInput

	next int // the next input to open
	cur  *jobInput
	it   *sst.Iter
	cols *row.Columns // nil at the end
	at   int
	key  []byte // of row at
	// probe is for keys that are looked at in passing.
	probe []byte
}

// jobInput is one file of a chain.
type jobInput struct {
	file *liveFile
	dead *roaring.Bitmap // at the start of the job
	// marked is the deletion vector of which the outputs know.
	marked *roaring.Bitmap
	// taken is how many rows the job has taken from the file, and before how many from the chain before this file. The
	// first and the last of them stand at first and last; all live rows between are the job's.
	taken, before int64
	first, last   int64
}

// note takes note of a batch of rows from first to last.
func (in *jobInput) note(n int, first, last int64) {
	if in.taken == 0 {
		in.first = first
	}
	in.taken += int64(n)
	in.last = last
}

// span returns the positions from the first to the last row taken.
func (in *jobInput) span() *roaring.Bitmap {
	bm := roaring.New()
	if in.taken > 0 {
		bm.AddRange(uint64(in.first), uint64(in.last)+1)
	}
	return bm
}

// has reports whether the job has taken row pos, which was live.
func (in *jobInput) has(pos uint32) bool {
	return in.taken > 0 && int64(pos) >= in.first && int64(pos) <= in.last
}

// live returns about how many bytes the live rows of the file take.
func (in *jobInput) live() int64 {
	meta := in.file.meta
	return int64(float64(meta.Size) * float64(meta.Rows-int64(in.dead.GetCardinality())) / float64(meta.Rows))
}

// makeChains parts the inputs into as few chains as there can be.
func (j *compactJob) makeChains() error {
	files := slices.Clone(j.pin.files)
	slices.SortFunc(files, func(a, b *liveFile) int { return bytes.Compare(a.meta.KeyMin, b.meta.KeyMin) })
	for _, f := range files {
		dead, err := f.deleted(j.c.dir)
		if err != nil {
			return err
		}
		in := &jobInput{file: f, dead: dead, marked: dead}
		j.size += in.live()
		i := slices.IndexFunc(j.chains, func(ch *chain) bool {
			return bytes.Compare(ch.inputs[len(ch.inputs)-1].file.meta.KeyMax, f.meta.KeyMin) < 0
		})
		if i < 0 {
			i = len(j.chains)
			j.chains = append(j.chains, &chain{job: j, number: i})
		}
		j.chains[i].inputs = append(j.chains[i].inputs, in)
	}
	return nil
}

// advance moves n rows on.
func (ch *chain) advance(n int) error {
	if ch.at += n; ch.cols != nil && ch.at < ch.cols.N {
		ch.loadKey()
		return nil
	}
	return ch.load()
}

// load moves to the next batch.
func (ch *chain) load() error {
	if err := ch.job.interrupted(); err != nil {
		return err
	}
	for {
		if ch.it == nil {
			if ch.next == len(ch.inputs) {
				ch.cols = nil
				return nil
			}
			if err := ch.open(); err != nil {
				return err
			}
		}
		cols, first, err := ch.it.Next()
		if err != nil {
			return err
		}
		if cols == nil {
			ch.close()
			continue
		}
		last := first + int64(cols.N) - 1
		if p := ch.it.Positions(); p != nil {
			last = int64(p[len(p)-1])
		}
		ch.cur.note(cols.N, first, last)
		if j := ch.job; j.progress != nil {
			j.read += float64(cols.N)
			j.progress(j.read)
		}
		if meta := ch.cur.file.meta; meta.SeqInherited {
			for i := range cols.Seqs {
				cols.Seqs[i] = meta.SeqMax
			}
		}
		ch.cols, ch.at = cols, 0
		ch.loadKey()
		return nil
	}
}

// open starts with the next file.
func (ch *chain) open() error {
	before := int64(0)
	if ch.cur != nil {
		before = ch.cur.before + ch.cur.taken
	}
	ch.cur = ch.inputs[ch.next]
	ch.cur.before = before
	ch.next++
	reader, err := ch.cur.file.open(ch.job.pin.table.schema)
	if err != nil {
		return err
	}
	// Decoding ahead costs each chain two more batches.
	const fewChains = 8
	ch.it = reader.NewIter(sst.IterOptions{
		Lower: ch.job.lower, LowerInclusive: true, Upper: ch.job.upper,
		Hidden: true, Skip: ch.cur.dead, ReadAhead: len(ch.job.chains) <= fewChains,
	})
	return nil
}

func (ch *chain) loadKey() {
	ch.key = ch.cols.AppendKey(ch.key[:0], ch.job.pin.table.schema.PrimaryKey, ch.at)
}

// run returns how many of the next rows of the batch have keys below limit, nil for no limit; the first one has.
func (ch *chain) run(limit []byte) int {
	n := ch.cols.N - ch.at
	below := func(i int) bool {
		ch.probe = ch.cols.AppendKey(ch.probe[:0], ch.job.pin.table.schema.PrimaryKey, ch.at+i)
		return bytes.Compare(ch.probe, limit) < 0
	}
	if limit == nil || n <= 1 {
		return n
	}
	return gallop(n, below)
}

func (ch *chain) close() {
	if ch.it != nil {
		ch.it.Close()
		ch.it = nil
	}
}

// interrupted says why the job has to stop: also where its table was dropped, for then it keeps files for nothing.
func (j *compactJob) interrupted() error {
	s := j.c.current()
	stale := s.table != j.pin.table
	s.unref()
	if stale {
		return errStale
	}
	return j.c.interrupted(j.interrupt)
}

// merge writes the outputs.
func (j *compactJob) merge() (err error) {
	if err := j.makeChains(); err != nil {
		return err
	}
	defer func() {
		for _, ch := range j.chains {
			ch.close()
		}
	}()
	var chains []*chain // those with rows left, ascending by current key
	for _, ch := range j.chains {
		if err := ch.load(); err != nil {
			return err
		}
		if ch.cols != nil {
			chains = append(chains, ch)
		}
	}
	slices.SortFunc(chains, func(a, b *chain) int { return bytes.Compare(a.key, b.key) })
	var out *outputWriter
	defer func() {
		if out != nil {
			j.abort(out)
		}
	}()
	cut := j.cutBytes()
	for len(chains) > 0 {
		if out == nil {
			if out, err = j.newOutput(); err != nil {
				return err
			}
		}
		first := chains[0]
		var limit []byte
		if len(chains) > 1 {
			limit = chains[1].key
		}
		n := first.run(limit)
		if err := out.append(first, n); err != nil {
			return err
		}
		batchEnds := first.at+n == first.cols.N
		if err := first.advance(n); err != nil {
			return err
		}
		chains = reorder(chains)
		if !batchEnds {
			continue
		}
		// Once a batch is often enough for what follows.
		written := out.w.EstimatedBytes()
		if err := j.c.compactions.throttle(written-out.reported, j.interrupted); err != nil {
			return err
		}
		out.reported = max(out.reported, written)
		if written >= cut || out.w.Rows() >= maxOutputRows {
			full := out
			out = nil
			if err := j.finish(full); err != nil {
				return err
			}
		}
	}
	if out == nil {
		return nil
	}
	last := out
	out = nil
	return j.finish(last)
}

// reorder moves the first chain to where it belongs among the others, or leaves it out at its end.
func reorder(chains []*chain) []*chain {
	first, rest := chains[0], chains[1:]
	if first.cols == nil {
		return rest
	}
	i := 0
	for ; i < len(rest) && bytes.Compare(rest[i].key, first.key) < 0; i++ {
		chains[i] = rest[i]
	}
	chains[i] = first
	return chains
}

// cutBytes returns the size at which an output ends: about the target, so that the last one is not much smaller than
// the others.
func (j *compactJob) cutBytes() int64 {
	target := j.c.opts.TargetFileBytes
	if j.level == 0 {
		return math.MaxInt64 // level 0 is to have fewer files
	}
	n := (j.size + target/2) / target
	if j.lower != nil || j.upper != nil {
		return target // nobody knows how much of the inputs is the job's
	}
	if n <= 1 {
		return target + target/2
	}
	return j.size/n + target/8
}
