package rag

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// fileBytes limits the part of a source that one file takes, in bytes.
const fileBytes = 6 << 10

// maxShown limits the files of one source.
const maxShown = 40

// files returns excerpts of the most relevant files, ordered by relevance.
func (g *contextBuild) files(ctx context.Context, n int) (string, bool, error) {
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
	ranked, err := rankWords(ctx, g.workspace, func(string) bool { return true }, words, maxShown)
	if err != nil {
		return "", false, err
	}
	addScore := func(name string, by float64, line int) {
		c := ranked[name]
		c.path = name
		c.score += by
		if c.line == 0 {
			c.line = line
		}
		ranked[name] = c
	}
	for name, line := range mentions(g.req.Variables, items, g.req.Workspace) {
		addScore(name, scoreMention, line)
	}
	status, _ := g.gitStatus(ctx) // without git no file counts as changed
	var changed []string
	for _, c := range status.Changes {
		changed = append(changed, c.Path)
	}
	for _, name := range names {
		if slices.ContainsFunc(g.paths, func(p glob.Pattern) bool { return p.Covers(g.opt.visible(name)) }) {
			addScore(name, scorePath, 0)
		}
		if _, found := slices.BinarySearch(changed, name); found {
			addScore(name, scoreChanged, 0)
		}
		if slices.Contains(overviewFiles, strings.ToLower(path.Base(name))) && strings.Count(name, "/") < 2 {
			addScore(name, scoreOverview, 0)
		}
	}
	text, truncated := g.show(byScore(ranked), words, n)
	return text, truncated || g.workspace.more, nil
}

// named returns excerpts of the files that match the glob of a source, ordered by
// path. A glob without wildcards also names files that are ignored.
func (g *contextBuild) named(ctx context.Context, pattern string, n int) (string, bool, error) {
	p, err := glob.Parse(pattern)
	if err != nil {
		return "", false, err
	}
	words := queryWords(queryOf(g.req))
	matches := p.Match
	if name, ok := p.Literal(); ok {
		text, err := g.workspace.text(name)
		switch {
		case err == nil:
			text, _, truncated := excerpt(name, text, 0, words, n)
			return text, truncated, nil
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
		if !it.folder && matches(g.opt.visible(it.path)) {
			found = append(found, candidate{path: it.path})
		}
	}
	text, truncated := g.show(found, words, n)
	return text, truncated || g.workspace.more, nil
}

// show formats excerpts of the candidates in n bytes. Those that do not fit are
// listed by name, as far as the names fit.
func (g *contextBuild) show(list []candidate, words []string, n int) (string, bool) {
	var b strings.Builder
	var rest []string
	truncated := false
	shown := 0
	for _, c := range list {
		left := n - b.Len()
		if shown == maxShown || left < 200 {
			rest = append(rest, c.path)
			continue
		}
		text, err := g.workspace.text(c.path)
		if err != nil || strings.TrimSpace(text) == "" {
			continue // binary, too large, empty or deleted
		}
		part, _, cut := excerpt(c.path, text, c.line, words, min(left, fileBytes))
		if part == "" {
			rest = append(rest, c.path)
			continue
		}
		b.WriteString(part)
		truncated = truncated || cut
		shown++
	}
	if len(rest) == 0 {
		return b.String(), truncated
	}
	line := "also: " + clean(strings.Join(rest[:min(len(rest), maxShown)], ", "))
	if left := n - b.Len() - len("...\n"); left > 40 {
		b.WriteString(textcut.Mark(line, left) + "\n")
	}
	return b.String(), true
}
