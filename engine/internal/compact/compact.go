// Package compact decides what to compact: from a description of a table's files it picks jobs, and it says on which
// level new files belong. It touches no file; the engine runs the jobs.
//
// # Levels
//
// A table's files minus their deletion vectors have each live key once. So levels say nothing about which version of a
// key is newer, and any files may be replaced by others with the same live rows: every job is correct, and this package
// is only about cost. Levels bound how many files a key lookup, a flush and a scan meet: level 0 takes the files of
// flushes as they come; inside each of the levels below the key ranges of the files do not meet, and each level holds
// [Options.LevelMultiplier] times as much as the one above.
//
// # What is picked
//
// In this order:
//
//   - files without live rows leave, which costs nothing
//   - the level that is the most above its target passes data down. Level 0 counts files, the others bytes. Where nothing
//     is in the way below, files only change their level. Those of level 0 do so only if they are as large and as well
//     compressed as those below, for they would stay as they are for ever
//   - a file of which too large a share is deleted is written anew
//   - neighbours that are all small become one
//
// Each rule leaves less of what it looks for, so a table that is left alone comes to rest.
package compact

import (
	"bytes"
	"cmp"
	"slices"
)

// Levels is how many levels there are, level 0 included.
const Levels = 7

// maxJobFiles is how many level-0 files one job takes at most: each has a batch of rows in memory.
const maxJobFiles = 32

// File describes a data file.
type File struct {
	Level         int
	Size          int64 // bytes
	Rows, Deleted int64 // rows, and how many of them the deletion vector marks
	Min, Max      []byte
	// Busy says that a running job reads the file, or that it is better left alone.
	Busy bool
	// Loose says that the file was written as files of level 0 are: fast, at the price of its size.
	Loose bool
}

// live returns about how many bytes the live rows take.
func (f *File) live() int64 {
	if f.Deleted == 0 || f.Rows == 0 {
		return f.Size
	}
	return int64(float64(f.Size) * float64(f.Rows-f.Deleted) / float64(f.Rows))
}

// Options are the bounds of the tree; see the engine's options of the same names.
type Options struct {
	L0Files           int
	TargetFileBytes   int64
	BaseLevelBytes    int64
	LevelMultiplier   int
	MaxDeletedPercent int
}

// maxJobBytes bounds the input of one job where the shape of the table allows it, so that jobs are short.
func (o *Options) maxJobBytes() int64 { return 25 * o.TargetFileBytes }

// small says that a file is worth merging with its neighbours.
func (o *Options) small(f *File) bool { return f.live() < o.TargetFileBytes/2 }

// Target returns how many bytes a level from 1 on holds before it passes data down.
func (o *Options) Target(level int) int64 {
	t := float64(o.BaseLevelBytes)
	for range level - 1 {
		t *= float64(o.LevelMultiplier)
	}
	return int64(min(t, 1<<62))
}

// Kind says what a job is for.
type Kind int

const (
	// Drop removes files that have no live rows.
	Drop Kind = iota
	// Move changes the level of files.
	Move
	// L0 merges files of level 0 into level 1, or into fewer of level 0.
	L0
	// Level merges files of a level into the next one.
	Level
	// Rewrite writes files anew to leave their deleted rows out.
	Rewrite
	// Small makes fewer files of small ones.
	Small
	// Full is a manual compaction.
	Full
)

var kindNames = [...]string{"drop", "move", "l0", "level", "rewrite", "small", "full"}

func (k Kind) String() string { return kindNames[k] }

// Job is what to do.
type Job struct {
	Kind   Kind
	Inputs []int // indices of files, ascending
	Level  int   // of the outputs
	// Lower and Upper bound the keys of the rows that the job takes from its inputs: from Lower on and below Upper, nil
	// for no bound. The other rows stay where they are.
	Lower, Upper []byte
}

// Span is the key range, both ends inclusive, that a running job writes to on a level.
type Span struct {
	Level    int
	Min, Max []byte
}

func meets(aMin, aMax, bMin, bMax []byte) bool {
	return bytes.Compare(aMin, bMax) <= 0 && bytes.Compare(bMin, aMax) <= 0
}

// view is the files by level, and what the running jobs write.
type view struct {
	files   []File
	levels  [Levels][]int // level 0 in the order of files, the others by key
	running []Span
	o       Options
}

func newView(files []File, running []Span, o Options) *view {
	v := &view{files: files, running: running, o: o}
	for i := range files {
		l := min(max(files[i].Level, 0), Levels-1)
		v.levels[l] = append(v.levels[l], i)
	}
	for l := 1; l < Levels; l++ {
		slices.SortFunc(v.levels[l], func(a, b int) int { return bytes.Compare(files[a].Min, files[b].Min) })
	}
	return v
}

// span returns the key range of some files, at least one.
func (v *view) span(level int, in []int) Span {
	s := Span{Level: level, Min: v.files[in[0]].Min, Max: v.files[in[0]].Max}
	for _, i := range in[1:] {
		if f := &v.files[i]; bytes.Compare(f.Min, s.Min) < 0 {
			s.Min = f.Min
		}
		if f := &v.files[i]; bytes.Compare(f.Max, s.Max) > 0 {
			s.Max = f.Max
		}
	}
	return s
}

// blocked reports whether a running job writes into the span.
func (v *view) blocked(s Span) bool {
	for i := range v.running {
		if r := &v.running[i]; r.Level == s.Level && meets(r.Min, r.Max, s.Min, s.Max) {
			return true
		}
	}
	return false
}

// overlap returns the files of the span's level, from 1 on, that meet it.
func (v *view) overlap(s Span) []int {
	files := v.levels[s.Level]
	from, _ := slices.BinarySearchFunc(files, s.Min, func(i int, k []byte) int { return bytes.Compare(v.files[i].Max, k) })
	to := from
	for to < len(files) && bytes.Compare(v.files[files[to]].Min, s.Max) <= 0 {
		to++
	}
	return files[from:to]
}

func (v *view) busy(in []int) bool {
	return slices.ContainsFunc(in, func(i int) bool { return v.files[i].Busy })
}

func (v *view) bytes(in []int) (n int64) {
	for _, i := range in {
		n += v.files[i].Size
	}
	return n
}

func (v *view) live(in []int) (n int64) {
	for _, i := range in {
		n += v.files[i].live()
	}
	return n
}

// idle returns the files of a level that no job reads.
func (v *view) idle(level int) []int {
	out := make([]int, 0, len(v.levels[level]))
	for _, i := range v.levels[level] {
		if !v.files[i].Busy {
			out = append(out, i)
		}
	}
	return out
}

func job(kind Kind, level int, in ...[]int) *Job {
	j := &Job{Kind: kind, Level: level, Inputs: slices.Concat(in...)}
	slices.Sort(j.Inputs)
	return j
}

// PlaceLevel returns the level for a sorted run of new files, of that many bytes altogether and with keys from lo to
// hi: the first one from 1 on which has the room and whose files, those that running jobs are about to write included,
// do not meet the range. It is no deeper than the table needs: else small loads of the same keys would lie on all
// levels, each to be searched, and nothing would merge them. 0 where there is none.
func PlaceLevel(files []File, running []Span, lo, hi []byte, size int64, o Options) int {
	v := newView(files, running, o)
	total := size
	for i := range files {
		total += files[i].live()
	}
	for l := 1; l <= v.depth(total); l++ {
		s := Span{Level: l, Min: lo, Max: hi}
		if v.live(v.levels[l])+size <= o.Target(l) && len(v.overlap(s)) == 0 && !v.blocked(s) {
			return l
		}
	}
	return 0
}

// depth returns the first level that has the room for so many bytes.
func (v *view) depth(size int64) int {
	level := 1
	for level < Levels-1 && v.o.Target(level) < size {
		level++
	}
	return level
}

// Pressure returns how many files level 0 has and about how many bytes wait for compaction: what the levels have above
// their targets, all of level 0 once it is to be compacted, and the files of which too much is deleted.
func Pressure(files []File, o Options) (l0 int, pending int64) {
	v := newView(files, nil, o)
	l0 = len(v.levels[0])
	if l0 >= o.L0Files {
		pending += v.bytes(v.levels[0])
	}
	for l := 1; l < Levels-1; l++ {
		pending += max(0, v.live(v.levels[l])-o.Target(l))
	}
	for i := range files {
		if v.stale(i) {
			pending += files[i].Size
		}
	}
	return l0, pending
}

// stale reports whether so much of a file is deleted that it is written anew. Files of level 0 are soon merged anyway.
func (v *view) stale(i int) bool {
	f := &v.files[i]
	return f.Level > 0 && f.Deleted*100 > int64(v.o.MaxDeletedPercent)*f.Rows
}

// score is how far a level is above its target; from 1 on it is compacted.
type score struct {
	level int
	value float64
}

func (v *view) scores() []score {
	var out []score
	if n := len(v.idle(0)); n >= v.o.L0Files {
		out = append(out, score{0, float64(n) / float64(v.o.L0Files)})
	}
	for l := 1; l < Levels-1; l++ {
		if n, target := v.live(v.idle(l)), v.o.Target(l); n > target {
			out = append(out, score{l, float64(n) / float64(target)})
		}
	}
	slices.SortStableFunc(out, func(a, b score) int { return cmp.Compare(b.value, a.value) })
	return out
}
