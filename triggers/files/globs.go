package files

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Limits of a query.
const (
	maxPatterns = 100
	maxPattern  = 512 // bytes
	maxDepth    = 64  // folders below the root
)

// stateFolder contains the store, which changes with every step.
const stateFolder = ".sentinel/state"

// temporary matches the names that editors, downloads and atomic writes use for
// incomplete files.
var temporary = mustParse("{" + strings.Join([]string{"*~", ".#*", "#*#", "*.sw[opx]", ".*.sw[opx]", "4913", "*.tmp", "*.part", "*.crdownload", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*"}, ",") + "}")

func mustParse(pattern string) glob.Pattern {
	p, err := glob.Parse(pattern)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return p
}

// isTemporary reports whether a base name is that of an incomplete file.
func isTemporary(base string) bool { return temporary.Match(base) }

// isSkipped reports whether a folder is never entered.
func isSkipped(dir string) bool {
	return glob.IsSkipped(path.Base(dir)) || dir == stateFolder || strings.HasSuffix(dir, "/"+stateFolder)
}

// globs select files of a tree.
type globs struct {
	key             string // equal globs have equal keys
	include, ignore []glob.Pattern
}

// newGlobs checks the patterns and reports all problems in one error.
func newGlobs(include, ignore []string) (*globs, error) {
	if len(include)+len(ignore) > maxPatterns {
		return nil, fmt.Errorf("%d patterns: want at most %d", len(include)+len(ignore), maxPatterns)
	}
	var errs []error
	if len(include) == 0 {
		errs = append(errs, errors.New("no patterns"))
	}
	read := func(patterns []string) (list []glob.Pattern) {
		for _, text := range patterns {
			p, err := newGlob(text)
			errs = append(errs, err)
			list = append(list, p)
		}
		return list
	}
	g := &globs{key: strings.Join(include, "\x00") + "\x01" + strings.Join(ignore, "\x00"), include: read(include), ignore: read(ignore)}
	for i, p := range g.include {
		for _, name := range glob.Skipped() {
			if p.HasSegment(name) {
				errs = append(errs, fmt.Errorf("pattern %q: folders named %q are never watched", include[i], name))
			}
		}
	}
	return g, errors.Join(errs...)
}

// newGlob reads a pattern of a definition. It is shorter than [glob.ParseFiles] accepts,
// and not an absolute path of another system, to which the definition may be copied.
func newGlob(text string) (glob.Pattern, error) {
	switch {
	case len(text) > maxPattern:
		return glob.Pattern{}, fmt.Errorf("pattern of %d bytes: want at most %d", len(text), maxPattern)
	case strings.HasPrefix(text, `\`), len(text) > 1 && text[1] == ':':
		return glob.Pattern{}, fmt.Errorf("absolute pattern %q: want one relative to the workspace", text)
	}
	return glob.ParseFiles(text)
}

// matches reports whether a file is selected.
func (g *globs) matches(file string) bool {
	return slices.ContainsFunc(g.include, func(p glob.Pattern) bool { return p.Match(file) }) && !g.ignores(file)
}

// ignores reports whether a path or one of its folders is ignored.
func (g *globs) ignores(name string) bool {
	return slices.ContainsFunc(g.ignore, func(p glob.Pattern) bool { return p.Covers(name) })
}

// enters reports whether a folder can contain matching files, at any depth.
func (g *globs) enters(dir string) bool {
	return dir == "." || slices.ContainsFunc(g.include, func(p glob.Pattern) bool { return p.Reaches(dir) }) && !g.ignores(dir)
}

// follows reports whether a pattern names dir, or a folder in it, literally. Only
// then a link to a folder is followed.
func (g *globs) follows(dir string) bool {
	return slices.ContainsFunc(g.include, func(p glob.Pattern) bool { return p.Names(dir) })
}
