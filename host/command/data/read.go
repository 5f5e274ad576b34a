package data

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type readIn struct {
	Collection string                     `json:"collection" jsonschema:"collection to read from; sentinels holds the definitions"`
	ID         string                     `json:"id,omitempty" jsonschema:"id of the document"`
	Filter     map[string]json.RawMessage `json:"filter,omitempty" jsonschema:"instead of the id: top-level fields and the values they must have, or conditions as in data/list; exactly one document must match"`
}

// read by id answers with the document or not_found. A filter is for what has a
// name of its own beside the id, such as uniqueId.
func (f family) read(ctx context.Context, call *command.Call, in readIn) (one, error) {
	if err := checkCollection(call.Command, in.Collection); err != nil {
		return one{}, err
	}
	if (in.ID == "") == (len(in.Filter) == 0) {
		return one{}, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "id",
			Message: "data/read: give either id or filter", Hint: "data/list reads whole collections",
		}
	}
	if in.ID == "" {
		return f.readMatch(ctx, call, in)
	}
	if err := checkID(call.Command, in.ID); err != nil {
		return one{}, err
	}
	if in.Collection == definitions {
		doc, err := f.definition(ctx, in.ID)
		if err == nil {
			err = call.Count(int64(len(doc.Data)))
		}
		return one{doc}, err
	}
	if err := records(call); err != nil {
		return one{}, err
	}
	if err := f.separate(call, in.Collection); err != nil {
		return one{}, err
	}
	doc, err := call.Records.Get(ctx, in.Collection, in.ID)
	return one{doc}, err
}

// readMatch reads the only document that matches. Several are an error: which
// of them was meant must not depend on the order of ids.
func (f family) readMatch(ctx context.Context, call *command.Call, in readIn) (one, error) {
	docs, next, err := f.query(ctx, call, in.Collection, command.Query{Filter: in.Filter, Limit: 2})
	if err != nil {
		return one{}, err
	}
	if next != "" && len(docs) < 2 {
		return one{}, tooMuch(call, "filter", "list with the filter, and continue with next, or read by id")
	}
	switch len(docs) {
	case 0:
		return one{}, abi.New(abi.NotFound, fmt.Sprintf("data/read: no document of %q matches the filter", in.Collection))
	case 1:
		return one{docs[0]}, nil
	}
	return one{}, &abi.Error{
		Code: abi.Conflict, Permanent: true, Field: "filter",
		Message: fmt.Sprintf("data/read: %q and %q, perhaps more, match the filter", docs[0].ID, docs[1].ID),
		Hint:    "add fields to the filter, or use data/list",
	}
}

// tooMuch is the error of a call that would have to read more of a collection than its caller may.
func tooMuch(call *command.Call, field, hint string) error {
	return &abi.Error{Code: abi.Limit, Permanent: true, Field: field, Hint: hint,
		Message: call.Command + ": the collection is larger than what one call of an agent or a model reads"}
}

// query lists documents of a collection or definitions of the host. next is as in Records.List.
func (f family) query(ctx context.Context, call *command.Call, collection string, q command.Query) (docs []sentinels.Document, next string, err error) {
	if err := command.CheckFilter(call.Command, q.Filter); err != nil {
		return nil, "", err
	}
	if err := f.separate(call, collection); err != nil {
		return nil, "", err
	}
	if collection == definitions {
		docs, err = f.queryDefinitions(ctx, call, q)
		return docs, "", err
	}
	if err := records(call); err != nil {
		return nil, "", err
	}
	return call.Records.List(ctx, collection, q)
}
