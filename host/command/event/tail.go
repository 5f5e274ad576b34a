package event

import (
	"context"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type tailIn struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"which events: * stands for one part of the name, a final ** for the rest; all if not given"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many at most, 50 if not given" minimum:"1" maximum:"1000"`
}

type tailOut struct {
	Events []sentinels.Event `json:"events" jsonschema:"the newest last"`
	More   bool              `json:"more,omitempty" jsonschema:"older events were left out, because all of them have more bytes than one call of a viewer, an agent or a model returns"`
}

// tail shows what is durable. It does not wait for more: the live feed of the
// API and the wait step do.
func (f family) tail(_ context.Context, call *command.Call, in tailIn) (tailOut, error) {
	if len(in.Pattern) > 128 {
		return tailOut{}, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "pattern",
			Message: fmt.Sprintf("tail: pattern of %d bytes, the limit is 128", len(in.Pattern)),
		}
	}
	if before, _, found := strings.Cut(in.Pattern, "**"); found && in.Pattern != before+"**" {
		return tailOut{}, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: "pattern",
			Message: fmt.Sprintf("tail: pattern %q: ** can only stand at the end", in.Pattern),
		}
	}
	if problem, hint := sentinels.CheckRunPattern(in.Pattern); problem != "" {
		return tailOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "pattern", Message: "tail: " + problem, Hint: hint}
	}
	if in.Limit == 0 {
		in.Limit = 50
	}
	if in.Pattern == "" {
		in.Pattern = "**"
	}
	var most int64
	if call.Held() {
		most = command.HeldBytes
	}
	events, more, err := f.opt.Log.NewestEvents(in.Pattern, in.Limit, most)
	for _, e := range events {
		if err == nil {
			err = call.Count(int64(len(e.Data)))
		}
	}
	if events == nil {
		events = []sentinels.Event{}
	}
	return tailOut{events, more}, err
}
