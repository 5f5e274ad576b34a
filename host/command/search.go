package command

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
)

type searchIn struct {
	Query string `json:"query,omitempty" jsonschema:"words to look for in names and summaries; empty lists everything"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many to return, 10 if not given" minimum:"1" maximum:"200"`
	// Tools narrows what a model finds, and never widens it.
	Tools []string `json:"tools,omitempty" jsonschema:"only commands that a step with these tools may call, such as fs/*"`
}

type searchOut struct {
	Tools []foundTool `json:"tools"`
	Total int         `json:"total" jsonschema:"how many matched"`
}

type foundTool struct {
	Name     string          `json:"name"`
	Summary  string          `json:"summary"`
	Schema   json.RawMessage `json:"schema" jsonschema:"JSON Schema of the parameters"`
	ReadOnly bool            `json:"readOnly"`
	Risk     string          `json:"risk" enum:"low,medium,high" jsonschema:"low: only reads. high: runs code of the project or replaces its files"`
	Returns  []string        `json:"returns" jsonschema:"fields of the result"`
}

// risk returns how much a call of c can change.
func risk(c Command) string {
	switch {
	case c.ByName:
		return "high"
	case c.ReadOnly():
		return "low"
	}
	return "medium"
}

// returns lists the fields of a command's result, as far as its schema names them.
func returns(c Command) []string {
	var shape map[string]any
	if json.Unmarshal(c.Output(), &shape) != nil {
		return []string{}
	}
	return propertyNames(shape)
}

// SearchTools returns the command search_tools over r, best match first. A
// model finds only what it may call. Add it to r itself to have tools that
// discover tools.
func SearchTools(r *Registry) Command {
	return New("search_tools", "Find commands by words in their name or summary, with their parameters.",
		Options{Effect: Reads, Idempotent: true},
		func(_ context.Context, call *Call, in searchIn) (searchOut, error) {
			list := r.List()
			if call.By == ByModel {
				list = r.Offer(call.Tools)
			}
			if in.Tools != nil {
				list = slices.DeleteFunc(list, func(c Command) bool { return !Allowed(in.Tools, c) })
			}
			if in.Limit == 0 {
				in.Limit = 10
			}
			words := strings.FieldsFunc(strings.ToLower(in.Query), func(c rune) bool { return strings.ContainsRune(" /_-.,", c) })
			type hit struct {
				c     Command
				score int
			}
			var hits []hit
			for _, c := range list {
				if s := score(c, words); s > 0 || len(words) == 0 {
					hits = append(hits, hit{c, s})
				}
			}
			slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
			out := searchOut{Tools: []foundTool{}, Total: len(hits)}
			for _, h := range hits[:min(len(hits), in.Limit)] {
				out.Tools = append(out.Tools, foundTool{h.c.Name, h.c.Summary, h.c.Input(), h.c.ReadOnly(), risk(h.c), returns(h.c)})
			}
			return out, nil
		})
}

// score counts each word once: a part of the name weighs 4, text within the
// name 2, text within the summary 1.
func score(c Command, words []string) int {
	name, summary := strings.ToLower(c.Name), strings.ToLower(c.Summary)
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("/_-.", r) })
	total := 0
	for _, w := range words {
		switch {
		case slices.Contains(parts, w):
			total += 4
		case strings.Contains(name, w):
			total += 2
		case strings.Contains(summary, w):
			total++
		}
	}
	return total
}
