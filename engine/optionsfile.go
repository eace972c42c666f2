package engine

import (
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// The file OPTIONS in the database directory holds the options that describe the table's storage, as far as they were
// ever set: one "name = value" a line below a line with the format. It is replaced as a whole by a writing open that
// sets another value, and is missing where nothing was ever set. A later version may write options that this one does
// not know. Where a line says "required name = value", the option must be known to who opens the directory; else the
// line is left alone, and kept.
const (
	optionsFileName  = "OPTIONS"
	optionsFormat    = "merutable options 1"
	optionsRequired  = "required "
	optionsSeparator = " = "
)

// optionsFile is what OPTIONS holds.
type optionsFile struct {
	fs    vfs.FS
	dir   string
	lines []optionLine
}

type optionLine struct {
	number   int     // in the file, from 1
	option   *option // nil: of a later version
	value    string
	original string // as it stands in the file
}

// readOptionsFile reads the file of a directory, which need not exist.
func readOptionsFile(fs vfs.FS, dir string) (*optionsFile, error) {
	f := &optionsFile{fs: fs, dir: dir}
	text, err := readText(fs, f.path())
	if err != nil || text == "" {
		return f, err
	}
	for i, line := range strings.Split(text, "\n") {
		if i == 0 {
			if line != optionsFormat {
				return nil, base.Errorf(base.CodeUnsupported, "%s: line 1: %q: this version reads %q", f.path(), line, optionsFormat)
			}
			continue
		}
		if err := f.parse(i+1, line); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *optionsFile) path() string { return f.fs.Join(f.dir, optionsFileName) }

func (f *optionsFile) parse(number int, line string) error {
	text, required := strings.CutPrefix(line, optionsRequired)
	name, value, found := strings.Cut(text, optionsSeparator)
	if !found || name == "" || strings.ContainsAny(name, " \x00") {
		return base.Errorf(base.CodeCorruption, "%s: line %d: %q is not \"name = value\"", f.path(), number, line)
	}
	d := findOption(name)
	switch {
	case d == nil && required:
		return base.Errorf(base.CodeUnsupported, "%s: line %d: the table needs option %s, which this version does not know", f.path(), number, name)
	case d != nil && !d.sticks:
		return base.Errorf(base.CodeCorruption, "%s: line %d: option %s is a process's, and is not stored", f.path(), number, name)
	}
	f.lines = append(f.lines, optionLine{number: number, option: d, value: value, original: line})
	return nil
}

// apply returns what an engine works with: the options given, which win, and the stored ones.
func (f *optionsFile) apply(given Options) (Options, error) {
	o := given
	for _, l := range f.lines {
		if l.option == nil || l.option.given(&given) {
			continue
		}
		if err := o.Set(l.option.name, l.value); err != nil {
			return o, base.Wrapf(base.CodeUnsupported, err, "%s: line %d", f.path(), l.number)
		}
	}
	resolved, err := o.effective()
	if err != nil && len(f.lines) > 0 {
		return o, base.Wrapf(base.CodeOf(err), err, "with the options stored in %s", f.path())
	}
	return resolved, err
}

// store writes the file anew where the options given change what it holds. The caller has the directory locked.
func (f *optionsFile) store(given Options) error {
	lines := []string{optionsFormat}
	changed := false
	seen := map[*option]bool{}
	for _, l := range f.lines {
		seen[l.option] = true
		line := l.original
		if l.option != nil && l.option.given(&given) && l.option.format(&given) != l.value {
			line = l.option.name + optionsSeparator + l.option.format(&given)
			changed = true
		}
		lines = append(lines, line)
	}
	for i := range optionTable {
		d := &optionTable[i]
		if d.sticks && d.given(&given) && !seen[d] {
			lines = append(lines, d.name+optionsSeparator+d.format(&given))
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return writeText(f.fs, f.dir, optionsFileName, strings.Join(lines, "\n"))
}
