package app

import (
	"context"
	"encoding/json"
)

// DigestFlag is the flag of verbs that decide about tickets.
const DigestFlag = "criteria-digest"

// DecideTicket calls ticket/decide about what it shows: it prints the shell lines that a
// release lets checks execute, and adds the parameters that bind the decision to the ticket as
// it is shown, unless params has them from an earlier look at the inbox.
func (a *App) DecideTicket(ctx context.Context, s *Session, params map[string]any) (raw json.RawMessage, err error) {
	var inbox struct {
		Entries []struct {
			Lines []string       `json:"lines"`
			Pin   map[string]any `json:"pin"`
		} `json:"entries"`
	}
	if err := s.Call(ctx, "inbox/list", map[string]any{"id": params["id"], "kind": []string{"ticket"}}, &inbox); err != nil {
		return nil, err
	}
	for _, e := range inbox.Entries {
		for name, value := range e.Pin {
			if _, given := params[name]; !given {
				params[name] = value
			}
		}
		if len(e.Lines) > 0 && params["action"] == "release" {
			a.PrintErr("a release approves these lines, which checks execute or send:\n")
			for _, line := range e.Lines {
				a.PrintErr("  %s\n", Block(line))
			}
		}
	}
	err = s.Call(ctx, "ticket/decide", params, &raw)
	return raw, err
}
