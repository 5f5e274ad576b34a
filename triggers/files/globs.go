package files

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a query.
const (
	maxPatterns = 100
	maxPattern  = 512 // bytes
	maxDepth    = 64  // folders below the root
)

// skippedFolders are never entered: what is in them is made by tools and
// changes by the thousand.
var skippedFolders = []string{".git", "node_modules", ".hg", ".svn"}

// stateFolder holds the store, which changes with every step.
const stateFolder = ".sentinel/state"

// temporary are the names under which editors and our own writers keep what is
// not a file yet.
var temporary = []string{"*~", ".#*", "#*#", "*.sw[opx]", ".*.sw[opx]", "4913", "*.tmp", "*.part", "*.crdownload", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*"}

// isTemporary reports whether a base name is one that editors write to first.
func isTemporary(base string) bool {
	return slices.ContainsFunc(temporary, func(p string) bool { return doublestar.MatchUnvalidated(p, base) })
}

// isSkipped reports whether a folder is never looked into.
func isSkipped(dir string) bool {
	return slices.Contains(skippedFolders, path.Base(dir)) || dir == stateFolder || strings.HasSuffix(dir, "/"+stateFolder)
}

// globs say which files of a tree are meant.
type globs struct {
	key    string // equal globs have equal keys
	want   []glob
	ignore []string
}

// A glob is one pattern with what is known of it without matching.
type glob struct {
	text     string
	segments []string // "**" where anything may stand
	literal  string   // folders at the front without a meta character, "" for none
}

// newGlobs checks patterns. All problems are in the error.
func newGlobs(want, ignore []string) (*globs, error) {
	g := &globs{key: strings.Join(want, "\x00") + "\x01" + strings.Join(ignore, "\x00"), ignore: ignore}
	var errs []error
	if len(want) == 0 {
		errs = append(errs, errors.New("there are no patterns"))
	}
	if len(want)+len(ignore) > maxPatterns {
		return nil, fmt.Errorf("%d patterns, at most %d are allowed", len(want)+len(ignore), maxPatterns)
	}
	for _, p := range want {
		if err := checkPattern(p); err != nil {
			errs = append(errs, err)
			continue
		}
		one := newGlob(p)
		if at := slices.IndexFunc(one.segments, func(s string) bool { return slices.Contains(skippedFolders, s) }); at >= 0 {
			errs = append(errs, fmt.Errorf("pattern %q: folders called %q are never watched", p, one.segments[at]))
		}
		g.want = append(g.want, one)
	}
	for _, p := range ignore {
		errs = append(errs, checkPattern(p))
	}
	return g, errors.Join(errs...)
}

// checkPattern reports what is wrong with one pattern. Patterns come from
// definitions, so whatever would leave the root or make matching slow is refused
// here, and matching itself takes anything.
func checkPattern(p string) error {
	switch {
	case p == "":
		return errors.New("a pattern is empty")
	case len(p) > maxPattern:
		return fmt.Errorf("a pattern of %d bytes, at most %d are allowed", len(p), maxPattern)
	case strings.ContainsRune(p, 0), !doublestar.ValidatePattern(p):
		return fmt.Errorf("pattern %q: it cannot be read", p)
	case path.IsAbs(p), strings.HasPrefix(p, `\`), len(p) > 1 && p[1] == ':':
		return fmt.Errorf("pattern %q: it is absolute, want one relative to the workspace", p)
	case slices.Contains(strings.Split(p, "/"), ".."):
		return fmt.Errorf("pattern %q: it leaves the workspace", p)
	case path.Clean(p) != p:
		return fmt.Errorf("pattern %q: write %q", p, path.Clean(p))
	case strings.Count(p, "**") > 8:
		return fmt.Errorf("pattern %q: more than 8 times **", p)
	case strings.Count(p, "{") > 4, strings.Count(p, ",") > 32:
		// The library tries every combination of the alternatives.
		return fmt.Errorf("pattern %q: too many alternatives; write several patterns", p)
	}
	return nil
}

// newGlob splits a pattern that was checked.
func newGlob(p string) glob {
	g := glob{text: p}
	front := true
	for _, s := range strings.Split(p, "/") {
		// An alternative or a class that has a slash in it reaches over folders;
		// from there on any folder may matter.
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

// wants reports whether a file is meant. It is asked for every file and every
// group, so the literal front of a pattern, which most have, decides before the
// library does: that is ten times faster.
func (g *globs) wants(file string) bool {
	for i := range g.want {
		one := &g.want[i]
		if one.literal != "" && (!strings.HasPrefix(file, one.literal) || file[len(one.literal):] == "" || file[len(one.literal)] != '/') {
			continue
		}
		if doublestar.MatchUnvalidated(one.text, file) {
			return !g.ignores(file)
		}
	}
	return false
}

// ignores reports whether a path or a folder it is in is to be ignored.
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

// enters reports whether a folder can hold files that are meant, at any depth.
func (g *globs) enters(dir string) bool {
	if dir == "." {
		return true
	}
	segments := strings.Split(dir, "/")
	for i := range g.want {
		if g.want[i].reaches(segments) {
			return !g.ignores(dir)
		}
	}
	return false
}

// follows reports whether a pattern names dir, or a folder in it, literally:
// only then is a link to a folder followed.
func (g *globs) follows(dir string) bool {
	return slices.ContainsFunc(g.want, func(one glob) bool {
		return one.literal == dir || strings.HasPrefix(one.literal, dir+"/")
	})
}

// reaches reports whether the pattern can match something below a folder. It
// keeps the set of places in the pattern that the folder can have led to, so
// that its time is the product of the lengths.
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
				at[i+1] = true // "**" may stand for nothing
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
