package data

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// listIn pages by id, not by offset: what is created or deleted between two
// pages shifts nothing.
type listIn struct {
	Collection string                     `json:"collection" jsonschema:"collection to list; sentinels holds the definitions"`
	Filter     map[string]json.RawMessage `json:"filter,omitempty" jsonschema:"top-level fields and the values they must have, or conditions on them: {\"age\": {\"$gte\": 18}}, with $gt $gte $lt $lte $in"`
	OrderBy    []order                    `json:"orderBy,omitempty" jsonschema:"fields to sort by, the first one first; by id if not given"`
	Limit      int                        `json:"limit,omitempty" jsonschema:"how many documents at most, 100 if not given" minimum:"1" maximum:"1000"`
	After      string                     `json:"after,omitempty" jsonschema:"the next of an earlier answer: go on behind that id"`
	Reverse    bool                       `json:"reverse,omitempty" jsonschema:"from the last to the first"`
}

type order struct {
	Field     string `json:"field" jsonschema:"top-level field, or id, revision, createdAt or updatedAt of the document"`
	Direction string `json:"direction,omitempty" jsonschema:"default asc" enum:"asc,desc"`
}

type listOut struct {
	Items []sentinels.Document `json:"items"`
	Next  string               `json:"next,omitempty" jsonschema:"give it as after to read on; absent at the end. Pages of agents and models may have fewer documents than limit, also none, before the end"`
}

// list answers with at most limit documents and 4 MiB, whatever comes first,
// but at least one if there is one.
func (f family) list(ctx context.Context, call *command.Call, in listIn) (listOut, error) {
	out := listOut{Items: []sentinels.Document{}}
	if err := checkCollection(call.Command, in.Collection); err != nil {
		return out, err
	}
	if in.After != "" {
		if err := checkID(call.Command, in.After); err != nil {
			return out, err
		}
	}
	if in.Limit == 0 {
		in.Limit = 100
	}
	q := command.Query{Filter: in.Filter, After: in.After, Limit: in.Limit, Reverse: in.Reverse}
	if len(in.OrderBy) > 0 {
		return f.listOrdered(ctx, call, in)
	}
	docs, next, err := f.query(ctx, call, in.Collection, q)
	if err != nil {
		return out, err
	}
	size := 0
	for _, d := range docs {
		size += len(d.Data)
		if size > maxPage && len(out.Items) > 0 {
			out.Next = out.Items[len(out.Items)-1].ID
			return out, nil
		}
		out.Items = append(out.Items, d)
	}
	if len(docs) < in.Limit {
		out.Next = next
		return out, nil
	}
	// A full page: is there one more? The query's own limit leaves no room to
	// ask for it at once.
	q.After, q.Limit = docs[len(docs)-1].ID, 1
	more, next, err := f.query(ctx, call, in.Collection, q)
	if err == nil && (len(more) > 0 || next != "") {
		out.Next = q.After
	}
	return out, err
}
