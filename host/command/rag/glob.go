package rag

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A glob is a path pattern, part by part: "**" stands for any number of parts,
// any other part is a pattern of [path.Match].
type glob []string

// maxGlob bounds a pattern in bytes.
const maxGlob = 1 << 10

// parseGlob reads a pattern relative to the workspace.
func parseGlob(pattern string) (glob, error) {
	if len(pattern) > maxGlob {
		return nil, errors.New("pattern is longer than 1 KiB")
	}
	clean := path.Clean(strings.TrimPrefix(pattern, "./"))
	if pattern == "" || clean == "." || strings.HasPrefix(clean, "/") || clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, errors.New("pattern must be a path inside the workspace")
	}
	return parts(clean)
}

func parts(pattern string) (glob, error) {
	g := glob(strings.Split(pattern, "/"))
	for _, p := range g {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("part %q is no valid pattern", p)
		}
	}
	return g, nil
}

func parseGlobs(patterns []string) ([]glob, error) {
	var globs []glob
	for _, p := range patterns {
		g, err := parseGlob(p)
		if err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "paths", Message: fmt.Sprintf("build context: path %.80q: %v", p, err)}
		}
		globs = append(globs, g)
	}
	return globs, nil
}

// literal returns the path that the glob names if it has no wildcard.
func (g glob) literal() (string, bool) {
	name := strings.Join(g, "/")
	return name, !strings.ContainsAny(name, `*?[\`)
}

// match walks name and pattern side by side. Only the last "**" passed needs
// to be remembered, so the time is at most the product of both lengths.
func (g glob) match(name string) bool {
	have := strings.Split(name, "/")
	i, j := 0, 0
	star, from := -1, 0
	for j < len(have) {
		switch {
		case i < len(g) && g[i] == "**":
			star, from = i, j
			i++
			continue
		case i < len(g) && matchPart(g[i], have[j]):
			i++
			j++
			continue
		case star < 0:
			return false
		}
		from++
		i, j = star+1, from
	}
	for i < len(g) && g[i] == "**" {
		i++
	}
	return i == len(g)
}

// covers also holds for what lies below a folder that the glob names.
func (g glob) covers(name string) bool {
	return g.match(name) || append(g[:len(g):len(g)], "**").match(name)
}

func matchPart(pattern, part string) bool {
	ok, _ := path.Match(pattern, part) // checked when it was parsed
	return ok
}
