// Package forge implements the commands on pull requests of tickets.
package forge

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/forge"
)

// A Holder returns an error if the caller reports about claims of its own only, and the one with
// the token is none.
type Holder func(ctx context.Context, call *command.Call, ticket string, token uint64) error

type family struct {
	s      *forge.Service
	holder Holder
}

// Commands returns the family forge/*.
func Commands(s *forge.Service, holder Holder) []command.Command {
	f := family{s, holder}
	ids := map[string]string{"ticket_id": "ticket", "ticketId": "ticket", "id": "ticket"}
	write := command.Options{Effect: command.Changes, Idempotent: true, ByName: true, Waits: command.Always, Aliases: ids}
	return []command.Command{
		command.New("forge/open-pr", "Open the pull request of a ticket's branch, or record it where there is no forge.", write, f.open),
		command.New("forge/pr", "Read the pull request of a ticket, with its state on the forge.", command.Options{Effect: command.Changes, Idempotent: true, Private: true, Waits: command.Always, Aliases: ids}, f.pull),
		command.New("forge/comment", "Comment on the pull request of a ticket.", write, f.comment),
	}
}

type openIn struct {
	Ticket     string `json:"ticket" jsonschema:"id of the ticket"`
	Token      uint64 `json:"token,omitempty" jsonschema:"of the claim; that of the present one if not given"`
	Title      string `json:"title" jsonschema:"becomes one line; cut to the 255 characters that forges take"`
	Body       string `json:"body,omitempty" jsonschema:"in Markdown; cut to the 65,536 characters that forges take"`
	Repository string `json:"repository,omitempty" jsonschema:"OWNER/NAME on the forge; that of the remote if not given, and for models and agents always"`
}

func (f family) open(ctx context.Context, call *command.Call, in openIn) (forge.Opened, error) {
	if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
		return forge.Opened{}, err
	}
	return f.s.Open(ctx, forge.Request{Ticket: in.Ticket, Token: in.Token, Title: in.Title, Body: in.Body, Repository: in.Repository, Bound: call.Bounded(), By: author(call)})
}

type pullIn struct {
	Ticket string `json:"ticket" jsonschema:"id of the ticket"`
}

func (f family) pull(ctx context.Context, _ *command.Call, in pullIn) (forge.Shown, error) {
	return f.s.Pull(ctx, in.Ticket)
}

type commentIn struct {
	Ticket string `json:"ticket" jsonschema:"id of the ticket"`
	Token  uint64 `json:"token,omitempty" jsonschema:"of the claim, which agents and models need"`
	Body   string `json:"body" jsonschema:"in Markdown; cut to the 65,436 characters that forges take"`
}

func (f family) comment(ctx context.Context, call *command.Call, in commentIn) (forge.Commented, error) {
	if call.Bounded() { // steps of a person say themselves on which tickets they comment
		if err := f.holder(ctx, call, in.Ticket, in.Token); err != nil {
			return forge.Commented{}, err
		}
	}
	return f.s.Comment(ctx, in.Ticket, in.Body, author(call), call.Key)
}

// author returns the agent or model that calls, "" for a person: the forge shows what either wrote as written by the
// person whose token it has.
func author(call *command.Call) string {
	if call.Share() == "" {
		return ""
	}
	return call.Who()
}
