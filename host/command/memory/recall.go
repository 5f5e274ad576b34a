package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Limits of one search and its answer.
const (
	defaultFound = 10
	maxSearched  = 10_000
	maxAnswer    = 100 << 10 // bytes of text, which the answer has twice
)

type recallIn struct {
	Query      string   `json:"query,omitempty" jsonschema:"words, any of which the text, key or tags contain; all memories if neither query, key nor tags are given"`
	Key        string   `json:"key,omitempty" jsonschema:"only the memory with this key"`
	Tags       []string `json:"tags,omitempty" jsonschema:"only memories with all of these tags"`
	Limit      int      `json:"limit,omitempty" jsonschema:"how many, 10 if not given" minimum:"1" maximum:"100"`
	SentinelID string   `json:"sentinelId,omitempty" jsonschema:"whose memories; those of the caller's sentinel if not given, for a user those of all"`
	After      string   `json:"after,omitempty" jsonschema:"the next of an earlier answer: search behind that id"`
}

type recallOut struct {
	Memories []recalled `json:"memories" jsonschema:"those with the most words of the query first, then the newest"`
	Total    int        `json:"total" jsonschema:"how many match"`
	Text     string     `json:"text" jsonschema:"their texts, with an empty line between them; one that another agent stored begins with its name"`
	Next     string     `json:"next,omitempty" jsonschema:"give it as after to search the rest; absent if all memories were searched"`
}

type recalled struct {
	ID string `json:"id"`
	memory
	StoredAt time.Time `json:"storedAt"`

	score int
}

// recall compares words without case. A memory that contains the query as it is comes
// before those that have its words apart.
func recall(ctx context.Context, call *command.Call, in recallIn) (recallOut, error) {
	out := recallOut{Memories: []recalled{}}
	owner, err := ownerOf(call, in.SentinelID)
	if err != nil {
		return out, err
	}
	if err := records(call); err != nil {
		return out, err
	}
	found, next, err := search(ctx, call, owner, in)
	if err != nil {
		return out, err
	}
	slices.SortFunc(found, func(a, b recalled) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.StoredAt.Compare(a.StoredAt), strings.Compare(a.ID, b.ID))
	})
	out.Total, out.Next = len(found), next
	size := 0
	for _, r := range found[:min(len(found), cmp.Or(in.Limit, defaultFound))] {
		if size += len(r.Text); size > maxAnswer && len(out.Memories) > 0 {
			break
		}
		out.Memories = append(out.Memories, r)
		if out.Text != "" {
			out.Text += "\n\n"
		}
		if r.byAgent() && r.By != call.Who() {
			out.Text += "[stored by " + r.By + "] "
		}
		out.Text += r.Text
	}
	return out, nil
}

// maxWords bounds the words and the tags of one search, which looks for each in every memory.
const maxWords = 64

func search(ctx context.Context, call *command.Call, owner string, in recallIn) (found []recalled, next string, err error) {
	q := command.Query{Filter: map[string]json.RawMessage{}, After: in.After, Limit: 500}
	for name, value := range map[string]string{"sentinel": owner, "key": in.Key} {
		if value == "" {
			continue
		}
		if q.Filter[name], err = json.Marshal(value); err != nil {
			return nil, "", err
		}
	}
	phrase := strings.ToLower(strings.TrimSpace(in.Query))
	words := strings.Fields(phrase)
	switch {
	case len(words) > maxWords:
		return nil, "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "query", Message: fmt.Sprintf("%s: query: %d words, at most %d are looked for", call.Command, len(words), maxWords)}
	case len(in.Tags) > maxWords:
		return nil, "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "tags", Message: fmt.Sprintf("%s: %d tags, at most %d are compared", call.Command, len(in.Tags), maxWords)}
	}
	for searched := 0; ; {
		docs, next, err := call.Records.List(ctx, Collection, q)
		if err != nil {
			return nil, "", err
		}
		for _, d := range docs {
			r := recalled{ID: d.ID, StoredAt: d.UpdatedAt}
			if json.Unmarshal(d.Data, &r.memory) != nil || r.Text == "" {
				continue // a document that data/create made
			}
			if r.score = r.matches(phrase, words); r.score == 0 && len(words) > 0 || !hasAll(r.Tags, in.Tags) {
				continue
			}
			found = append(found, r)
		}
		if len(docs) < q.Limit || next != "" {
			return found, next, nil
		}
		if searched += len(docs); searched >= maxSearched {
			return nil, "", &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s: there are more than %d memories", call.Command, maxSearched),
				Hint: "data/delete removes those of the collection memory that are not needed, or recall by key"}
		}
		q.After = docs[len(docs)-1].ID
	}
}

// matches returns how many words the memory contains, and one more for the whole phrase.
func (m memory) matches(phrase string, words []string) (score int) {
	text := strings.ToLower(m.Text + "\n" + m.Key + "\n" + strings.Join(m.Tags, "\n"))
	for _, word := range words {
		if strings.Contains(text, word) {
			score++
		}
	}
	if len(words) > 1 && strings.Contains(text, phrase) {
		score++
	}
	return score
}

func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(tag string) bool {
		return !slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, tag) })
	})
}
