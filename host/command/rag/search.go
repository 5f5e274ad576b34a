package rag

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

type searchIn struct {
	Query string   `json:"query" jsonschema:"words or names to look for; rare ones count for more"`
	Limit int      `json:"limit,omitempty" jsonschema:"how many files at most, 10 if not given" minimum:"1" maximum:"50"`
	Paths []string `json:"paths,omitempty" jsonschema:"globs (FORMAT.md F9): only files that match, or are in a folder that matches"`
}

type searchOut struct {
	Results   []hit  `json:"results" jsonschema:"best first"`
	Total     int    `json:"total" jsonschema:"how many files fit"`
	Text      string `json:"text" jsonschema:"the results as one text"`
	Truncated bool   `json:"truncated" jsonschema:"there was more to search than one call reads"`
}

type hit struct {
	Path  string  `json:"path"`
	Line  int     `json:"line" jsonschema:"first line of the excerpt"`
	Score float64 `json:"score"`
	Text  string  `json:"text" jsonschema:"excerpt"`
}

// hitBytes bounds one excerpt.
const hitBytes = 1 << 10

func (b *Builder) search(ctx context.Context, call *command.Call, in searchIn) (searchOut, error) {
	out := searchOut{Results: []hit{}}
	words := queryWords(in.Query)
	if len(words) == 0 {
		return out, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "query", Message: fmt.Sprintf("search: %.80q has no word to look for", in.Query),
			Hint: "words of three letters and more count, common ones do not; code/search finds any text",
		}
	}
	paths, err := parseGlobs(in.Paths)
	if err != nil {
		return out, err
	}
	if in.Limit == 0 {
		in.Limit = 10
	}
	w, err := openWorkspace(call.Workspace, b.opt.SecretFiles)
	if err != nil {
		return out, err
	}
	defer w.Close()
	items, err := w.items(ctx)
	if err != nil {
		return out, err
	}
	var names []string
	for _, it := range items {
		if !it.folder && (len(paths) == 0 || slices.ContainsFunc(paths, func(p glob.Pattern) bool { return p.Covers(it.path) })) {
			names = append(names, it.path)
		}
	}
	ranked, whole, err := rankWords(ctx, w, names, words)
	if err != nil {
		return out, err
	}
	list := byScore(ranked)
	var all strings.Builder
	for _, c := range list[:min(len(list), in.Limit)] {
		text, err := w.text(c.path)
		if err != nil {
			continue // not read for its rank, or gone since
		}
		part, line, _ := excerpt(c.path, text, 0, words, hitBytes)
		out.Results = append(out.Results, hit{c.path, line, c.score, part})
		all.WriteString(part)
	}
	out.Total = len(list)
	out.Text, out.Truncated = all.String(), !whole || w.more
	return out, nil
}
