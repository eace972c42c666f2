package engine

import (
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// Where the rows of a job's inputs went. For every output and chain the job keeps which rows of the output came from
// the chain; they stand there in the chain's order. So the n-th live row of a chain is found by counting, without its
// key.

// journey answers that for one chain.
type journey struct {
	job   *compactJob
	chain int
	// upTo has, for each output, how many of the chain's rows went there and to the outputs before.
	upTo []int64
}

func (j *compactJob) newJourney(ch *chain) *journey {
	y := &journey{job: j, chain: ch.number}
	n := int64(0)
	for _, o := range j.outputs {
		n += int64(o.from[ch.number].GetCardinality())
		y.upTo = append(y.upTo, n)
	}
	return y
}

// rowOf returns where row pos of an input went, which the job has taken.
func (y *journey) rowOf(in *jobInput, pos uint32) (out int, at uint32, err error) {
	live := func(pos uint32) int64 { return int64(pos) - int64(in.dead.Rank(pos)) } // live rows before a live one
	n := in.before + live(pos) - live(uint32(in.first))
	out = sort.Search(len(y.upTo), func(i int) bool { return y.upTo[i] > n })
	if out > 0 {
		n -= y.upTo[out-1]
	}
	at, err = y.job.outputs[out].from[y.chain].Select(uint32(n))
	return out, at, err
}

// markDeleted marks in the outputs what was deleted from the inputs since it was called last, or the job began. inputs
// are what the job's inputs are now.
func (j *compactJob) markDeleted(inputs []*liveFile) error {
	now := make(map[*dataFile]*liveFile, len(inputs))
	for _, f := range inputs {
		now[f.dataFile] = f
	}
	for _, ch := range j.chains {
		y := j.newJourney(ch)
		for _, in := range ch.inputs {
			dead, err := now[in.file.dataFile].deleted(j.c.dir)
			if err != nil {
				return err
			}
			if dead == in.marked {
				continue
			}
			for it := roaring.AndNot(dead, in.marked).Iterator(); it.HasNext(); {
				pos := it.Next()
				if !in.has(pos) {
					continue
				}
				out, at, err := y.rowOf(in, pos)
				if err != nil {
					return err
				}
				o := j.outputs[out]
				if o.dead == nil {
					o.dead = roaring.New()
				}
				o.dead.Add(at)
			}
			in.marked = dead
		}
	}
	return nil
}

// answers are what is known of the outputs of a job before anyone asks: which of their rows memtables supersede, as far
// as it was looked up for the inputs.
type answers []*answer

type answer struct {
	mem    *memEntry
	output *compactOutput
	known  *resolution
}

// translateAnswers makes the answers about the outputs from those about the inputs.
func (j *compactJob) translateAnswers(mems []*memEntry) answers {
	var out answers
	if len(j.outputs) == 0 {
		return nil
	}
	journeys := make([]*journey, len(j.chains))
	for i, ch := range j.chains {
		journeys[i] = j.newJourney(ch)
	}
	for _, e := range mems {
		out = append(out, j.translate(e, journeys)...)
	}
	return out
}

func (j *compactJob) translate(e *memEntry, journeys []*journey) answers {
	// An output's rows are known about as far as those of every input are that it has rows of.
	upTo := make([]int, len(j.outputs))
	for i := range upTo {
		upTo[i] = e.mt.Len()
	}
	asked := make(map[*jobInput][]hit)
	for i, ch := range j.chains {
		for _, in := range ch.inputs {
			n, hits := e.resolutions.known(in.file.dataFile)
			asked[in] = hits
			for o := range j.outputs {
				if journeys[i].goesTo(in, o) {
					upTo[o] = min(upTo[o], n)
				}
			}
		}
	}
	if slices.Max(upTo) == 0 {
		return nil
	}
	known := make([]*resolution, len(j.outputs))
	for o := range known {
		known[o] = &resolution{upTo: upTo[o], all: roaring.New()}
	}
	for i, ch := range j.chains {
		for _, in := range ch.inputs {
			for _, h := range asked[in] {
				if !in.has(h.pos) || in.dead.Contains(h.pos) {
					continue
				}
				o, at, err := journeys[i].rowOf(in, h.pos)
				if err != nil {
					return nil // it is looked up again, then
				}
				if int(h.arrival) < upTo[o] {
					known[o].hits = append(known[o].hits, hit{arrival: h.arrival, pos: at})
					known[o].all.Add(at)
				}
			}
		}
	}
	var out answers
	for o, r := range known {
		if r.upTo > 0 {
			out = append(out, &answer{mem: e, output: j.outputs[o], known: r})
		}
	}
	return out
}

// goesTo reports whether rows of an input went to output o.
func (y *journey) goesTo(in *jobInput, o int) bool {
	from := int64(0)
	if o > 0 {
		from = y.upTo[o-1]
	}
	return in.before < y.upTo[o] && from < in.before+in.taken
}

// install gives the answers to the memtables. It runs under core.mu, before anyone sees s.
func (a answers) install(s *readState) {
	files := map[string]*dataFile{}
	for _, f := range s.files {
		files[f.rel] = f.dataFile
	}
	for _, x := range a {
		if f := files[x.output.meta.Path]; f != nil {
			x.mem.resolutions.put(f, x.known)
		}
	}
}
