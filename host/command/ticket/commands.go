package ticket

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	tickets "github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/ticket/learning"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Collections are those that the commands keep, for the family data/*, with the words
// that say what to use instead.
func Collections() map[string]string {
	owned := map[string]string{}
	for _, c := range []string{tickets.Collection, tickets.Attempts, tickets.Activities, tickets.Verifications, tickets.Sequence, learning.Collection} {
		owned[c] = "use the commands ticket/*"
	}
	return owned
}

// timeout limits a call without a deadline that looks at a repository on another machine.
const timeout = 5 * time.Minute

// family is what the commands share.
type family struct {
	s        *tickets.Service
	l        *learning.Learner
	complete Complete
}

// A Complete reports work as finished. It looks at repositories, and so it is in no transaction
// of its caller.
type Complete func(ctx context.Context, id, actor string, r tickets.Result) (tickets.View, error)

// Commands returns the family ticket/*.
func Commands(s *tickets.Service, l *learning.Learner, complete Complete) []command.Command {
	f := family{s, l, complete}
	ids := map[string]string{"ticket_id": "id", "ticketId": "id"}
	edit := map[string]string{"ticket_id": "id", "ticketId": "id", "status": "state"} // older trackers have status
	read := command.Options{Effect: command.Reads, Idempotent: true, InStore: true, Aliases: ids}
	list := command.Options{Effect: command.Reads, Idempotent: true, InStore: true}
	write := command.Options{Effect: command.Changes, InStore: true, Aliases: ids}
	work := command.Options{Effect: command.Changes, InStore: true, Private: true, Aliases: ids}
	return []command.Command{
		command.New("ticket/create", "File a ticket: a piece of work for an agent or a person.", command.Options{Effect: command.Changes, Idempotent: true, InStore: true, Aliases: edit, KeyParam: "key"}, f.create),
		command.New("ticket/get", "Read a ticket.", read, f.get),
		command.New("ticket/list", "List or search tickets, the newest change first.", list, f.list),
		command.New("ticket/update", "Change fields of a ticket, or its state.", command.Options{Effect: command.Changes, InStore: true, Aliases: edit}, f.update),
		command.New("ticket/delete", "Remove a ticket with its history.", work, f.remove),
		command.New("ticket/claim", "Take the next ticket of a queue, or a certain one, for a limited time.", work, f.claim),
		command.New("ticket/heartbeat", "Extend a claim.", work, f.heartbeat),
		command.New("ticket/complete", "Report that the work of a claimed ticket is finished.", command.Options{Effect: command.Changes, Idempotent: true, Private: true, Waits: command.Always, Timeout: timeout, Aliases: ids}, f.finish),
		command.New("ticket/release", "Give a claimed ticket back without a result.", work, f.release),
		command.New("ticket/fail", "Report that work failed: the ticket is retried or held.", work, f.fail),
		command.New("ticket/cancel", "Report a failure that must not be retried.", work, f.cancel),
		command.New("ticket/reject", "Reject the work of a ticket with feedback for the next attempt.", work, f.reject),
		command.New("ticket/escalate", "Block a ticket whose verification failed too often, or whose review has no result.", work, f.escalate),
		command.New("ticket/decide", "Decide about a ticket that is held, blocked or to be reviewed.", command.Options{Effect: command.Decides, InStore: true}, f.decide),
		command.New("ticket/comment", "Append a comment to the log of a ticket.", write, f.comment),
		command.New("ticket/log", "Append an entry to the log of a ticket.", write, f.log),
		command.New("ticket/activity", "Read the log of a ticket, newest entry first.", read, f.activity),
		command.New("ticket/attempts", "Read the attempts to finish a ticket, oldest first.", read, f.attempts),
		command.New("ticket/children", "List the tickets that are part of a ticket.", read, f.children),
		command.New("ticket/dependents", "List the tickets that depend on a ticket.", read, f.dependents),
		command.New("ticket/depend", "Add or remove a dependency of a ticket.", write, f.depend),
		command.New("ticket/files", "Record the files that the work of a ticket changed.", write, f.files),
		command.New("ticket/context", "Read what the next attempt at a ticket needs, as a prompt too.", work, f.context),
		command.New("ticket/rules", "List what was learned from tickets.", list, f.rules),
		command.New("ticket/add-rule", "Add a rule for prompts; that of a step or model is only proposed.", command.Options{Effect: command.Changes, InStore: true, Private: true, Idempotent: true, Aliases: map[string]string{"ticket_id": "ticket"}}, f.addRule),
		command.New("ticket/decide-rule", "Accept, retire or remove a rule.", command.Options{Effect: command.Decides, InStore: true}, f.decideRule),
		command.New("ticket/import", "Import tickets of an older tracker, as rows; it can be repeated.", command.Options{Effect: command.Changes, InStore: true, Private: true}, f.importRows),
		command.New("ticket/stats", "Count the tickets in each state.", list, f.stats),
	}
}

// begin returns the transaction of a call.
func begin(call *command.Call) (tickets.Tx, error) {
	tx, ok := call.Records.(tickets.Tx)
	if !ok {
		return nil, abi.New(abi.Internal, call.Command+": the call has no records")
	}
	return tx, nil
}

// person reports whether a person calls, and no step or model.
func person(call *command.Call) bool { return call.By == command.ByUser }

// author returns the agent or model that calls, also by a step of a definition of its own; "" for others.
func author(call *command.Call) string {
	if call.Share() == "" {
		return ""
	}
	return call.Who()
}

// people refuses a call of a model or an agent.
func people(call *command.Call) error {
	if call.OwnClaims() {
		return &abi.Error{Code: abi.Denied, Permanent: true, Message: call.Command + ": a model or an agent cannot decide about tickets"}
	}
	return nil
}

type idIn struct {
	ID string `json:"id" jsonschema:"id of the ticket"`
}

type createIn struct {
	ID  string `json:"id,omitempty" jsonschema:"id of the ticket; T-1, T-2 and so on if not given"`
	Key string `json:"key,omitempty" jsonschema:"idempotency key: a repeated creation finds the ticket"`
	tickets.Fields
}

type createOut struct {
	Ticket  tickets.View `json:"ticket"`
	Created bool         `json:"created" jsonschema:"false if it existed with this content"`
}

type ticketOut struct {
	Ticket tickets.View `json:"ticket"`
}

func answer(v tickets.View, err error) (ticketOut, error) { return ticketOut{v}, err }

func (f family) create(ctx context.Context, call *command.Call, in createIn) (out createOut, err error) {
	tx, err := begin(call)
	if err != nil {
		return out, err
	}
	if in.Title == nil {
		return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "title", Message: call.Command + ": title is missing"}
	}
	in.Person, in.Bound, in.By = person(call), call.OwnClaims(), author(call)
	out.Ticket, out.Created, err = f.s.Create(ctx, tx, in.ID, in.Key, call.Who(), in.Fields)
	return out, err
}

func (f family) get(ctx context.Context, call *command.Call, in idIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.Get(ctx, tx, in.ID))
}

type listIn struct {
	State        []string `json:"state,omitempty" jsonschema:"only tickets in these states"`
	Project      string   `json:"project,omitempty" jsonschema:"only tickets of this project"`
	AssigneeID   string   `json:"assignee_id,omitempty" jsonschema:"only tickets that this agent or person has"`
	AssigneeType string   `json:"assignee_type,omitempty" enum:"agent,human" jsonschema:"only tickets for agents, or for people"`
	Label        string   `json:"label,omitempty" jsonschema:"only tickets with this label"`
	ParentID     string   `json:"parent_id,omitempty" jsonschema:"only tickets that are part of this one"`
	Query        string   `json:"query,omitempty" jsonschema:"words of the id, title, labels or description; the last one may be the beginning of a word"`
	Stuck        bool     `json:"stuck,omitempty" jsonschema:"only tickets in progress that did not change for five minutes"`
	After        string   `json:"after,omitempty" jsonschema:"next of the page before"`
	Limit        int      `json:"limit,omitempty" jsonschema:"tickets on the page, 50 if not given" minimum:"1" maximum:"200"`
}

func (f family) list(ctx context.Context, call *command.Call, in listIn) (tickets.List, error) {
	tx, err := begin(call)
	if err != nil {
		return tickets.List{}, err
	}
	filter := tickets.Filter{
		Project: in.Project, AssigneeID: in.AssigneeID, AssigneeType: in.AssigneeType, Label: in.Label, ParentID: in.ParentID,
		Query: in.Query, Stuck: in.Stuck, After: in.After, Limit: in.Limit, Redact: call.Redact,
	}
	for _, text := range in.State {
		state, err := tickets.ParseState(text)
		if err != nil {
			return tickets.List{}, err
		}
		filter.States = append(filter.States, state)
	}
	return f.s.List(ctx, tx, filter)
}

type updateIn struct {
	ID string `json:"id" jsonschema:"id of the ticket"`
	tickets.Fields
}

func (f family) update(ctx context.Context, call *command.Call, in updateIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	if in.State != nil {
		if err := people(call); err != nil {
			return ticketOut{}, err
		}
	}
	in.Person, in.By = person(call), author(call)
	return answer(f.s.Update(ctx, tx, in.ID, call.Who(), in.Fields))
}

type removeOut struct {
	Deleted string `json:"deleted" jsonschema:"id of the ticket"`
}

func (f family) remove(ctx context.Context, call *command.Call, in idIn) (removeOut, error) {
	tx, err := begin(call)
	if err == nil {
		err = people(call)
	}
	if err == nil {
		err = f.s.Delete(ctx, tx, in.ID)
	}
	return removeOut{in.ID}, err
}

type claimIn struct {
	AgentID string `json:"agent_id,omitempty" jsonschema:"who takes it; of a caller that is not a person it stands behind the caller's name; the calling run if not given"`
	Role    string `json:"role,omitempty" enum:"worker,reviewer,deployer" jsonschema:"which queue: worker (ready, if not given), reviewer (in_review) or deployer (approved)"`
	ID      string `json:"id,omitempty" jsonschema:"only this ticket"`
	Project string `json:"project,omitempty" jsonschema:"only tickets of this project"`
	VMID    string `json:"vm_id,omitempty" jsonschema:"machine that the agent executes on"`
	LeaseMs int64  `json:"lease_ms,omitempty" jsonschema:"how long the claim holds without a heartbeat, in milliseconds; 300000 if not given" minimum:"1000" maximum:"86400000"`
}

type claimOut struct {
	Ticket *tickets.View `json:"ticket" jsonschema:"null if there is none"`
	Token  uint64        `json:"token,omitempty" jsonschema:"to give with reports about this claim"`
}

func (f family) claim(ctx context.Context, call *command.Call, in claimIn) (out claimOut, err error) {
	tx, err := begin(call)
	if err != nil {
		return out, err
	}
	role, err := tickets.ParseRole(in.Role)
	if err != nil {
		return out, err
	}
	if in.AgentID == "" && call.Run != "" {
		in.AgentID = string(call.Run)
	} else {
		in.AgentID = call.Named(in.AgentID)
	}
	if call.Within != nil && !call.ForAgent() && role != tickets.Worker {
		return out, &abi.Error{Code: abi.Denied, Permanent: true, Field: "role", Message: fmt.Sprintf("ticket/claim: the definition of this run comes from a model, and nothing shows that its work is not what it would claim as a %s", role),
			Hint: "a person accepts the definition with `sentinel accept`"}
	}
	out.Ticket, err = f.s.Claim(ctx, tx, tickets.Claim{Agent: in.AgentID, By: call.Claimant(), Bound: call.OwnClaims(), Role: role, ID: in.ID, Project: in.Project, VM: in.VMID, Lease: time.Duration(in.LeaseMs) * time.Millisecond})
	if out.Ticket != nil {
		out.Token = out.Ticket.Lease.Token
	}
	return out, err
}

type heartbeatIn struct {
	ID    string `json:"id" jsonschema:"id of the ticket"`
	Token uint64 `json:"token" jsonschema:"of the claim"`
	Phase string `json:"phase,omitempty" jsonschema:"what the agent does now"`
}

func (f family) heartbeat(ctx context.Context, call *command.Call, in heartbeatIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	if err := f.own(ctx, tx, call, in.ID, in.Token); err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.Heartbeat(ctx, tx, in.ID, in.Token, in.Phase))
}

// Completion has another name than its field Result, which would hide it in the schema.
type Completion = tickets.Result

type completeIn struct {
	ID string `json:"id" jsonschema:"id of the ticket"`
	Completion
}

func (f family) finish(ctx context.Context, call *command.Call, in completeIn) (ticketOut, error) {
	if err := modelToken(call, in.Token); err != nil {
		return ticketOut{}, err
	}
	if in.Person, in.Key = person(call), call.Key; call.OwnClaims() {
		in.Holder = call.Claimant()
	}
	return answer(f.complete(ctx, in.ID, call.Who(), in.Completion))
}

// modelToken refuses a call of a model without the token of a claim.
func modelToken(call *command.Call, token uint64) error {
	if token == 0 && call.By == command.ByModel {
		return call.TokenMissing()
	}
	return nil
}

// holder refuses a report of a model or agent about a ticket that it has not claimed: what a
// person decided about a ticket, and the queue, are not theirs to change.
func (f family) holder(ctx context.Context, tx tickets.Tx, call *command.Call, id string, token uint64) error {
	if err := modelToken(call, token); err != nil {
		return err
	}
	if err := f.own(ctx, tx, call, id, token); err != nil || !call.OwnClaims() {
		return err
	}
	t, err := f.s.Get(ctx, tx, id)
	if err != nil || t.Lease != nil {
		return err
	}
	if t.State == tickets.Blocked && t.HoldCode == tickets.MaxVerified && call.Command == "ticket/escalate" {
		return nil // the verdict ended the claim and did it
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "id", Message: fmt.Sprintf("ticket %s is %s and has no claim: an agent reports about a claim of its own", t.ID, t.State),
		Hint: "claim it with ticket/claim; what a person decided, only a person changes: ticket/decide",
	}
}

// own refuses a call of a model or agent about a ticket whose claim is another one's.
func (f family) own(ctx context.Context, tx tickets.Tx, call *command.Call, id string, token uint64) error {
	if !call.OwnClaims() {
		return nil
	}
	if err := f.s.CheckHolder(ctx, tx, id, token, call.Claimant()); abi.CodeOf(err) != abi.NotFound {
		return err
	}
	return nil // the command itself reports an unknown ticket
}

type reportIn struct {
	ID           string `json:"id" jsonschema:"id of the ticket"`
	Token        uint64 `json:"token,omitempty" jsonschema:"of the claim"`
	Reason       string `json:"reason,omitempty" jsonschema:"why"`
	RetryAfterMs int64  `json:"retry_after_ms,omitempty" jsonschema:"not claimed again before, in milliseconds" minimum:"0" maximum:"86400000"`
}

func (f family) release(ctx context.Context, call *command.Call, in reportIn) (ticketOut, error) {
	tx, err := begin(call)
	if err == nil {
		err = f.holder(ctx, tx, call, in.ID, in.Token)
	}
	if err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.Release(ctx, tx, in.ID, in.Token, call.Who(), in.Reason, time.Duration(in.RetryAfterMs)*time.Millisecond))
}

type failIn struct {
	ID           string `json:"id" jsonschema:"id of the ticket"`
	Token        uint64 `json:"token,omitempty" jsonschema:"of the claim"`
	Error        string `json:"error" jsonschema:"what failed; its category decides about the retry"`
	Code         string `json:"code,omitempty" jsonschema:"code of the error, such as unavailable; it counts before the text"`
	RetryAfterMs int64  `json:"retry_after_ms,omitempty" jsonschema:"delay that a server asked for, in milliseconds" minimum:"0"`
	RawReply     string `json:"raw_reply,omitempty" jsonschema:"reply of a model that could not be read"`
}

func (in failIn) failure() tickets.Failure {
	return tickets.Failure{Error: in.Error, Code: abi.Code(in.Code), Token: in.Token, RawReply: in.RawReply, RetryAfter: time.Duration(in.RetryAfterMs) * time.Millisecond}
}

func (f family) fail(ctx context.Context, call *command.Call, in failIn) (tickets.Outcome, error) {
	tx, err := begin(call)
	if err == nil {
		err = f.holder(ctx, tx, call, in.ID, in.Token)
	}
	if err != nil {
		return tickets.Outcome{}, err
	}
	return f.s.RetryOrFail(ctx, tx, in.ID, in.failure())
}

func (f family) cancel(ctx context.Context, call *command.Call, in failIn) (ticketOut, error) {
	tx, err := begin(call)
	if err == nil {
		err = f.holder(ctx, tx, call, in.ID, in.Token)
	}
	if err != nil {
		return ticketOut{}, err
	}
	failure := in.failure()
	failure.Person = person(call)
	return answer(f.s.FailNoRetry(ctx, tx, in.ID, call.Who(), failure))
}

type rejectIn struct {
	ID       string          `json:"id" jsonschema:"id of the ticket"`
	Token    uint64          `json:"token,omitempty" jsonschema:"of the claim"`
	Feedback json.RawMessage `json:"sentinel_feedback" jsonschema:"a text, a list of texts, or an object with feedback_for_agent"`
}

func (f family) reject(ctx context.Context, call *command.Call, in rejectIn) (tickets.Outcome, error) {
	tx, err := begin(call)
	if err == nil {
		err = f.holder(ctx, tx, call, in.ID, in.Token)
	}
	if err != nil {
		return tickets.Outcome{}, err
	}
	var feedback tickets.Feedback
	if err := strictjson.DecodeOpen(in.Feedback, &feedback, strictjson.Unlimited()); err != nil {
		return tickets.Outcome{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "sentinel_feedback", Message: fmt.Sprintf("%s: sentinel_feedback: %v", call.Command, err)}
	}
	return f.s.Reject(ctx, tx, in.ID, in.Token, call.Who(), feedback)
}

type escalateIn struct {
	ID         string          `json:"id" jsonschema:"id of the ticket"`
	Token      uint64          `json:"token,omitempty" jsonschema:"of the claim"`
	Reason     string          `json:"reason,omitempty" jsonschema:"why; max_verification_attempts, or needs_review of a review, if not given"`
	LastResult json.RawMessage `json:"last_result,omitempty" jsonschema:"the last verification or review"`
	RawReply   string          `json:"raw_reply,omitempty" jsonschema:"reply of a model that could not be read"`
}

func (f family) escalate(ctx context.Context, call *command.Call, in escalateIn) (ticketOut, error) {
	tx, err := begin(call)
	if err == nil {
		err = f.holder(ctx, tx, call, in.ID, in.Token)
	}
	if err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.Escalate(ctx, tx, in.ID, call.Who(), tickets.Escalation{Token: in.Token, Reason: in.Reason, Last: in.LastResult, RawReply: in.RawReply}))
}

type decideIn struct {
	ID      string `json:"id" jsonschema:"id of the ticket"`
	Action  string `json:"action" enum:"release,reject,accept,hold" jsonschema:"release: back into the queue with new retries; reject: cancel it; accept: it is done, or approved; hold: take it out of its queue"`
	Comment string `json:"comment,omitempty" jsonschema:"why; with release it is feedback for the next attempt"`

	CriteriaDigest string `json:"criteria_digest,omitempty" jsonschema:"of the criteria that the person looked at, as inbox/list and ticket/get have it: others are not released"`
	VerifiedCommit string `json:"verified_commit,omitempty" jsonschema:"commit that the person looked at: work of which another one is verified is not accepted"`
	tickets.Fields
}

func (f family) decide(ctx context.Context, call *command.Call, in decideIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	in.State, in.Person = nil, person(call) // the action gives the state
	return answer(f.s.Decide(ctx, tx, in.ID, tickets.Decision{
		Action: in.Action, Comment: in.Comment, By: call.Who(), Fields: in.Fields, CriteriaDigest: in.CriteriaDigest, VerifiedCommit: in.VerifiedCommit,
	}))
}

type commentIn struct {
	ID   string `json:"id" jsonschema:"id of the ticket"`
	Text string `json:"text" jsonschema:"at most 2000 bytes are kept"`
}

func (f family) comment(ctx context.Context, call *command.Call, in commentIn) (tickets.Activity, error) {
	tx, err := begin(call)
	if err != nil {
		return tickets.Activity{}, err
	}
	return f.s.AddActivity(ctx, tx, in.ID, tickets.Activity{AgentID: call.Who(), Category: "comment", Message: in.Text})
}

type logIn struct {
	ID       string          `json:"id" jsonschema:"id of the ticket"`
	AgentID  string          `json:"agent_id,omitempty" jsonschema:"who reports; of a caller that is not a person it stands behind the caller's name"`
	Category string          `json:"category" jsonschema:"kind of the entry, such as ai_request, file_modified, git_operation, pr_created or error"`
	Message  string          `json:"message,omitempty" jsonschema:"at most 2000 bytes are kept"`
	Metadata json.RawMessage `json:"metadata,omitempty" jsonschema:"more about it, at most 16 KiB"`
}

func (f family) log(ctx context.Context, call *command.Call, in logIn) (tickets.Activity, error) {
	tx, err := begin(call)
	if err != nil {
		return tickets.Activity{}, err
	}
	if !person(call) && tickets.OwnCategory(in.Category) {
		return tickets.Activity{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "category",
			Message: fmt.Sprintf("ticket/log: entries of the category %q are written by the service of tickets", in.Category), Hint: "give it another category, such as ai_request"}
	}
	return f.s.AddActivity(ctx, tx, in.ID, tickets.Activity{AgentID: call.Named(in.AgentID), Category: in.Category, Message: in.Message, Metadata: in.Metadata})
}

type activityIn struct {
	ID       string   `json:"id" jsonschema:"id of the ticket"`
	Category []string `json:"category,omitempty" jsonschema:"only entries of these kinds"`
	Limit    int      `json:"limit,omitempty" jsonschema:"entries on the page, 50 if not given" minimum:"1" maximum:"200"`
	Offset   int      `json:"offset,omitempty" jsonschema:"newest entries to leave out" minimum:"0"`
}

func (f family) activity(ctx context.Context, call *command.Call, in activityIn) (tickets.Page, error) {
	tx, err := begin(call)
	if err != nil {
		return tickets.Page{}, err
	}
	return f.s.ListActivities(ctx, tx, in.ID, in.Category, in.Limit, in.Offset)
}

type attemptsIn struct {
	idIn
	Limit  int `json:"limit,omitempty" jsonschema:"attempts on the page, 50 if not given" minimum:"1" maximum:"200"`
	Offset int `json:"offset,omitempty" jsonschema:"oldest attempts to leave out" minimum:"0"`
}

func (f family) attempts(ctx context.Context, call *command.Call, in attemptsIn) (out tickets.AttemptPage, err error) {
	tx, err := begin(call)
	if err == nil {
		out, err = f.s.ListAttempts(ctx, tx, in.ID, in.Limit, in.Offset)
	}
	return out, err
}

type linkedIn struct {
	idIn
	After string `json:"after,omitempty" jsonschema:"next of the page before"`
	Limit int    `json:"limit,omitempty" jsonschema:"tickets on the page, 50 if not given" minimum:"1" maximum:"200"`
}

func (f family) children(ctx context.Context, call *command.Call, in linkedIn) (out tickets.List, err error) {
	tx, err := begin(call)
	if err == nil {
		out, err = f.s.Children(ctx, tx, in.ID, in.After, in.Limit)
	}
	return out, err
}

func (f family) dependents(ctx context.Context, call *command.Call, in linkedIn) (out tickets.List, err error) {
	tx, err := begin(call)
	if err == nil {
		out, err = f.s.Dependents(ctx, tx, in.ID, in.After, in.Limit)
	}
	return out, err
}

type dependIn struct {
	ID     string   `json:"id" jsonschema:"id of the ticket"`
	Add    []string `json:"add,omitempty" jsonschema:"ids of tickets that must be done before it"`
	Remove []string `json:"remove,omitempty" jsonschema:"ids of tickets that need not be"`
}

func (f family) depend(ctx context.Context, call *command.Call, in dependIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.Depend(ctx, tx, in.ID, call.Who(), person(call), in.Add, in.Remove))
}

type filesIn struct {
	ID    string         `json:"id" jsonschema:"id of the ticket"`
	Token uint64         `json:"token,omitempty" jsonschema:"of the claim"`
	Files []tickets.File `json:"files" jsonschema:"each with file_path and change_type: created, modified or deleted"`
}

func (f family) files(ctx context.Context, call *command.Call, in filesIn) (ticketOut, error) {
	tx, err := begin(call)
	if err != nil {
		return ticketOut{}, err
	}
	if err := f.holder(ctx, tx, call, in.ID, in.Token); err != nil {
		return ticketOut{}, err
	}
	return answer(f.s.AddFiles(ctx, tx, in.ID, call.Who(), in.Token, in.Files))
}

type statsIn struct{}

func (f family) stats(ctx context.Context, call *command.Call, _ statsIn) (tickets.Stats, error) {
	tx, err := begin(call)
	if err != nil {
		return tickets.Stats{}, err
	}
	return f.s.Stats(ctx, tx)
}
