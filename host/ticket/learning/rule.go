package learning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Collection has the rules.
const Collection = "ticket-rules"

// Limits.
const (
	maxText     = 1000 // bytes of a rule
	maxScope    = 20   // labels, and patterns of files
	maxEvidence = 20   // tickets that are named
	maxSeen     = 1000 // failures of one ticket that are remembered
	maxProposed = 200
	maxActive   = 500
)

// Kind is what a rule says.
type Kind string

// The kinds.
const (
	Advice  Kind = "rule"    // what to do, or to avoid
	Pattern Kind = "pattern" // what succeeded after a failure
)

// State is whether a rule is offered.
type State string

// The states.
const (
	Seen     State = "seen"     // a failure of one ticket; proposed with the second one
	Proposed State = "proposed" // offered in trials only
	Active   State = "active"
	Retired  State = "retired" // kept, so that it is not proposed again
)

// The kinds of sources.
const (
	Person       = "person"
	Agent        = "agent" // a step, or an agent that has a token
	Model        = "model"
	FromTicket   = "ticket"       // errors and feedback of attempts
	Verification = "verification" // failed checks
)

// Measurement decided about a rule that no person decided about.
const Measurement = "measurement"

// A Source is where the text of a rule comes from.
type Source struct {
	Kind    string          `json:"kind"`
	By      string          `json:"by,omitempty"` // the person or sentinel
	Ticket  string          `json:"ticket,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Run     sentinels.RunID `json:"run,omitempty"`
}

// A Scope is which tickets a rule is for. What is empty is for all.
type Scope struct {
	Project  string   `json:"project,omitempty" jsonschema:"only tickets of this project"`
	Category string   `json:"category,omitempty" jsonschema:"only after a failure of this category, such as logic, review or verification"`
	Labels   []string `json:"labels,omitempty" jsonschema:"only tickets with one of these labels"`
	Files    []string `json:"files,omitempty" jsonschema:"only tickets about files that match one of these patterns"`
}

// A Rule is one sentence that was learned or written.
type Rule struct {
	ID       string   `json:"id"`
	Kind     Kind     `json:"kind"`
	Text     string   `json:"text"`
	Scope    Scope    `json:"scope"`
	Priority int      `json:"priority"` // 1 to 100, higher first
	State    State    `json:"state"`
	Source   Source   `json:"source"`
	Evidence []string `json:"evidence,omitempty"` // ids of tickets, at most 20

	Offered   int   `json:"offered"`   // attempts whose result is known
	Succeeded int   `json:"succeeded"` // of these, not counting attempts without a verdict
	Failed    int   `json:"failed"`
	Trial     Trial `json:"trial"`

	CreatedAt time.Time  `json:"created_at"`
	DecidedAt *time.Time `json:"decided_at,omitempty"`
	DecidedBy string     `json:"decided_by,omitempty"` // who made it active or retired it
	Reason    string     `json:"reason,omitempty"`     // of a decision by measurement
}

// defaultPriority is that of rules for which none is given.
const defaultPriority = 50

// byState orders the rules of a state as they are offered.
var byState = &runtime.DocumentIndex{Collection: Collection, Name: "state", Version: 1, Values: func(d sentinels.Document) [][]any {
	var r Rule
	if json.Unmarshal(d.Data, &r) != nil {
		return nil
	}
	return [][]any{{string(r.State), runtime.Descending{Value: r.Priority}, r.CreatedAt}}
}}

// Indexes returns what a host registers.
func Indexes() []*runtime.DocumentIndex { return []*runtime.DocumentIndex{byState} }

// Options are what a Learner needs. The zero value is usable.
type Options struct {
	Now func() time.Time // default [time.Now]
	// Trials lets proposals be in the prompts of half of the attempts that they match, to
	// measure their effect. Without it only a person makes a proposal active.
	Trials bool
}

// A Learner keeps rules.
type Learner struct{ opt Options }

// New returns a Learner.
func New(opt Options) *Learner {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Learner{opt}
}

func (l *Learner) now() time.Time { return l.opt.Now().UTC().Truncate(time.Millisecond) }

func bad(field, format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// check returns the first problem of what a client may write.
func (r *Rule) check() error {
	switch {
	case strings.TrimSpace(r.Text) == "":
		return bad("text", "is empty")
	case len(r.Text) > maxText:
		return bad("text", "has %d bytes, at most %d", len(r.Text), maxText)
	case r.Kind != Advice && r.Kind != Pattern:
		return bad("kind", "%.40q: want rule or pattern", r.Kind)
	case r.Priority < 1 || r.Priority > 100:
		return bad("priority", "%d: want 1 to 100", r.Priority)
	case len(r.Scope.Labels) > maxScope || len(r.Scope.Files) > maxScope:
		return bad("scope", "labels or files are more than %d", maxScope)
	}
	for _, text := range slices.Concat([]string{r.Text, r.Scope.Project, r.Scope.Category}, r.Scope.Labels, r.Scope.Files) {
		if string(termtext.Line(text)) != text {
			return bad("text", "%.100q has control characters or characters that are not shown: want one line of plain text", text)
		}
		if len(text) > maxText {
			return bad("scope", "%.40q has %d bytes, at most %d", text, len(text), maxText)
		}
	}
	for _, pattern := range r.Scope.Files {
		if _, err := glob.Parse(pattern); err != nil {
			return bad("files", "%v", err)
		}
	}
	return nil
}

// idOf returns the id of the rule with this content.
func idOf(content ...any) string {
	text, err := json.Marshal(content)
	if err != nil { // texts and lists of them
		panic(err)
	}
	sum := sha256.Sum256(text)
	return "R-" + hex.EncodeToString(sum[:5])
}

// find returns a rule and the revision of its document, nil if there is none.
func find(ctx context.Context, tx ticket.Tx, id string) (*Rule, uint64, error) {
	doc, err := tx.Get(ctx, Collection, id)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	r := new(Rule)
	if err := json.Unmarshal(doc.Data, r); err != nil {
		return nil, 0, fmt.Errorf("read rule %s: %w", id, err)
	}
	return r, doc.Revision, nil
}

// load is find for ids that clients give.
func load(ctx context.Context, tx ticket.Tx, id string) (*Rule, uint64, error) {
	r, revision, err := find(ctx, tx, id)
	if err == nil && r == nil {
		err = &abi.Error{Code: abi.NotFound, Permanent: true, Field: "rule", Message: fmt.Sprintf("no rule %.100q", id), Hint: "ticket/rules shows those that exist"}
	}
	return r, revision, err
}

// write writes a rule on a revision of its document, and counts its change of state.
func write(ctx context.Context, tx ticket.Tx, r *Rule, was State, revision uint64) error {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = tx.Put(ctx, Collection, r.ID, data, revision)
	}
	if err == nil && r.State != was {
		err = count(ctx, tx, was, r.State)
	}
	return err
}

// counts returns how many rules are in each state.
func counts(ctx context.Context, tx ticket.Tx) (map[State]int, error) {
	n := map[State]int{}
	doc, err := tx.Get(ctx, ticket.Sequence, "rules")
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		return n, nil
	case err != nil:
		return n, err
	}
	return n, json.Unmarshal(doc.Data, &n)
}

// count writes that a rule went from one state to another; "" is outside.
func count(ctx context.Context, tx ticket.Tx, from, to State) error {
	n, err := counts(ctx, tx)
	if err != nil {
		return err
	}
	for state, by := range map[State]int{from: -1, to: 1} {
		if state != "" {
			n[state] += by
		}
	}
	data, err := json.Marshal(n)
	if err == nil {
		_, err = tx.Put(ctx, ticket.Sequence, "rules", data, sentinels.AnyRevision)
	}
	return err
}

// scan returns at most limit rules of a state, 0 for all, in the order in which they are
// offered.
func scan(ctx context.Context, tx ticket.Tx, state State, limit int) (list []Rule, err error) {
	var bad error
	err = tx.ScanIndex(ctx, byState, runtime.DocumentRange{Equal: []any{string(state)}, Limit: limit}, func(_ string, d sentinels.Document) bool {
		var r Rule
		if bad = json.Unmarshal(d.Data, &r); bad != nil {
			bad = fmt.Errorf("read rule %s: %w", d.ID, bad)
			return false
		}
		list = append(list, r)
		return true
	})
	if err == nil {
		err = bad
	}
	return list, err
}
