package sentinel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type saveIn struct {
	Definition  json.RawMessage `json:"definition,omitempty" jsonschema:"the definition"`
	Run         string          `json:"run,omitempty" jsonschema:"in place of a definition, a run: what its next iteration uses is stored"`
	Name        string          `json:"name,omitempty" jsonschema:"its name, from which its id is derived; those of the definition if not given"`
	Description string          `json:"description,omitempty" jsonschema:"what it is for; that of the definition if not given"`
	Tags        []string        `json:"tags,omitempty" jsonschema:"words for searching; those of the definition if not given"`
	Revision    *int            `json:"revision,omitempty" jsonschema:"revision that it replaces, 0 for none; another one is a conflict"`
	Replace     bool            `json:"replace,omitempty" jsonschema:"replace another definition with this id by a new revision; without it and without revision, that is a conflict. An equal one is no change"`
}

// saveAs stores what create stores, or the definition of a run, which may be stored nowhere
// else, with another name.
func (f family) saveAs(ctx context.Context, call *command.Call, in saveIn) (saved, error) {
	if (in.Definition == nil) == (in.Run == "") {
		return saved{}, &abi.Error{Code: abi.BadFields, Message: "save sentinel: give either definition or run"}
	}
	by := given(call)
	def, within, err := f.saveable(in)
	if err != nil {
		return saved{}, err
	}
	by.within = call.BoundBy(within)
	next := *def // the engine's is shared
	if in.Name != "" {
		next.Name, next.ID = in.Name, sentinels.Slug(in.Name)
	}
	if in.Description != "" {
		next.Description = in.Description
	}
	if in.Tags != nil {
		next.Tags = in.Tags
	}
	as := createIn{Definition: sentinels.Encode(&next), Revision: in.Revision, Replace: in.Replace}
	return f.createWithin(ctx, call, as, by)
}

// saveable returns the definition that the parameters name, and what bounds it, nil for
// nothing.
func (f family) saveable(in saveIn) (*sentinels.Definition, []string, error) {
	if in.Run != "" {
		id := sentinels.RunID(in.Run)
		v, err := f.rt.RunDefinition(id)
		if err != nil {
			return nil, nil, fmt.Errorf("save run %s: %w", id, err)
		}
		return v.Definition, v.Within, nil
	}
	text := definitionText(in.Definition)
	def, problems, _ := f.rt.DecodeEdit(text, "definition")
	if len(problems) > 0 {
		return nil, nil, createIn{Definition: in.Definition}.refused(problems)
	}
	return def, nil, nil
}
