package compact

import (
	"bytes"
	"cmp"
	"slices"
)

// Pick returns the job that is worth the most now, nil where there is nothing to do. Files are in the order of the
// manifest: level 0 newest first. Running are the ranges that jobs under way write; their inputs are marked as busy.
func Pick(files []File, running []Span, o Options) *Job {
	v := newView(files, running, o)
	if j := v.pickDead(); j != nil {
		return j
	}
	for _, s := range v.scores() {
		var j *Job
		if s.level == 0 {
			j = v.pickL0()
		} else {
			j = v.pickLevel(s.level)
		}
		if j != nil {
			return j
		}
	}
	if j := v.pickStale(); j != nil {
		return j
	}
	return v.pickSmall()
}

// pickDead takes all files without live rows.
func (v *view) pickDead() *Job {
	var dead []int
	for i := range v.files {
		if f := &v.files[i]; !f.Busy && f.Deleted >= f.Rows {
			dead = append(dead, i)
		}
	}
	if dead == nil {
		return nil
	}
	return job(Drop, 0, dead)
}

// pickL0 takes the oldest files of level 0 with what they meet in level 1.
func (v *view) pickL0() *Job {
	idle := v.idle(0)
	slices.Reverse(idle) // the oldest first
	if j := v.moveL0(idle); j != nil {
		return j
	}
	n, size := 0, int64(0)
	for n < len(idle) && n < maxJobFiles && (n == 0 || size+v.files[idle[n]].Size <= v.o.maxJobBytes()) {
		size += v.files[idle[n]].Size
		n++
	}
	sets := [][]int{idle[:n]}
	for i := range idle { // where a job is in the way of all of them, one of a smaller range may pass
		sets = append(sets, idle[i:i+1])
	}
	for _, in := range sets {
		s := v.span(1, in)
		below := v.overlap(s)
		if v.blocked(s) || v.busy(below) {
			continue
		}
		const worthIt = 8
		if v.bytes(below) > worthIt*v.bytes(in) {
			if j := v.mergeL0(idle, v.o.TargetFileBytes); j != nil {
				return j
			}
		}
		return job(L0, 1, in, below)
	}
	if len(idle) >= 2*v.o.L0Files { // writers must not stop because a manual compaction has level 1 for long
		const largest = 8
		return v.mergeL0(idle, largest*v.o.TargetFileBytes)
	}
	return nil
}

// moveL0 moves files to level 1 that meet nothing there nor in level 0. Small ones and those of flushes stay, to be
// written anew.
func (v *view) moveL0(idle []int) *Job {
	var moved []int
	for _, i := range idle {
		f := &v.files[i]
		s := v.span(1, []int{i})
		if f.Loose || v.o.small(f) || len(v.overlap(s)) > 0 || v.blocked(s) {
			continue
		}
		alone := !slices.ContainsFunc(v.levels[0], func(k int) bool {
			return k != i && meets(f.Min, f.Max, v.files[k].Min, v.files[k].Max)
		})
		if alone {
			moved = append(moved, i)
		}
	}
	if moved == nil {
		return nil
	}
	return job(Move, 1, moved)
}

// mergeL0 makes one file, of limit bytes at most, of some files of level 0, where level 1 is too large to write all of
// it anew for them, or under work. It takes files of like size, the smallest first, so that a row is written anew a
// logarithmic number of times.
func (v *view) mergeL0(idle []int, limit int64) *Job {
	in := slices.Clone(idle)
	slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(v.files[a].Size, v.files[b].Size) })
	n, size := 0, int64(0)
	for n < len(in) && n < maxJobFiles {
		next := v.files[in[n]].Size
		if size+next > limit || n >= 2 && next > 2*size {
			break
		}
		size += next
		n++
	}
	if n < 2 {
		return nil
	}
	return job(L0, 0, in[:n])
}

// pickLevel passes files of a level down: those that meet nothing below as they are, else the one with the least to
// write anew below for what it brings down.
func (v *view) pickLevel(level int) *Job {
	idle := v.idle(level)
	if j := v.moveDown(level, idle); j != nil {
		return j
	}
	best, bestCost := -1, 0.0
	for _, i := range idle {
		s := v.span(level+1, []int{i})
		below := v.overlap(s)
		if v.blocked(s) || v.busy(below) {
			continue
		}
		if cost := float64(v.live(below)) / float64(max(1, v.files[i].Size)); best < 0 || cost < bestCost {
			best, bestCost = i, cost
		}
	}
	if best < 0 {
		return nil
	}
	return v.grow(level, []int{best})
}

// moveDown moves as many bytes down as the level has too many.
func (v *view) moveDown(level int, idle []int) *Job {
	surplus := v.live(idle) - v.o.Target(level)
	var moved []int
	for _, i := range idle {
		s := v.span(level+1, []int{i})
		if surplus > 0 && len(v.overlap(s)) == 0 && !v.blocked(s) {
			moved = append(moved, i)
			surplus -= v.files[i].live()
		}
	}
	if moved == nil {
		return nil
	}
	return job(Move, level+1, moved)
}

// grow adds to the files of a level those that meet them on the next one, and then the neighbours that come along
// without more of the next level.
func (v *view) grow(level int, in []int) *Job {
	below := v.overlap(v.span(level+1, in))
	size := v.bytes(in) + v.bytes(below)
	reach := v.span(level, slices.Concat(in, below))
	for _, i := range v.levels[level] {
		f := &v.files[i]
		inside := bytes.Compare(f.Min, reach.Min) >= 0 && bytes.Compare(f.Max, reach.Max) <= 0
		if inside && !f.Busy && !slices.Contains(in, i) && size+f.Size <= v.o.maxJobBytes() {
			in = append(in, i)
			size += f.Size
		}
	}
	return job(Level, level+1, in, below)
}

// pickStale writes the file anew that has the largest share of deleted rows above the bound, with neighbours on its
// right that are half as bad, so that the outputs are not small.
func (v *view) pickStale() *Job {
	share := func(i int) float64 { return float64(v.files[i].Deleted) / float64(v.files[i].Rows) }
	best := -1
	for i := range v.files {
		if !v.files[i].Busy && v.stale(i) && (best < 0 || share(i) > share(best)) && !v.inTheWay(i) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	level := v.files[best].Level
	in := []int{best}
	const outputs = 4
	files := v.levels[level]
	size := v.files[best].live()
	for at := slices.Index(files, best) + 1; at < len(files); at++ {
		i := files[at]
		f := &v.files[i]
		size += f.live()
		if f.Busy || f.Deleted*200 <= int64(v.o.MaxDeletedPercent)*f.Rows || size > outputs*v.o.TargetFileBytes {
			break
		}
		if v.blocked(v.span(level, append(in, i))) {
			break
		}
		in = append(in, i)
	}
	return job(Rewrite, level, in)
}

// inTheWay reports whether a running job writes where file i is.
func (v *view) inTheWay(i int) bool {
	return v.blocked(v.span(v.files[i].Level, []int{i}))
}

// pickSmall merges neighbours of a level that are all small.
func (v *view) pickSmall() *Job {
	for level := 1; level < Levels; level++ {
		var run []int
		for _, i := range append(slices.Clone(v.levels[level]), -1) {
			if i >= 0 && !v.files[i].Busy && v.o.small(&v.files[i]) && !v.inTheWay(i) {
				run = append(run, i)
				continue
			}
			if in := v.mergeable(run); in != nil && !v.blocked(v.span(level, in)) {
				return job(Small, level, in)
			}
			run = nil
		}
	}
	return nil
}

// mergeable returns files of the run, neighbours all, that become fewer at little cost: no one of them is larger than
// the others together, so that a row is written anew a logarithmic number of times while files come one by one.
func (v *view) mergeable(run []int) []int {
	const fewest = 4
	if len(run) < fewest {
		return nil
	}
	largest := 0
	for at := range run {
		if v.files[run[at]].live() > v.files[run[largest]].live() {
			largest = at
		}
	}
	if 2*v.files[run[largest]].live() > v.live(run) {
		if in := v.mergeable(run[:largest]); in != nil {
			return in
		}
		return v.mergeable(run[largest+1:])
	}
	n, size := 0, int64(0)
	for n < len(run) && (n < fewest || size+v.files[run[n]].Size <= v.o.maxJobBytes()) {
		size += v.files[run[n]].Size
		n++
	}
	return run[:n]
}
