package metamorphic

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	minutes = flag.Float64("minutes", 0, "run new histories for so long, instead of the few that are always the same")
	replay  = flag.String("history", "", "run the history in this file")
	tries   = flag.Int("tries", 3, "how often a history is run before it counts as good")
	length  = flag.Int("ops", 200, "operations of a history")
)

// TestHistories runs some histories under every configuration.
func TestHistories(t *testing.T) {
	if *minutes > 0 || *replay != "" {
		t.Skip("other histories are asked for")
	}
	seeds, ops := uint64(4), *length
	if testing.Short() {
		seeds, ops = 1, ops/2
	}
	seen := newTally()
	t.Cleanup(func() {
		if !testing.Short() {
			seen.check(t)
		}
	})
	for seed := range seeds {
		for _, c := range Configs() {
			t.Run(fmt.Sprintf("%s/%d", c.Name, seed), func(t *testing.T) {
				t.Parallel()
				h := Generate(seed, ops)
				h.Config = c.Name
				runAndShrink(t, h, seen.add)
			})
		}
	}
}

// TestLong is what `just metamorphic` runs: other histories and configurations every time.
func TestLong(t *testing.T) {
	if *minutes <= 0 {
		t.Skip("-minutes is not given")
	}
	first := uint64(time.Now().UnixMilli())
	seen := newTally()
	deadline := time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	n := uint64(0)
	for ; time.Now().Before(deadline) && !t.Failed(); n++ {
		h := Generate(first+n, *length)
		if configs := Configs(); n%2 == 0 {
			h.Config = configs[n/2%uint64(len(configs))].Name
		} else {
			h.Config = RandomConfig(first + n).Name
		}
		runAndShrink(t, h, seen.add)
	}
	seen.check(t)
	t.Logf("%d histories of %d operations", n, *length)
}

// TestReplay runs a history from a file as it is.
func TestReplay(t *testing.T) {
	if *replay == "" {
		t.Skip("-history is not given")
	}
	text, err := os.ReadFile(*replay)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := failsWithin(h, *tries, Run); err != nil {
		t.Fatal(err)
	}
}

const replayCommand = "go test ./engine/metamorphic -run TestReplay -history"

// runAndShrink runs a history. If it fails the shortest one that does is left in a file.
func runAndShrink(t *testing.T, h History, seen func(string, int64)) {
	t.Helper()
	// The history is on the disk before it runs: a panic on one of the engine's goroutines leaves nothing else.
	path := filepath.Join(os.TempDir(), fmt.Sprintf("merutable-%d-%s-%d.history", os.Getpid(), h.Config, h.Ops[0].Seed))
	if err := os.WriteFile(path, []byte(h.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	err := runHooked(h, hooks{seen: seen})
	if err == nil {
		_ = os.Remove(path)
		return
	}
	short, shortErr := Shrink(h, *tries, Run)
	if shortErr == nil {
		t.Fatalf("%v\nIt did not fail again in %d runs of\n\t%s %s", err, *tries, replayCommand, path)
	}
	if err := os.WriteFile(path, []byte(short.String()), 0o600); err != nil {
		t.Error(err)
	}
	t.Fatalf("%v\nshrunk from %d to %d operations: %v\n%s\n%s %s", err, len(h.Ops), len(short.Ops), shortErr, short,
		replayCommand, path)
}
