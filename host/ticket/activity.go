package ticket

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Names of events.
const (
	UpdateEvent   = "ticket:update"     // a change of state
	DueEvent      = "ticket:due"        // the delay before a retry is over
	ProgressEvent = "ticket:progress"   // another phase
	ActivityEvent = "ticket:activity"   // an entry that an agent or person reported
	PullEvent     = "pr:created"        // work was proposed, once for each pull request
	FiledEvent    = "tickets:generated" // a ticket was filed in a session
)

// An Activity is one entry of a ticket's log, which only grows.
type Activity struct {
	ID       string          `json:"id"`
	TicketID string          `json:"ticket_id"`
	AgentID  string          `json:"agent_id"` // who: an agent, a person, or "system"
	Category string          `json:"category"`
	Message  string          `json:"message,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	At       time.Time       `json:"created_at"`
}

// Limits of activities.
const (
	maxMessage     = 2000 // bytes
	maxMetadata    = 16 << 10
	defaultPage    = 50
	maxPage        = 200
	systemActor    = "system"
	maxCategory    = 64
	categoryRetry  = "ticket_retry_scheduled"
	categoryOnHold = "ticket_on_hold"
	categoryState  = "ticket_state_changed"

	categoryUpdated = "ticket_updated"
)

// Categories are those that the service and agents use. Others are accepted.
var Categories = []string{
	"ai_request", "ai_response", "code_generation", "comment", "error", "file_created", "file_modified", "git_operation", "pr_created",
	"ticket_claimed", categoryOnHold, categoryRetry, categoryState,
	"verification_error", "verification_failed", "verification_passed", "verification_phase", "verification_started",
}

// OwnCategory reports whether only the service writes entries of a category: those of tickets and verifications, also with
// other case and with characters between that a reader does not see.
func OwnCategory(category string) bool {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(category))
	return name != "verification_phase" && (strings.HasPrefix(name, "ticket_") || strings.HasPrefix(name, "verification_"))
}

// numbered returns the id of the n-th entry of a ticket, in the order of numbers.
func numbered(ticket string, n int) string { return fmt.Sprintf("%s/%08d", ticket, n) }

// note appends an activity to a ticket that its caller writes.
func (s *Service) note(ctx context.Context, tx Tx, t *Ticket, actor, category, message string, metadata any) (Activity, error) {
	t.Activities++
	a := Activity{ID: numbered(t.ID, t.Activities), TicketID: t.ID, AgentID: actor, Category: category, Message: textcut.Mark(message, maxMessage), At: s.Now()}
	var err error
	if metadata != nil {
		if a.Metadata, err = json.Marshal(metadata); err != nil {
			return a, err
		}
	}
	data, err := json.Marshal(a)
	if err == nil {
		_, err = tx.Put(ctx, Activities, a.ID, data, 0)
	}
	return a, err
}

// announce emits the event of a change. details are added to its data: from, the state
// before, with every change of it.
func (s *Service) announce(ctx context.Context, tx Tx, t *Ticket, details map[string]any) error {
	data := map[string]any{"state": t.State, "status": t.State, "title": t.Title, "verification_status": t.VerificationStatus}
	if left := t.View(s.Now()).RetryInSeconds; left != nil {
		data["retryInSeconds"] = *left
	}
	for name, value := range details {
		data[name] = value
	}
	return s.emit(ctx, tx, t, UpdateEvent, data)
}

// emit emits an event about a ticket. Its id has the number of the newest activity and the time:
// the numbers of a ticket that is filed again with the id of a deleted one begin again, and the
// event log takes no id twice.
func (s *Service) emit(ctx context.Context, tx Tx, t *Ticket, name string, data any) error {
	return s.emitAbout(ctx, tx, t, s.eventID(t, name), name, data)
}

// eventID returns the id of an event about a ticket as it is now.
func (s *Service) eventID(t *Ticket, name string) string {
	return fmt.Sprintf("%s:%s:%d", name, numbered(t.ID, t.Activities), s.Now().UnixMilli())
}

// emitAbout emits an event about a ticket, with the fields by which its reader selects
// tickets.
func (s *Service) emitAbout(ctx context.Context, tx Tx, t *Ticket, id, name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	fields["ticket_id"] = t.ID
	for name, value := range map[string]string{"project": t.Project, "session": t.Session, "parent_id": t.ParentID} {
		if value != "" {
			fields[name] = value
		}
	}
	return s.emitAs(ctx, tx, id, name, fields)
}

func (s *Service) emitAs(ctx context.Context, tx Tx, id, name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	e := sentinels.Event{ID: id, Name: name, Data: raw, Time: s.Now()}
	if s.opt.Chain != nil && ctx.Value(workKey{}) == nil {
		e.Hops, e.Path = s.opt.Chain(ctx)
	}
	return tx.Emit(ctx, e)
}

type workKey struct{}

// ofWork returns the context of a change by which the work on a ticket ends or goes on: its event begins a chain. The
// number of its attempts, verifications and reviews bounds such changes; the chain of a worker and a reviewer that start
// each other for one ticket after the other would grow with each, until a finished one could not be reported.
func ofWork(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, true)
}

// changed notes and announces a change of state.
func (s *Service) changed(ctx context.Context, tx Tx, t *Ticket, actor string, from State, details map[string]any) error {
	metadata, data := map[string]any{"from": from, "to": t.State}, map[string]any{"from": from}
	for name, value := range details {
		metadata[name], data[name] = value, value
	}
	if _, err := s.note(ctx, tx, t, actor, categoryState, fmt.Sprintf("%s to %s", from, t.State), metadata); err != nil {
		return err
	}
	return s.announce(ctx, tx, t, data)
}

// AddActivity appends an entry that an agent or person reports.
func (s *Service) AddActivity(ctx context.Context, tx Tx, id string, a Activity) (Activity, error) {
	switch {
	case a.Category == "" || len(a.Category) > maxCategory:
		return a, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "category", Message: fmt.Sprintf("category: %.80q: want 1 to %d bytes", a.Category, maxCategory),
			Hint: "usual ones are " + strings.Join(Categories, ", ")}
	case len(a.Metadata) > maxMetadata:
		return a, bad("metadata", "has %d bytes, at most %d", len(a.Metadata), maxMetadata)
	}
	var metadata any
	if len(a.Metadata) > 0 {
		metadata = a.Metadata
	}
	var out Activity
	_, err := s.change(ctx, tx, id, func(t *Ticket) error {
		var err error
		if out, err = s.note(ctx, tx, t, a.AgentID, a.Category, a.Message, metadata); err != nil {
			return err
		}
		return s.emit(ctx, tx, t, ActivityEvent, out)
	})
	return out, err
}

// A Page is a part of a log, newest first.
type Page struct {
	Activities []Activity `json:"activities"`
	Total      int        `json:"total"` // of all categories
	Limit      int        `json:"limit"`
	Offset     int        `json:"offset"`
}

// ListActivities returns a part of a ticket's log, newest first, of some categories or
// all. limit 0 is 50, and at most 200.
func (s *Service) ListActivities(ctx context.Context, tx Tx, id string, categories []string, limit, offset int) (Page, error) {
	if limit <= 0 {
		limit = defaultPage
	}
	page := Page{Activities: []Activity{}, Limit: min(limit, maxPage), Offset: max(offset, 0)}
	t, _, err := load(ctx, tx, id)
	if err != nil {
		return page, err
	}
	page.Total = t.Activities
	skip, after := page.Offset, numbered(t.ID, t.Activities+1)
	if len(categories) == 0 { // every number has an entry
		after, skip = numbered(t.ID, max(t.Activities+1-page.Offset, 0)), 0
	}
	err = tx.Scan(ctx, Activities, after, true, func(d sentinels.Document) bool {
		var a Activity
		if !strings.HasPrefix(d.ID, t.ID+"/") || json.Unmarshal(d.Data, &a) != nil {
			return false
		}
		if len(categories) > 0 && !slices.Contains(categories, a.Category) {
			return true
		}
		if skip--; skip >= 0 {
			return true
		}
		page.Activities = append(page.Activities, a)
		return len(page.Activities) < page.Limit
	})
	return page, err
}

// An Attempt is one execution of the work on a ticket, or one look at its result, such as a
// review, which has the number of the work. It is written when it ends.
type Attempt struct {
	Number    int             `json:"attempt"`
	TicketID  string          `json:"ticket_id"`
	Holder    string          `json:"agent_id,omitempty"`
	By        string          `json:"claimed_by,omitempty"` // whose the claim was
	Role      Role            `json:"role,omitempty"`
	Token     uint64          `json:"token,omitempty"`
	StartedAt *time.Time      `json:"started_at,omitempty"`
	EndedAt   time.Time       `json:"ended_at"`
	Outcome   string          `json:"outcome"` // completed, retried, on_hold, rejected, blocked, expired, released, cancelled
	Error     string          `json:"error,omitempty"`
	Strategy  *Strategy       `json:"retry_strategy,omitempty"`
	Feedback  *Feedback       `json:"sentinel_feedback,omitempty"`
	RawReply  string          `json:"raw_reply,omitempty"` // of a model, when it could not be read
	Result    json.RawMessage `json:"result,omitempty"`
	Rules     []string        `json:"rules,omitempty"` // learned ones that its prompt had
	Key       string          `json:"key,omitempty"`   // idempotency key of the report
}

// Attempt returns the number of the work that the ticket's claim is about, of that of the next
// worker if there is no claim.
func (t *Ticket) Attempt() int {
	if t.Lease == nil {
		return t.attempt(Worker)
	}
	return t.attempt(t.Lease.Role)
}

// attempt returns the number of the work of a claim: a worker begins the next one, and others look
// at the last one.
func (t *Ticket) attempt(role Role) int {
	if role == Worker {
		return t.Worked + 1
	}
	return max(t.Worked, 1)
}

// end appends an attempt of the ticket's lease, if it has one. What ends without a lease is work,
// unless it is feedback.
func (s *Service) end(ctx context.Context, tx Tx, t *Ticket, a Attempt) error {
	role := Worker
	if t.Lease != nil {
		role = t.Lease.Role
	} else if a.Feedback != nil {
		role = Reviewer
	}
	a.Number, a.TicketID, a.EndedAt = t.attempt(role), t.ID, s.Now()
	t.Attempts++
	if role == Worker {
		t.Worked++
	}
	if l := t.Lease; l != nil {
		at := l.ClaimedAt
		a.Holder, a.By, a.Role, a.Token, a.StartedAt = l.Holder, l.By, l.Role, l.Token, &at
		if t.Offer != nil && t.Offer.Token == l.Token {
			a.Rules = t.Offer.Rules
		}
	}
	data, err := json.Marshal(a)
	if err == nil {
		_, err = tx.Put(ctx, Attempts, numbered(t.ID, t.Attempts), data, 0)
	}
	return err
}

// An AttemptPage is a part of the attempts of a ticket, oldest first.
type AttemptPage struct {
	Attempts []Attempt `json:"attempts"`
	Total    int       `json:"total"`
	Limit    int       `json:"limit"`
	Offset   int       `json:"offset"`
}

// ListAttempts returns a part of the attempts of a ticket, oldest first. limit 0 is 50, and
// at most 200.
func (s *Service) ListAttempts(ctx context.Context, tx Tx, id string, limit, offset int) (AttemptPage, error) {
	if limit <= 0 {
		limit = defaultPage
	}
	page := AttemptPage{Attempts: []Attempt{}, Limit: min(limit, maxPage), Offset: max(offset, 0)}
	t, _, err := load(ctx, tx, id)
	if err != nil {
		return page, err
	}
	page.Total = t.Attempts
	page.Attempts, err = scanAttempts(ctx, tx, id, numbered(id, page.Offset), false, page.Limit) // every number has an attempt
	return page, err
}

// LastAttempts returns at most n attempts of a ticket, newest first.
func LastAttempts(ctx context.Context, tx Tx, id string, n int) ([]Attempt, error) {
	return scanAttempts(ctx, tx, id, id+"/~", true, n) // ~ is behind all digits
}

func scanAttempts(ctx context.Context, tx Tx, id, after string, reverse bool, n int) ([]Attempt, error) {
	list := []Attempt{}
	var bad error
	err := tx.Scan(ctx, Attempts, after, reverse, func(d sentinels.Document) bool {
		var a Attempt
		if !strings.HasPrefix(d.ID, id+"/") {
			return false
		}
		if bad = json.Unmarshal(d.Data, &a); bad != nil {
			bad = fmt.Errorf("read attempt %s: %w", strconv.Quote(d.ID), bad)
			return false
		}
		list = append(list, a)
		return len(list) < n
	})
	if err == nil {
		err = bad
	}
	return list, err
}
