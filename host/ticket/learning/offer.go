package learning

import (
	"context"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// How many are offered to one attempt.
const (
	maxRules    = 5
	maxPatterns = 2
)

// choose returns what a ticket's attempt is offered, the highest priority first. With a
// token those that are measured are offered at random. The place of a rule that is held out
// stays empty, so that nothing else differs between attempts with and without it. Proposals come after all
// active rules.
func (l *Learner) choose(ctx context.Context, tx ticket.Tx, t *ticket.Ticket, token uint64) (rules []Rule, o ticket.Offer, err error) {
	o = ticket.Offer{Token: token, At: l.now()}
	states := []State{Active}
	if l.opt.Trials && token != 0 {
		states = append(states, Proposed)
	}
	about := subjectOf(t)
	left := map[Kind]int{Advice: maxRules, Pattern: maxPatterns}
	for _, state := range states {
		list, err := scan(ctx, tx, state, 0)
		if err != nil {
			return nil, o, err
		}
		for _, r := range list {
			tried := token != 0 && l.measured(&r)
			if left[r.Kind] == 0 || state == Proposed && !tried || !about.matches(r.Scope) {
				continue
			}
			left[r.Kind]--
			if tried && !drawn(&r, t.ID, token) {
				o.HeldOut = append(o.HeldOut, r.ID)
				continue
			}
			if tried {
				o.Tried = append(o.Tried, r.ID)
			}
			o.Rules = append(o.Rules, r.ID)
			rules = append(rules, r)
		}
	}
	return rules, o, nil
}

// offer returns the rules for an attempt. For the holder of a claim it is recorded, and a
// repeated request gets the same rules, without those that were retired or removed since.
func (l *Learner) offer(ctx context.Context, tx ticket.Tx, s *ticket.Service, t *ticket.Ticket, token uint64) ([]Rule, error) {
	if token == 0 {
		rules, _, err := l.choose(ctx, tx, t, 0)
		return rules, err
	}
	if t.Offer != nil && t.Offer.Token == token {
		var rules []Rule
		for _, id := range t.Offer.Rules {
			r, _, err := find(ctx, tx, id)
			if err != nil {
				return nil, err
			}
			if r != nil && r.State != Retired {
				rules = append(rules, *r)
			}
		}
		return rules, nil
	}
	rules, o, err := l.choose(ctx, tx, t, token)
	if err == nil && len(o.Rules)+len(o.HeldOut) > 0 {
		err = s.RecordOffer(ctx, tx, t.ID, o)
	}
	return rules, err
}

// A subject is what scopes are compared with.
type subject struct {
	t          *ticket.Ticket
	categories []string // of the failures of earlier attempts
	files      []string
}

func subjectOf(t *ticket.Ticket) subject {
	about := subject{t: t}
	for category := range t.Retries {
		about.categories = append(about.categories, category)
	}
	if t.RetryStrategy != nil {
		about.categories = append(about.categories, string(t.RetryStrategy.ErrorCategory))
	}
	if t.RejectionCount > 0 {
		about.categories = append(about.categories, "review")
	}
	if lastFailed(t) != nil {
		about.categories = append(about.categories, string(retry.Verification))
	}
	for _, f := range t.Files {
		about.files = append(about.files, f.Path)
	}
	if t.AcceptanceCriteria != nil {
		for _, c := range t.AcceptanceCriteria.Checks {
			var names struct {
				Path string `json:"path"`
				File string `json:"file"`
			}
			if strictjson.DecodeOpen(c.Verify, &names, strictjson.Unlimited()) == nil {
				about.files = append(about.files, names.Path, names.File)
			}
		}
	}
	return about
}

func (a subject) matches(s Scope) bool {
	overlap := func(want []string, have func(string) bool) bool {
		return len(want) == 0 || slices.ContainsFunc(want, have)
	}
	return (s.Project == "" || s.Project == a.t.Project) &&
		(s.Category == "" || slices.Contains(a.categories, s.Category)) &&
		overlap(s.Labels, func(label string) bool { return slices.Contains(a.t.Labels, label) }) &&
		overlap(s.Files, func(text string) bool {
			pattern, err := glob.ParseFiles(text)
			return err == nil && slices.ContainsFunc(a.files, pattern.Match)
		})
}
