package data

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxOrdered bounds the documents of one sort, whose keys are in memory.
const maxOrdered = 10_000

// A sorted is one document of a sort, without its data.
type sorted struct {
	id   string
	keys []json.RawMessage // of the fields to sort by; nil if it has none
}

// listOrdered answers with a page in the order of fields. A page continues behind the
// document with the id of after, wherever it is now.
func (f family) listOrdered(ctx context.Context, call *command.Call, in listIn) (listOut, error) {
	out := listOut{Items: []sentinels.Document{}}
	all, err := f.sorted(ctx, call, in)
	if err != nil {
		return out, err
	}
	if in.After != "" {
		at := slices.IndexFunc(all, func(s sorted) bool { return s.id == in.After })
		if at < 0 {
			return out, &abi.Error{Code: abi.Conflict, Permanent: true, Field: "after",
				Message: fmt.Sprintf("data/list: document %q, the last one of the page before, does not match any more", in.After), Hint: "list from the start"}
		}
		all = all[at+1:]
	}
	size := 0
	for _, s := range all {
		doc, err := f.one(ctx, call, in.Collection, s.id)
		if abi.CodeOf(err) == abi.NotFound {
			continue // it was deleted since it was sorted
		}
		if err != nil {
			return out, err
		}
		size += len(doc.Data)
		if n := len(out.Items); n > 0 && (size > maxPage || n == in.Limit) {
			out.Next = out.Items[n-1].ID
			return out, nil
		}
		out.Items = append(out.Items, doc)
	}
	return out, nil
}

// The most that a sort keeps: a value of every field for each document.
const (
	maxOrder = 8
	maxKeys  = 64 << 20 // bytes
)

// sorted returns the documents that match, in order.
func (f family) sorted(ctx context.Context, call *command.Call, in listIn) ([]sorted, error) {
	if len(in.OrderBy) > maxOrder {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "orderBy", Message: fmt.Sprintf("data/list: orderBy has %d fields, at most %d sort", len(in.OrderBy), maxOrder)}
	}
	var all []sorted
	size := 0
	q := command.Query{Filter: in.Filter, Limit: 100}
	for {
		docs, next, err := f.query(ctx, call, in.Collection, q)
		if err != nil {
			return nil, err
		}
		if next != "" {
			return nil, tooMuch(call, "orderBy", "list without orderBy, page by page")
		}
		for _, d := range docs {
			fields := command.FieldsOf(d)
			s := sorted{id: d.ID}
			for _, by := range in.OrderBy {
				s.keys = append(s.keys, slices.Clone(fields[by.Field])) // not the whole document
				size += len(fields[by.Field])
			}
			all = append(all, s)
		}
		if len(all) > maxOrdered || size > maxKeys {
			return nil, &abi.Error{Code: abi.Limit, Permanent: true, Field: "orderBy",
				Message: fmt.Sprintf("data/list: more than %d documents match, or their fields to sort by have more than %d MiB", maxOrdered, maxKeys>>20),
				Hint:    "narrow the filter, or list without orderBy"}
		}
		if len(docs) < q.Limit {
			break
		}
		q.After = docs[len(docs)-1].ID
	}
	slices.SortFunc(all, func(a, b sorted) int {
		if in.Reverse {
			a, b = b, a
		}
		for i, by := range in.OrderBy {
			if order := compareKeys(a.keys[i], b.keys[i], by.Direction == "desc"); order != 0 {
				return order
			}
		}
		return strings.Compare(a.id, b.id)
	})
	return all, nil
}

// compareKeys puts documents without the field last, in either direction.
func compareKeys(a, b json.RawMessage, descending bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case descending:
		return command.CompareJSON(b, a)
	}
	return command.CompareJSON(a, b)
}

// one returns a document of a collection, or a definition of the host.
func (f family) one(ctx context.Context, call *command.Call, collection, id string) (sentinels.Document, error) {
	if collection == definitions {
		return f.definition(ctx, id)
	}
	return call.Records.Get(ctx, collection, id)
}
