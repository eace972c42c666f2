package compact

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the code does as what the tests expect")

// TestPick runs the scripts in testdata. A script has cases, each of lines up to "----" and then the answer, up to an
// empty line. The lines of a case:
//
//	file NAME LEVEL MIN-MAX SIZE [deleted=PERCENT] [busy] [loose]
//	running LEVEL MIN-MAX
//	pick | full [MIN-MAX] | place MIN-MAX SIZE | pressure
//
// Files stand in the order of the manifest. Sizes are in MiB; files are to be of 64, level 1 of 256, and level 0 is
// compacted at 4 files.
func TestPick(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(path), func(t *testing.T) { runScript(t, path) })
	}
}

func runScript(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		input, want, ok := strings.Cut(block, "\n----\n")
		if !ok {
			input, want = strings.TrimSuffix(block, "\n----"), ""
		}
		got := runCase(t, strings.Split(input, "\n"))
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n", input, got)
		if !*rewrite && got != strings.TrimSpace(want) {
			t.Errorf("%s\nis: %s\nwant: %s", input, got, want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const mib = 1 << 20

func testOptions() Options {
	return Options{L0Files: 4, TargetFileBytes: 64 * mib, BaseLevelBytes: 256 * mib, LevelMultiplier: 10, MaxDeletedPercent: 20}
}

func runCase(t *testing.T, lines []string) string {
	var files []File
	var names []string
	var running []Span
	describe := func(j *Job) string {
		if j == nil {
			return "nothing"
		}
		var in []string
		for _, i := range j.Inputs {
			in = append(in, names[i])
		}
		keys := ""
		if j.Lower != nil || j.Upper != nil {
			keys = fmt.Sprintf(", keys %s-%s", j.Lower, j.Upper)
		}
		return fmt.Sprintf("%s to level %d: %s%s", j.Kind, j.Level, strings.Join(in, " "), keys)
	}
	var got []string
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		switch f[0] {
		case "file":
			names = append(names, f[1])
			files = append(files, parseFile(t, f[2:]))
		case "running":
			lo, hi := parseRange(f[2])
			running = append(running, Span{Level: number(t, f[1]), Min: lo, Max: hi})
		case "pick":
			got = append(got, describe(Pick(files, running, testOptions())))
		case "full":
			var lo, hi []byte
			if len(f) > 1 {
				lo, hi = parseRange(f[1])
			}
			jobs := PlanFull(files, lo, hi, testOptions())
			for _, j := range jobs {
				got = append(got, describe(j))
			}
			if jobs == nil {
				got = append(got, "nothing")
			}
		case "place":
			lo, hi := parseRange(f[1])
			got = append(got, fmt.Sprint("level ", PlaceLevel(files, running, lo, hi, int64(number(t, f[2]))*mib, testOptions())))
		case "pressure":
			l0, pending := Pressure(files, testOptions())
			got = append(got, fmt.Sprintf("%d files, %d MiB", l0, pending/mib))
		default:
			t.Fatalf("line %q", line)
		}
	}
	return strings.Join(got, "\n")
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parseRange(s string) (lo, hi []byte) {
	a, b, _ := strings.Cut(s, "-")
	return []byte(a), []byte(b)
}

func parseFile(t *testing.T, f []string) File {
	out := File{Level: number(t, f[0]), Size: int64(number(t, f[2])) * mib, Rows: 100_000}
	out.Min, out.Max = parseRange(f[1])
	for _, o := range f[3:] {
		if percent, ok := strings.CutPrefix(o, "deleted="); ok {
			out.Deleted = int64(number(t, percent)) * out.Rows / 100
		}
	}
	out.Busy, out.Loose = slices.Contains(f[3:], "busy"), slices.Contains(f[3:], "loose")
	return out
}
