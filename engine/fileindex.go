package engine

import (
	"bytes"
	"slices"
	"sort"
)

// fileIndex finds the files of a state by key. It is immutable.
type fileIndex struct {
	// runs are sets of files, as indices into the state's, whose key ranges do not meet; each is in key order. A level
	// below 0 is one run, level 0 has as many as its files overlap. Runs of level 0 come first, newer files before older
	// ones.
	runs [][]int
	byID map[uint64]*liveFile
	// distinct is what the files' sketches say.
	distinct distinctCounts
}

func newFileIndex(files []*liveFile) *fileIndex {
	x := &fileIndex{byID: make(map[uint64]*liveFile, len(files))}
	order := make([]int, len(files))
	for i, f := range files {
		order[i] = i
		x.byID[f.id] = f
	}
	// Below level 0 every file then follows the one before it in its run.
	slices.SortStableFunc(order, func(a, b int) int {
		fa, fb := files[a].meta, files[b].meta
		if fa.Level != fb.Level || fa.Level == 0 {
			return fa.Level - fb.Level
		}
		return bytes.Compare(fa.KeyMin, fb.KeyMin)
	})
	level, first := -1, 0
	for _, i := range order {
		if l := files[i].meta.Level; l != level {
			level, first = l, len(x.runs)
		}
		x.place(files, i, first)
	}
	return x
}

// place puts a file into the first of the runs from first on whose files it does not meet.
func (x *fileIndex) place(files []*liveFile, i, first int) {
	f := files[i].meta
	for r := first; r < len(x.runs); r++ {
		run := x.runs[r]
		at := atOrAfter(files, run, f.KeyMin)
		if at == len(run) || bytes.Compare(f.KeyMax, files[run[at]].meta.KeyMin) < 0 {
			x.runs[r] = slices.Insert(run, at, i)
			return
		}
	}
	x.runs = append(x.runs, []int{i})
}

// atOrAfter returns where in a run the first file is that ends at a key or behind it.
func atOrAfter(files []*liveFile, run []int, key []byte) int {
	return sort.Search(len(run), func(n int) bool { return bytes.Compare(files[run[n]].meta.KeyMax, key) >= 0 })
}

// holding returns the file of a run whose key range holds the key, nil where none does.
func holding(files []*liveFile, run []int, key []byte) *liveFile {
	at := atOrAfter(files, run, key)
	if at == len(run) || bytes.Compare(files[run[at]].meta.KeyMin, key) > 0 {
		return nil
	}
	return files[run[at]]
}

// meeting returns the part of a run whose files meet a range of keys.
func meeting(files []*liveFile, run []int, r keyRange) []int {
	from, to := 0, len(run)
	if r.lower != nil {
		from = atOrAfter(files, run, r.lower)
	}
	if r.upper != nil {
		to = from + sort.Search(len(run)-from, func(n int) bool {
			return bytes.Compare(files[run[from+n]].meta.KeyMin, r.upper) >= 0
		})
	}
	return run[from:to]
}
