package rag

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// fileBytes is the most that one file may take of a source, in bytes.
const fileBytes = 6 << 10

// maxShown bounds how many files one source shows.
const maxShown = 40

// files shows the files that matter most, best first.
func (g *gathering) files(ctx context.Context, n int) (string, bool, error) {
	items, err := g.workspace.items(ctx)
	if err != nil {
		return "", false, err
	}
	var names []string
	for _, it := range items {
		if !it.folder {
			names = append(names, it.path)
		}
	}
	words := queryWords(queryOf(g.req))
	ranked, whole, err := rankWords(ctx, g.workspace, names, words)
	if err != nil {
		return "", false, err
	}
	mark := func(name string, by float64, line int) {
		c := ranked[name]
		c.path = name
		c.score += by
		if c.line == 0 {
			c.line = line
		}
		ranked[name] = c
	}
	for name, line := range mentions(g.req.Variables, items, g.req.Workspace) {
		mark(name, markMention, line)
	}
	status, _ := g.gitStatus(ctx) // without git nothing counts as changed
	var changed []string
	for _, c := range status.Changes {
		changed = append(changed, c.Path)
	}
	for _, name := range names {
		if slices.ContainsFunc(g.paths, func(p glob.Pattern) bool { return p.Covers(name) }) {
			mark(name, markPath, 0)
		}
		if _, found := slices.BinarySearch(changed, name); found {
			mark(name, markChanged, 0)
		}
		if slices.Contains(customFiles, strings.ToLower(path.Base(name))) && strings.Count(name, "/") < 2 {
			mark(name, markCustom, 0)
		}
	}
	text, cutOff := g.show(byScore(ranked), words, n)
	return text, cutOff || !whole || g.workspace.more, nil
}

// named shows the files that a pattern of an explicit source fits, by path. A
// pattern without wildcards also reaches what lists leave out as ignored.
func (g *gathering) named(ctx context.Context, pattern string, n int) (string, bool, error) {
	p, err := parseGlob(pattern)
	if err != nil {
		return "", false, err
	}
	words := queryWords(queryOf(g.req))
	matches := p.Match
	if name, ok := p.Literal(); ok {
		text, err := g.workspace.text(name)
		switch {
		case err == nil:
			text, _, cutOff := excerpt(name, text, 0, words, n)
			return text, cutOff, nil
		case !errors.Is(err, errFolder):
			return "", false, fmt.Errorf("%q: %w", name, err)
		}
		matches = p.Covers // all that is in the folder
	}
	items, err := g.workspace.items(ctx)
	if err != nil {
		return "", false, err
	}
	var found []candidate
	for _, it := range items {
		if !it.folder && matches(it.path) {
			found = append(found, candidate{path: it.path})
		}
	}
	text, cutOff := g.show(found, words, n)
	return text, cutOff || g.workspace.more, nil
}

// show writes excerpts of the candidates into n bytes. What does not fit is
// listed by name, as far as that fits.
func (g *gathering) show(list []candidate, words []string, n int) (string, bool) {
	var b strings.Builder
	var rest []string
	cutOff := false
	shown := 0
	for _, c := range list {
		left := n - b.Len()
		if shown == maxShown || left < 200 {
			rest = append(rest, c.path)
			continue
		}
		text, err := g.workspace.text(c.path)
		if err != nil || strings.TrimSpace(text) == "" {
			continue // binary, too large, empty or gone
		}
		part, _, cut := excerpt(c.path, text, c.line, words, min(left, fileBytes))
		if part == "" {
			rest = append(rest, c.path)
			continue
		}
		b.WriteString(part)
		cutOff = cutOff || cut
		shown++
	}
	if len(rest) == 0 {
		return b.String(), cutOff
	}
	line := "also: " + clean(strings.Join(rest[:min(len(rest), maxShown)], ", "))
	if left := n - b.Len() - len("...\n"); left > 40 {
		b.WriteString(clip(line, left) + "\n")
	}
	return b.String(), true
}
