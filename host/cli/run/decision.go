package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A prompt is a question on the terminal that is not answered yet. Methods of a
// nil prompt do nothing.
type prompt struct {
	run      sentinels.RunID
	decision runtime.PendingDecision
	others   []string // lines of [app.Session.OfOthers]
	typed    <-chan string
}

// lines is nil while nothing is asked: a nil channel is never ready.
func (p *prompt) lines() <-chan string {
	if p == nil {
		return nil
	}
	return p.typed
}

// same reports whether q is the same question. A step that is executed again may ask at the
// same call, at a later time.
func (p *prompt) same(q *prompt) bool {
	return p.run == q.run && p.decision.Call == q.decision.Call && p.decision.Since.Equal(q.decision.Since)
}

// statusChanged looks whether there is something new to ask, or the question on
// the terminal was answered elsewhere.
func (f *follower) statusChanged(ctx context.Context, run sentinels.RunID) {
	if !f.app.CanAsk() {
		return
	}
	if f.prompt != nil && f.prompt.run == run && !f.open(ctx, *f.prompt) {
		ended := "the decision was made elsewhere"
		if at := f.prompt.decision.Deadline; !at.IsZero() && !f.app.Env.Now().Before(at) {
			ended = "the time limit of the question has ended"
		}
		f.endPrompt(false)
		f.message(ended)
	}
	f.askNext(ctx)
}

// open reports whether a question still waits.
func (f *follower) open(ctx context.Context, p prompt) bool {
	info, err := f.session.RunInfo(ctx, p.run)
	return err == nil && slices.ContainsFunc(info.Decisions, func(q runtime.PendingDecision) bool { return (&prompt{run: p.run, decision: q}).same(&p) })
}

// askNext asks for the oldest pending decision, if none is on the terminal.
func (f *follower) askNext(ctx context.Context) {
	if f.prompt != nil {
		return
	}
	runs, err := f.tree(ctx)
	if err != nil {
		return
	}
	var next *prompt
	for _, r := range runs {
		for _, q := range r.Decisions {
			if next == nil || q.Since.Before(next.decision.Since) {
				next = &prompt{run: r.ID, decision: q}
			}
		}
	}
	if next == nil {
		return
	}
	if f.answeredAlways(ctx, next) {
		f.askNext(ctx)
		return
	}
	if next.others, err = f.session.OfOthers(ctx, next.run, next.decision.Call); err != nil {
		f.app.Report(fmt.Errorf("what agents or models gave run %s is not shown: %w", next.run, err))
	}
	// What was typed before the question was shown does not answer it.
	typed, early := f.app.FreshLines()
	next.typed = typed
	f.prompt = next
	f.view.hold(true)
	if early > 0 {
		f.app.Info("ignored %s, typed before this question", output.Plural(early, "line", "lines"))
	}
	f.question(*next)
}

// undecided returns the decisions that a run waits for and that were not made here.
func (f *follower) undecided(r runtime.RunInfo) []runtime.PendingDecision {
	return slices.DeleteFunc(slices.Clone(r.Decisions), func(q runtime.PendingDecision) bool {
		return slices.ContainsFunc(f.decided, (&prompt{run: r.ID, decision: q}).same)
	})
}

// question writes a prompt below what has scrolled by. What a call in doubt may be
// decided as is explained, because these words are rarely used. The ids are for other
// terminals; a task asks one question after the other, here.
func (f *follower) question(p prompt) {
	a := f.app
	words := map[string]termtext.Text{
		"retry": "make the call again", "skip": "treat it as done (JSON after it is its result)", "fail": "treat it as failed",
		"approve": "", "reject": "",
	}
	if p.decision.Kind == runtime.DecisionQuarantine {
		words = map[string]termtext.Text{"retry": "execute the step again; write why after it", "fail": "fail the step"}
	}
	head, rest, more := strings.Cut(strings.TrimRight(p.decision.Prompt, "\n"), "\n")
	ids := termtext.Text("")
	if !f.task || p.run != f.id {
		ids = "  " + a.Paint.Dim(termtext.Sprintf("run %s call %s", output.ShortID(p.run), p.decision.Call))
	}
	a.PrintErr("%s %s%s\n", a.Paint.Strong("?"), output.Escape(head), ids)
	if more {
		a.PrintErr("  %s\n", colourDiff(a.Paint, app.Block(rest)))
	}
	if length := app.TextLength(p.decision.Prompt); length != "" {
		a.PrintErr("  %s\n", a.Paint.Dim(output.Escape("the question above"+length)))
	}
	if until := app.Until(p.decision.Deadline, false); until != "" {
		a.PrintErr("  %s\n", a.Paint.Dim(output.Escape(until)))
	}
	if p.decision.Origin != "" {
		a.PrintErr("  %s\n", a.Paint.Dim(output.Escape(p.decision.Origin)))
	}
	if len(p.others) > 0 {
		a.PrintErr("  %s\n", colourDiff(a.Paint, app.ShowOfOthers(string(p.run), p.others)))
	}
	for _, c := range p.decision.Choices {
		if w := words[c]; w != "" {
			a.PrintErr("  %-7s %s\n", c, a.Paint.Dim(w))
		}
	}
	choices := strings.Join(p.decision.Choices, " / ")
	if p.decision.Kind == runtime.DecisionApproval {
		choices = "approve (y) / reject (n, or n and why)"
	}
	if k, ok := f.alwaysKind(&p); ok {
		a.PrintErr("  %-7s %s\n", "always", a.Paint.Dim(termtext.Sprintf("approve, and ask no more in %s about %s", f.always.base(), k.scope)))
		choices = "approve (y) / always / reject (n, or n and why)"
	}
	a.PrintErr("%s: ", choices)
}

// colourDiff colours the lines of a unified diff within a text that is escaped already. Lines
// before the diff stay as they are.
func colourDiff(paint output.Palette, text termtext.Text) termtext.Text {
	lines := strings.Split(string(text), "\n")
	within := false
	for i, line := range lines {
		plain := strings.TrimPrefix(line, "  ")
		if !within && strings.HasPrefix(plain, "--- ") && i+1 < len(lines) && strings.HasPrefix(strings.TrimPrefix(lines[i+1], "  "), "+++ ") {
			within = true
		}
		if !within || plain == "" {
			continue
		}
		switch plain[0] {
		case '+':
			lines[i] = string(paint.Good(termtext.Text(line)))
		case '-':
			lines[i] = string(paint.Bad(termtext.Text(line)))
		case '@':
			lines[i] = string(paint.Dim(termtext.Text(line)))
		}
	}
	return termtext.Text(strings.Join(lines, "\n"))
}

// endPrompt gives the terminal back to the view. Unless the user typed a line, the
// cursor is still behind the question.
func (f *follower) endPrompt(typed bool) {
	if f.prompt != nil {
		f.prompt = nil
		if !typed {
			f.app.PrintErr("\n")
		}
		f.view.hold(false)
	}
}

// answer takes a line that was typed. Text after the decision is the
// comment, or for skip the result if it is JSON.
func (f *follower) answer(ctx context.Context, line string, ok bool) {
	p := f.prompt
	if !ok { // standard input has ended: continue without it
		f.app.StdinClosed = true
		f.endPrompt(false)
		return
	}
	kind, always := f.askedAlways(line)
	if always {
		line = "approve always allowed in this folder"
	}
	d, err := decisionOf(line, p.decision)
	if err == nil && always {
		err = f.always.add(ctx, kind)
	}
	if err == nil {
		d.By = f.app.User()
		err = sendDecision(ctx, f.session, p.run, d)
	}
	if err != nil {
		f.app.Report(err)
		if f.open(ctx, *p) {
			f.question(*p)
			return
		}
	}
	f.decided = append(f.decided, p)
	f.endPrompt(true)
	f.askNext(ctx)
}

// decisionOf reads an answer; the beginning of a choice is enough where it
// leads to one.
func decisionOf(line string, q runtime.PendingDecision) (runtime.Decision, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	if q.Kind == runtime.DecisionApproval {
		switch strings.ToLower(word) {
		case "y", "yes":
			word = "approve"
		case "n", "no":
			word = "reject"
		}
	}
	verdict, ok := choose(word, q.Choices)
	if !ok {
		return runtime.Decision{}, app.NewUsageError(fmt.Sprintf("invalid decision %q", word), "the choices are "+strings.Join(q.Choices, ", "))
	}
	d := runtime.Decision{Call: q.Call, Question: q.Question, Verdict: verdict}
	if verdict != "skip" || !json.Valid([]byte(rest)) {
		d.Comment = rest
		return d, nil
	}
	if err := strictjson.Check([]byte(rest), app.JSONLimits); err != nil {
		return runtime.Decision{}, app.NewUsageError("result: "+err.Error(), "")
	}
	d.Result = json.RawMessage(rest)
	return d, nil
}

// choose finds the one choice that word is, or begins.
func choose(word string, choices []string) (string, bool) {
	var fits []string
	for _, c := range choices {
		if c == word {
			return c, true
		}
		if word != "" && strings.HasPrefix(c, strings.ToLower(word)) {
			fits = append(fits, c)
		}
	}
	if len(fits) != 1 {
		return "", false
	}
	return fits[0], true
}

// sendDecision answers what a run waits for.
func sendDecision(ctx context.Context, s *app.Session, id sentinels.RunID, d runtime.Decision) error {
	params := map[string]any{"run": id, "verdict": d.Verdict, "by": d.By}
	if d.Call != "" {
		params["call"] = d.Call
	}
	if d.Question != "" {
		params["question"] = d.Question
	}
	if d.Comment != "" {
		params["comment"] = d.Comment
	}
	if d.Result != nil {
		params["result"] = d.Result
	}
	return s.Call(ctx, "sentinel/decide", params, nil)
}
