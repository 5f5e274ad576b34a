package data

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type updateIn struct {
	Collection string                     `json:"collection" jsonschema:"collection of the document"`
	ID         string                     `json:"id" jsonschema:"id of the document"`
	Data       map[string]json.RawMessage `json:"data" jsonschema:"fields to change: objects are merged field by field, null removes a field, all else replaces what was there"`
	Revision   uint64                     `json:"revision,omitempty" jsonschema:"revision the change was made on; if the document has another one by now, nothing is changed" minimum:"1"`
	Replace    bool                       `json:"replace,omitempty" jsonschema:"make data the whole document instead of merging it"`
}

// update reads and writes in the call's own transaction, so no other write comes in
// between. Revision is for changes based on a read in an earlier call.
func (f family) update(ctx context.Context, call *command.Call, in updateIn) (one, error) {
	if err := checkCollection(call.Command, in.Collection); err != nil {
		return one{}, err
	}
	if err := checkID(call.Command, in.ID); err != nil {
		return one{}, err
	}
	if err := f.writable(call, in.Collection); err != nil {
		return one{}, err
	}
	old, err := call.Records.Get(ctx, in.Collection, in.ID)
	if err != nil {
		if e := abi.As(err); e != nil && e.Code == abi.NotFound {
			missing := *e
			missing.Hint = "data/create makes it"
			err = &missing
		}
		return one{}, err
	}
	if err := checkRevision(call, in.Revision, old.Revision, in.ID); err != nil {
		return one{}, err
	}
	whole := in.Data
	if !in.Replace {
		if whole, err = merge(old.Data, in.Data); err != nil {
			return one{}, &abi.Error{
				Code: abi.Conflict, Permanent: true, Field: "id", Hint: "give replace",
				Message: fmt.Sprintf("data/update: document %q: %v", in.ID, err),
			}
		}
	}
	text, err := encode(call, whole)
	if err != nil {
		return one{}, err
	}
	doc, err := put(ctx, call, old, text)
	return one{doc}, err
}

// checkRevision refuses a change that was made on an older state. want 0 is
// any. Trying again cannot help before the document was read again.
func checkRevision(call *command.Call, want, have uint64, id string) error {
	if want == 0 || want == have {
		return nil
	}
	return &abi.Error{
		Code: abi.Conflict, Permanent: true, Field: "revision", Hint: "read it again and repeat the change",
		Message: fmt.Sprintf("%s: document %q has revision %d by now, not %d", call.Command, id, have, want),
	}
}
