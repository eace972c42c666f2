package mirror

import "time"

// Timeline says when what is numbered in order came to be: rows by sequence number, or commits. It answers how old the
// oldest is that is not at the store yet. Numbers that come in quick succession share an entry, and so do older ones where
// there are many, so an age may be too large by a little, never too small. It is not safe for concurrent use.
type Timeline struct {
	marks []mark // ascending
	last  uint64
}

// mark says that the numbers from first on, up to the next mark, came at a moment or after it.
type mark struct {
	first uint64
	at    time.Time
}

const (
	maxMarks = 512
	// markEvery is what ages may be too large by.
	markEvery = 10 * time.Millisecond
)

// Add takes note of the numbers first to last, which are the next ones.
func (t *Timeline) Add(first, last uint64, at time.Time) {
	if last < first || last <= t.last {
		return
	}
	t.last = last
	if n := len(t.marks); n > 0 && at.Sub(t.marks[n-1].at) < markEvery {
		return
	}
	t.marks = append(t.marks, mark{first, at})
	if len(t.marks) < maxMarks {
		return
	}
	kept := t.marks[:0]
	for i, m := range t.marks {
		if i%2 == 0 {
			kept = append(kept, m)
		}
	}
	t.marks = kept
}

// Done says that all numbers up to n are at the store.
func (t *Timeline) Done(n uint64) {
	if n >= t.last {
		t.marks = t.marks[:0]
		return
	}
	for len(t.marks) > 1 && t.marks[1].first <= n+1 {
		t.marks = t.marks[1:]
	}
}

// Oldest returns when the oldest came that is not at the store. False: there is none.
func (t *Timeline) Oldest() (time.Time, bool) {
	if len(t.marks) == 0 {
		return time.Time{}, false
	}
	return t.marks[0].at, true
}
