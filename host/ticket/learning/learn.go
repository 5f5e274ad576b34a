package learning

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Learn is the Learn of [ticket.Options]: it settles the offer of an attempt, and notices
// failures that repeat and failures after which work succeeded.
func (l *Learner) Learn(ctx context.Context, tx ticket.Tx, t *ticket.Ticket, ended *ticket.Attempt) error {
	if err := l.settle(ctx, tx, t, ended); err != nil {
		return err
	}
	if ended == nil {
		return nil
	}
	found := failures(ended)
	if ended.Role == ticket.Worker {
		found = append(found, failedChecks(t)...)
	}
	for _, f := range found {
		if err := l.notice(ctx, tx, t, ended, f); err != nil {
			return err
		}
	}
	if t.State == ticket.Done {
		return l.recovered(ctx, tx, t)
	}
	return nil
}

// settle counts for the rules of an offer what became of the attempt. Work waits for its
// verdict while a reviewer, a deployer or a person has it. Work that was given back, whose
// claim expired, or that a model or network kept from ending has none.
func (l *Learner) settle(ctx context.Context, tx ticket.Tx, t *ticket.Ticket, ended *ticket.Attempt) error {
	o := t.Offer
	if o == nil {
		return nil
	}
	own := ended != nil && ended.Token == o.Token
	verdict := 0
	switch {
	case t.State == ticket.Done:
		verdict = 1
	case ended != nil && ended.Outcome == "rejected":
		verdict = -1
	case own && ended.Outcome == string(ticket.Blocked) && t.HoldCode == ticket.MaxVerified:
		verdict = -1
	case own && slices.Contains([]string{"retried", string(ticket.OnHold), string(ticket.Cancelled)}, ended.Outcome):
		if ended.Strategy == nil || ended.Strategy.ErrorCategory != retry.API {
			verdict = -1
		}
	case t.State == ticket.InReview, t.State == ticket.Approved, t.State == ticket.Blocked,
		t.Lease != nil && t.Lease.Token == o.Token:
		return nil
	}
	t.Offer = nil
	for _, id := range slices.Concat(o.Rules, o.HeldOut) {
		r, revision, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		if r == nil { // removed
			continue
		}
		was := r.State
		l.credit(r, o, verdict)
		if err := write(ctx, tx, r, was, revision); err != nil {
			return err
		}
	}
	return nil
}

// A failure is one as it is compared with those of other tickets.
type failure struct {
	category, detail, text string
	source                 string // kind of the source
}

const maxQuote = 400

// maxFound bounds the failures of one attempt that are compared.
const maxFound = 10

// failures returns the failures of an attempt that work could have avoided.
func failures(a *ticket.Attempt) (found []failure) {
	if s := a.Strategy; s != nil && s.ErrorCategory != retry.API && a.Outcome != "expired" {
		found = append(found, failure{string(s.ErrorCategory), s.ErrorSubcategory, a.Error, FromTicket})
	}
	if a.Feedback != nil && a.Outcome == "rejected" {
		for _, item := range a.Feedback.Items {
			found = append(found, failure{"review", "", item, FromTicket})
		}
	}
	return normal(found)
}

// A check is a failed one of a ticket's verification log.
type check struct {
	ID      string `json:"check_id"`
	Message string `json:"message"`
}

// lastFailed returns the checks that failed in the newest verification in which any did.
func lastFailed(t *ticket.Ticket) []check {
	for _, raw := range slices.Backward(t.VerificationLog) {
		var entry struct {
			Failed []check `json:"failed"`
		}
		if json.Unmarshal(raw, &entry) == nil && len(entry.Failed) > 0 {
			return entry.Failed
		}
	}
	return nil
}

// failedChecks returns the failures of a ticket's newest verification that failed.
func failedChecks(t *ticket.Ticket) (found []failure) {
	types := map[string]string{}
	if t.AcceptanceCriteria != nil {
		for _, c := range t.AcceptanceCriteria.Checks {
			types[c.ID] = c.Type
		}
	}
	for _, c := range lastFailed(t) {
		found = append(found, failure{string(retry.Verification), types[c.ID], c.Message, Verification})
	}
	return normal(found)
}

// varying is what differs between two occurrences of a failure: numbers, hashes, times.
var varying = lazyregexp.New(`0x[0-9a-fA-F]+|\b[0-9a-fA-F]{7,}(-[0-9a-fA-F]{4,})*\b|[0-9]+`)

// normal makes texts of failures comparable, and removes empty and repeated ones.
func normal(list []failure) (out []failure) {
	for _, f := range list {
		f.text = normalise(f.text)
		f.category, f.detail = clean(f.category), clean(f.detail)
		if f.text != "" && !slices.Contains(out, f) && len(out) < maxFound {
			out = append(out, f)
		}
	}
	return out
}

// normalise returns the first line of a text with what varies replaced by #, and what is
// not plain text by ?.
func normalise(text string) string {
	for line := range strings.Lines(textcut.Cut(text, 4*maxQuote)) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return textcut.Cut(varying.ReplaceAllString(clean(line), "#"), maxQuote)
		}
	}
	return ""
}

// clean replaces characters that are not plain text by ?, and double quotes, which delimit
// quotations in rules.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == '\ufffd' || string(termtext.Line(string(r))) != string(r):
			return '?'
		}
		return r
	}, textcut.Cut(strings.ToValidUTF8(text, "?"), maxText))
}

// name returns the category and detail of a failure.
func (f failure) name() string {
	return strings.TrimSuffix(path.Join(f.category, f.detail), "/general")
}

// notice counts a ticket for a failure; the second ticket makes it a proposal.
func (l *Learner) notice(ctx context.Context, tx ticket.Tx, t *ticket.Ticket, a *ticket.Attempt, f failure) error {
	return l.found(ctx, tx, t, Rule{
		ID: idOf("failure", t.Project, f.category, f.detail, f.text), Kind: Advice, State: Seen,
		Text:   fmt.Sprintf("Earlier work failed with this %s failure: \"%s\"", f.name(), f.text),
		Source: Source{Kind: f.source, Ticket: t.ID, Attempt: a.Number},
	})
}

// found writes a rule that was found, or adds a ticket to the evidence of one that exists.
// Neither changes the text of a rule.
func (l *Learner) found(ctx context.Context, tx ticket.Tx, t *ticket.Ticket, r Rule) error {
	old, revision, err := find(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	was := State("")
	if old == nil {
		if err := forget(ctx, tx); err != nil {
			return err
		}
		r.Priority, r.CreatedAt = defaultPriority, l.now()
		if r.Scope.Project = t.Project; r.check() != nil {
			return nil // such as a project that is not plain text
		}
	} else {
		if slices.Contains(old.Evidence, t.ID) || len(old.Evidence) == maxEvidence {
			return nil
		}
		r, was = *old, old.State
	}
	r.Evidence = append(r.Evidence, t.ID)
	if r.State == Seen && (r.Kind == Pattern || len(r.Evidence) > 1) {
		switch err := room(ctx, tx, Seen, Proposed); {
		case err == nil:
			r.State = Proposed
		case abi.CodeOf(err) != abi.Limit:
			return err
		}
	}
	return write(ctx, tx, &r, was, revision)
}

// forget removes the oldest failure of one ticket if there are too many.
func forget(ctx context.Context, tx ticket.Tx) error {
	n, err := counts(ctx, tx)
	if err != nil || n[Seen] < maxSeen {
		return err
	}
	oldest, err := scan(ctx, tx, Seen, 1)
	if err != nil || len(oldest) == 0 {
		return err
	}
	if err := tx.Delete(ctx, Collection, oldest[0].ID, sentinels.AnyRevision); err != nil {
		return err
	}
	return count(ctx, tx, Seen, "")
}

// maxLooked bounds the attempts of a ticket that are looked at.
const maxLooked = 20

// recovered proposes a pattern for a ticket that is done after a failure: what failed, and
// what passed.
func (l *Learner) recovered(ctx context.Context, tx ticket.Tx, t *ticket.Ticket) error {
	attempts, err := ticket.LastAttempts(ctx, tx, t.ID, maxLooked)
	if err != nil {
		return err
	}
	var passed *ticket.Attempt
	failed := failedChecks(t)
	for i, a := range attempts {
		if passed == nil && a.Role == ticket.Worker && a.Outcome == "completed" {
			passed = &attempts[i]
		}
		if passed != nil && len(failed) == 0 {
			failed = failures(&attempts[i])
		}
	}
	if passed == nil || len(failed) == 0 {
		return nil
	}
	f := failed[0]
	text := fmt.Sprintf("After the %s failure \"%s\" attempt %d succeeded.", f.name(), f.text, passed.Number)
	if what := normalise(summary(passed.Result)); what != "" {
		text += fmt.Sprintf(" It reported \"%s\".", textcut.Mark(what, 200))
	}
	var files []string
	for _, file := range t.Files {
		if len(files) < 5 {
			files = append(files, textcut.Mark(clean(file.Path), 50))
		}
	}
	if len(files) > 0 {
		text += fmt.Sprintf(" Changed files: \"%s\".", strings.Join(files, ", "))
	}
	return l.found(ctx, tx, t, Rule{
		ID: idOf("recovery", t.Project, f.category, f.detail, f.text), Kind: Pattern, State: Seen, Text: textcut.Mark(text, maxText), Scope: Scope{Category: f.category},
		Source: Source{Kind: f.source, Ticket: t.ID, Attempt: passed.Number},
	})
}

// summary returns the text of a result.
func summary(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	var fields struct{ Summary, Message string }
	if json.Unmarshal(result, &fields) == nil {
		if fields.Summary != "" {
			return fields.Summary
		}
		return fields.Message
	}
	return ""
}
