package app

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Pending is an action that a run needs from a person, with the command line for it.
type Pending struct {
	Run     sentinels.RunID `json:"run"`
	Call    string          `json:"call,omitempty"`
	Name    string          `json:"question,omitempty"` // of the question, for `sentinel decide`
	Where   string          `json:"where,omitempty"`    // Call in words
	Kind    string          `json:"kind"`               // approval, doubt, limit
	Prompt  string          `json:"prompt"`
	Origin  string          `json:"origin,omitempty"` // what led to the run
	Choices []string        `json:"choices,omitempty"`
	// Deadline is when the question ends without an answer, zero for never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Expired says that it has ended so, and that a resume ends the step.
	Expired bool   `json:"expired,omitempty"`
	Type    string `json:"type"` // the command line
}

// PendingActions lists the actions that runs need. Their command lines work in the same
// folder.
func (a *App) PendingActions(runs []runtime.RunInfo) []Pending {
	var list []Pending
	for _, r := range runs {
		for _, q := range r.Decisions {
			line := fmt.Sprintf("sentinel decide%s %s", a.SameStore(), r.ID)
			p := PendingOf(r.ID, q)
			line += " " + output.Quote(cmp.Or(q.Question, q.Call)) + " " + strings.Join(q.Choices, "|")
			if q.Kind == runtime.DecisionQuarantine {
				line += " --comment WHY"
			}
			if p.Type = line; q.Expired(a.Env.Now()) {
				p.Expired, p.Choices, p.Type = true, nil, a.ResumeLine(string(r.ID))
			}
			list = append(list, p)
		}
		if r.Status == sentinels.StatusPaused && r.Limit != "" {
			list = append(list, Pending{Run: r.ID, Kind: "limit", Prompt: "the run reached its limit " + r.Limit,
				Type: fmt.Sprintf("sentinel run%s --resume %s%s", a.SameStore(), r.ID, ExtensionFlag(r.Limit))})
		}
	}
	return list
}

// PendingOf describes a pending decision, without a command line.
func PendingOf(id sentinels.RunID, q runtime.PendingDecision) Pending {
	return Pending{
		Run: id, Call: q.Call, Name: q.Question, Where: callPlace(q.Call), Kind: string(q.Kind),
		Prompt: q.Prompt, Origin: q.Origin, Choices: q.Choices, Deadline: q.Deadline,
	}
}

// callPlace says in words what the name of a pending decision means: the path of a step
// and the number of its host call.
func callPlace(call string) string {
	i := strings.LastIndexByte(call, '!')
	switch {
	case i < 0:
		return ""
	case call[i+1:] == "0": // the step as a whole
		return "step " + call[:i]
	}
	if _, err := strconv.Atoi(call[i+1:]); err != nil {
		return "background process of step " + call[:i]
	}
	return "host call " + call[i+1:] + " of step " + call[:i]
}

// Question is the prompt with the name of its call and what the name means.
func (w Pending) Question() string {
	text := w.Prompt
	if w.Where != "" {
		text = fmt.Sprintf("%s (%s: %s)", w.Prompt, w.Call, w.Where)
	}
	if until := Until(w.Deadline, w.Expired); until != "" {
		text += " [" + until + "]"
	}
	if w.Origin != "" {
		text += " [" + w.Origin + "]"
	}
	return text
}

// IsLong reports whether the question needs more than a screen, so that it may not have been seen whole.
func (w Pending) IsLong() bool { return TextLength(w.Prompt) != "" }

// TextLength says how long a text is that fills a screen, and is "" for shorter ones.
func TextLength(text string) string {
	lines := strings.Count(text, "\n") + 1
	if lines <= 20 && len(text) <= 2<<10 {
		return ""
	}
	return fmt.Sprintf(" (%d lines, %d bytes, all of it is shown)", lines, len(text))
}

// Until says until when a question can be answered, empty for one without a deadline.
func Until(deadline time.Time, expired bool) string {
	at := deadline.UTC().Format(time.RFC3339)
	switch {
	case deadline.IsZero():
		return ""
	case expired:
		return "expired at " + at
	}
	return "until " + at
}

// ResumeLine is the command line that resumes a run in the same folder.
func (a *App) ResumeLine(run string) string {
	return fmt.Sprintf("sentinel run%s --resume %s", a.SameStore(), output.Quote(run))
}

// LimitOf returns the limit that ended a run, "" for none. Runs that failed or timed out have no other reason.
func LimitOf(r runtime.RunInfo) string {
	if r.Status == sentinels.StatusFailed || r.Status == sentinels.StatusTimedOut {
		return r.Reason
	}
	return ""
}

// ExtensionFlag returns the flag that extends a limit.
func ExtensionFlag(limit string) string {
	switch limit {
	case "maxIterations":
		return " --max-iterations +N"
	case "timeoutMs":
		return " --timeout +DURATION"
	case "budget.costUsd":
		return " --budget-usd +X"
	case "budget.tokens":
		return " --budget-tokens +N"
	case "budget.calls":
		return " --budget-calls +N"
	}
	return ""
}

// OfOthers returns what the inbox shows with a question of a run: what agents or models gave the run, or changed in it, in
// lines.
func (s *Session) OfOthers(ctx context.Context, run sentinels.RunID, call string) ([]string, error) {
	var inbox struct {
		Entries []struct {
			Call  string   `json:"call"`
			Lines []string `json:"lines"`
		} `json:"entries"`
	}
	kinds := []runtime.DecisionKind{runtime.DecisionApproval, runtime.DecisionDoubt, runtime.DecisionQuarantine}
	if err := s.Call(ctx, "inbox/list", map[string]any{"id": run, "kind": kinds}, &inbox); err != nil {
		return nil, err
	}
	for _, e := range inbox.Entries {
		if e.Call == call {
			return e.Lines, nil
		}
	}
	return nil, nil
}

// ShowOfOthers is the text of the lines of [Session.OfOthers], which must not be empty.
func ShowOfOthers(run string, lines []string) termtext.Text {
	return termtext.Sprintf("what agents or models gave run %s, or changed in it:\n  %s", run, Block(strings.Join(lines, "\n")))
}
