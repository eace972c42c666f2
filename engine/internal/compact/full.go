package compact

import (
	"bytes"
	"slices"
)

// PlanFull returns the jobs that leave one sorted run, without deleted rows, of all files that meet a range of keys:
// from lower on and below upper, nil for no bound. There must be no running job. What is in that shape already is left
// alone. The jobs may run in any order. Where a job would be too large, several share its inputs, each with a range of
// keys.
func PlanFull(files []File, lower, upper []byte, o Options) []*Job {
	v := newView(files, nil, o)
	var in []int
	for i := range files {
		f := &files[i]
		if (upper == nil || bytes.Compare(f.Min, upper) < 0) && (lower == nil || bytes.Compare(f.Max, lower) >= 0) {
			in = append(in, i)
		}
	}
	if in == nil {
		return nil
	}
	level := v.fullLevel(in)
	// The outputs may reach beyond the range, as far as the inputs do.
	in = append(in, v.overlap(v.span(level, in))...)
	slices.Sort(in)
	in = slices.Compact(in)
	return v.fullJobs(v.groups(in), level)
}

// fullLevel returns the deepest level that is needed for the files: the one where the last of them are, or the first
// one that has the room.
func (v *view) fullLevel(in []int) int {
	level := v.depth(v.live(in))
	for _, i := range in {
		level = max(level, v.files[i].Level)
	}
	return level
}

// groups parts files into those whose key ranges meet, directly or through others, in key order.
func (v *view) groups(in []int) [][]int {
	slices.SortFunc(in, func(a, b int) int { return bytes.Compare(v.files[a].Min, v.files[b].Min) })
	var out [][]int
	var reach []byte
	for _, i := range in {
		f := &v.files[i]
		if out == nil || bytes.Compare(f.Min, reach) > 0 {
			out = append(out, nil)
			reach = f.Max
		} else if bytes.Compare(f.Max, reach) > 0 {
			reach = f.Max
		}
		out[len(out)-1] = append(out[len(out)-1], i)
	}
	return out
}

// fullJobs makes a job of each stretch of groups that need work, and one of all files that only change their level.
func (v *view) fullJobs(groups [][]int, level int) []*Job {
	var jobs []*Job
	var moved, stretch []int
	dirty := false
	end := func() {
		switch n := int64(len(stretch)); {
		case n == 0:
		case dirty || n > 1 && 4*v.live(stretch) <= 3*v.o.TargetFileBytes*(n-1): // fewer files come out, with certainty
			jobs = append(jobs, v.parts(stretch, level)...)
		default:
			moved = v.appendElsewhere(moved, stretch, level)
		}
		stretch, dirty = nil, false
	}
	for _, g := range groups {
		f := &v.files[g[0]]
		clean := len(g) == 1 && f.Deleted == 0 && !f.Loose
		if clean && !v.o.small(f) {
			end()
			moved = v.appendElsewhere(moved, g, level)
			continue
		}
		// Jobs of bounded size where the keys allow it: each is committed by itself.
		if len(stretch) > 0 && v.bytes(stretch)+v.bytes(g) > v.o.maxJobBytes() {
			end()
		}
		stretch = append(stretch, g...)
		dirty = dirty || !clean
	}
	end()
	if moved != nil {
		jobs = append(jobs, job(Move, level, moved))
	}
	return jobs
}

// parts makes jobs of bounded size of files that go to a level. They are parted where files of that level begin, so
// that none of those is shared; where it has none, where files of the largest level do.
func (v *view) parts(in []int, level int) []*Job {
	whole := job(Full, level, in)
	size := v.bytes(in)
	if size <= v.o.maxJobBytes() {
		return []*Job{whole}
	}
	marks := v.ofLevel(whole.Inputs, level)
	if marks == nil {
		for l := 1; l < Levels; l++ {
			if files := v.ofLevel(whole.Inputs, l); v.bytes(files) > v.bytes(marks) {
				marks = files
			}
		}
	}
	var jobs []*Job
	next := &Job{Kind: Full, Level: level}
	had, share := int64(0), float64(size)/float64(max(1, v.bytes(marks)))
	for at, i := range marks {
		if at > 0 && float64(had)*share >= float64(v.o.maxJobBytes()) {
			next.Upper = v.files[i].Min
			jobs = append(jobs, next)
			next = &Job{Kind: Full, Level: level, Lower: next.Upper}
			had = 0
		}
		had += v.files[i].Size
	}
	jobs = append(jobs, next)
	for _, j := range jobs {
		for _, i := range whole.Inputs {
			f := &v.files[i]
			if (j.Upper == nil || bytes.Compare(f.Min, j.Upper) < 0) && (j.Lower == nil || bytes.Compare(f.Max, j.Lower) >= 0) {
				j.Inputs = append(j.Inputs, i)
			}
		}
	}
	return jobs
}

// ofLevel returns those of the files, which ascend, that are on a level, by key.
func (v *view) ofLevel(in []int, level int) []int {
	var out []int
	for _, i := range v.levels[level] {
		if _, ok := slices.BinarySearch(in, i); ok {
			out = append(out, i)
		}
	}
	return out
}

func (v *view) appendElsewhere(dst, in []int, level int) []int {
	for _, i := range in {
		if v.files[i].Level != level {
			dst = append(dst, i)
		}
	}
	return dst
}
