package data

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type deleteIn struct {
	Collection string `json:"collection" jsonschema:"collection of the document"`
	ID         string `json:"id" jsonschema:"id of the document"`
	Revision   uint64 `json:"revision,omitempty" jsonschema:"delete only if the document still has this revision" minimum:"1"`
}

type deleteOut struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted" jsonschema:"false if there was no such document"`
}

// delete of a document that is not there is a result, not an error: what the
// caller wants holds.
func (f family) delete(ctx context.Context, call *command.Call, in deleteIn) (deleteOut, error) {
	out := deleteOut{ID: in.ID}
	if err := checkCollection(call.Command, in.Collection); err != nil {
		return out, err
	}
	if err := checkID(call.Command, in.ID); err != nil {
		return out, err
	}
	if err := f.writable(call, in.Collection); err != nil {
		return out, err
	}
	old, err := call.Records.Get(ctx, in.Collection, in.ID)
	if abi.CodeOf(err) == abi.NotFound {
		return out, nil
	}
	if err == nil {
		err = checkRevision(call, in.Revision, old.Revision, in.ID)
	}
	if err == nil {
		err = call.Records.Delete(ctx, in.Collection, in.ID, old.Revision)
	}
	if err != nil {
		return out, err
	}
	out.Deleted = true
	err = call.Records.Delete(ctx, created, in.Collection+"."+in.ID, sentinels.AnyRevision)
	if abi.CodeOf(err) == abi.NotFound {
		err = nil // the id was made up, or a person created it
	}
	return out, err
}
