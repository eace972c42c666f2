package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/merutable/merutable/engine"
)

// Every statistic has a row, a name that is its own, and a place in the documentation.
func TestStatisticsAreDocumented(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Free()
	r, err := statsReport(db)
	if err != nil {
		t.Fatal(err)
	}
	docs := readFile(t, "../docs/CAPI.md")
	levels := regexp.MustCompile(`^levels\.\d+\.`)
	reasons := regexp.MustCompile(`_(immutables|l0|pending)$`)
	seen := map[string]bool{}
	for _, row := range r.rows {
		name := row[0].(string)
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		written := levels.ReplaceAllString(name, "levels.N.")
		if strings.HasPrefix(name, "slowdown") || strings.HasPrefix(name, "stop") {
			written = reasons.ReplaceAllString(name, "_*")
		}
		if strings.HasPrefix(name, "handles.") {
			written = "handles.*"
		}
		if !strings.Contains(docs, "`"+written+"`") {
			t.Errorf("docs/CAPI.md does not name `%s`", written)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d statistics", len(seen))
	}
}
