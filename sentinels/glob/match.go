package glob

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Match reports whether the pattern matches a whole path, which is relative, clean
// and written with slashes.
func (p Pattern) Match(name string) bool {
	for _, a := range p.alternatives {
		if set, _ := a.walk(name, false); set&a.end() != 0 {
			return true
		}
	}
	return false
}

// Covers reports whether the pattern matches a path or a folder above it.
func (p Pattern) Covers(name string) bool {
	for _, a := range p.alternatives {
		if _, covered := a.walk(name, true); covered {
			return true
		}
	}
	return false
}

// Reaches reports whether the pattern can match a path below a folder.
func (p Pattern) Reaches(dir string) bool {
	if dir == "." {
		return len(p.alternatives) > 0
	}
	for _, a := range p.alternatives {
		if set, _ := a.walk(dir, true); set&^a.end() != 0 {
			return true
		}
	}
	return false
}

// Names reports whether the pattern contains the name of a folder without
// wildcards, as a folder above the files that it matches.
func (p Pattern) Names(dir string) bool {
	for _, a := range p.alternatives {
		rest, more := dir, true
		for i := 0; more && i < len(a)-1; i++ {
			var name string
			name, rest, more = strings.Cut(rest, "/")
			if a[i].kind != literal || a[i].text != name {
				more = true
				break
			}
		}
		if !more {
			return true
		}
	}
	return false
}

// HasSegment reports whether a component of the pattern is this name, without
// wildcards.
func (p Pattern) HasSegment(name string) bool {
	return slices.ContainsFunc(p.alternatives, func(a alternative) bool { return slices.Contains(a, segment{name, literal}) })
}

// Literal returns the path that the pattern matches if it has no wildcards.
func (p Pattern) Literal() (string, bool) {
	if len(p.alternatives) != 1 {
		return "", false
	}
	var names []string
	for _, s := range p.alternatives[0] {
		if s.kind != literal {
			return "", false
		}
		names = append(names, s.text)
	}
	return strings.Join(names, "/"), true
}

// end is the element of a set that says that all segments have matched.
func (a alternative) end() uint64 { return 1 << len(a) }

// with adds the segments that can come next once the first i have matched. "**"
// may match nothing, so the one behind it can come next as well.
func (a alternative) with(set uint64, i int) uint64 {
	set |= 1 << i
	if i < len(a) && a[i].kind == doubleStar {
		set |= 1 << (i + 1)
	}
	return set
}

// walk returns the set of segments that can come next after the components of a
// path. covered reports whether all segments matched the path or a folder above
// it; it needs prefixes, without which the last segment is only compared with the
// last component.
func (a alternative) walk(name string, prefixes bool) (set uint64, covered bool) {
	set = a.with(0, 0)
	for more := true; more && set != 0; {
		var part string
		part, name, more = strings.Cut(name, "/")
		var after uint64
		for ; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			switch {
			case i == len(a):
			case a[i].kind == doubleStar:
				after = a.with(after, i)
			case i == len(a)-1 && more && !prefixes:
			case a[i].match(part):
				after = a.with(after, i+1)
			}
		}
		set = after
		covered = covered || set&a.end() != 0
	}
	return set, covered
}

// match compares a segment with one component of a path.
func (s segment) match(name string) bool {
	switch s.kind {
	case literal:
		return s.text == name
	case suffix:
		return strings.HasSuffix(name, s.text)
	default:
		return doublestar.MatchUnvalidated(s.text, name)
	}
}
