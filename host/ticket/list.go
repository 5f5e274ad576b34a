package ticket

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const anyRevision = sentinels.AnyRevision

// stuckAfter is how long a ticket may be in progress without a change.
const stuckAfter = 5 * time.Minute

// maxScanned bounds what one page reads.
const maxScanned = 5000

// A Filter selects tickets. Empty fields select all.
type Filter struct {
	States       []State
	Project      string
	AssigneeID   string
	AssigneeType string
	Label        string
	ParentID     string
	Query        string // words that the id, title, labels or description have, the last one as a beginning
	Stuck        bool   // in progress without a change for five minutes
	After        string // position of the last ticket of the page before
	Limit        int    // 0 is 50; at most 200
	// Redact takes secrets out of documents before they are compared with the filter; nil for none.
	Redact func([]byte) []byte
}

// A List is a page of tickets, the newest change first.
type List struct {
	Tickets []View `json:"tickets"`
	Next    string `json:"next,omitempty"` // position for the next page; empty if this is the last one
}

// List returns a page of tickets. Tickets that wait for a retry are in it.
func (s *Service) List(ctx context.Context, tx Tx, f Filter) (List, error) {
	out := List{Tickets: []View{}}
	if f.Limit <= 0 {
		f.Limit = defaultPage
	}
	f.Limit = min(f.Limit, maxPage)
	now := s.Now()
	if f.ParentID != "" {
		if _, _, err := load(ctx, tx, f.ParentID); err != nil {
			return out, err
		}
	}
	words := split(f.Query)
	x, r := f.index(words, now)
	r.After = f.After
	scanned, last := 0, ""
	var bad error
	seen := map[string]bool{}
	err := tx.ScanIndex(ctx, x, r, func(position string, d sentinels.Document) bool {
		if len(out.Tickets) == f.Limit || scanned == maxScanned || scanned > 0 && tx.ReadEnough() {
			out.Next = last
			return false
		}
		scanned, last = scanned+1, position
		var t *Ticket
		if f.Redact != nil {
			d.Data = f.Redact(d.Data)
		}
		if t, bad = read(d); bad != nil {
			return false
		}
		if !seen[t.ID] && f.matches(t, words, now) {
			seen[t.ID] = true
			out.Tickets = append(out.Tickets, t.View(now))
		}
		return true
	})
	if err == nil {
		err = bad
	}
	return out, err
}

// index returns the index that has the fewest tickets beside those that match. The index of words is
// not for a filter of redacted tickets: it has the words of secrets, also in the positions of pages.
func (f Filter) index(words []string, now time.Time) (*runtime.DocumentIndex, runtime.DocumentRange) {
	if f.Redact != nil {
		words = nil
		if string(f.Redact([]byte(f.Project))) != f.Project {
			f.Project = ""
		}
	}
	switch {
	case len(words) > 0:
		// Long words are in few tickets. The last one may be the beginning of a word.
		longest, last := slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) }), words[len(words)-1]
		if len(longest) > len(last) {
			return byWord, runtime.DocumentRange{Equal: []any{longest}}
		}
		return byWord, runtime.DocumentRange{From: []any{last}, To: []any{last + "\U0010ffff"}}
	case f.ParentID != "":
		return byParent, runtime.DocumentRange{Equal: []any{f.ParentID}}
	case f.Stuck:
		return byState, runtime.DocumentRange{Equal: []any{string(InProgress)}, From: []any{newestFirst(now.Add(-stuckAfter))}}
	case f.Project != "" && len(f.States) == 1:
		return byProject, runtime.DocumentRange{Equal: []any{f.Project, string(f.States[0])}}
	case f.Project != "":
		return byProject, runtime.DocumentRange{Equal: []any{f.Project, ""}}
	case len(f.States) == 1:
		return byState, runtime.DocumentRange{Equal: []any{string(f.States[0])}}
	}
	return byUpdate, runtime.DocumentRange{}
}

func (f Filter) matches(t *Ticket, words []string, now time.Time) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, t.State),
		f.Project != "" && t.Project != f.Project,
		f.AssigneeID != "" && t.AssigneeID != f.AssigneeID,
		f.AssigneeType != "" && t.AssigneeType != f.AssigneeType,
		f.ParentID != "" && t.ParentID != f.ParentID,
		f.Label != "" && !slices.Contains(t.Labels, f.Label),
		f.Stuck && (t.State != InProgress || now.Sub(t.UpdatedAt) < stuckAfter):
		return false
	}
	if len(words) == 0 {
		return true
	}
	have := wordsOf(t)
	for _, w := range words[:len(words)-1] {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return slices.ContainsFunc(have, func(w string) bool { return strings.HasPrefix(w, words[len(words)-1]) })
}

// Children returns the tickets that are part of another one, oldest first.
func (s *Service) Children(ctx context.Context, tx Tx, id, after string, limit int) (List, error) {
	return s.linkedViews(ctx, tx, id, byParent, after, limit)
}

// Dependents returns a page of the tickets that depend on another one.
func (s *Service) Dependents(ctx context.Context, tx Tx, id, after string, limit int) (List, error) {
	return s.linkedViews(ctx, tx, id, byDependency, after, limit)
}

// linkedViews returns a page of the tickets that an index has for another one, behind the
// position after. limit is as in [Filter].
func (s *Service) linkedViews(ctx context.Context, tx Tx, id string, x *runtime.DocumentIndex, after string, limit int) (List, error) {
	out := List{Tickets: []View{}}
	if _, _, err := load(ctx, tx, id); err != nil {
		return out, err
	}
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	now, last := s.Now(), ""
	var bad error
	err := tx.ScanIndex(ctx, x, runtime.DocumentRange{Equal: []any{id}, After: after}, func(position string, d sentinels.Document) bool {
		if len(out.Tickets) == limit {
			out.Next = last
			return false
		}
		var t *Ticket
		if t, bad = read(d); bad != nil {
			return false
		}
		out.Tickets, last = append(out.Tickets, t.View(now)), position
		return true
	})
	if err == nil {
		err = bad
	}
	return out, err
}

// Stats are numbers of tickets.
type Stats struct {
	Total  int           `json:"total"`
	States map[State]int `json:"states"`
}

// Stats returns how many tickets are in each state.
func (s *Service) Stats(ctx context.Context, tx Tx) (Stats, error) {
	out := Stats{States: map[State]int{}}
	counts, err := counts(ctx, tx)
	for state, n := range counts {
		if n > 0 {
			out.States[state] = n
			out.Total += n
		}
	}
	return out, err
}

func counts(ctx context.Context, tx Tx) (map[State]int, error) {
	n := map[State]int{}
	doc, err := tx.Get(ctx, Sequence, "states")
	switch {
	case abi.CodeOf(err) == abi.NotFound:
		return n, nil
	case err != nil:
		return n, err
	}
	return n, json.Unmarshal(doc.Data, &n)
}

// count writes that a ticket went from one state to another; "" is outside.
func count(ctx context.Context, tx Tx, from, to State) error {
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
		_, err = tx.Put(ctx, Sequence, "states", data, anyRevision)
	}
	return err
}
