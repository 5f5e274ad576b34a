// Package audit implements the command that reads the audit log.
package audit

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Commands returns the family audit/* for the log of a state folder.
func Commands(state string) []command.Command {
	return []command.Command{
		command.New("audit/list", "Read the audit log: who changed what, the newest first.", command.Options{Effect: command.Reads, Idempotent: true, Private: true}, family{state}.list),
	}
}

type family struct{ state string }

type listIn struct {
	Since  time.Time `json:"since,omitzero" jsonschema:"only entries from then on"`
	Actor  string    `json:"actor,omitempty" jsonschema:"only entries of this actor"`
	Event  string    `json:"event,omitempty" jsonschema:"only this event; * matches a part of it"`
	Before string    `json:"before,omitempty" jsonschema:"next of the page before: only older entries"`
	Limit  int       `json:"limit,omitempty" jsonschema:"100 if not given" minimum:"1" maximum:"1000"`
}

type listOut struct {
	Entries []audit.Entry `json:"entries"`
	Next    string        `json:"next,omitempty" jsonschema:"there are older entries: give it as before"`
	Damaged int           `json:"damaged,omitempty" jsonschema:"lines that are not entries"`
}

func (f family) list(ctx context.Context, call *command.Call, in listIn) (listOut, error) {
	page, err := audit.Read(ctx, f.state, audit.Query{Since: in.Since, Actor: in.Actor, Event: in.Event, Before: in.Before, Limit: in.Limit, Hold: call.Peak().Hold})
	if err != nil && (ctx.Err() != nil || abi.As(err) != nil) {
		return listOut{}, err
	}
	if err != nil {
		return listOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: err.Error()}
	}
	return listOut{page.Entries, page.Next, page.Damaged}, nil
}
