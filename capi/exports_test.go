package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// exportSources returns the C functions of the header.
func exportSources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("exports*.c")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(readFile(t, file))
	}
	return all.String()
}

var comments = regexp.MustCompile(`(?s)/\*.*?\*/`)

func names(text, pattern string) []string {
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The functions of the header are those that exports*.c define. That their signatures agree is the C compiler's to say,
// which sees both; that the library exports them is tested on the library (tests/hosts/run.sh).
func TestHeaderAndExportsAgree(t *testing.T) {
	header := comments.ReplaceAllString(readFile(t, "../include/merutable.h"), "")
	declared := names(header, `MERU_API[^;(]*?\b(meru_\w+)\(`)
	defined := names(comments.ReplaceAllString(exportSources(t), ""), `(?m)^[A-Za-z][^;=\n(]*?\b(meru_\w+)\(`)
	if len(declared) < 50 {
		t.Fatalf("found only %d functions in the header", len(declared))
	}
	if !slices.Equal(declared, defined) {
		t.Errorf("declared: %v\ndefined: %v", declared, defined)
	}
}

// Every Go half is called, and none runs outside the guard: a panic that leaves Go kills the host.
func TestEveryExportIsGuarded(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := exportSources(t) + readFile(t, "arrow.c")
	exports := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source := readFile(t, file)
		for _, m := range regexp.MustCompile(`(?s)//export (merugo_\w+)\n(func .*?\n)(.*?\n)}\n|//export (\w+)\nfunc .*? \{ (return version\(\)) \}`).FindAllStringSubmatch(source, -1) {
			exports++
			if m[1] == "" { // the version, a constant
				continue
			}
			if !strings.Contains(calls, m[1]+"(") {
				t.Errorf("%s: %s is never called", file, m[1])
			}
			body := strings.TrimSpace(m[3])
			guarded := strings.HasPrefix(body, "return call(cerr, func() error {") || strings.Contains(body, "quiet(func() {") ||
				strings.Contains(body, "readSchema(h, func(t *tableSchema) {")
			if !guarded {
				t.Errorf("%s: %s runs outside call() and quiet():\n%s", file, m[1], body)
			}
		}
		if n := strings.Count(source, "//export "); n > 0 && exports == 0 {
			t.Errorf("%s: no export was recognised", file)
		}
	}
	total := 0
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			total += strings.Count(readFile(t, file), "//export merugo_")
		}
	}
	if exports != total {
		t.Errorf("checked %d of %d exports", exports, total)
	}
}
