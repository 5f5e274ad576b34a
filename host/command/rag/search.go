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
	Query string   `json:"query" jsonschema:"words or names to look for; rare words have more weight"`
	Limit int      `json:"limit,omitempty" jsonschema:"maximum number of files, 10 if not given" minimum:"1" maximum:"50"`
	Paths []string `json:"paths,omitempty" jsonschema:"globs (sentinel help globs): only files that match, or are in a folder that matches"`
}

type searchOut struct {
	Results   []searchResult `json:"results" jsonschema:"the most relevant first"`
	Total     int            `json:"total" jsonschema:"number of files with a word of the query"`
	Text      string         `json:"text" jsonschema:"the results as one text"`
	Truncated bool           `json:"truncated" jsonschema:"not all files were searched, because the workspace has too many"`
}

type searchResult struct {
	Path  string  `json:"path"`
	Line  int     `json:"line" jsonschema:"first line of the excerpt"`
	Score float64 `json:"score"`
	Text  string  `json:"text" jsonschema:"excerpt"`
}

// resultBytes limits one excerpt.
const resultBytes = 1 << 10

func (b *Builder) search(ctx context.Context, call *command.Call, in searchIn) (searchOut, error) {
	out := searchOut{Results: []searchResult{}}
	if err := call.Count(heldBytes); err != nil {
		return out, err
	}
	words := queryWords(in.Query)
	if len(words) == 0 {
		return out, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "query", Message: fmt.Sprintf("search: query %.80q has no significant word", in.Query),
			Hint: "words of three or more letters count, except common ones; code/search finds any text",
		}
	}
	paths, err := parseGlobs(in.Paths)
	if err != nil {
		return out, err
	}
	if in.Limit == 0 {
		in.Limit = 10
	}
	w, err := openWorkspace(call.Base(), call.Workspace, b.opt)
	if err != nil {
		return out, err
	}
	defer w.Close()
	w.visible = visible(call)
	ranked, err := rankWords(ctx, w, func(name string) bool {
		return len(paths) == 0 || slices.ContainsFunc(paths, func(p glob.Pattern) bool { return p.Covers(b.opt.visible(name)) })
	}, words, in.Limit)
	if err != nil {
		return out, err
	}
	list := byScore(ranked)
	var all strings.Builder
	for _, c := range list[:min(len(list), in.Limit)] {
		text, err := w.text(c.path)
		if err != nil {
			continue // deleted since
		}
		part, line, _ := excerpt(c.path, text, 0, words, resultBytes)
		out.Results = append(out.Results, searchResult{c.path, line, c.score, part})
		all.WriteString(part)
	}
	out.Total = len(list)
	out.Text, out.Truncated = all.String(), w.more
	return out, nil
}
