package data

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type createIn struct {
	Collection string                     `json:"collection" jsonschema:"collection the document goes to; it need not exist"`
	ID         string                     `json:"id,omitempty" jsonschema:"id of the document, made up if not given"`
	Data       map[string]json.RawMessage `json:"data" jsonschema:"the document's fields"`
}

type createOut struct {
	Document sentinels.Document `json:"document"`
	Created  bool               `json:"created" jsonschema:"false if an earlier attempt of this same call had created it"`
}

// created is the collection that says which call created a document whose id
// its caller chose: id "collection.id", one entry a document, gone with it.
const created = "data.created"

type creator struct {
	Key string `json:"key"` // digest of the call's key
}

// create with an id of the caller's choice can serve as a lock: of several
// callers one succeeds, the others get a conflict. It never overwrites what another call made. A later attempt of the call
// that made the document finds it and leaves it with its own data.
func (f family) create(ctx context.Context, call *command.Call, in createIn) (out createOut, err error) {
	if err := checkCollection(call.Command, in.Collection); err != nil {
		return out, err
	}
	if err := f.writable(call, in.Collection); err != nil {
		return out, err
	}
	chosen := in.ID != ""
	if !chosen {
		in.ID = madeID(call.Key)
	}
	if err := checkID(call.Command, in.ID); err != nil {
		return out, err
	}
	text, err := encode(call, in.Data)
	if err != nil {
		return out, err
	}
	old, err := call.Records.Get(ctx, in.Collection, in.ID)
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		out.Created = true
		out.Document, err = call.Records.Put(ctx, in.Collection, in.ID, text, 0)
		if err == nil && chosen && call.Key != "" {
			err = mark(ctx, call, in)
		}
		return out, err
	case err != nil:
		return out, err
	}
	if chosen {
		mine, err := marked(ctx, call, in)
		if err != nil {
			return out, err
		}
		if !mine {
			return out, &abi.Error{
				Code: abi.Conflict, Permanent: true, Field: "id", Hint: "data/update changes it",
				Message: fmt.Sprintf("data/create: collection %q has a document %q already", in.Collection, in.ID),
			}
		}
	}
	out.Document, err = put(ctx, call, old, text)
	return out, err
}

// mark notes which call created the document, in the same transaction.
func mark(ctx context.Context, call *command.Call, in createIn) error {
	text, err := json.Marshal(creator{digest(call.Key)})
	if err != nil {
		return err
	}
	_, err = call.Records.Put(ctx, created, in.Collection+"."+in.ID, text, sentinels.AnyRevision)
	return err
}

// marked reports whether this same call created the document.
func marked(ctx context.Context, call *command.Call, in createIn) (bool, error) {
	if call.Key == "" {
		return false, nil
	}
	doc, err := call.Records.Get(ctx, created, in.Collection+"."+in.ID)
	if abi.CodeOf(err) == abi.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var c creator
	if err := json.Unmarshal(doc.Data, &c); err != nil {
		return false, fmt.Errorf("read creator of %q: %w", doc.ID, err)
	}
	return c.Key == digest(call.Key), nil
}

// put writes text over old, or nothing where old says the same already: a
// revision counts changes.
func put(ctx context.Context, call *command.Call, old sentinels.Document, text json.RawMessage) (sentinels.Document, error) {
	if command.SameJSON(old.Data, text) {
		return old, nil
	}
	return call.Records.Put(ctx, old.Collection, old.ID, text, old.Revision)
}
