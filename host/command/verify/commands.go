// Package verify implements the commands that verify acceptance criteria.
package verify

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// family is what the commands share.
type family struct{ t *verify.Tickets }

// Commands returns the family verify/*.
func Commands(t *verify.Tickets) []command.Command {
	f := family{t}
	ids := map[string]string{"ticketId": "ticket_id", "branchName": "branch_name", "repoUrl": "repo_url"}
	read := command.Options{Effect: command.Reads, Idempotent: true, InStore: true, Aliases: map[string]string{"ticketId": "ticket_id", "id": "ticket_id"}}
	return []command.Command{
		command.New("verify/run", "Check the acceptance criteria of a ticket against a branch.", command.Options{Effect: command.Executes, Idempotent: true, Aliases: ids}, f.run),
		command.New("verify/status", "Read the last verification of a ticket.", read, f.status),
		command.New("verify/history", "Read the verifications of a ticket, newest first.", read, f.history),
	}
}

func (f family) run(ctx context.Context, call *command.Call, in verify.Request) (verify.Result, error) {
	if in.Key = call.Key; call.OwnClaims() {
		in.Holder = call.Claimant()
	}
	return f.t.Verify(ctx, in, call.Who(), call.By == command.ByUser, nil)
}

type statusIn struct {
	ID string `json:"ticket_id" jsonschema:"id of the ticket"`
}

type statusOut struct {
	ID     string          `json:"ticket_id"`
	Status string          `json:"verification_status" jsonschema:"pending, running, passing, failing, blocked, sentinel_rejected or needs_review"`
	Result json.RawMessage `json:"result,omitempty" jsonschema:"the last verification"`
}

func (f family) status(ctx context.Context, call *command.Call, in statusIn) (out statusOut, err error) {
	tx, err := begin(call)
	if err != nil {
		return out, err
	}
	t, err := f.t.Service.Get(ctx, tx, in.ID)
	if err != nil {
		return out, err
	}
	out = statusOut{ID: t.ID, Status: t.VerificationStatus}
	list, _, err := f.t.Service.VerificationHistory(ctx, tx, in.ID, 1, 0)
	if len(list) > 0 {
		out.Result = list[0]
	}
	return out, err
}

type historyIn struct {
	ID     string `json:"ticket_id" jsonschema:"id of the ticket"`
	Limit  int    `json:"limit,omitempty" jsonschema:"verifications on the page, 50 if not given" minimum:"1" maximum:"200"`
	Offset int    `json:"offset,omitempty" jsonschema:"newest verifications to leave out" minimum:"0"`
}

type historyOut struct {
	ID            string            `json:"ticket_id"`
	Verifications []json.RawMessage `json:"verifications"`
	Total         int               `json:"total" jsonschema:"all that began"`
}

func (f family) history(ctx context.Context, call *command.Call, in historyIn) (out historyOut, err error) {
	tx, err := begin(call)
	if err != nil {
		return out, err
	}
	out.ID = in.ID
	out.Verifications, out.Total, err = f.t.Service.VerificationHistory(ctx, tx, in.ID, in.Limit, in.Offset)
	return out, err
}

// begin returns the transaction of a call.
func begin(call *command.Call) (ticket.Tx, error) {
	tx, ok := call.Records.(ticket.Tx)
	if !ok {
		return nil, abi.New(abi.Internal, call.Command+": the call has no records")
	}
	return tx, nil
}
