package sentinel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An updateIn is what sentinel/update takes: a whole definition, as text or as a
// file.
type updateIn struct {
	editIn
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"the whole new definition"`
	File       string          `json:"file,omitempty" jsonschema:"file that holds it, below the workspace or absolute"`
	Note       string          `json:"note,omitempty" jsonschema:"why, for the history"`
}

// update puts another definition in the place of one that is there; sentinel/create
// also makes new ones.
func (f family) update(ctx context.Context, call *command.Call, in updateIn) (edited, error) {
	if (in.Definition == nil) == (in.File == "") {
		return edited{}, &abi.Error{Code: abi.BadFields, Message: "update sentinel: give either definition or file"}
	}
	src, file, err := f.source(call, createIn{File: in.File, Definition: in.Definition})
	if err != nil {
		return edited{}, err
	}
	// Read as it was given, so that problems are placed in the caller's own text.
	def, problems, _ := f.rt.DecodeEdit(src, file)
	if len(problems) > 0 {
		return edited{}, createIn{File: in.File, Definition: in.Definition}.refused(problems)
	}
	in.whole = true
	return f.edit(ctx, call, in.editIn, in.Note, func(old *sentinels.Definition) (*sentinels.Definition, error) {
		if def.ID == old.ID {
			return def, nil
		}
		if def.ID != sentinels.Slug(def.Name) {
			return nil, &abi.Error{Code: abi.BadFields, Field: "id", Message: fmt.Sprintf("update sentinel %q: the definition is that of %q", old.ID, def.ID)}
		}
		next := *def // it names no id, so the name may become another one
		next.ID = old.ID
		return &next, nil
	})
}

// A deleteIn is what sentinel/delete takes.
type deleteIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	Revision   *int         `json:"revision,omitempty" jsonschema:"revision that was last seen; another one is a conflict" minimum:"1"`
	Note       string       `json:"note,omitempty" jsonschema:"why, for the history"`
}

// A deleted is its result. Active runs are counted because a user
// who deletes may have meant to stop them.
type deleted struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Revision   int          `json:"revision" jsonschema:"of the deletion; rollback to an earlier one brings the sentinel back"`
	Runs       int          `json:"runs" jsonschema:"active runs; they continue with the definition that they have"`
	Warning    string       `json:"warning,omitempty"`
}

// remove deletes a sentinel, and its file. Its runs go on with what they have;
// to end them is sentinel/stop.
func (f family) remove(ctx context.Context, call *command.Call, in deleteIn) (deleted, error) {
	if err := f.sync(ctx, in.SentinelID); err != nil {
		return deleted{}, err
	}
	if err := f.keepsGate(call, string(in.SentinelID)); err != nil {
		return deleted{}, err
	}
	// The revision that comes back by a rollback has no comments: the file is all there is of them.
	if head, err := f.rt.Definition(in.SentinelID); err == nil && head.Origin != "" && call.Bound() != nil {
		return deleted{}, &abi.Error{
			Code: abi.Denied, Permanent: true, Field: "sentinelId", Message: fmt.Sprintf("delete sentinel %q: its file %q is a person's", in.SentinelID, head.Origin),
			Hint: "a person deletes it; sentinel/pause stops its triggers",
		}
	}
	opt := runtime.SaveOptions{Expect: runtime.AnyRevision, By: who(call), Note: in.Note, Within: call.Bound(), Over: endsPause(call, "delete", string(in.SentinelID))}
	if in.Revision != nil {
		opt.Expect = *in.Revision
	}
	tombstone, err := f.rt.DeleteWith(ctx, in.SentinelID, opt)
	if err != nil {
		return deleted{}, err
	}
	on, err := f.rt.Runs(runtime.RunFilter{Sentinel: in.SentinelID, Statuses: runtime.Unfinished()})
	if err != nil {
		return deleted{}, err
	}
	return deleted{in.SentinelID, tombstone.Revision, len(on), f.writeBack(ctx, tombstone)}, nil
}
