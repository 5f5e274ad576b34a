package files

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a query.
const (
	maxPatterns = 100
	maxPattern  = 512 // bytes
	maxDepth    = 64  // folders below the root
)

// skippedFolders are never entered: tools write thousands of files in them.
var skippedFolders = []string{".git", "node_modules", ".hg", ".svn"}

// stateFolder contains the store, which changes with every step.
const stateFolder = ".sentinel/state"

// temporary are patterns of the names that editors, downloads and atomic writes
// use for incomplete files.
var temporary = []string{"*~", ".#*", "#*#", "*.sw[opx]", ".*.sw[opx]", "4913", "*.tmp", "*.part", "*.crdownload", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*"}

// isTemporary reports whether a base name is that of an incomplete file.
func isTemporary(base string) bool {
	return slices.ContainsFunc(temporary, func(p string) bool { return doublestar.MatchUnvalidated(p, base) })
}

// isSkipped reports whether a folder is never entered.
func isSkipped(dir string) bool {
	return slices.Contains(skippedFolders, path.Base(dir)) || dir == stateFolder || strings.HasSuffix(dir, "/"+stateFolder)
}

// globs select files of a tree.
type globs struct {
	key     string // equal globs have equal keys
	include []glob
	ignore  []string
}

// A glob is one pattern, analyzed so that most paths need no matching.
type glob struct {
	text     string
	segments []string // "**" also replaces segments that can match several folders
	literal  string   // leading folders without meta characters, "" for none
}

// newGlobs checks the patterns and reports all problems in one error.
func newGlobs(include, ignore []string) (*globs, error) {
	g := &globs{key: strings.Join(include, "\x00") + "\x01" + strings.Join(ignore, "\x00"), ignore: ignore}
	var errs []error
	if len(include) == 0 {
		errs = append(errs, errors.New("no patterns"))
	}
	if len(include)+len(ignore) > maxPatterns {
		return nil, fmt.Errorf("%d patterns: want at most %d", len(include)+len(ignore), maxPatterns)
	}
	for _, p := range include {
		if err := checkPattern(p); err != nil {
			errs = append(errs, err)
			continue
		}
		one := newGlob(p)
		if at := slices.IndexFunc(one.segments, func(s string) bool { return slices.Contains(skippedFolders, s) }); at >= 0 {
			errs = append(errs, fmt.Errorf("pattern %q: folders named %q are never watched", p, one.segments[at]))
		}
		g.include = append(g.include, one)
	}
	for _, p := range ignore {
		errs = append(errs, checkPattern(p))
	}
	return g, errors.Join(errs...)
}

// checkPattern reports the problem of one pattern. Patterns come from
// definitions: it refuses those that leave the root and those that make matching
// slow. Matching itself accepts any pattern.
func checkPattern(p string) error {
	switch {
	case p == "":
		return errors.New("empty pattern")
	case len(p) > maxPattern:
		return fmt.Errorf("pattern of %d bytes: want at most %d", len(p), maxPattern)
	case strings.ContainsRune(p, 0), !doublestar.ValidatePattern(p):
		return fmt.Errorf("invalid pattern %q", p)
	case path.IsAbs(p), strings.HasPrefix(p, `\`), len(p) > 1 && p[1] == ':':
		return fmt.Errorf("absolute pattern %q: want one relative to the workspace", p)
	case slices.Contains(strings.Split(p, "/"), ".."):
		return fmt.Errorf("pattern %q leaves the workspace", p)
	case path.Clean(p) != p:
		return fmt.Errorf("pattern %q: write %q", p, path.Clean(p))
	case strings.Count(p, "**") > 8:
		return fmt.Errorf("pattern %q: more than 8 \"**\"", p)
	case strings.Count(p, "{") > 4, strings.Count(p, ",") > 32:
		// The library tries every combination of the alternatives.
		return fmt.Errorf("pattern %q: too many alternatives: use several patterns", p)
	}
	return nil
}

// newGlob analyzes a pattern that checkPattern accepts.
func newGlob(p string) glob {
	g := glob{text: p}
	front := true
	for _, s := range strings.Split(p, "/") {
		// A segment that is no valid pattern is part of an alternative or a class
		// with a slash in it, which can match several folders.
		if s == "**" || !doublestar.ValidatePattern(s) {
			front = false
			if n := len(g.segments); n == 0 || g.segments[n-1] != "**" {
				g.segments = append(g.segments, "**")
			}
			if s != "**" {
				return g
			}
			continue
		}
		front = front && !strings.ContainsAny(s, `*?[{\`)
		if front && len(g.segments) < strings.Count(p, "/") {
			g.literal = path.Join(g.literal, s)
		}
		g.segments = append(g.segments, s)
	}
	return g
}

// matches reports whether a file is selected. It is called for every file and
// group, so it compares literal prefixes before it calls the library, which makes
// it ten times faster.
func (g *globs) matches(file string) bool {
	for i := range g.include {
		one := &g.include[i]
		if one.literal != "" && (!strings.HasPrefix(file, one.literal) || file[len(one.literal):] == "" || file[len(one.literal)] != '/') {
			continue
		}
		if doublestar.MatchUnvalidated(one.text, file) {
			return !g.ignores(file)
		}
	}
	return false
}

// ignores reports whether a path or one of its folders is ignored.
func (g *globs) ignores(p string) bool {
	if len(g.ignore) == 0 {
		return false
	}
	for ; p != "."; p = path.Dir(p) {
		for _, i := range g.ignore {
			if doublestar.MatchUnvalidated(i, p) {
				return true
			}
		}
	}
	return false
}

// enters reports whether a folder can contain matching files, at any depth.
func (g *globs) enters(dir string) bool {
	if dir == "." {
		return true
	}
	segments := strings.Split(dir, "/")
	for i := range g.include {
		if g.include[i].reaches(segments) {
			return !g.ignores(dir)
		}
	}
	return false
}

// follows reports whether a pattern names dir, or a folder in it, literally. Only
// then a link to a folder is followed.
func (g *globs) follows(dir string) bool {
	return slices.ContainsFunc(g.include, func(one glob) bool {
		return one.literal == dir || strings.HasPrefix(one.literal, dir+"/")
	})
}

// reaches reports whether the pattern can match a path below a folder. It keeps
// the set of segments that can come next, so its time is proportional to the
// product of the lengths.
func (g *glob) reaches(dir []string) bool {
	at := make([]bool, len(g.segments)+1)
	next := make([]bool, len(at))
	at[0] = true
	for _, name := range dir {
		clear(next)
		for i, ok := range at {
			if !ok || i == len(g.segments) {
				continue
			}
			if g.segments[i] == "**" {
				next[i] = true
				at[i+1] = true // "**" may match no folder
			} else if doublestar.MatchUnvalidated(g.segments[i], name) {
				next[i+1] = true
			}
		}
		at, next = next, at
	}
	for i, ok := range at {
		if ok && i < len(g.segments) {
			return true
		}
	}
	return false
}
