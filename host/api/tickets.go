package api

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// ticketRoots are the places of the tickets. Clients of older trackers use either.
var ticketRoots = []struct{ path, prefix string }{{"/tickets", ""}, {"/api/tickets", "api"}}

// ticketRoutes are the tickets as resources. Their bodies are JSON whatever their
// content type says, since clients of older trackers send them with none; the guard has
// refused pages of other origins before.
func ticketRoutes() []Route {
	var all []Route
	for _, root := range ticketRoots {
		for _, r := range ticketRoutesAt(root.path) {
			if root.prefix != "" {
				r.Name = root.prefix + fmt.Sprintf("%c", r.Name[0]-'a'+'A') + r.Name[1:]
			}
			r.Access, r.anyType = AccessToken, true
			all = append(all, r)
		}
	}
	return all
}

// searchRoutes are searches of the workspace, for clients of older trackers.
func searchRoutes() []Route {
	return []Route{{
		Method: http.MethodPost, Pattern: "/api/rag/search", Name: "searchWorkspace", Command: "rag/search", Access: AccessToken, body: "*",
		Summary: "Find the files and lines of the workspace that are most relevant to a question.",
	}}
}

// inboxRoutes are what waits for a person.
func inboxRoutes() []Route {
	return []Route{{Method: http.MethodGet, Pattern: "/inbox", Name: "listInbox", Command: "inbox/list", Access: AccessToken, Query: []Param{
		{Name: "kind", Type: "list", Summary: "only these kinds, between commas: approval, doubt, quarantine, limit, ticket, definition"},
		{Name: "limit", Type: "integer", Summary: "entries on the page, 50 if not given, at most 200"},
		{Name: "after", Type: "string", Summary: "next of the page before"},
	}, Summary: "List what waits for a person, of agents last, the oldest first."}}
}

func ticketRoutesAt(root string) []Route {
	one := root + "/{ticket}"
	get, post, put, remove := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	filters := []Param{
		{Name: "state", Type: "list", Summary: "only tickets in these states, between commas"},
		{Name: "status", Type: "list", As: "state", Summary: "the same as state"},
		{Name: "project", Type: "string", Summary: "only tickets of this project"},
		{Name: "assignee_id", Type: "string", Summary: "only tickets that this agent or person has"},
		{Name: "assignee_type", Type: "string", Summary: "only tickets for agents, or for people: agent or human"},
		{Name: "label", Type: "string", Summary: "only tickets with this label"},
		{Name: "parent_id", Type: "string", Summary: "only tickets that are part of this one"},
		{Name: "q", Type: "string", As: "query", Summary: "words of the id, title, labels or description"},
		{Name: "after", Type: "string", Summary: "next of the page before"},
		{Name: "limit", Type: "integer", Summary: "tickets on the page, 50 if not given, at most 200"},
	}
	page := filters[len(filters)-2:]
	return []Route{
		{Method: get, Pattern: root, Name: "listTickets", Command: "ticket/list", Query: filters, Summary: "List or search tickets, the newest change first. Those that wait for a retry are in the list."},
		{Method: post, Pattern: root, Name: "createTicket", Command: "ticket/create", Status: http.StatusCreated, body: "*", answer: (*API).answerTicket, Summary: "File a ticket. A repeated creation with the same id or key answers 200 with the ticket."},
		{Method: get, Pattern: root + "/stats", Name: "ticketStats", Command: "ticket/stats", Summary: "Count the tickets in each state."},
		{Method: get, Pattern: root + "/needs-review", Name: "ticketsToReview", Command: "ticket/list", Query: page, fixed: map[string]any{"state": []string{"needs_review", "blocked", "on_hold"}}, Summary: "List the tickets that wait for a person."},
		{Method: get, Pattern: root + "/stuck", Name: "stuckTickets", Command: "ticket/list", Query: page, fixed: map[string]any{"stuck": true}, Summary: "List the tickets in progress that did not change for five minutes."},
		{Method: get, Pattern: root + "/rules", Name: "listTicketRules", Command: "ticket/rules", Query: []Param{
			{Name: "state", Type: "list", Summary: "only rules in these states, between commas: seen, proposed, active or retired"},
			{Name: "limit", Type: "integer", Summary: "rules on the page, 1000 if not given, at most 1000"},
			{Name: "offset", Type: "integer", Summary: "rules to leave out"},
		}, Summary: "List what was learned from tickets, with its effect."},
		{Method: post, Pattern: root + "/rules", Name: "addTicketRule", Command: "ticket/add-rule", Status: http.StatusCreated, body: "*", Summary: "Add a rule for prompts."},
		{Method: post, Pattern: root + "/rules/{rule}/decide", Name: "decideTicketRule", Command: "ticket/decide-rule", body: "*", Summary: "Accept, retire or remove a rule."},
		{Method: post, Pattern: root + "/claim", Name: "claimTicket", Command: "ticket/claim", body: "*", answer: (*API).answerTicket, Summary: "Take the next ticket of a queue; null if there is none."},
		{Method: get, Pattern: one, Name: "getTicket", Command: "ticket/get", answer: (*API).answerTicket, Summary: "Read a ticket."},
		{Method: put, Pattern: one, Name: "updateTicket", Command: "ticket/update", body: "*", answer: (*API).answerTicket, Summary: "Change fields of a ticket, or its state."},
		{Method: http.MethodPatch, Pattern: one, Name: "patchTicket", Command: "ticket/update", body: "*", answer: (*API).answerTicket, Summary: "The same as PUT."},
		{Method: remove, Pattern: one, Name: "deleteTicket", Command: "ticket/delete", Summary: "Remove a ticket with its history."},
		{Method: get, Pattern: one + "/verification", Name: "ticketVerification", Command: "ticket/get", answer: (*API).answerVerification, Summary: "Read the state of a ticket's verification."},
		{Method: get, Pattern: one + "/activity", Name: "ticketActivity", Command: "ticket/activity", Query: []Param{
			{Name: "category", Type: "list", Summary: "only entries of these kinds, between commas"},
			{Name: "limit", Type: "integer", Summary: "entries on the page, 50 if not given, at most 200"},
			{Name: "offset", Type: "integer", Summary: "newest entries to leave out"},
		}, Summary: "Read the log of a ticket, newest entry first."},
		{Method: post, Pattern: one + "/activity", Name: "logTicketActivity", Command: "ticket/log", Status: http.StatusCreated, body: "*", Summary: "Append an entry to the log of a ticket."},
		{Method: post, Pattern: one + "/comments", Name: "commentTicket", Command: "ticket/comment", Status: http.StatusCreated, body: "*", Summary: "Append a comment to the log of a ticket."},
		{Method: get, Pattern: one + "/attempts", Name: "ticketAttempts", Command: "ticket/attempts", Query: []Param{
			{Name: "limit", Type: "integer", Summary: "attempts on the page, 50 if not given, at most 200"},
			{Name: "offset", Type: "integer", Summary: "oldest attempts to leave out"},
		}, Summary: "Read the attempts to finish a ticket, oldest first."},
		{Method: get, Pattern: one + "/context", Name: "ticketContext", Command: "ticket/context", Query: []Param{
			{Name: "max_bytes", Type: "integer", Summary: "bytes of the prompt, 65536 if not given"},
		}, Summary: "Read what the next attempt at a ticket needs, as a prompt too."},
		{Method: post, Pattern: one + "/context", Name: "offerTicketContext", Command: "ticket/context", body: "*", Summary: "The same for the holder of a claim, whose token is in the body: the offer of rules is recorded."},
		{Method: get, Pattern: one + "/children", Name: "ticketChildren", Command: "ticket/children", Query: page, Summary: "List the tickets that are part of a ticket."},
		{Method: get, Pattern: one + "/impact", Name: "ticketDependents", Command: "ticket/dependents", Query: page, Summary: "List the tickets that depend on a ticket."},
		{Method: post, Pattern: one + "/dependencies", Name: "addTicketDependencies", Command: "ticket/depend", body: "*", answer: (*API).answerTicket, Summary: "Add or remove dependencies: {\"add\": [ID], \"remove\": [ID]}."},
		{Method: post, Pattern: one + "/files", Name: "recordTicketFiles", Command: "ticket/files", body: "*", answer: (*API).answerTicket, Summary: "Record the files that the work of a ticket changed."},
		{Method: post, Pattern: one + "/claim", Name: "claimThisTicket", Command: "ticket/claim", body: "*", answer: (*API).answerTicket, Summary: "Take this ticket."},
		{Method: post, Pattern: one + "/heartbeat", Name: "extendTicketClaim", Command: "ticket/heartbeat", body: "*", answer: (*API).answerTicket, Summary: "Extend a claim."},
		{Method: post, Pattern: one + "/complete", Name: "completeTicket", Command: "ticket/complete", body: "*", answer: (*API).answerTicket, Summary: "Report that the work is finished."},
		{Method: post, Pattern: one + "/release", Name: "releaseTicket", Command: "ticket/release", body: "*", answer: (*API).answerTicket, Summary: "Give a claimed ticket back without a result."},
		{Method: post, Pattern: one + "/fail", Name: "failTicket", Command: "ticket/fail", body: "*", Summary: "Report a failure: the ticket is retried or held."},
		{Method: post, Pattern: one + "/cancel", Name: "cancelTicket", Command: "ticket/cancel", body: "*", answer: (*API).answerTicket, Summary: "Report a failure that must not be retried: the ticket is cancelled."},
		{Method: post, Pattern: one + "/reject", Name: "rejectTicket", Command: "ticket/reject", body: "*", Summary: "Reject the work with feedback for the next attempt."},
		{Method: post, Pattern: one + "/escalate", Name: "escalateTicket", Command: "ticket/escalate", body: "*", answer: (*API).answerTicket, Summary: "Block a ticket whose verification failed too often."},
		{Method: post, Pattern: one + "/decide", Name: "decideTicket", Command: "ticket/decide", body: "*", answer: (*API).answerTicket, Summary: "Decide about a ticket that is held, blocked or to be reviewed."},
		{Method: post, Pattern: one + "/requeue", Name: "requeueTicket", Command: "ticket/decide", body: "*", fixed: map[string]any{"action": "release"}, answer: (*API).answerTicket, Summary: "Put a ticket back into the queue with new retries."},
	}
}

// answerTicket answers with the ticket alone, and with the token of a claim in its
// lease. A creation that found the ticket is 200.
func (a *API) answerTicket(w http.ResponseWriter, _ *http.Request, route *Route, result json.RawMessage) error {
	var out struct {
		Ticket  json.RawMessage `json:"ticket"`
		Created *bool           `json:"created"`
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return err
	}
	status := route.Status
	if out.Created != nil && !*out.Created {
		status = http.StatusOK
	}
	return writeJSON(w, status, out.Ticket)
}

// answerVerification answers with what is known of the verification of a ticket.
func (a *API) answerVerification(w http.ResponseWriter, _ *http.Request, route *Route, result json.RawMessage) error {
	var out struct {
		Ticket struct {
			ID       string          `json:"id"`
			Criteria json.RawMessage `json:"acceptance_criteria,omitempty"`
			Status   string          `json:"verification_status"`
			Log      json.RawMessage `json:"verification_log"`
		} `json:"ticket"`
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return err
	}
	t := out.Ticket
	return writeJSON(w, route.Status, map[string]any{
		"ticket_id": t.ID, "verification_status": t.Status, "verification_log": t.Log, "acceptance_criteria": t.Criteria,
	})
}
