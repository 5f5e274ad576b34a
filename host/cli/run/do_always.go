package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// always answers the questions of a task whose kind of call the user allows in its folder without one.
// Methods of a nil always do nothing.
type always struct {
	kinds  *app.AllowedCalls
	folder string
}

// always returns what is allowed in the folder of a task. It is nil for a definition that is not part of
// the program: its questions are texts of the definition, and may be those of a model. It is nil too
// where the folder is that of another machine, and for callers that are not persons.
func (a verbs) always(ctx context.Context, s *app.Session, src *app.Source) *always {
	if src.File != doFile || s.ByURL || !a.CanAsk() || a.OnlyPerson(ctx, "always") != nil {
		return nil
	}
	kinds, err := a.AllowedCalls()
	if err != nil {
		return nil // the session has reported the settings
	}
	return &always{kinds, a.Workspace()}
}

// A callKind is what `always` as an answer allows.
type callKind struct {
	name  string // as it is stored
	scope string // for people: what is allowed
}

// kind returns the kind of call that a question is about, of the run of the task itself. ok is false
// for a question that is about less, such as one line, or about something else.
func (w *always) kind(q runtime.PendingDecision) (k callKind, ok bool) {
	if w == nil || q.Kind != runtime.DecisionApproval || q.CallKind == "" {
		return callKind{}, false
	}
	scope := "with other parameters"
	switch {
	case strings.Contains(q.CallKind, " "): // a program and its words
		scope = "with other options and files"
	case slices.Contains([]string{"code/write", "code/edit", "fs/write"}, q.CallKind):
		scope = "of each file that models may write"
	}
	return callKind{q.CallKind, q.CallKind + " " + scope}, true
}

// has reports whether the user allows a kind of call without a question.
func (w *always) has(k callKind) (bool, error) { return w.kinds.Has(w.folder, k.name) }

// add allows a kind of call.
func (w *always) add(ctx context.Context, k callKind) error {
	return w.kinds.Add(ctx, w.folder, k.name)
}

// alwaysKind returns what `always` as an answer to a question allows.
func (f *follower) alwaysKind(p *prompt) (callKind, bool) {
	if p.run != f.id {
		return callKind{}, false
	}
	return f.always.kind(p.decision)
}

// answeredAlways answers a question of a kind that needs none. It reports whether it did.
func (f *follower) answeredAlways(ctx context.Context, p *prompt) bool {
	k, ok := f.alwaysKind(p)
	if !ok {
		return false
	}
	has, err := f.always.has(k)
	if err != nil {
		f.app.Report(err)
		return false
	}
	if !has {
		return false
	}
	d := runtime.Decision{Call: p.decision.Call, Question: p.decision.Question, Verdict: "approve", By: f.app.User(), Comment: "always allowed in this folder"}
	if err := sendDecision(ctx, f.session, p.run, d); err != nil {
		f.app.Report(err)
		return false
	}
	f.decided = append(f.decided, p)
	f.message(fmt.Sprintf("always allowed in this folder: %s", output.Escape(k.name)))
	return true
}

// askedAlways reports whether a line is the answer always to a question that offers it. The whole word
// is needed: the beginning of another answer must not allow more than it did.
func (f *follower) askedAlways(line string) (callKind, bool) {
	if strings.ToLower(strings.TrimSpace(line)) != "always" {
		return callKind{}, false
	}
	return f.alwaysKind(f.prompt)
}

// base is the name of the folder for a question.
func (w *always) base() string { return filepath.Base(w.folder) }
