package compact

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// tree is a table of files of which only the description is there: what the engine does to files is done to them.
type tree struct {
	rng     *rand.Rand
	files   []File // as in the manifest
	o       Options
	written int64 // bytes that jobs wrote
	jobs    int
	numbers int64
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// flush adds a file to level 0.
func (t *tree) flush(lo, hi uint64, size int64) {
	f := File{Size: size, Rows: 1000, Min: key(lo), Max: key(hi)}
	t.files = slices.Insert(t.files, 0, f)
}

// remove deletes rows of random files.
func (t *tree) remove() {
	for i := range t.files {
		f := &t.files[i]
		f.Deleted = min(f.Rows, f.Deleted+t.rng.Int64N(f.Rows/25))
	}
}

// do applies a job: the outputs share the range of the inputs and their live bytes.
func (t *tree) do(test *testing.T, j *Job) {
	t.jobs++
	var outputs []File
	v := newView(t.files, nil, t.o)
	switch j.Kind {
	case Move:
		for _, i := range j.Inputs {
			f := t.files[i]
			f.Level = j.Level
			outputs = append(outputs, f)
		}
	case Drop:
		for _, i := range j.Inputs {
			if f := &t.files[i]; f.Deleted != f.Rows {
				test.Fatalf("a file with live rows is dropped: %+v", f)
			}
		}
	default:
		s, live := v.span(j.Level, j.Inputs), v.live(j.Inputs)
		outputs = t.split(s, live)
		t.written += live
	}
	var rest []File
	for i := range t.files {
		if !slices.Contains(j.Inputs, i) {
			rest = append(rest, t.files[i])
		}
	}
	t.files = append(outputs, rest...)
	slices.SortStableFunc(t.files, func(a, b File) int { return a.Level - b.Level })
	t.check(test, j)
}

// split makes files of about the target size of a range.
func (t *tree) split(s Span, live int64) []File {
	lo, hi := binary.BigEndian.Uint64(s.Min), binary.BigEndian.Uint64(s.Max)
	n := uint64(max(1, (live+t.o.TargetFileBytes/2)/t.o.TargetFileBytes))
	n = min(n, hi-lo+1)
	var out []File
	for i := range n {
		from := lo + (hi-lo)/n*i
		to := lo + (hi-lo)/n*(i+1) - 1
		if i == n-1 {
			to = hi
		}
		if to < from {
			to = from
		}
		out = append(out, File{Level: s.Level, Size: max(1, live/int64(n)), Rows: 1000, Min: key(from), Max: key(to)})
	}
	return out
}

// check checks that the files of the levels from 1 on do not meet.
func (t *tree) check(test *testing.T, j *Job) {
	v := newView(t.files, nil, t.o)
	for l := 1; l < Levels; l++ {
		for i, at := range v.levels[l] {
			if i > 0 && bytes.Compare(v.files[v.levels[l][i-1]].Max, v.files[at].Min) >= 0 {
				test.Fatalf("files of level %d meet after %+v", l, *j)
			}
		}
	}
}

// settle does jobs until there are none.
func (t *tree) settle(test *testing.T) {
	for n := 0; ; n++ {
		j := Pick(t.files, nil, t.o)
		if j == nil {
			return
		}
		if n > 10*len(t.files)+1000 {
			test.Fatalf("no end of jobs; the last one is %+v of %d files", *j, len(t.files))
		}
		t.do(test, j)
	}
}

// TestParallel: jobs that run side by side, and end in any order, never make files of a level meet.
func TestParallel(t *testing.T) {
	const kib = 1 << 10
	tr := &tree{rng: rand.New(rand.NewPCG(3, 3)), o: Options{
		L0Files: 3, TargetFileBytes: 16 * kib, BaseLevelBytes: 64 * kib, LevelMultiplier: 3, MaxDeletedPercent: 20,
	}}
	type running struct {
		job   *Job
		files []File // Rows tells them apart
	}
	var jobs []running
	most := 0
	for n := range 3000 {
		lo := tr.rng.Uint64N(1 << 40)
		tr.flush(lo, lo+tr.rng.Uint64N(1<<36), tr.rng.Int64N(20*kib))
		tr.remove()
		if n%3 == 0 && len(jobs) > 0 {
			k := tr.rng.IntN(len(jobs))
			j := jobs[k]
			jobs = slices.Delete(jobs, k, k+1)
			j.job.Inputs = nil
			for i := range tr.files {
				if slices.ContainsFunc(j.files, func(f File) bool { return f.Rows == tr.files[i].Rows }) {
					j.job.Inputs = append(j.job.Inputs, i)
				}
			}
			if len(j.job.Inputs) != len(j.files) {
				t.Fatalf("inputs of %+v are gone", *j.job)
			}
			tr.do(t, j.job)
		}
		for i := range tr.files { // a number for each new file
			if f := &tr.files[i]; f.Rows == 1000 {
				tr.numbers++
				f.Rows = 1_000_000 + tr.numbers
			}
		}
		var spans []Span
		busy := slices.Clone(tr.files)
		for _, j := range jobs {
			v := newView(j.files, nil, tr.o)
			all := make([]int, len(j.files))
			for i := range all {
				all[i] = i
			}
			spans = append(spans, v.span(j.job.Level, all))
			for i := range busy {
				busy[i].Busy = busy[i].Busy || slices.ContainsFunc(j.files, func(f File) bool { return f.Rows == busy[i].Rows })
			}
		}
		if j := Pick(busy, spans, tr.o); j != nil && len(jobs) < 8 {
			r := running{job: j}
			for _, i := range j.Inputs {
				if busy[i].Busy {
					t.Fatalf("%+v takes a file that is busy", *j)
				}
				r.files = append(r.files, tr.files[i])
			}
			jobs = append(jobs, r)
			most = max(most, len(jobs))
		}
	}
	if most < 4 {
		t.Errorf("no more than %d jobs side by side", most)
	}
}

// TestSettle: whatever comes, picking jobs comes to an end, with every level within its bounds, few files, and not much
// written in relation to what came.
func TestSettle(t *testing.T) {
	const kib = 1 << 10
	for name, load := range map[string]struct {
		step     func(t *tree, n int)
		amount   float64 // bytes written for a byte that came, at most
		maxFiles int
	}{
		"random keys": {func(t *tree, n int) {
			t.flush(t.rng.Uint64N(1000), 1<<40-t.rng.Uint64N(1000), 30*kib)
		}, 22, 1000},
		"ascending keys": {func(t *tree, n int) { t.flush(uint64(n)<<10, uint64(n)<<10+1000, 30*kib) }, 1.1, 600},
		"large flushes of ascending keys": {func(t *tree, n int) {
			t.flush(uint64(n)<<10, uint64(n)<<10+1000, 60*kib)
		}, 0, 1000},
		"tiny flushes of ascending keys": {func(t *tree, n int) { t.flush(uint64(n)<<10, uint64(n)<<10+1000, 100) }, 12, 60},
		"tiny flushes of random keys": {func(t *tree, n int) {
			t.flush(t.rng.Uint64N(1000), 1<<40-t.rng.Uint64N(1000), 100)
		}, 20, 60},
		"pieces": {func(t *tree, n int) {
			lo := t.rng.Uint64N(1 << 40)
			t.flush(lo, lo+t.rng.Uint64N(1<<38), t.rng.Int64N(100*kib))
		}, 18, 1000},
		"deletes": {func(t *tree, n int) {
			t.flush(t.rng.Uint64N(1000), 1<<40-t.rng.Uint64N(1000), 30*kib)
			t.remove()
		}, 14, 1000},
	} {
		t.Run(name, func(test *testing.T) {
			tr := &tree{rng: rand.New(rand.NewPCG(1, 7)), o: Options{
				L0Files: 4, TargetFileBytes: 64 * kib, BaseLevelBytes: 256 * kib, LevelMultiplier: 10, MaxDeletedPercent: 20,
			}}
			came := int64(0)
			steps := 1000
			if testing.Short() {
				steps = 300
			}
			for n := range steps {
				before := len(tr.files)
				load.step(tr, n)
				if len(tr.files) > before {
					came += tr.files[0].Size
				}
				tr.settle(test)
				for _, s := range newView(tr.files, nil, tr.o).scores() {
					test.Fatalf("level %d is above its target: %v", s.level, s.value)
				}
				if l0 := len(newView(tr.files, nil, tr.o).levels[0]); l0 >= tr.o.L0Files {
					test.Fatalf("%d files on level 0", l0)
				}
			}
			amount := float64(tr.written) / float64(came)
			test.Logf("%d jobs, %.1f bytes written for each, %d files", tr.jobs, amount, len(tr.files))
			if amount > load.amount || len(tr.files) > load.maxFiles {
				test.Errorf("%.1f bytes written for each that came, %d files", amount, len(tr.files))
			}
			if Pick(tr.files, nil, tr.o) != nil {
				test.Error("not at rest")
			}
		})
	}
}
