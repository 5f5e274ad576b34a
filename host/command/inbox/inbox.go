// Package inbox implements the command that lists everything which waits for a person:
// approvals, calls that a crash left in doubt, steps in quarantine, runs at a limit, tickets
// that are held, blocked or to be reviewed, and definitions of models and agents that name
// more commands than their authors may call.
package inbox

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options are where entries come from. All are required.
type Options struct {
	// Runs lists the runs that are not over.
	Runs    func() ([]runtime.RunInfo, error)
	Tickets *ticket.Service
	// AgentChanges returns what agents and models have changed in the definitions of a run and of others of its tree, as
	// unified differences.
	AgentChanges func(sentinels.RunID) (string, error)
	// GivenInputs returns the inputs and events that an agent or model gave to a run and to others of its tree.
	GivenInputs func(sentinels.RunID) ([]runtime.GivenInput, error)
	// Definitions lists those that wait to be accepted.
	Definitions func(context.Context) ([]Definition, error)
}

// A Definition names commands that the model or agent which made it may not call, or is
// not written to its file before a person accepts it.
type Definition struct {
	runtime.Stored
	Beyond []string // these commands, none if only the file waits
	// Difference returns the lines of the difference to the newest revision without a bound.
	Difference func() ([]string, error)
}

// Commands returns the family inbox/*.
func Commands(opt Options) []command.Command {
	return []command.Command{
		command.New("inbox/list", "List what waits for a person: first what persons caused, then runs, definitions and tickets of agents and models and what their events led to, each the oldest first.", command.Options{Effect: command.Reads, Idempotent: true, InStore: true, Private: true}, family{opt}.list),
	}
}

type family struct{ opt Options }

type listIn struct {
	ID    string   `json:"id,omitempty" jsonschema:"only what this run, ticket or sentinel waits for"`
	Kind  []string `json:"kind,omitempty" jsonschema:"only these kinds: approval, doubt, quarantine, limit, ticket, definition"`
	Limit int      `json:"limit,omitempty" jsonschema:"entries on the page, 50 if not given" minimum:"1" maximum:"200"`
	After string   `json:"after,omitempty" jsonschema:"next of the page before"`
	By    string   `json:"by,omitempty" jsonschema:"only what waits of runs, definitions, tickets and events of this agent, agent:NAME, or of models, model"`
	Each  int      `json:"each,omitempty" jsonschema:"of each agent, and of models, only so many entries, the newest; more counts the others" minimum:"1" maximum:"200"`
}

// The kinds of entries, besides those of decisions about runs.
const (
	kindLimit      = "limit"
	kindTicket     = "ticket"
	kindDefinition = "definition"
)

var kinds = []string{string(runtime.DecisionApproval), string(runtime.DecisionDoubt), string(runtime.DecisionQuarantine), kindLimit, kindTicket, kindDefinition}

// An Entry waits for a person.
type Entry struct {
	ID       string    `json:"id" jsonschema:"of the run, ticket or sentinel"`
	Call     string    `json:"call,omitempty" jsonschema:"of a run: which of its decisions"`
	Kind     string    `json:"kind" jsonschema:"approval, doubt, quarantine, limit, ticket or definition"`
	Since    time.Time `json:"since"`
	Subject  string    `json:"subject" jsonschema:"name of the sentinel, or title of the ticket"`
	Prompt   string    `json:"prompt" jsonschema:"what is asked, or why it waits"`
	CallKind string    `json:"callKind,omitempty" jsonschema:"of a run that asks about a call: the kind of calls that an approval covers until the step ends"`
	Origin   string    `json:"origin,omitempty" jsonschema:"of a run: the agent, event and sentinels that led to it"`
	Deadline time.Time `json:"deadline,omitzero" jsonschema:"of an approval with a time limit: a later decision is refused"`
	Expired  bool      `json:"expired,omitempty" jsonschema:"the deadline is over and no process executes the run: a resume ends the step with its time-out"`
	Choices  []string  `json:"choices"`
	Command  string    `json:"command" jsonschema:"command that decides: sentinel/decide, sentinel/resume, ticket/decide or sentinel/accept"`
	By       string    `json:"by,omitempty" jsonschema:"the agent of a run, definition or ticket, or of the event that led to a run; or model"`
	State    string    `json:"state,omitempty" jsonschema:"of a ticket"`
	Sentinel string    `json:"sentinelId,omitempty"`

	Lines []string       `json:"lines,omitempty" jsonschema:"of a ticket whose criteria wait for an approval: all shell lines and requests that a release lets checks execute; of a definition: its difference to the newest revision without a bound; of a run: the inputs and events that agents and models gave to it and to others of its tree, and what they changed in their definitions"`
	Pin   map[string]any `json:"pin,omitempty" jsonschema:"parameters of the command that make it fail if the ticket, the definition, or the question of the run, is no longer what is shown here"`

	others     bool                     // caused by an agent or a model, By: after those of persons, however many there are
	difference func() ([]string, error) // makes Lines of an entry that is on the page; nil if they are known
}

type listOut struct {
	Entries []Entry `json:"entries"`
	Next    string  `json:"next,omitempty" jsonschema:"there are more: give it as after"`
	More    []More  `json:"more,omitempty" jsonschema:"with each: what is left out"`
}

// More is how many entries of an agent, or of models, are left out.
type More struct {
	By      string `json:"by" jsonschema:"the agent, or model"`
	Entries int    `json:"entries" jsonschema:"how many entries are left out"`
}

func (f family) list(ctx context.Context, call *command.Call, in listIn) (listOut, error) {
	out := listOut{Entries: []Entry{}}
	for _, kind := range in.Kind {
		if !slices.Contains(kinds, kind) {
			return out, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "kind", Message: fmt.Sprintf("kind: unknown kind %.40q", kind), Hint: "known are " + strings.Join(kinds, ", ")}
		}
	}
	if in.Limit == 0 {
		in.Limit = 50
	}
	after, err := parsePosition(in.After)
	if err != nil {
		return out, err
	}
	wanted := func(kind string) bool { return len(in.Kind) == 0 || slices.Contains(in.Kind, kind) }
	var all []Entry
	if slices.ContainsFunc(kinds, func(kind string) bool { return kind != kindTicket && kind != kindDefinition && wanted(kind) }) {
		if all, err = f.runs(); err != nil {
			return out, err
		}
	}
	if wanted(kindTicket) {
		tickets, err := f.tickets(ctx, call, in, after)
		if err != nil {
			return out, err
		}
		all = append(all, tickets...)
	}
	if wanted(kindDefinition) {
		waiting, err := f.opt.Definitions(ctx)
		if err != nil {
			return out, err
		}
		for _, s := range waiting {
			all = append(all, definitionEntry(s))
		}
	}
	all = slices.DeleteFunc(all, func(e Entry) bool {
		return !wanted(e.Kind) || in.ID != "" && e.ID != in.ID || in.By != "" && e.By != in.By || !after.before(e)
	})
	slices.SortFunc(all, func(a, b Entry) int { return positionOf(a).compare(positionOf(b)) })
	if in.Each > 0 {
		all, out.More = newestOf(all, in.Each)
	}
	page := call.Page()
	for i, e := range all {
		if e.difference != nil {
			if e.Lines, err = e.difference(); err != nil {
				return out, err
			}
		}
		fits, err := page.Fits(e)
		if err != nil {
			return out, err
		}
		if !fits || i == in.Limit {
			out.Next = positionOf(all[i-1]).String()
			break
		}
		out.Entries = append(out.Entries, e)
	}
	return out, nil
}

// newestOf returns entries, which are in their order, without those of agents and models beyond the newest ones of each.
func newestOf(all []Entry, each int) (kept []Entry, more []More) {
	count := map[string]int{}
	for _, e := range all {
		count[e.By]++
	}
	left := map[string]int{}
	kept = slices.DeleteFunc(all, func(e Entry) bool {
		if !e.others || count[e.By]-left[e.By] <= each {
			return false
		}
		left[e.By]++
		return true
	})
	for _, by := range slices.Sorted(maps.Keys(left)) {
		more = append(more, More{By: by, Entries: left[by]})
	}
	return kept, more
}

// runs returns the entries of runs. A host has few that are not over.
func (f family) runs() ([]Entry, error) {
	runs, err := f.opt.Runs()
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, r := range runs {
		by := r.By
		if by == "" && len(r.GivenBy) > 0 { // also since it asks
			by = r.GivenBy[0]
		}
		entry := Entry{ID: string(r.ID), Subject: r.Name, Sentinel: string(r.Sentinel), Command: "sentinel/decide"}
		entry.difference = func() ([]string, error) { return f.ofOthers(r.ID) }
		for _, d := range r.Decisions {
			entry.Pin = nil
			if d.Question != "" {
				entry.Pin = map[string]any{"question": d.Question}
			}
			entry.Call, entry.Kind, entry.Since, entry.Prompt, entry.Choices = d.Call, string(d.Kind), d.Since.UTC(), d.Prompt, d.Choices
			entry.Origin, entry.CallKind, entry.Deadline = d.Origin, d.CallKind, d.Deadline
			entry.By = cmp.Or(r.By, d.OriginBy, by)
			entry.others = entry.By != ""
			asked := entry
			if d.Expired(time.Now()) {
				asked.Expired, asked.Pin, asked.Choices, asked.Command = true, nil, []string{"resume"}, "sentinel/resume"
			}
			list = append(list, asked)
		}
		if r.Status == sentinels.StatusPaused && r.Limit != "" {
			entry.Origin, entry.CallKind, entry.Deadline, entry.By, entry.others = "", "", time.Time{}, by, by != ""
			entry.Call, entry.Pin, entry.Kind, entry.Since, entry.Prompt = "", nil, kindLimit, r.UpdatedAt.UTC(), "the run reached its limit "+r.Limit
			entry.Choices, entry.Command = []string{"resume"}, "sentinel/resume"
			list = append(list, entry)
		}
	}
	return list, nil
}

// ofOthers returns what agents and models made of a run and of others of its tree: the inputs and events that they gave, and their changes.
func (f family) ofOthers(run sentinels.RunID) (lines []string, err error) {
	inputs, err := f.opt.GivenInputs(run)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		kind, of := "input", ""
		if in.Event {
			kind = "event"
		}
		if in.Of != "" {
			of = " of " + in.Of
		}
		// The value of a run that asks for an approval is whole: it is not longer than the excerpt may be.
		lines = append(lines, strings.Split(fmt.Sprintf("%s %q%s, given by %s: %s", kind, in.Name, of, in.By, command.Excerpt(string(in.Value))), "\n")...)
	}
	text, err := f.opt.AgentChanges(run)
	if text == "" || err != nil {
		return lines, err
	}
	return append(lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...), nil
}

func definitionEntry(s Definition) Entry {
	prompt := fmt.Sprintf("revision %d, by %s, is not written to its file before a person accepts it", s.Revision, s.By)
	if len(s.Beyond) > 0 {
		names := strings.Join(s.Beyond, ", ")
		prompt = fmt.Sprintf("revision %d, by %s, names commands that its author may not call: %s", s.Revision, s.By, names)
	}
	return Entry{
		ID: string(s.ID), Kind: kindDefinition, others: true, By: s.By, Since: s.SavedAt, Subject: s.Name, Sentinel: string(s.ID), Choices: []string{"accept"}, Command: "sentinel/accept",
		Prompt: prompt, difference: s.Difference, Pin: map[string]any{"revision": s.Revision},
	}
}

// tickets returns the oldest entries of tickets behind a position, or that of one ticket: one more than fits on the page of
// those of persons and of those of agents, which shows whether there is a further one. With each, it returns all of those of agents.
func (f family) tickets(ctx context.Context, call *command.Call, in listIn, after position) (list []Entry, err error) {
	tx, ok := call.Records.(ticket.Tx)
	if !ok {
		return nil, abi.New(abi.Internal, call.Command+": the call has no records")
	}
	for _, ofAgents := range []bool{false, true} {
		if !ofAgents && (after.others || in.By != "") {
			continue
		}
		from, n := time.Time{}, 0
		if ofAgents == after.others {
			from = after.at
		}
		err = f.opt.Tickets.Waiting(ctx, tx, ofAgents, from, func(t ticket.View, since time.Time, agent string) bool {
			e := Entry{
				ID: t.ID, Kind: kindTicket, Since: since.UTC(), Subject: t.Title, Prompt: prompt(t), State: string(t.State), Choices: t.Choices(), Command: "ticket/decide",
				others: ofAgents, By: agent,
			}
			if t.CriteriaDigest != "" {
				e.Lines, e.Pin = f.opt.Tickets.Lines(t.AcceptanceCriteria), map[string]any{"criteria_digest": t.CriteriaDigest}
			} else if t.VerifiedCommit != "" {
				e.Pin = map[string]any{"verified_commit": t.VerifiedCommit}
			}
			if after.before(e) && (in.ID == "" || in.ID == t.ID) && (in.By == "" || in.By == agent) {
				list, n = append(list, e), n+1
			}
			return n <= in.Limit || ofAgents && in.Each > 0
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// prompt says why a ticket waits, and who wrote its title if that was no person.
func prompt(t ticket.View) string {
	if t.TextBy == "" {
		return reason(t)
	}
	return reason(t) + " (title and description by " + t.TextBy + ")"
}

func reason(t ticket.View) string {
	switch {
	case t.HoldCode == ticket.WorkApproval && t.VerifiedCommit != "":
		return fmt.Sprintf("%s: commit %.12s of branch %s", t.HoldReason, t.VerifiedCommit, t.VerifiedBranch)
	case t.HoldReason != "":
		return t.HoldReason
	case len(t.ImpactFlags) > 0:
		return "a later change affects it: ticket " + t.ImpactFlags[len(t.ImpactFlags)-1].TicketID
	}
	return "it is " + string(t.State)
}

// A position is behind an entry: entries of persons come first, then they are in the order of time, then of id and
// call.
type position struct {
	others bool
	at     time.Time
	key    string
}

func positionOf(e Entry) position { return position{e.others, e.Since, e.ID + "\x00" + e.Call} }

func (p position) compare(o position) int {
	if p.others != o.others {
		if p.others {
			return 1
		}
		return -1
	}
	if c := p.at.Compare(o.at); c != 0 {
		return c
	}
	return strings.Compare(p.key, o.key)
}

// before reports whether the position is before an entry.
func (p position) before(e Entry) bool { return p.compare(positionOf(e)) < 0 }

func (p position) String() string {
	text := p.at.Format(time.RFC3339Nano) + "\x00" + p.key
	if p.others {
		text = othersMark + text
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// othersMark begins the text of a position behind an entry of an agent or a model. No time begins with it.
const othersMark = "~"

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	rest, others := strings.CutPrefix(string(raw), othersMark)
	at, key, ok := strings.Cut(rest, "\x00")
	if err == nil && ok {
		p.key, p.others = key, others
		p.at, err = time.Parse(time.RFC3339Nano, at)
	}
	if err != nil || !ok {
		return p, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "after", Message: "after: is not the next of a page"}
	}
	return p, nil
}
