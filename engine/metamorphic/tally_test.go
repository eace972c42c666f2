package metamorphic

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

// events are what histories must have gone through: one that meets none of them shows nothing.
var events = []string{
	"flushes", "bulk loads", "compactions", "files collected", "conflicts", "interrupts", "full disks", "failed syncs",
	"refreshes of readers", "older versions", "change feeds", "changes of the schema", "power cuts", "power cuts that lost changes", "power cuts that left the change under way",
}

// tally counts events.
type tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

func newTally() *tally { return &tally{counts: map[string]int64{}} }

func (s *tally) add(event string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[event] += n
}

// check fails where an event never came.
func (s *tally) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%9d %s", s.counts[e], e)
	}
	for _, e := range events {
		if s.counts[e] == 0 && !t.Failed() {
			t.Errorf("there were no %s", e)
		}
	}
}
